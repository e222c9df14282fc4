// Transpose: a graph that is linear in some of its inputs, turned around. The
// map J from tangents of the inputs to tangents of the outputs becomes the map
// from cotangents of the outputs to cotangents of the inputs, so that <J v, w>
// = <v, J^T w> for all v and w.
//
//   Transpose(f, {false, true}, rules)   // f(k, x), linear in x
//       inputs  k, y.cotangent           outputs  x.cotangent

#ifndef CLEAVE_TRANSFORMS_VJP_TRANSPOSE_H_
#define CLEAVE_TRANSFORMS_VJP_TRANSPOSE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "transforms/table/rule_table.h"
#include "transforms/vjp/guarded.h"

namespace cleave {

// Inputs of the result: those of `graph` that are not `linear`, then a
// `<name>.cotangent` for each output that a linear input reaches. Outputs: a
// `<name>.cotangent` for each linear input, zeros where none of those outputs
// depends on it. InvalidArgument where `linear` has another length, or marks an
// input of an exact dtype; Internal where the graph is not linear in them.
absl::StatusOr<Graph> Transpose(const Graph& graph,
                                const std::vector<bool>& linear,
                                const RuleSet& rules,
                                const TransformOptions& options = {});

// The walk, internal to transforms: `arguments` stand for the inputs that are
// not linear, and are invalid for those that are; `cotangents` are those of the
// outputs, invalid for symbolic zeros. One cotangent per input, invalid for a
// symbolic zero and where it is not linear.
absl::StatusOr<std::vector<Value>> TransposeGraph(
    GraphBuilder& builder, const Graph& graph,
    absl::Span<const Value> arguments, absl::Span<const Value> cotangents,
    RuleTable& table);
// The same, with what selects keep from the results beside them.
absl::StatusOr<std::vector<Guarded>> TransposeGuarded(
    GraphBuilder& builder, const Graph& graph,
    absl::Span<const Value> arguments, absl::Span<const Value> cotangents,
    RuleTable& table);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_TRANSPOSE_H_
