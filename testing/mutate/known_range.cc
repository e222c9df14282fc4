#include "testing/mutate/known_range.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cleave {
namespace {

// Whether every number of a is below every number of b.
bool AreBelow(const KnownRange& a, const KnownRange& b) {
  return a.high < b.low || (a.high == b.low && (a.high_open || b.low_open));
}

// Whether no number of a is above one of b.
bool AreNotAbove(const KnownRange& a, const KnownRange& b) {
  return a.high <= b.low;
}

bool AreNumbers(const KnownRange& a, const KnownRange& b) {
  return !a.may_be_nan && !b.may_be_nan;
}

std::optional<bool> Below(const KnownRange& a, const KnownRange& b) {
  if (AreBelow(a, b) && AreNumbers(a, b)) return true;
  // A comparison with a NaN does not hold either.
  if (AreNotAbove(b, a)) return false;
  return std::nullopt;
}

std::optional<bool> NotAbove(const KnownRange& a, const KnownRange& b) {
  if (AreNotAbove(a, b) && AreNumbers(a, b)) return true;
  if (AreBelow(b, a)) return false;
  return std::nullopt;
}

std::optional<bool> Equal(const KnownRange& a, const KnownRange& b) {
  if (AreBelow(a, b) || AreBelow(b, a)) return false;
  if (a.IsOneNumber() && b.IsOneNumber() && a.low == b.low) return true;
  return std::nullopt;
}

}  // namespace

KnownRange KnownRange::Of(double number) {
  KnownRange range;
  if (std::isnan(number)) return range;
  range.low = range.high = number;
  range.may_be_nan = false;
  return range;
}

KnownRange KnownRange::OfDType(DType dtype) {
  KnownRange range;
  range.may_be_nan = IsFloat(dtype) || IsComplex(dtype);
  return range;
}

KnownRange KnownRange::AtLeast(double low, bool may_be_nan) {
  KnownRange range;
  range.low = low;
  range.may_be_nan = may_be_nan;
  return range;
}

KnownRange KnownRange::Extremum(KnownRange a, KnownRange b, bool max) {
  if (!max) return Extremum(a.Negated(), b.Negated(), true).Negated();
  KnownRange range;
  range.may_be_nan = a.may_be_nan || b.may_be_nan;
  if (b.low > a.low || (b.low == a.low && b.low_open)) std::swap(a, b);
  range.low = a.low;
  range.low_open = a.low_open;
  if (b.high > a.high || (b.high == a.high && !b.high_open)) std::swap(a, b);
  range.high = a.high;
  range.high_open = a.high_open;
  return range;
}

void KnownRange::Meet(const KnownRange& other) {
  if (other.low > low) {
    low = other.low;
    low_open = other.low_open;
  } else if (other.low == low) {
    low_open |= other.low_open;
  }
  if (other.high < high) {
    high = other.high;
    high_open = other.high_open;
  } else if (other.high == high) {
    high_open |= other.high_open;
  }
  may_be_nan &= other.may_be_nan;
}

void KnownRange::Join(const KnownRange& other) {
  if (other.low < low) {
    low = other.low;
    low_open = other.low_open;
  } else if (other.low == low) {
    low_open &= other.low_open;
  }
  if (other.high > high) {
    high = other.high;
    high_open = other.high_open;
  } else if (other.high == high) {
    high_open &= other.high_open;
  }
  may_be_nan |= other.may_be_nan;
}

KnownRange KnownRange::Negated() const {
  KnownRange range = *this;
  range.low = -high;
  range.low_open = high_open;
  range.high = -low;
  range.high_open = low_open;
  return range;
}

KnownRange KnownRange::Magnitude() const {
  if (low >= 0) return *this;
  if (high <= 0) return Negated();
  KnownRange range = Extremum(*this, Negated(), true);
  range.low = 0;
  range.low_open = false;
  return range;
}

KnownRange KnownRange::WhereMagnitudeIs() const {
  KnownRange range;
  range.low = -high;
  range.high = high;
  range.low_open = range.high_open = high_open;
  range.may_be_nan = may_be_nan;
  return range;
}

bool KnownRange::IsOneNumber() const {
  return low == high && !low_open && !high_open && !may_be_nan;
}

bool KnownRange::IsFinite() const {
  return (low_open || !std::isinf(low)) && (high_open || !std::isinf(high));
}

std::string KnownRange::Key() const {
  return absl::StrCat(low_open ? "(" : "[", absl::StrFormat("%a,%a", low, high),
                      high_open ? ")" : "]", may_be_nan ? "n" : "");
}

std::optional<bool> Compared(Primitive comparison, const KnownRange& a,
                             const KnownRange& b) {
  const auto negation = [](std::optional<bool> holds) {
    return holds ? std::optional<bool>(!*holds) : std::nullopt;
  };
  switch (comparison) {
    case Primitive::kLt:
      return Below(a, b);
    case Primitive::kLe:
      return NotAbove(a, b);
    case Primitive::kGt:
      return Below(b, a);
    case Primitive::kGe:
      return NotAbove(b, a);
    case Primitive::kEq:
      return Equal(a, b);
    case Primitive::kNe:
      return negation(Equal(a, b));
    default:
      return std::nullopt;
  }
}

}  // namespace cleave
