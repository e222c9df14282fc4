// DimValues: numbers for the dimension variables of types and attributes, found
// by matching declared extents against actual ones.
//
//   DimValues values;
//   BindEquations({{*Dim::Parse("2*n + 1"), 7, "x"}}, &values);  // n is 3
//   EvaluateDims(attributes, values);         // shape: [2*n] -> shape: [6]

#ifndef CLEAVE_ENGINE_IR_BIND_H_
#define CLEAVE_ENGINE_IR_BIND_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/dim.h"
#include "ops/infer_type.h"
#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave {

using DimValues = std::map<std::string, int64_t>;

// `dim` must be `value`; `what` names the place for messages.
struct DimEquation {
  Dim dim;
  int64_t value = 0;
  std::string what;
};

// Adds to `values` the variables that the equations determine, and checks every
// equation. An equation is solved where all its variables but one are known and
// it is linear in that one. InvalidArgument where an equation does not hold, or
// a variable cannot be solved for, or would not be an integer >= 0.
absl::Status BindEquations(std::vector<DimEquation> equations,
                           DimValues* values);

// The concrete shape. InvalidArgument for a variable without a value, a
// division by zero or a negative extent.
absl::StatusOr<std::vector<int64_t>> EvaluateShape(const Shape& shape,
                                                   const DimValues& values);

// Whether a dim among the values, regions aside, has variables.
bool HasDimVariables(const Attributes& attributes);

// The dims among the values, regions aside, with numbers for the variables;
// dims that have a variable without a number stay. InvalidArgument for a
// division by zero or an overflow.
absl::StatusOr<Attributes> EvaluateDims(const Attributes& attributes,
                                        const DimValues& values);

// FailedPrecondition where the guard does not hold; InvalidArgument where it
// cannot be evaluated.
absl::Status CheckGuard(const ShapeGuard& guard, const DimValues& values);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_BIND_H_
