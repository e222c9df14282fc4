// Intervals, three-valued comparison and linear facts.

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/check.h"
#include "ops/dim.h"
#include "ops/dim_internal.h"

namespace cleave {
namespace {

using Kind = DimAtom::Kind;
using Interval = Dim::Interval;
using Bound = std::optional<int64_t>;

// Fourier-Motzkin gives up beyond these: the answer is then "unknown".
constexpr size_t kMaxInequalities = 160;
constexpr size_t kMaxFacts = 64;
// Levels of case distinction over the arguments of min and max.
constexpr int kMaxCaseSplits = 3;

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
  // Divisors are nonzero where the quotient exists. Those of unknown or
  // negative sign are rare; nothing is said of them.
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
  Interval result = {0, 0};
  for (const DimTerm& term : rep_->terms) {
    const Interval part =
        Scale(DimBuilder::MonomialBounds(term.monomial), term.coefficient);
    result.low = Plus(result.low, part.low);
    result.high = Plus(result.high, part.high);
  }
  return result;
}

namespace {

bool BoundedBelowByZero(const Dim& dim) {
  const Bound low = dim.Bounds().low;
  return low && *low >= 0;
}

// The facts of a proof, each >= 0. Facts that overflow are left out: a proof
// may be missed then, never a wrong one found.
class Facts {
 public:
  void Add(const absl::StatusOr<Dim>& fact) {
    if (!fact.ok() || fact->IsConstant() || dims_.size() >= kMaxFacts) return;
    if (std::find(dims_.begin(), dims_.end(), *fact) == dims_.end()) {
      dims_.push_back(*fact);
    }
  }
  // a - b >= 0
  void AddGe(const absl::StatusOr<Dim>& a, const absl::StatusOr<Dim>& b) {
    if (a.ok() && b.ok()) Add(Dim::CheckedSub(*a, *b));
  }
  const std::vector<Dim>& dims() const { return dims_; }

