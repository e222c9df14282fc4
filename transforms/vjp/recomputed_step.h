// The step of a loop cut so that its unknown half computes again what it needs
// of the known one. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_VJP_RECOMPUTED_STEP_H_
#define CLEAVE_TRANSFORMS_VJP_RECOMPUTED_STEP_H_

#include <vector>

#include "engine/ir/graph.h"
#include "transforms/vjp/partial_evaluation.h"

namespace cleave {

// Per node of the known half of a scan's body, whose first `consts` inputs are
// the scan's: whether it depends on more than these.
std::vector<bool> Varies(const Graph& body, int consts);

// The cut of a body whose unknown half computes what varies again, from the
// known inputs of the step: they are its residuals, beside what does not change
// from step to step.
PartialEvaluation Recomputing(const PartialEvaluation& cut, int consts);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_RECOMPUTED_STEP_H_
