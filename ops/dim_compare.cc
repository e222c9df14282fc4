// Three-valued comparison and the facts that it may use.

#include <algorithm>
#include <limits>
#include <numeric>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/dim.h"
#include "ops/dim_internal.h"
#include "ops/dim_terms.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// Whether the divisor of all coefficients but the constant's does not divide
// the constant: 2 n + 1 is never 0.
bool NonZeroByDivisibility(const Dim& dim) {
  int64_t divisor = 0;
  int64_t constant = 0;
  for (const DimTerm& term : DimTerms(dim)) {
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
  // The second proof is tried where the first one fails.
  const auto decide = [](const auto& yes, const auto& no) {
    return yes() ? Truth::kTrue : no() ? Truth::kFalse : Truth::kUnknown;
  };
  const auto is_ge = [&] { return prove(difference); };
  const auto is_le = [&] { return prove(Dim::CheckedMul(difference, -1)); };
  const auto is_gt = [&] { return prove(Dim::CheckedSub(difference, 1)); };
  const auto is_lt = [&] {
    const auto negated = Dim::CheckedMul(difference, -1);
    return negated.ok() && prove(Dim::CheckedSub(*negated, 1));
  };
  const auto is_ne = [&] {
    if (NonZeroByDivisibility(difference)) return true;
    const std::vector<Dim>& non_zero = constraints.non_zero();
    if (!non_zero.empty()) {
      const auto negated = Dim::CheckedMul(difference, -1);
      const auto listed = [&](const Dim& dim) {
        return dim == difference || (negated.ok() && dim == *negated);
      };
      if (std::any_of(non_zero.begin(), non_zero.end(), listed)) return true;
    }
    return is_gt() || is_lt();
  };
  const auto is_eq = [&] {
    return difference == Dim(0) || (is_ge() && is_le());
  };
  switch (op) {
    case CompareOp::kGe:
      return decide(is_ge, is_lt);
    case CompareOp::kLt:
      return decide(is_lt, is_ge);
    case CompareOp::kGt:
      return decide(is_gt, is_le);
    case CompareOp::kLe:
      return decide(is_le, is_gt);
    case CompareOp::kEq:
      return decide(is_eq, is_ne);
    case CompareOp::kNe:
      return decide(is_ne, is_eq);
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
  CLEAVE_RETURN_IF_ERROR(internal_dim::CheckValid(a, b));
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
