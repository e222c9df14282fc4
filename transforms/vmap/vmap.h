// Vmap: one graph to the graph of many examples at once.
//
//   Vmap(f, {0, kNotMapped}, Dim::Variable("B"), {0}, rules)
//
// Randomness is explicit: a graph draws from its inputs of dtype key alone, and
// the caller says for each of them what the examples get.
//
//   in_axes   the examples draw
//   0         what the key that each one is given draws
//   kNotMapped  the same: they share the key
//   kSplit      each something else: from one key a key for each is split
//
// In each case a result is, bit by bit, that of the loop over the examples:
// kSplit is the loop over random_split(key, count: batch). Nested batches
// split again: the outer batch splits the key, the inner one each of those.
//
// A cond whose predicate differs from example to example computes both of its
// branches for all examples and selects. An example that does not take a branch
// runs it on the operands of one that does, so that neither values nor
// derivatives, in either mode, come from where the branch was not meant to be
// evaluated; branches that can fail or not end run example by example. A while
// goes on until no example does; those that have finished run its body on the
// values of one that has not, and keep their own.

#ifndef CLEAVE_TRANSFORMS_VMAP_VMAP_H_
#define CLEAVE_TRANSFORMS_VMAP_VMAP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "transforms/table/transform_options.h"

namespace cleave {

// The in_axes entry of an input that all examples share.
inline constexpr int kNotMapped = -1;
// The in_axes entry of an input of dtype key of which each example gets a key
// of its own: the input is as it was, and random_split gives the keys.
inline constexpr int kSplit = -2;

// `in_axes[i]` is the axis of the batched input i at which the batch stands (0
// to the rank of the unbatched input), kNotMapped, or kSplit; at least one is
// not kNotMapped. Where no input has the batch as an axis, but a key is split,
// a batch with variables is known from the other inputs only. `out_axes[j]` is
// where it stands in output j; kNotMapped demands that output j does not depend
// on the batch. A node that does not depend on the batch stays as it is. Inputs
// keep their names. InvalidArgument for axes that do not fit;
// Unimplemented("impossible: ragged ...") for data-dependent shapes;
// FailedPrecondition for rules without transforms (LoadOptions::derive).
absl::StatusOr<Graph> Vmap(const Graph& graph, const std::vector<int>& in_axes,
                           const Dim& batch, const std::vector<int>& out_axes,
                           const RuleSet& rules,
                           const TransformOptions& options = {});

// A variable for the batch that no input has: "batch", "batch_1", ...
std::string FreshBatch(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VMAP_VMAP_H_
