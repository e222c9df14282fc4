// Floor division, remainders, min and max of Dims: their normal forms.

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/dim.h"
#include "ops/dim_internal.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_dim::CheckValid;
using internal_dim::IsConstantMonomial;
using internal_dim::TooLarge;
using internal_dim::ValueOrInvalid;

namespace {

using Kind = DimAtom::Kind;

// Arguments of one min or max.
constexpr size_t kMaxMinMaxArguments = 32;

absl::Status DivisionByZero(const Dim& a, absl::string_view op, const Dim& b) {
  const std::string text = b.ToString();
  return absl::InvalidArgumentError(
      absl::StrCat("division by zero: `(", a.ToString(), ") ", op, " ",
                   b.IsConstant() ? text : absl::StrCat("(", text, ")"), "`"));
}

// `n % 2 // 2` is 0 as the literal is: nothing that divides by it has a value,
// so any claim about the quotient would hold.
bool IsAlwaysZero(const Dim& dim) {
  const Dim::Interval bounds = dim.Bounds();
  return bounds.low == 0 && bounds.high == 0;
}

absl::StatusOr<Dim> MakeAtom(Kind kind, std::vector<Dim> args) {
  DimAtom atom;
  atom.kind = kind;
  atom.args = std::move(args);
  return DimBuilder::FromAtom(std::move(atom));
}

// a = quotient * b + rest.
struct Division {
  Dim quotient;
  Dim rest;
};

// By a number b > 0: the coefficients of the rest lie in [0, b).
absl::StatusOr<Division> DivideByNumber(const Dim& a, int64_t b) {
  std::vector<DimTerm> quotient, rest;
  for (const DimTerm& term : DimBuilder::Terms(a)) {
    const int64_t q = FloorDivide(term.coefficient, b);
    const int64_t r = term.coefficient - q * b;
    if (q != 0) quotient.push_back({term.monomial, q});
    if (r != 0) rest.push_back({term.monomial, r});
  }
  Division result;
  CLEAVE_ASSIGN_OR_RETURN(result.quotient,
                          DimBuilder::FromTerms(std::move(quotient)));
  CLEAVE_ASSIGN_OR_RETURN(result.rest, DimBuilder::FromTerms(std::move(rest)));
  return result;
}

// By a monomial: what it divides goes to the quotient. By a longer polynomial:
// the quotient is 0 unless the division is without rest.
absl::StatusOr<Division> DivideByPolynomial(const Dim& a, const Dim& b) {
  const std::vector<DimTerm> divisor = DimBuilder::Terms(b);
  const DimTerm& leading = divisor.front();
  Division result;
  std::vector<DimTerm> rest;
  Dim left = a;
  for (int steps = 0; left != Dim(0); ++steps) {
    const std::vector<DimTerm> terms = DimBuilder::Terms(left);
    const DimTerm& term = terms.front();
    const auto monomial = DimBuilder::Quotient(term.monomial, leading.monomial);
    const bool divides =
        monomial.has_value() &&
        !(leading.coefficient == -1 &&
          term.coefficient == std::numeric_limits<int64_t>::min()) &&
        term.coefficient % leading.coefficient == 0;
    if (!divides && divisor.size() > 1) return Division{Dim(0), a};
    if (steps > kMaxDimTerms) return Division{Dim(0), a};
    CLEAVE_ASSIGN_OR_RETURN(Dim head, DimBuilder::FromTerms({term}));
    if (divides) {
      CLEAVE_ASSIGN_OR_RETURN(
          const Dim step,
          DimBuilder::FromTerms(
              {{*monomial, term.coefficient / leading.coefficient}}));
      CLEAVE_ASSIGN_OR_RETURN(result.quotient,
                              Dim::CheckedAdd(result.quotient, step));
      CLEAVE_ASSIGN_OR_RETURN(head, Dim::CheckedMul(step, b));
    } else {
      rest.push_back(term);
    }
    CLEAVE_ASSIGN_OR_RETURN(left, Dim::CheckedSub(left, head));
  }
  CLEAVE_ASSIGN_OR_RETURN(result.rest, DimBuilder::FromTerms(std::move(rest)));
  return result;
}

// The greatest common divisor of b and the coefficients of the non-constant
// terms.
int64_t CommonDivisor(const Dim& a, int64_t b) {
  int64_t divisor = b;
  for (const DimTerm& term : DimBuilder::Terms(a)) {
    if (!IsConstantMonomial(term))
      divisor = std::gcd(divisor, term.coefficient);
  }
  return divisor;
}

// The only atom of `a`, where a = atom + constant.
const DimAtom* SoleAtom(const Dim& a, Kind kind, int64_t* constant) {
  const auto* rep = DimBuilder::Get(a);
  if (rep == nullptr || rep->terms.size() > 2) return nullptr;
  const DimTerm& term = rep->terms[0];
  if (term.coefficient != 1 || term.monomial.size() != 1 ||
      term.monomial[0].power != 1 || term.monomial[0].atom->kind != kind) {
    return nullptr;
  }
  *constant = 0;
  if (rep->terms.size() == 2) {
    if (!IsConstantMonomial(rep->terms[1])) return nullptr;
    *constant = rep->terms[1].coefficient;
  }
  return term.monomial[0].atom.get();
}

// 0 <= a < b, without constraints.
bool InRange(const Dim& a, const Dim& b) {
  return ProveNonNegative(a, {}) &&
         Compare(a, CompareOp::kLt, b) == Truth::kTrue;
}

// rest // b with the coefficients of `rest` in [0, b), b >= 2.
absl::StatusOr<Dim> FloorDivRest(Dim rest, int64_t b) {
  const int64_t divisor = CommonDivisor(rest, b);
  if (divisor > 1) {
    // (g x + r) // (g c) = (x + r // g) // c
    CLEAVE_ASSIGN_OR_RETURN(const Division split,
                            DivideByNumber(rest, divisor));
    return Dim::CheckedFloorDiv(split.quotient, b / divisor);
  }
  const Dim::Interval bounds = rest.Bounds();
  if (bounds.low.has_value() && bounds.high.has_value()) {
    const int64_t low = FloorDivide(*bounds.low, b);
    if (low == FloorDivide(*bounds.high, b)) return Dim(low);
  }
  int64_t constant = 0;
  if (const DimAtom* inner = SoleAtom(rest, Kind::kFloorDiv, &constant)) {
    // (x // p + r) // b = (x + r p) // (p b) for p > 0
    const std::optional<int64_t> p = inner->args[1].Value();
    int64_t product = 0;
    if (p.has_value() && *p > 0 && !__builtin_mul_overflow(*p, b, &product)) {
      const auto shift = Dim::CheckedMul(constant, *p);
      if (shift.ok()) {
        const auto numerator = Dim::CheckedAdd(inner->args[0], *shift);
        if (numerator.ok()) return Dim::CheckedFloorDiv(*numerator, product);
      }
    }
  }
  return MakeAtom(Kind::kFloorDiv, {std::move(rest), b});
}

// Replaces x % p by x in the terms of `a`, where b > 0 divides p: equal modulo
// b.
absl::StatusOr<Dim> DropInnerMods(const Dim& a, int64_t b) {
  Dim result;
  for (const DimTerm& term : DimBuilder::Terms(a)) {
    CLEAVE_ASSIGN_OR_RETURN(Dim value, DimBuilder::FromTerms({term}));
    if (term.monomial.size() == 1 && term.monomial[0].power == 1) {
      const DimAtom& atom = *term.monomial[0].atom;
      if (atom.kind == Kind::kMod && atom.args[1].Value().value_or(0) > 0 &&
          *atom.args[1].Value() % b == 0) {
        CLEAVE_ASSIGN_OR_RETURN(
            value, Dim::CheckedMul(atom.args[0], term.coefficient));
      }
    }
    CLEAVE_ASSIGN_OR_RETURN(result, Dim::CheckedAdd(result, value));
  }
  return result;
}

bool IsNegative(const std::optional<int64_t>& value) {
  return value.has_value() && *value < 0;
}

// b is not always 0.
absl::StatusOr<Dim> FloorDivNormal(const Dim& a, const Dim& b) {
  const std::optional<int64_t> x = a.Value(), y = b.Value();
  if (y == 1) return a;
  if (y == -1) return Dim::CheckedMul(a, -1);
  if (x.has_value() && y.has_value()) return Dim(FloorDivide(*x, *y));
  if (IsNegative(y)) {
    // a // -b = -a // b
    CLEAVE_ASSIGN_OR_RETURN(const Dim numerator, Dim::CheckedMul(a, -1));
    CLEAVE_ASSIGN_OR_RETURN(const Dim divisor, Dim::CheckedMul(b, -1));
    return FloorDivNormal(numerator, divisor);
  }
  if (y.has_value()) {
    CLEAVE_ASSIGN_OR_RETURN(Division split, DivideByNumber(a, *y));
    CLEAVE_ASSIGN_OR_RETURN(const Dim fraction,
                            FloorDivRest(std::move(split.rest), *y));
    return Dim::CheckedAdd(split.quotient, fraction);
  }
  if (!ProveNonZero(b)) return MakeAtom(Kind::kFloorDiv, {a, b});
  CLEAVE_ASSIGN_OR_RETURN(const Division split, DivideByPolynomial(a, b));
  if (InRange(split.rest, b)) return split.quotient;
  CLEAVE_ASSIGN_OR_RETURN(const Dim fraction,
                          MakeAtom(Kind::kFloorDiv, {split.rest, b}));
  return Dim::CheckedAdd(split.quotient, fraction);
}

// b is not always 0.
absl::StatusOr<Dim> ModNormal(const Dim& a, const Dim& b) {
  const std::optional<int64_t> x = a.Value(), y = b.Value();
  if (y == 1 || y == -1) return Dim(0);
  if (x.has_value() && y.has_value()) {
    // The result has the divisor's sign. The quotient times the divisor may be
    // too large.
    const int64_t rest = *x % *y;
    return Dim(rest != 0 && (rest < 0) != (*y < 0) ? rest + *y : rest);
  }
  if (IsNegative(y)) {
    // a mod -b = -(-a mod b)
    CLEAVE_ASSIGN_OR_RETURN(const Dim numerator, Dim::CheckedMul(a, -1));
    CLEAVE_ASSIGN_OR_RETURN(const Dim divisor, Dim::CheckedMul(b, -1));
    CLEAVE_ASSIGN_OR_RETURN(const Dim negated, ModNormal(numerator, divisor));
    return Dim::CheckedMul(negated, -1);
  }
  if (!y.has_value()) {
    if (!ProveNonZero(b)) return MakeAtom(Kind::kMod, {a, b});
    CLEAVE_ASSIGN_OR_RETURN(const Division split, DivideByPolynomial(a, b));
    if (InRange(split.rest, b)) return split.rest;
    return MakeAtom(Kind::kMod, {split.rest, b});
  }
  CLEAVE_ASSIGN_OR_RETURN(const Division outer, DivideByNumber(a, *y));
  CLEAVE_ASSIGN_OR_RETURN(Dim flat, DropInnerMods(outer.rest, *y));
  // An inner argument may hold further ones; each round removes a level.
  for (Dim before = outer.rest; flat != before;) {
    before = flat;
    CLEAVE_ASSIGN_OR_RETURN(flat, DropInnerMods(before, *y));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Division split, DivideByNumber(flat, *y));
  const Dim& rest = split.rest;
  const int64_t divisor = CommonDivisor(rest, *y);
  if (divisor > 1) {
    // (g x + r) % (g c) = g ((x + r // g) % c) + r % g
    CLEAVE_ASSIGN_OR_RETURN(const Division inner,
                            DivideByNumber(rest, divisor));
    CLEAVE_ASSIGN_OR_RETURN(const Dim mod,
                            ModNormal(inner.quotient, *y / divisor));
    CLEAVE_ASSIGN_OR_RETURN(const Dim scaled, Dim::CheckedMul(mod, divisor));
    return Dim::CheckedAdd(scaled, inner.rest);
  }
  const Dim::Interval bounds = rest.Bounds();
  if (bounds.low.has_value() && bounds.high.has_value() && *bounds.low >= 0 &&
      *bounds.high < *y) {
    return rest;
  }
  return MakeAtom(Kind::kMod, {rest, b});
}

// Sorted, flat, without duplicates, and without arguments that another one
// always beats.
absl::StatusOr<Dim> MinMax(Kind kind, const std::vector<Dim>& values) {
  if (values.empty()) {
    return absl::InvalidArgumentError("min or max of no sizes");
  }
  std::vector<Dim> args;
  for (const Dim& value : values) {
    if (!value.valid()) return value.status();
    int64_t constant = 0;
    const DimAtom* inner = SoleAtom(value, kind, &constant);
    if (inner != nullptr && constant == 0) {
      args.insert(args.end(), inner->args.begin(), inner->args.end());
    } else {
      args.push_back(value);
    }
  }
  std::sort(args.begin(), args.end(),
            [](const Dim& a, const Dim& b) { return Dim::Order(a, b) < 0; });
  args.erase(std::unique(args.begin(), args.end()), args.end());
  if (args.size() > kMaxMinMaxArguments) {
    return TooLarge(absl::StrCat("a min or max has more than ",
                                 kMaxMinMaxArguments, " arguments"));
  }
  const CompareOp wins = kind == Kind::kMin ? CompareOp::kLe : CompareOp::kGe;
  for (size_t i = 0; i < args.size(); ++i) {
    for (size_t j = args.size(); j-- > 0;) {
      if (i == j || Compare(args[i], wins, args[j]) != Truth::kTrue) continue;
      args.erase(args.begin() + static_cast<int64_t>(j));
      if (j < i) --i;
    }
  }
  if (args.size() == 1) return args[0];
  return MakeAtom(kind, std::move(args));
}

}  // namespace

