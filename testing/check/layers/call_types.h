// The types of a call's results as they are declared, and as body and spec have
// them. Internal to the layers.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_CALL_TYPES_H_
#define CLEAVE_TESTING_CHECK_LAYERS_CALL_TYPES_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "engine/ir/graph.h"
#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// Two types that are one at every call: extents that only data decides (of
// nonzero) go by names of their own.
bool SameType(const TensorType& a, const TensorType& b);

// Where the outputs of `graph` differ in type from those declared; empty if
// nowhere.
std::string DifferentTypes(const Graph& declared, const Graph& graph);

// "f32[3], i64[3]": those of the outputs.
std::string TypesOf(const Graph& graph);

Counterexample ExplainTypes(const OpContext& context, const SampledCall& call,
                            std::string what, std::string expected,
                            std::string got);

// Whether the spec gives a call a meaning; `call_graph` is of MakeCallGraph.
bool SpecTakes(const OpContext& context, const Graph& call_graph);

// The refutation by a call that the op accepts and the spec gives a meaning,
// and whose graphs cannot be made, for the reason in `status`: sizes that do
// not go together in the body, say. Nullopt where it is none.
std::optional<Verdict> RefusedByBody(const OpContext& context,
                                     const SampledCall& call,
                                     const Graph& call_graph,
                                     const absl::Status& status);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_CALL_TYPES_H_
