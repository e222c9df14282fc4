// Names of the inputs and outputs that transforms add, and graphs with some of
// them. Internal to transforms and to their checks.

#ifndef CLEAVE_TRANSFORMS_TABLE_NAMES_H_
#define CLEAVE_TRANSFORMS_TABLE_NAMES_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

inline constexpr absl::string_view kTangent = ".tangent";
inline constexpr absl::string_view kCotangent = ".cotangent";

// `name` with `suffix` behind it, as often as it takes to be none of `taken`,
// which it joins.
std::string NameWith(const std::string& name, absl::string_view suffix,
                     absl::flat_hash_set<std::string>& taken);

absl::flat_hash_set<std::string> NamesOf(const std::vector<NamedValue>& named);

// The provenance of the nodes of a rule: "vmap reduce_sum".
ProvenanceId RuleProvenance(Context& context, absl::string_view transform,
                            OpId op);

// The values as y0, y1, ..
std::vector<NamedValue> Numbered(const std::vector<Value>& values);

// Inputs of `builder` with the names and types of the graph's.
std::vector<Value> AddInputsOf(GraphBuilder& builder, const Graph& graph);

// The same for a transform in the inputs that are `active`, which must be
// inexact and as many as there are: InvalidArgument otherwise, with `transform`
// and what an exact one has not ("no tangents").
absl::StatusOr<std::vector<Value>> AddActiveInputs(
    GraphBuilder& builder, const Graph& graph, const std::vector<bool>& active,
    const RuleSet& rules, absl::string_view transform,
    absl::string_view has_not);

// The graph with the outputs at these places alone, or those from `first` on.
Graph WithOutputsAt(const Graph& graph, const std::vector<size_t>& places);
Graph WithoutOutputsBefore(const Graph& graph, size_t first);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_TABLE_NAMES_H_
