// The types of a call's results as they are declared, and as body and spec have
// them. Internal to the layers.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_CALL_TYPES_H_
#define CLEAVE_TESTING_CHECK_LAYERS_CALL_TYPES_H_

#include <cstdint>
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

// The refutation by a call that the op accepts, some of whose extents are
// `extent`, and whose graphs cannot be made, for the reason in `status`: an
// index lies outside, or sizes do not go together in the body. Nullopt where
// that is none: the spec gives the call no meaning either, or, where there are
// laws alone, the body does not take it at half that extent, or at 4.
std::optional<Verdict> RefusedByBody(const OpContext& context,
                                     const SampledCall& call, int64_t extent,
                                     const Graph& call_graph,
                                     const absl::Status& status);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_CALL_TYPES_H_
