// BranchResiduals: where the unknown halves of two branches find what they need
// of the known ones. Internal to transforms/vjp.

#ifndef CLEAVE_TRANSFORMS_VJP_BRANCH_RESIDUALS_H_
#define CLEAVE_TRANSFORMS_VJP_BRANCH_RESIDUALS_H_

#include <vector>

#include "engine/ir/graph.h"
#include "transforms/vjp/partial_evaluation.h"

namespace cleave {

// A branch whose residuals are x, exp(x) and one whose only residual is log(x),
// x the known input 2, both in f32:
//
//   inputs = {2}, slots = {f32}, places = {{0, 1}, {1}}
struct BranchResiduals {
  std::vector<int> inputs;        // known inputs that are residuals
  std::vector<TensorType> slots;  // what the known halves save
  // Per branch for each of its residuals: an index into `inputs`, or behind
  // them one into `slots`.
  std::vector<int> places[2];
};

// Residuals of different branches share a slot where they have one type, since
// one of the two is taken. O(nodes + residuals^2).
BranchResiduals ShareResiduals(const PartialEvaluation& then_cut,
                               const PartialEvaluation& else_cut);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_BRANCH_RESIDUALS_H_
