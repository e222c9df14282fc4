#include "transforms/vjp/recomputed_step.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "transforms/table/names.h"

namespace cleave {
namespace {

// Copies the nodes that `values` lacks, those in `nodes` alone.
void CopyNodes(GraphBuilder& builder, const Graph& graph,
               const std::vector<bool>& nodes, std::vector<Value>& values) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (!nodes[id] || values[id].valid()) continue;
    std::vector<Value> operands;
    for (Value operand : graph.operands(Value{id})) {
      operands.push_back(values[operand.id]);
    }
    const Node& node = graph.node(Value{id});
    values[id] = builder.AddTyped(node.op, node.attributes, node.type, operands,
                                  node.provenance);
  }
}

}  // namespace

std::vector<bool> Varies(const Graph& body, int consts) {
  std::vector<bool> varies(body.size(), false);
  for (size_t i = consts; i < body.inputs().size(); ++i) {
    varies[body.inputs()[i].value.id] = true;
  }
  for (uint32_t id = 0; id < body.size(); ++id) {
    for (Value operand : body.operands(Value{id})) {
      if (varies[operand.id]) varies[id] = true;
    }
  }
  return varies;
}

PartialEvaluation Recomputing(const PartialEvaluation& cut, int consts) {
  const Graph& body = cut.known;
  const size_t known_outputs = body.outputs().size() - cut.residuals;
  const std::vector<bool> varies = Varies(body, consts);
  // The residuals that vary, and the values that they are computed from.
  std::vector<bool> needed(body.size(), false);
  for (size_t i = known_outputs; i < body.outputs().size(); ++i) {
    const Value residual = body.outputs()[i].value;
    needed[residual.id] = varies[residual.id];
  }
  for (int64_t id = body.size() - 1; id >= 0; --id) {
    if (!needed[id]) continue;
    for (Value operand : body.operands(Value{static_cast<uint32_t>(id)})) {
      needed[operand.id] = true;
    }
  }
  PartialEvaluation result;
  result.output_unknown = cut.output_unknown;
  std::vector<NamedValue> saved(body.outputs().begin(),
                                body.outputs().begin() + known_outputs);
  GraphBuilder unknown(body.context());
  absl::flat_hash_set<std::string> taken = NamesOf(cut.unknown.inputs());
  for (const NamedValue& output : saved) taken.insert(output.name);
  std::vector<Value> arguments;
  for (size_t i = 0; i < cut.unknown.inputs().size() - cut.residuals; ++i) {
    const NamedValue& input = cut.unknown.inputs()[i];
    arguments.push_back(
        unknown.Input(input.name, cut.unknown.type(input.value)));
  }
  const auto save = [&](Value value) {
    const std::string name = NameWith("residual", "_", taken);
    saved.push_back({name, value});
    ++result.residuals;
    return unknown.Input(name, body.type(value));
  };
  std::vector<Value> again(body.size());
  for (const NamedValue& input : body.inputs()) {
    if (needed[input.value.id]) again[input.value.id] = save(input.value);
  }
  CopyNodes(unknown, body, needed, again);
  for (size_t i = known_outputs; i < body.outputs().size(); ++i) {
    const Value residual = body.outputs()[i].value;
    arguments.push_back(varies[residual.id] ? again[residual.id]
                                            : save(residual));
  }
  std::vector<NamedValue> results;
  for (Value v : unknown.Inline(cut.unknown, arguments)) {
    results.push_back({cut.unknown.outputs()[results.size()].name, v});
  }
  result.unknown = *std::move(unknown).Build(std::move(results));
  GraphBuilder known(body.context());
  std::vector<Value> copies(body.size());
  const std::vector<Value> inputs = AddInputsOf(known, body);
  for (size_t i = 0; i < inputs.size(); ++i) {
    copies[body.inputs()[i].value.id] = inputs[i];
  }
  CopyNodes(known, body, std::vector<bool>(body.size(), true), copies);
  for (NamedValue& output : saved) output.value = copies[output.value.id];
  for (const ShapeGuard& guard : body.guards()) known.AddGuard(guard);
  result.known = *std::move(known).Build(std::move(saved));
  return result;
}

}  // namespace cleave
