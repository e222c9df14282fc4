// The parts of the command line that name axes and inputs of a graph.

#ifndef CLEAVE_TOOLS_COMMAND_AXES_H_
#define CLEAVE_TOOLS_COMMAND_AXES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rewrite/rule_set.h"

namespace cleave {

// `0,none,1,split` with `count` entries, or one entry for all; kNotMapped for
// `none`, kSplit for `split`.
absl::StatusOr<std::vector<int>> ParseAxes(const std::string& text, int count);

// A dimension variable that `graph` does not use: "batch", "batch_1", ...
std::string FreshDim(const Graph& graph);

// The graph over a batch at `axes` (ParseAxes) of its first `primals` inputs;
// the tangents behind them are batched as their primals are. The batch is the
// first axis of all outputs.
absl::StatusOr<Graph> BatchPrimals(const Graph& graph, const std::string& axes,
                                   int primals, const RuleSet& rules);

// Which inputs are named; all inexact ones if `names` is empty. InvalidArgument
// for a name that no input has, or an input that is not inexact.
absl::StatusOr<std::vector<bool>> ActiveInputs(
    const Graph& graph, const std::vector<std::string>& names);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_AXES_H_
