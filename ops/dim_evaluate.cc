// Evaluation of a Dim for given values of its variables.

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/dim.h"
#include "ops/dim_internal.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = DimAtom::Kind;
using Values = std::map<std::string, int64_t>;

std::string AtomText(const DimAtom& atom) {
  auto dim = DimBuilder::FromAtom(atom);
  return dim.ok() ? dim->ToString() : "a size";
}

absl::Status EvaluationOverflow(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("`", text, "` exceeds 64 bits"));
}

absl::StatusOr<int64_t> EvaluateAtom(const DimAtom& atom,
                                     const Values& values) {
  if (atom.kind == Kind::kVariable) {
    const auto found = values.find(atom.name);
    if (found == values.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the size `", atom.name, "` has no value"));
    }
    return found->second;
  }
  std::vector<int64_t> args;
  for (const Dim& arg : atom.args) {
    CLEAVE_ASSIGN_OR_RETURN(args.emplace_back(), arg.Evaluate(values));
  }
  int64_t result = args[0];
  switch (atom.kind) {
    case Kind::kVariable:
      break;
    case Kind::kFloorDiv:
    case Kind::kMod:
      if (args[1] == 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("division by zero in `", AtomText(atom), "`"));
      }
      if (args[1] == -1) {
        // The only quotient that may not fit: the least number by -1.
        if (atom.kind == Kind::kMod) return 0;
        if (args[0] == std::numeric_limits<int64_t>::min()) {
          return EvaluationOverflow(AtomText(atom));
        }
        return -args[0];
      }
      if (atom.kind == Kind::kFloorDiv) {
        result = FloorDivide(args[0], args[1]);
        break;
      }
      // The quotient, rounded down, times the divisor may exceed 64 bits.
      result = args[0] % args[1];
      if (result != 0 && (result < 0) != (args[1] < 0)) result += args[1];
      break;
    case Kind::kMin:
      for (int64_t arg : args) result = std::min(result, arg);
      break;
    case Kind::kMax:
      for (int64_t arg : args) result = std::max(result, arg);
      break;
  }
  return result;
}

void CollectVariables(const Dim& dim, std::set<std::string>* names) {
  for (const DimTerm& term : DimBuilder::Terms(dim)) {
    for (const DimFactor& factor : term.monomial) {
      if (factor.atom->kind == Kind::kVariable)
        names->insert(factor.atom->name);
      for (const Dim& arg : factor.atom->args) CollectVariables(arg, names);
    }
  }
}

absl::StatusOr<Dim> SubstituteAtom(const DimAtomPtr& atom,
                                   const std::map<std::string, Dim>& values) {
  if (atom->kind == Kind::kVariable) {
    const auto found = values.find(atom->name);
    if (found != values.end()) return found->second;
    return DimBuilder::FromTerms({{{{atom, 1}}, 1}});
  }
  std::vector<Dim> args;
  for (const Dim& arg : atom->args) {
    CLEAVE_ASSIGN_OR_RETURN(args.emplace_back(), arg.CheckedSubstitute(values));
  }
  switch (atom->kind) {
    case Kind::kFloorDiv:
      return Dim::CheckedFloorDiv(args[0], args[1]);
    case Kind::kMod:
      return Dim::CheckedMod(args[0], args[1]);
    case Kind::kMin:
      return Dim::CheckedMin(args);
    default:
      return Dim::CheckedMax(args);
  }
}

}  // namespace

std::set<std::string> Dim::Variables() const {
  std::set<std::string> names;
  CollectVariables(*this, &names);
  return names;
}

absl::StatusOr<Dim> Dim::CheckedSubstitute(
    const std::map<std::string, Dim>& values) const {
  if (IsConstant()) return *this;
  if (!valid()) return status();
  Dim result;
  for (const DimTerm& term : DimBuilder::Terms(*this)) {
    Dim product = term.coefficient;
    for (const DimFactor& factor : term.monomial) {
      CLEAVE_ASSIGN_OR_RETURN(const Dim value,
                              SubstituteAtom(factor.atom, values));
      for (int i = 0; i < factor.power; ++i) {
        CLEAVE_ASSIGN_OR_RETURN(product, CheckedMul(product, value));
      }
    }
    CLEAVE_ASSIGN_OR_RETURN(result, CheckedAdd(result, product));
  }
  return result;
}

Dim Dim::Substitute(const std::map<std::string, Dim>& values) const {
  return internal_dim::ValueOrInvalid(CheckedSubstitute(values));
}

absl::StatusOr<int64_t> Dim::Evaluate(const Values& values) const {
  if (IsConstant()) return constant_;
  if (!valid()) return status();
  __int128 sum = 0;
  for (const DimTerm& term : DimBuilder::Terms(*this)) {
    __int128 product = term.coefficient;
    bool overflow = false;
    for (const DimFactor& factor : term.monomial) {
      CLEAVE_ASSIGN_OR_RETURN(const int64_t value,
                              EvaluateAtom(*factor.atom, values));
      for (int i = 0; i < factor.power; ++i) {
        overflow |= __builtin_mul_overflow(product, value, &product);
      }
    }
    overflow |= __builtin_add_overflow(sum, product, &sum);
    if (overflow) return EvaluationOverflow(ToString());
  }
  if (sum != static_cast<int64_t>(sum)) return EvaluationOverflow(ToString());
  return static_cast<int64_t>(sum);
}

}  // namespace cleave
