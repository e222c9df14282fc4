// The body of a loop or a branch cut so that its unknown half computes again
// what it needs of the known one. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_VJP_RECOMPUTED_STEP_H_
#define CLEAVE_TRANSFORMS_VJP_RECOMPUTED_STEP_H_

#include <vector>

#include "engine/ir/graph.h"
#include "transforms/vjp/partial_evaluation.h"

namespace cleave {

// Per node of the known half of a scan's body, whose first `consts` inputs are
// the scan's: whether it depends on more than these.
std::vector<bool> Varies(const Graph& body, int consts);

// The values that the unknown half of a body computes again; per node of the
// known half.
struct Recomputation {
  std::vector<bool> residuals;  // it is computed again, if it is a residual
  std::vector<bool> from;       // saved in place of what is made of it
};

// The residuals of a branch that take a few operations per element from known
// inputs and from values that have far fewer elements: (x[i, m] - z[j, m]) /
// s[i, j], say, from s. O(residuals * nodes).
Recomputation CheapResiduals(const PartialEvaluation& cut);

// The residuals that vary, of the step of a scan whose first `consts` known
// inputs are the scan's, from the known inputs alone.
Recomputation VaryingResiduals(const Graph& body, int consts);

// The cut of a body whose unknown half does so: the known inputs that it needs
// for that are residuals, beside those that are left.
PartialEvaluation Recomputing(const PartialEvaluation& cut,
                              const Recomputation& again);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_RECOMPUTED_STEP_H_
