// Intervals of Dims.

#include <algorithm>
#include <limits>

#include "ops/dim.h"
#include "ops/dim_internal.h"

namespace cleave {
namespace {

using Kind = DimAtom::Kind;
using Interval = Dim::Interval;
using Bound = std::optional<int64_t>;

Bound Narrow(__int128 value) {
  if (value != static_cast<int64_t>(value)) return std::nullopt;
  return static_cast<int64_t>(value);
}

Bound Plus(Bound a, Bound b) {
  if (!a || !b) return std::nullopt;
  return Narrow(static_cast<__int128>(*a) + *b);
}

Interval Scale(const Interval& x, int64_t factor) {
  const auto times = [&](Bound side) -> Bound {
    if (!side) return std::nullopt;
    return Narrow(static_cast<__int128>(*side) * factor);
  };
  if (factor >= 0) return {times(x.low), times(x.high)};
  return {times(x.high), times(x.low)};
}

// 0 times unbounded is 0: unbounded is not infinite.
Interval Times(const Interval& x, const Interval& y) {
  const auto is_non_negative = [](const Interval& i) {
    return i.low && *i.low >= 0;
  };
  if (x.low && x.high && x.low == x.high) return Scale(y, *x.low);
  if (y.low && y.high && y.low == y.high) return Scale(x, *y.low);
  if (is_non_negative(x) && is_non_negative(y)) {
    Interval result;
    result.low = Narrow(static_cast<__int128>(*x.low) * *y.low);
    // A product too large for 64 bits is at least the largest number.
    if (!result.low) result.low = std::numeric_limits<int64_t>::max();
    if (x.high && y.high) {
      result.high = Narrow(static_cast<__int128>(*x.high) * *y.high);
    }
    return result;
  }
  if (!x.low || !x.high || !y.low || !y.high) return {};
  Interval result;
  bool first = true;
  __int128 low = 0, high = 0;
  for (int64_t a : {*x.low, *x.high}) {
    for (int64_t b : {*y.low, *y.high}) {
      const __int128 product = static_cast<__int128>(a) * b;
      low = first ? product : std::min(low, product);
      high = first ? product : std::max(high, product);
      first = false;
    }
  }
  return {Narrow(low), Narrow(high)};
}

Interval FloorDivBounds(const Interval& a, const Interval& b) {
  // Divisors are nonzero where the quotient exists. A divisor of unknown or
  // negative sign is rare; its quotient gets no bounds.
  if (!b.low || *b.low < 0) return {};
  const int64_t least = std::max<int64_t>(*b.low, 1);
  Interval result;
  if (a.low) {
    if (*a.low < 0) {
      result.low = FloorDivide(*a.low, least);
    } else {
      result.low = b.high && *b.high > 0 ? *a.low / *b.high : 0;
    }
  }
  if (a.high) {
    if (*a.high >= 0) {
      result.high = *a.high / least;
    } else {
      result.high = b.high && *b.high > 0 ? FloorDivide(*a.high, *b.high) : -1;
    }
  }
  return result;
}

Interval ModBounds(const Interval& a, const Interval& b) {
  Interval result;
  if (b.low && *b.low >= 0) {
    result.low = 0;
    if (b.high && *b.high > 0) result.high = *b.high - 1;
    // 0 <= a % b <= a for a >= 0
    if (a.low && *a.low >= 0 && a.high) {
      result.high = result.high ? std::min(*result.high, *a.high) : *a.high;
    }
    return result;
  }
  if (b.low) result.low = *b.low + 1;
  if (b.high) result.high = *b.high > 0 ? *b.high - 1 : 0;
  return result;
}

Interval MinMaxBounds(const DimAtom& atom) {
  const bool is_min = atom.kind == Kind::kMin;
  Interval result = atom.args[0].Bounds();
  for (size_t i = 1; i < atom.args.size(); ++i) {
    const Interval next = atom.args[i].Bounds();
    // The side that one argument decides, and the side that needs all.
    const auto any = [&](Bound x, Bound y) -> Bound {
      if (!x || !y) return x ? x : y;
      return is_min ? std::min(*x, *y) : std::max(*x, *y);
    };
    const auto all = [&](Bound x, Bound y) -> Bound {
      if (!x || !y) return std::nullopt;
      return is_min ? std::min(*x, *y) : std::max(*x, *y);
    };
    result.low = is_min ? all(result.low, next.low) : any(result.low, next.low);
    result.high =
        is_min ? any(result.high, next.high) : all(result.high, next.high);
  }
  return result;
}

}  // namespace

Interval DimBuilder::AtomBounds(const DimAtom& atom) {
  switch (atom.kind) {
    case Kind::kVariable:
      return {0, std::nullopt};
    case Kind::kFloorDiv:
      return FloorDivBounds(atom.args[0].Bounds(), atom.args[1].Bounds());
    case Kind::kMod:
      return ModBounds(atom.args[0].Bounds(), atom.args[1].Bounds());
    case Kind::kMin:
    case Kind::kMax:
      return MinMaxBounds(atom);
  }
  return {};
}

Interval DimBuilder::MonomialBounds(const DimMonomial& monomial) {
  Interval result = {1, 1};
  for (const DimFactor& factor : monomial) {
    Interval power = {1, 1};
    for (int i = 0; i < factor.power; ++i) {
      power = Times(power, factor.atom->bounds);
    }
    if (factor.power % 2 == 0 && (!power.low || *power.low < 0)) power.low = 0;
    result = Times(result, power);
  }
  return result;
}

Interval Dim::Bounds() const {
  if (IsConstant()) return {constant_, constant_};
  if (!valid()) return {};
  Interval result = {0, 0};
  for (const DimTerm& term : rep_->terms) {
    const Interval part =
        Scale(DimBuilder::MonomialBounds(term.monomial), term.coefficient);
    result.low = Plus(result.low, part.low);
    result.high = Plus(result.high, part.high);
  }
  return result;
}

}  // namespace cleave
