// The plan of an einsum: what needs a real algorithm and not a static
// expression.

#ifndef CLEAVE_ENGINE_ELABORATE_PLAN_EINSUM_H_
#define CLEAVE_ENGINE_ELABORATE_PLAN_EINSUM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave {

// einsum_plan(equation, shapes), a record:
//   out      extents of the result's axes
//   summed   extents of the axes that are summed over
//   letters  per operand and axis: its position in out ++ summed; -1 where its
//            extent is a literal 1 that the letter's stretches
//   steps    the contraction in pairs from the left, for a fold that starts
//            with the scalar 1. Each step multiplies what there is so far by
//            one operand and sums what occurs no more:
//              operand  its number
//              left     per axis of what there is: its position in the step's
//                       out ++ summed
//              right    per axis of the operand: the same, or -1
//              out, summed   the step's extents
// `...` stands for axes that broadcast; without `->`, the result has the
// letters that occur once, in alphabetical order, behind those axes.
// InvalidArgument for a malformed equation or extents that differ.
absl::StatusOr<StaticValue> PlanEinsum(const std::string& equation,
                                       const std::vector<Shape>& shapes);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_ELABORATE_PLAN_EINSUM_H_
