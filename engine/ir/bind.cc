#include "engine/ir/bind.h"

#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/map_dims.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_ir::MapDims;

namespace {

bool HasVariables(const StaticValue& value) {
  switch (value.kind()) {
    case StaticValue::Kind::kInt:
      return !value.AsDim().IsConstant();
    case StaticValue::Kind::kList:
      for (const StaticValue& element : value.AsList()) {
        if (HasVariables(element)) return true;
      }
      return false;
    case StaticValue::Kind::kRecord:
      for (const auto& [name, field] : value.AsRecord()) {
        if (HasVariables(field)) return true;
      }
      return false;
    default:
      return false;
  }
}

// The variables of `dim` that have no value.
std::set<std::string> Unknown(const Dim& dim, const DimValues& values) {
  std::set<std::string> unknown = dim.Variables();
  for (auto it = unknown.begin(); it != unknown.end();) {
    it = values.count(*it) > 0 ? unknown.erase(it) : std::next(it);
  }
  return unknown;
}

absl::Status Unfit(const DimEquation& equation, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(equation.what, " is ", equation.value, ", but must be ",
                   equation.dim.ToString(), why));
}

absl::Status CheckEquation(const DimEquation& equation,
                           const DimValues& values) {
  CLEAVE_ASSIGN_OR_RETURN(const int64_t value, equation.dim.Evaluate(values));
  if (value == equation.value) return absl::OkStatus();
  return Unfit(equation, equation.dim.IsConstant()
                             ? std::string()
                             : absl::StrCat(", which is ", value));
}

// The value of `variable`, the only one of the equation that is not known;
// nullopt where the equation is not linear in it.
absl::StatusOr<std::optional<int64_t>> Solve(const DimEquation& equation,
                                             const std::string& variable,
                                             const DimValues& values) {
  std::map<std::string, Dim> known;
  for (const std::string& name : equation.dim.Variables()) {
    if (name != variable) known.emplace(name, Dim(values.at(name)));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Dim dim, equation.dim.CheckedSubstitute(known));
  // A line a * v + b is what its values at 0 and 1 say.
  const absl::StatusOr<int64_t> at_0 = dim.Evaluate({{variable, 0}});
  const absl::StatusOr<int64_t> at_1 = dim.Evaluate({{variable, 1}});
  if (!at_0.ok() || !at_1.ok()) return std::nullopt;
  int64_t slope;
  int64_t rest;
  if (__builtin_sub_overflow(*at_1, *at_0, &slope) ||
      __builtin_sub_overflow(equation.value, *at_0, &rest) || slope == 0 ||
      rest == INT64_MIN) {
    return std::nullopt;
  }
  CLEAVE_ASSIGN_OR_RETURN(const Dim product,
                          Dim::CheckedMul(Dim(slope), Dim::Variable(variable)));
  CLEAVE_ASSIGN_OR_RETURN(const Dim line, Dim::CheckedAdd(product, Dim(*at_0)));
  if (dim != line) return std::nullopt;
  if (rest % slope != 0 || rest / slope < 0) {
    return Unfit(equation,
                 absl::StrCat(" with an integer ", variable, " of at least 0"));
  }
  return rest / slope;
}

}  // namespace

absl::Status BindEquations(std::vector<DimEquation> equations,
                           DimValues* values) {
  bool progress = true;
  while (progress && !equations.empty()) {
    progress = false;
    std::vector<DimEquation> open;
    for (DimEquation& equation : equations) {
      const std::set<std::string> unknown = Unknown(equation.dim, *values);
      if (unknown.empty()) {
        CLEAVE_RETURN_IF_ERROR(CheckEquation(equation, *values));
        progress = true;
        continue;
      }
      if (unknown.size() == 1) {
        CLEAVE_ASSIGN_OR_RETURN(const std::optional<int64_t> value,
                                Solve(equation, *unknown.begin(), *values));
        if (value.has_value()) {
          values->emplace(*unknown.begin(), *value);
          progress = true;
          continue;
        }
      }
      open.push_back(std::move(equation));
    }
    equations = std::move(open);
  }
  if (equations.empty()) return absl::OkStatus();
  const DimEquation& equation = equations.front();
  return Unfit(equation, absl::StrCat(", which does not determine ",
                                      *Unknown(equation.dim, *values).begin()));
}

absl::StatusOr<std::vector<int64_t>> EvaluateShape(const Shape& shape,
                                                   const DimValues& values) {
  std::vector<int64_t> result;
  result.reserve(shape.size());
  for (const Dim& dim : shape) {
    std::optional<int64_t> extent = dim.Value();
    if (!extent.has_value()) {
      CLEAVE_ASSIGN_OR_RETURN(extent, dim.Evaluate(values));
    }
    if (*extent < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the extent ", dim.ToString(), " is ", *extent));
    }
    result.push_back(*extent);
  }
  return result;
}

bool HasDimVariables(const Attributes& attributes) {
  for (const auto& [name, value] : attributes.values()) {
    if (HasVariables(value)) return true;
  }
  return false;
}

absl::StatusOr<Attributes> EvaluateDims(const Attributes& attributes,
                                        const DimValues& values) {
  return MapDims(attributes, [&](const Dim& dim) -> absl::StatusOr<Dim> {
    if (!Unknown(dim, values).empty()) return dim;
    CLEAVE_ASSIGN_OR_RETURN(const int64_t value, dim.Evaluate(values));
    return Dim(value);
  });
}

absl::Status CheckGuard(const ShapeGuard& guard, const DimValues& values) {
  CLEAVE_ASSIGN_OR_RETURN(const int64_t lhs, guard.lhs.Evaluate(values));
  CLEAVE_ASSIGN_OR_RETURN(const int64_t rhs, guard.rhs.Evaluate(values));
  if (Compare(Dim(lhs), guard.op, Dim(rhs)) == Truth::kTrue) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(guard.why, ": ", guard.lhs.ToString(), " is ", lhs, " and ",
                   guard.rhs.ToString(), " is ", rhs));
}

}  // namespace cleave