absl::StatusOr<Dim> Dim::CheckedFloorDiv(const Dim& a, const Dim& b) {
  CLEAVE_RETURN_IF_ERROR(CheckValid(a, b));
  if (IsAlwaysZero(b)) return DivisionByZero(a, "//", b);
  return FloorDivNormal(a, b);
}

absl::StatusOr<Dim> Dim::CheckedMod(const Dim& a, const Dim& b) {
  CLEAVE_RETURN_IF_ERROR(CheckValid(a, b));
  if (IsAlwaysZero(b)) return DivisionByZero(a, "%", b);
  return ModNormal(a, b);
}

absl::StatusOr<Dim> Dim::CheckedMin(const std::vector<Dim>& values) {
  return MinMax(Kind::kMin, values);
}

absl::StatusOr<Dim> Dim::CheckedMax(const std::vector<Dim>& values) {
  return MinMax(Kind::kMax, values);
}

Dim Dim::FloorDiv(const Dim& a, const Dim& b) {
  return ValueOrInvalid(CheckedFloorDiv(a, b));
}
Dim Dim::Mod(const Dim& a, const Dim& b) {
  return ValueOrInvalid(CheckedMod(a, b));
}
Dim Dim::Min(const Dim& a, const Dim& b) { return Min({a, b}); }
Dim Dim::Max(const Dim& a, const Dim& b) { return Max({a, b}); }
Dim Dim::Min(const std::vector<Dim>& values) {
  return ValueOrInvalid(CheckedMin(values));
}
Dim Dim::Max(const std::vector<Dim>& values) {
  return ValueOrInvalid(CheckedMax(values));
}

}  // namespace cleave