 private:
  std::vector<Dim> dims_;
};

// The laws of floordiv, mod, min and max that are linear.
void AddAtomLaws(const DimAtomPtr& atom, Facts* facts) {
  const auto self = DimBuilder::FromTerms({{{{atom, 1}}, 1}});
  if (!self.ok()) return;
  switch (atom->kind) {
    case Kind::kVariable:
      return;
    case Kind::kMin:
      for (const Dim& arg : atom->args) facts->AddGe(arg, *self);
      return;
    case Kind::kMax:
      for (const Dim& arg : atom->args) facts->AddGe(*self, arg);
      return;
    case Kind::kFloorDiv: {
      // b (a // b) <= a <= b (a // b) + b - 1 for b > 0; where b = 0 there is
      // no value.
      const Dim& b = atom->args[1];
      if (!BoundedBelowByZero(b)) return;
      const auto product = Dim::CheckedMul(*self, b);
      facts->AddGe(atom->args[0], product);
      if (!product.ok()) return;
      const auto next = Dim::CheckedAdd(*product, b);
      if (next.ok()) facts->AddGe(Dim::CheckedSub(*next, 1), atom->args[0]);
      return;
    }
    case Kind::kMod:
      if (!BoundedBelowByZero(atom->args[1])) return;
      facts->AddGe(Dim::CheckedSub(atom->args[1], 1), *self);
      if (BoundedBelowByZero(atom->args[0])) {
        facts->AddGe(atom->args[0], *self);
      }
      return;
  }
}

void CollectAtoms(const Dim& dim, std::vector<DimAtomPtr>* atoms) {
  for (const DimTerm& term : DimBuilder::Terms(dim)) {
    for (const DimFactor& factor : term.monomial) {
      const auto same = [&](const DimAtomPtr& known) {
        return DimBuilder::OrderAtoms(*known, *factor.atom) == 0;
      };
      if (std::none_of(atoms->begin(), atoms->end(), same)) {
        atoms->push_back(factor.atom);
      }
    }
  }
}

Facts FactsFor(const Dim& dim, const std::vector<Dim>& given) {
  Facts facts;
  for (const Dim& fact : given) facts.Add(fact);
  std::vector<DimAtomPtr> atoms;
  CollectAtoms(dim, &atoms);
  for (const Dim& fact : given) CollectAtoms(fact, &atoms);
  // Laws bring further atoms in; a few rounds reach what matters.
  for (size_t i = 0; i < atoms.size() && i < kMaxFacts; ++i) {
    AddAtomLaws(atoms[i], &facts);
    for (const Dim& arg : atoms[i]->args) CollectAtoms(arg, &atoms);
  }
  bool nonlinear = false;
  for (const DimTerm& term : DimBuilder::Terms(dim)) {
    if (DimBuilder::Degree(term.monomial) < 2) continue;
    nonlinear = true;
    // x^k >= x^(k-1) for integers x >= 0
    for (size_t i = 0; i < term.monomial.size(); ++i) {
      if (term.monomial[i].power < 2) continue;
      DimMonomial less = term.monomial;
      --less[i].power;
      if (const Bound low = DimBuilder::MonomialBounds(less).low;
          low && *low >= 0 && term.monomial[i].atom->bounds.low &&
          *term.monomial[i].atom->bounds.low >= 0) {
        facts.AddGe(DimBuilder::FromTerms({{term.monomial, 1}}),
                    DimBuilder::FromTerms({{less, 1}}));
      }
    }
  }
  if (!nonlinear) return facts;
  // f >= 0 and x >= 0 give f x >= 0.
  const std::vector<Dim> linear = facts.dims();
  std::vector<DimAtomPtr> factors;
  CollectAtoms(dim, &factors);
  for (const DimAtomPtr& atom : factors) {
    if (!atom->bounds.low || *atom->bounds.low < 0) continue;
    const auto x = DimBuilder::FromTerms({{{{atom, 1}}, 1}});
    if (!x.ok()) continue;
    for (const Dim& fact : linear) facts.Add(Dim::CheckedMul(fact, *x));
  }
  return facts;
}

// sum of coefficients[i] * unknown[i] + constant >= 0
struct Inequality {
  std::vector<__int128> coefficients;
  __int128 constant = 0;
};

__int128 Gcd(__int128 a, __int128 b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const __int128 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

// Whether a system over integer unknowns (the monomials) has no solution: by
// elimination of one unknown after another, with the constants tightened.
class Elimination {
 public:
  void Add(const Dim& dim) {
    Inequality inequality;
    for (const DimTerm& term : DimBuilder::Terms(dim)) {
      if (term.monomial.empty()) {
        inequality.constant = term.coefficient;
        continue;
      }
      const size_t i = Unknown(term.monomial);
      if (inequality.coefficients.size() <= i) {
        inequality.coefficients.resize(i + 1);
      }
      inequality.coefficients[i] = term.coefficient;
    }
    inequalities_.push_back(std::move(inequality));
  }

  bool IsInfeasible() {
    for (size_t i = 0; i < unknowns_.size(); ++i) {
      const Interval bounds = DimBuilder::MonomialBounds(unknowns_[i]);
      if (bounds.low) AddBound(i, 1, -static_cast<__int128>(*bounds.low));
      if (bounds.high) AddBound(i, -1, *bounds.high);
    }
    for (Inequality& inequality : inequalities_) {
      inequality.coefficients.resize(unknowns_.size());
      if (Tighten(&inequality)) return true;
    }
    std::vector<bool> done(unknowns_.size(), false);
    for (size_t round = 0; round < unknowns_.size(); ++round) {
      const size_t i = Cheapest(done);
      done[i] = true;
      if (Eliminate(i)) return true;
      if (inequalities_.size() > kMaxInequalities) return false;
    }
    return false;
  }

 private:
  size_t Unknown(const DimMonomial& monomial) {
    for (size_t i = 0; i < unknowns_.size(); ++i) {
      if (DimBuilder::OrderMonomials(unknowns_[i], monomial) == 0) return i;
    }
    unknowns_.push_back(monomial);
    return unknowns_.size() - 1;
  }

  void AddBound(size_t i, int coefficient, __int128 constant) {
    Inequality inequality;
    inequality.coefficients.resize(unknowns_.size());
    inequality.coefficients[i] = coefficient;
    inequality.constant = constant;
    inequalities_.push_back(std::move(inequality));
  }

  // Divides by the common divisor, rounding the constant down. True if nothing
  // is left but a negative constant: a contradiction.
  static bool Tighten(Inequality* inequality) {
    __int128 divisor = 0;
    for (__int128 c : inequality->coefficients) divisor = Gcd(divisor, c);
    if (divisor == 0) return inequality->constant < 0;
    for (__int128& c : inequality->coefficients) c /= divisor;
    inequality->constant = FloorDivide(inequality->constant, divisor);
    return false;
  }

  // The unknown whose elimination makes the fewest inequalities.
  size_t Cheapest(const std::vector<bool>& done) const {
    size_t best = 0;
    int64_t best_cost = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < done.size(); ++i) {
      if (done[i]) continue;
      int64_t up = 0, down = 0;
      for (const Inequality& inequality : inequalities_) {
        up += inequality.coefficients[i] > 0;
        down += inequality.coefficients[i] < 0;
      }
      const int64_t cost = up * down - up - down;
      if (cost < best_cost) {
        best = i;
        best_cost = cost;
      }
    }
    return best;
  }

  bool Eliminate(size_t i) {
    std::vector<Inequality> kept, up, down;
    for (Inequality& inequality : inequalities_) {
      const __int128 c = inequality.coefficients[i];
      (c == 0 ? kept : c > 0 ? up : down).push_back(std::move(inequality));
    }
    for (const Inequality& x : up) {
      for (const Inequality& y : down) {
        if (kept.size() > kMaxInequalities) break;
        Inequality sum;
        if (!Combine(x, -y.coefficients[i], y, x.coefficients[i], &sum)) {
          continue;
        }
        if (Tighten(&sum)) return true;
        const bool trivial =
            std::all_of(sum.coefficients.begin(), sum.coefficients.end(),
                        [](__int128 c) { return c == 0; });
        if (!trivial) kept.push_back(std::move(sum));
      }
    }
    inequalities_ = std::move(kept);
    return false;
  }

  // p x + q y; false beyond 62 bits, where the sum is given up.
  static bool Combine(const Inequality& x, __int128 p, const Inequality& y,
                      __int128 q, Inequality* sum) {
    constexpr __int128 kLimit = __int128{1} << 62;
    const auto small = [&](__int128 v) { return -kLimit < v && v < kLimit; };
    const auto term = [&](__int128 a, __int128 b, __int128* out) {
      if (!small(a) || !small(b)) return false;
      *out = p * a + q * b;
      return small(*out);
    };
    if (!small(p) || !small(q)) return false;
    sum->coefficients.resize(x.coefficients.size());
    for (size_t i = 0; i < x.coefficients.size(); ++i) {
      if (!term(x.coefficients[i], y.coefficients[i], &sum->coefficients[i])) {
        return false;
      }
    }
    return term(x.constant, y.constant, &sum->constant);
  }

  std::vector<DimMonomial> unknowns_;
  std::vector<Inequality> inequalities_;
};

bool ProveLinearly(const Dim& dim, const std::vector<Dim>& given) {
  // dim >= 0 holds if -dim - 1 >= 0 contradicts the facts.
  const auto negated = Dim::CheckedMul(dim, -1);
  if (!negated.ok()) return false;
  const auto denial = Dim::CheckedSub(*negated, 1);
  if (!denial.ok()) return false;
  Elimination elimination;
  elimination.Add(*denial);
  const Facts facts = FactsFor(dim, given);
  for (const Dim& fact : facts.dims()) elimination.Add(fact);
  return elimination.IsInfeasible();
}

// `dim` with an atom replaced, where it occurs outside other atoms.
absl::StatusOr<Dim> ReplaceAtom(const Dim& dim, const DimAtom& atom,
                                const Dim& value) {
  Dim result;
  for (const DimTerm& term : DimBuilder::Terms(dim)) {
    DimTerm rest = {{}, term.coefficient};
    int power = 0;
    for (const DimFactor& factor : term.monomial) {
      if (DimBuilder::OrderAtoms(*factor.atom, atom) == 0) {
        power = factor.power;
      } else {
        rest.monomial.push_back(factor);
      }
    }
    auto product = DimBuilder::FromTerms({rest});
    for (int i = 0; i < power && product.ok(); ++i) {
      product = Dim::CheckedMul(*product, value);
    }
    if (!product.ok()) return product;
    auto sum = Dim::CheckedAdd(result, *product);
    if (!sum.ok()) return sum;
    result = *sum;
  }
  return result;
}

bool Prove(const Dim& dim, const std::vector<Dim>& facts, int splits) {
  if (BoundedBelowByZero(dim)) return true;
  if (dim.IsConstant() && facts.empty()) return false;
  if (ProveLinearly(dim, facts)) return true;
  if (splits == 0) return false;
  // min and max equal one of their arguments: try each.
  std::vector<DimAtomPtr> atoms;
  CollectAtoms(dim, &atoms);
  for (const DimAtomPtr& atom : atoms) {
    if (atom->kind != Kind::kMin && atom->kind != Kind::kMax) continue;
    return std::all_of(
        atom->args.begin(), atom->args.end(), [&](const Dim& arg) {
          const auto with_arg = ReplaceAtom(dim, *atom, arg);
          return with_arg.ok() && Prove(*with_arg, facts, splits - 1);
        });
  }
  return false;
}

// Whether the divisor of all coefficients but the constant's does not divide
// the constant: 2 n + 1 is never 0.
bool NonZeroByDivisibility(const Dim& dim) {
  int64_t divisor = 0;
  int64_t constant = 0;
  for (const DimTerm& term : DimBuilder::Terms(dim)) {
    if (term.coefficient == std::numeric_limits<int64_t>::min()) return false;
    if (term.monomial.empty()) {
      constant = term.coefficient;
    } else {
      divisor = std::gcd(divisor, term.coefficient);
    }
  }
  return divisor != 0 && constant % divisor != 0;
}

// Truth of `difference op 0`.
Truth CompareWithZero(const Dim& difference, CompareOp op,
                      const Constraints& constraints) {
  const std::vector<Dim>& facts = constraints.non_negative();
  const auto prove = [&](const absl::StatusOr<Dim>& dim) {
    return dim.ok() && ProveNonNegative(*dim, facts);
  };
  const auto decide = [](bool yes, bool no) {
    return yes ? Truth::kTrue : no ? Truth::kFalse : Truth::kUnknown;
  };
  const auto negated = Dim::CheckedMul(difference, -1);
  const auto is_ge = [&] { return prove(difference); };
  const auto is_le = [&] { return prove(negated); };
  const auto is_gt = [&] { return prove(Dim::CheckedSub(difference, 1)); };
  const auto is_lt = [&] {
    return negated.ok() && prove(Dim::CheckedSub(*negated, 1));
  };
  const auto is_ne = [&] {
    const std::vector<Dim>& non_zero = constraints.non_zero();
    const auto listed = [&](const Dim& dim) {
      return dim == difference || (negated.ok() && dim == *negated);
    };
    return NonZeroByDivisibility(difference) ||
           std::any_of(non_zero.begin(), non_zero.end(), listed) || is_gt() ||
           is_lt();
  };
  const auto is_eq = [&] {
    return difference == Dim(0) || (is_ge() && is_le());
  };
  switch (op) {
    case CompareOp::kGe:
      return decide(is_ge(), is_lt());
    case CompareOp::kLt:
      return decide(is_lt(), is_ge());
    case CompareOp::kGt:
      return decide(is_gt(), is_le());
    case CompareOp::kLe:
      return decide(is_le(), is_gt());
    case CompareOp::kEq:
      return decide(is_eq(), is_ne());
    case CompareOp::kNe:
      return decide(is_ne(), is_eq());
  }
  return Truth::kUnknown;
}

bool Holds(int64_t a, CompareOp op, int64_t b) {
  switch (op) {
    case CompareOp::kEq:
      return a == b;
    case CompareOp::kNe:
      return a != b;
    case CompareOp::kLt:
      return a < b;
    case CompareOp::kLe:
      return a <= b;
    case CompareOp::kGt:
      return a > b;
    case CompareOp::kGe:
      return a >= b;
  }
  return false;
}

const char* CompareOpText(CompareOp op) {
  constexpr const char* kTexts[] = {"==", "!=", "<", "<=", ">", ">="};
  return kTexts[static_cast<int>(op)];
}

}  // namespace

bool ProveNonNegative(const Dim& dim, const std::vector<Dim>& facts) {
  return Prove(dim, facts, kMaxCaseSplits);
}

bool ProveNonZero(const Dim& dim) {
  return Compare(dim, CompareOp::kNe, 0) == Truth::kTrue;
}

Truth Compare(const Dim& a, CompareOp op, const Dim& b,
              const Constraints& constraints) {
  if (a.IsConstant() && b.IsConstant()) {
    return Holds(*a.Value(), op, *b.Value()) ? Truth::kTrue : Truth::kFalse;
  }
  const auto difference = Dim::CheckedSub(a, b);
  if (!difference.ok()) return Truth::kUnknown;
  return CompareWithZero(*difference, op, constraints);
}

absl::Status Constraints::Assume(const Dim& a, CompareOp op, const Dim& b) {
  const Truth known = Compare(a, op, b, *this);
  if (known == Truth::kTrue) return absl::OkStatus();
  if (known == Truth::kFalse) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", a.ToString(), " ", CompareOpText(op), " ",
                     b.ToString(), "` contradicts what is known"));
  }
  // Each `left - right - gap >= 0`.
  const auto add = [&](const Dim& left, const Dim& right, int64_t gap) {
    auto fact = Dim::CheckedSub(left, right);
    if (fact.ok()) fact = Dim::CheckedSub(*fact, gap);
    if (fact.ok()) non_negative_.push_back(*fact);
    return fact.status();
  };
  switch (op) {
    case CompareOp::kGe:
      return add(a, b, 0);
    case CompareOp::kGt:
      return add(a, b, 1);
    case CompareOp::kLe:
      return add(b, a, 0);
    case CompareOp::kLt:
      return add(b, a, 1);
    case CompareOp::kEq: {
      absl::Status status = add(a, b, 0);
      return status.ok() ? add(b, a, 0) : status;
    }
    case CompareOp::kNe: {
      // n != 0 with n >= 0 is n >= 1.
      if (Compare(a, CompareOp::kGe, b, *this) == Truth::kTrue) {
        return add(a, b, 1);
      }
      if (Compare(a, CompareOp::kLe, b, *this) == Truth::kTrue) {
        return add(b, a, 1);
      }
      auto difference = Dim::CheckedSub(a, b);
      if (difference.ok()) non_zero_.push_back(*difference);
      return difference.status();
    }
  }
  return absl::OkStatus();
}

std::string DecidingConstraint(const Dim& a, CompareOp op, const Dim& b) {
  auto difference = Dim::CheckedSub(a, b);
  if (!difference.ok()) {
    return absl::StrCat(a.ToString(), " ", CompareOpText(op), " ",
                        b.ToString());
  }
  // Equations start with a positive coefficient, a < b reads b - a > 0.
  const std::vector<DimTerm> terms = DimBuilder::Terms(*difference);
  const bool starts_negative = !terms.empty() && terms[0].coefficient < 0;
  bool flip = op == CompareOp::kLt || op == CompareOp::kLe;
  if (op == CompareOp::kEq || op == CompareOp::kNe) flip = starts_negative;
  if (flip) {
    const auto negated = Dim::CheckedMul(*difference, -1);
    if (negated.ok()) {
      difference = negated;
      if (op == CompareOp::kLt) op = CompareOp::kGt;
      if (op == CompareOp::kLe) op = CompareOp::kGe;
    }
  }
  return absl::StrCat(difference->ToString(), " ", CompareOpText(op), " 0");
}

}  // namespace cleave
