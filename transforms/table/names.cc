#include "transforms/table/names.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transforms/table/emit.h"

namespace cleave {

std::string NameWith(const std::string& name, absl::string_view suffix,
                     absl::flat_hash_set<std::string>& taken) {
  std::string with = absl::StrCat(name, suffix);
  while (!taken.insert(with).second) absl::StrAppend(&with, suffix);
  return with;
}

absl::flat_hash_set<std::string> NamesOf(const std::vector<NamedValue>& named) {
  absl::flat_hash_set<std::string> names;
  for (const NamedValue& value : named) names.insert(value.name);
  return names;
}

ProvenanceId RuleProvenance(Context& context, absl::string_view transform,
                            OpId op) {
  return context.Intern(
      Provenance{absl::StrCat(transform, " ", context.op_name(op)), "", 0});
}

std::vector<NamedValue> Numbered(const std::vector<Value>& values) {
  std::vector<NamedValue> named;
  for (size_t i = 0; i < values.size(); ++i) {
    named.push_back({absl::StrCat("y", i), values[i]});
  }
  return named;
}

std::vector<Value> AddInputsOf(GraphBuilder& builder, const Graph& graph) {
  std::vector<Value> inputs;
  for (const NamedValue& input : graph.inputs()) {
    inputs.push_back(builder.Input(input.name, graph.type(input.value)));
  }
  return inputs;
}

absl::StatusOr<std::vector<Value>> AddActiveInputs(
    GraphBuilder& builder, const Graph& graph, const std::vector<bool>& active,
    const RuleSet& rules, absl::string_view transform,
    absl::string_view has_not) {
  if (active.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(transform, ": `active` has ", active.size(),
                     " entries for ", graph.inputs().size(), " inputs"));
  }
  if (graph.context() != rules.context()) {
    return absl::InvalidArgumentError(absl::StrCat(
        transform, ": the graph and the rules are of different contexts"));
  }
  for (size_t i = 0; i < active.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    const TensorType& type = graph.type(input.value);
    if (active[i] && !emit::IsInexact(type.dtype)) {
      return absl::InvalidArgumentError(
          absl::StrCat(transform, ": the input `", input.name, "` is ",
                       type.ToString(), ", which has ", has_not));
    }
  }
  return AddInputsOf(builder, graph);
}

Graph WithOutputsAt(const Graph& graph, const std::vector<size_t>& places) {
  GraphBuilder builder(graph.context());
  const std::vector<Value> inputs = AddInputsOf(builder, graph);
  const std::vector<Value> values = builder.Inline(graph, inputs);
  std::vector<NamedValue> outputs;
  for (size_t i : places) {
    outputs.push_back({graph.outputs()[i].name, values[i]});
  }
  return *std::move(builder).Build(std::move(outputs));
}

Graph WithoutOutputsBefore(const Graph& graph, size_t first) {
  std::vector<size_t> places;
  for (size_t i = first; i < graph.outputs().size(); ++i) places.push_back(i);
  return WithOutputsAt(graph, places);
}

}  // namespace cleave
