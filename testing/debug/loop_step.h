// The step of a loop, or the branch of a cond, in which a node goes wrong.

#ifndef CLEAVE_TESTING_DEBUG_LOOP_STEP_H_
#define CLEAVE_TESTING_DEBUG_LOOP_STEP_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "ops/reference/real.h"
#include "ops/tensor.h"
#include "testing/debug/find_cause.h"
#include "testing/debug/node_values.h"

namespace cleave {

// A region, and what it is run on. The graph borrows the context of the graph
// that it stands in.
struct LoopStep {
  std::string name;  // "step 7", "the branch `then`", "the condition of step 7"
  Region region;
  std::vector<Tensor> computed;
  std::vector<RealTensor> exact;
  int output = 0;  // of the region: the one that is off
};

// The first step of `node`, a scan, a while or a cond, at which its carries or
// results are off by more than `ulp` (relative, in units of eps), on the way to
// its result `result` at `element`; nullopt where there is none. Both runs are
// followed side by side. Errors of the evaluation.
absl::StatusOr<std::optional<LoopStep>> FindLoopStep(const Graph& graph,
                                                     const NodeValues& values,
                                                     Value node, int result,
                                                     int64_t element,
                                                     double ulp);

}  // namespace cleave

#endif  // CLEAVE_TESTING_DEBUG_LOOP_STEP_H_
