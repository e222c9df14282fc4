// Partial evaluation: a graph cut in two: the part that the known inputs
// decide, and the part that needs the unknown ones.
//
//   PartiallyEvaluate(jvp of f, {x: known, x.tangent: unknown})
//       known:   x -> y, residuals      unknown: x.tangent, residuals ->
//       y.tangent

#ifndef CLEAVE_TRANSFORMS_VJP_PARTIAL_EVALUATION_H_
#define CLEAVE_TRANSFORMS_VJP_PARTIAL_EVALUATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"

namespace cleave {

struct PartialEvaluation {
  // Inputs: the known ones, with their names. Outputs: those of the graph that
  // are known, with their names, then the residuals.
  Graph known;
  // Inputs: the unknown ones, then the residuals. Outputs: all others.
  Graph unknown;
  std::vector<bool> output_unknown;  // per output of the graph
  int residuals = 0;
};

struct PartialEvaluationOptions {
  // The unknown half of a scan computes again what it needs of a step, from the
  // carries before it: of each step these are saved, and nothing else.
  bool recompute_loops = false;
};

// `unknown[i]` tells of input i. `outputs_unknown`, where it is given, names
// outputs that count as unknown though the known inputs decide them. Loops and
// branches are cut, too: a scan's known carries run in a scan of their own,
// which stacks the values that the other one needs; a value that does not
// change from step to step stays outside of both; a `while` becomes a scan
// first. A value that costs nothing to compute again (a constant or a
// broadcast) is no residual. O(nodes), and once more per carry of a scan.
// Unimplemented("impossible: unbounded loop in reverse") for a `while` that has
// no bound.
absl::StatusOr<PartialEvaluation> PartiallyEvaluate(
    const Graph& graph, const std::vector<bool>& unknown,
    const std::vector<bool>& outputs_unknown = {},
    const PartialEvaluationOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_PARTIAL_EVALUATION_H_
