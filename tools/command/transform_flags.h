// The parts of the command line that say how a graph is transformed.

#ifndef CLEAVE_TOOLS_COMMAND_TRANSFORM_FLAGS_H_
#define CLEAVE_TOOLS_COMMAND_TRANSFORM_FLAGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "tools/command/command_line.h"

namespace cleave {

// `0,none,1,split` with `count` entries, or one entry for all; kNotMapped for
// `none`, kSplit for `split`.
absl::StatusOr<std::vector<int>> ParseAxes(const std::string& text, int count);

// Which inputs are named; all inexact ones if `names` is empty. InvalidArgument
// for a name that no input has, or an input that is not inexact.
absl::StatusOr<std::vector<bool>> ActiveInputs(
    const Graph& graph, const std::vector<std::string>& names);

// --jvp or --vjp, --recompute-loops, --wrt and --vmap of verbs that transform a
// function first.
struct TransformFlags {
  bool jvp = false;
  bool vjp = false;
  bool recompute_loops = false;
  std::vector<std::string> with_respect_to;
  std::string vmap;
};

void AddTransformFlags(Verb& verb, TransformFlags& flags);
// --recompute-loops alone.
Option AddRecomputeFlag(Verb& verb, TransformFlags& flags);

// --approx: rewrites that are true over the reals only are applied, too.
void AddApproxFlag(Verb& verb, bool& approx);

// The derivative first, then the batch: tangents are batched as their primals
// are, and the batch is the first axis of all outputs and of their cotangents.
absl::StatusOr<Graph> ApplyTransforms(const Graph& graph, const RuleSet& rules,
                                      const TransformFlags& flags);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_TRANSFORM_FLAGS_H_
