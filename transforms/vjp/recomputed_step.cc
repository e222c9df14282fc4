#include "transforms/vjp/recomputed_step.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ops/element_cost.h"
#include "ops/outer_shape.h"
#include "ops/primitive.h"
#include "transforms/table/names.h"

namespace cleave {
namespace {

// Operations of a residual of a branch that is computed again: one function.
constexpr int kMostCost = 16;

// The values that `v` is made of by a few operations per element: inputs, and
// what has far fewer elements; nullopt where there is more to it.
std::optional<std::vector<Value>> CheapCone(const Graph& graph, Value v) {
  std::vector<Value> from;
  std::set<Value> seen = {v};
  std::vector<Value> stack = {v};
  int cost = 0;
  while (!stack.empty()) {
    const Value at = stack.back();
    stack.pop_back();
    const OpId op = graph.node(at).op;
    if (op == ToOpId(Primitive::kInput)) continue;
    if (IsOuter(graph.type(v).shape, graph.type(at).shape) &&
        !graph.operands(at).empty()) {
      from.push_back(at);
      continue;
    }
    if (!IsPrimitive(op)) return std::nullopt;
    const Primitive primitive = ToPrimitive(op);
    switch (ClassOf(primitive)) {
      case PrimitiveClass::kLeaf:
      case PrimitiveClass::kMovement:
        break;
      case PrimitiveClass::kPointwise:
        cost += CostOf(primitive);
        if (cost > kMostCost) return std::nullopt;
        break;
      default:
        return std::nullopt;
    }
    for (const Value operand : graph.operands(at)) {
      if (seen.insert(operand).second) stack.push_back(operand);
    }
  }
  return from;
}

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

Recomputation VaryingResiduals(const Graph& body, int consts) {
  return {Varies(body, consts), std::vector<bool>(body.size(), false)};
}

Recomputation CheapResiduals(const PartialEvaluation& cut) {
  const Graph& branch = cut.known;
  Recomputation result = {std::vector<bool>(branch.size(), false),
                          std::vector<bool>(branch.size(), false)};
  const size_t outputs = branch.outputs().size();
  for (size_t i = outputs - cut.residuals; i < outputs; ++i) {
    const Value residual = branch.outputs()[i].value;
    const auto from = CheapCone(branch, residual);
    if (!from.has_value()) continue;
    result.residuals[residual.id] = true;
    for (const Value v : *from) result.from[v.id] = true;
  }
  return result;
}

PartialEvaluation Recomputing(const PartialEvaluation& cut,
                              const Recomputation& again) {
  const Graph& body = cut.known;
  const size_t known_outputs = body.outputs().size() - cut.residuals;
  // The residuals, and the values that they are computed from.
  std::vector<bool> needed(body.size(), false);
  for (size_t i = known_outputs; i < body.outputs().size(); ++i) {
    const Value residual = body.outputs()[i].value;
    if (again.residuals[residual.id]) needed[residual.id] = true;
  }
  for (int64_t id = body.size() - 1; id >= 0; --id) {
    if (!needed[id] || again.from[id]) continue;
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
  std::vector<Value> computed(body.size());
  for (const NamedValue& input : body.inputs()) {
    if (needed[input.value.id]) computed[input.value.id] = save(input.value);
  }
  for (uint32_t id = 0; id < body.size(); ++id) {
    if (needed[id] && again.from[id]) computed[id] = save(Value{id});
  }
  CopyNodes(unknown, body, needed, computed);
  for (size_t i = known_outputs; i < body.outputs().size(); ++i) {
    const Value residual = body.outputs()[i].value;
    Value& value = computed[residual.id];
    if (!value.valid()) value = save(residual);
    arguments.push_back(value);
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
