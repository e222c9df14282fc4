#include "engine/codegen/transpose_loop_weights.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/codegen/contracted_axes.h"
#include "engine/codegen/stored.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/loop_operands.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/check.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// Whether `user` contracts the rows of its right operand `matrix`.
bool ContractsRows(const Graph& body, Value user, Value matrix) {
  if (body.node(user).op != ToOpId(Primitive::kDotGeneral)) return false;
  const auto operands = body.operands(user);
  if (operands[0] == matrix || operands[1] != matrix) return false;
  const ContractedAxes axes = ContractedAxesOf(body, user, 1);
  return axes.batch.empty() && axes.contract == std::vector<int>{1} &&
         axes.own == std::vector<int>{0};
}

// Per constant of a scan whether it is such a matrix.
std::vector<bool> Weights(const Graph& graph, Value scan) {
  const LoopOperands loop = LoopOperands::Of(graph, scan);
  const Graph& body = *graph.attributes(scan).Get("body").AsRegion().graph;
  std::vector<bool> used(body.size());
  std::vector<bool> other(body.size());
  for (uint32_t id = 0; id < body.size(); ++id) {
    for (const Value operand : body.operands(Value{id})) {
      used[operand.id] = true;
      if (!ContractsRows(body, Value{id}, operand)) other[operand.id] = true;
    }
  }
  for (const NamedValue& output : body.outputs()) other[output.value.id] = true;
  std::vector<bool> weights;
  for (int i = 0; i < loop.consts; ++i) {
    const uint32_t id = body.inputs()[i].value.id;
    weights.push_back(used[id] && !other[id]);
  }
  return weights;
}

bool HasWeights(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kScan)) return false;
  for (const bool weight : Weights(graph, v)) {
    if (weight) return true;
  }
  return false;
}

// The body on transposed matrices.
Graph OnTransposed(const Graph& body, const std::vector<bool>& weights) {
  GraphBuilder builder(body.context());
  std::vector<Value> values(body.size());
  std::vector<bool> transposed(body.size());
  for (size_t i = 0; i < body.inputs().size(); ++i) {
    const NamedValue& input = body.inputs()[i];
    TensorType type = body.type(input.value);
    if (i < weights.size() && weights[i]) {
      transposed[input.value.id] = true;
      std::swap(type.shape[0], type.shape[1]);
    }
    values[input.value.id] = builder.Input(input.name, type);
  }
  for (uint32_t id = 0; id < body.size(); ++id) {
    if (values[id].valid()) continue;
    const Node& node = body.node(Value{id});
    std::vector<Value> operands;
    AttributesId attributes = node.attributes;
    for (const Value operand : body.operands(Value{id})) {
      operands.push_back(values[operand.id]);
      if (!transposed[operand.id]) continue;
      Attributes of_columns = body.attributes(Value{id});
      of_columns.Set("contract_b", StaticValue::Ints(std::vector<int>{0}));
      attributes = builder.context()->Intern(of_columns);
    }
    values[id] = builder.AddTyped(node.op, attributes, node.type, operands,
                                  node.provenance);
  }
  for (const ShapeGuard& guard : body.guards()) builder.AddGuard(guard);
  std::vector<NamedValue> outputs = body.outputs();
  for (NamedValue& output : outputs) output.value = values[output.value.id];
  absl::StatusOr<Graph> result = std::move(builder).Build(std::move(outputs));
  CLEAVE_CHECK(result.ok()) << result.status().message();
  return *std::move(result);
}

}  // namespace

Graph TransposeLoopWeights(const Graph& graph) {
  return RewriteNodes(
      graph, [&](Value v) { return HasWeights(graph, v); },
      [&](GraphCopy& copy, Value v) {
        GraphBuilder& builder = copy.builder();
        const std::vector<bool> weights = Weights(graph, v);
        const auto copied = copy.Operands(v);
        std::vector<Value> operands(copied.begin(), copied.end());
        for (size_t i = 0; i < weights.size(); ++i) {
          if (!weights[i]) continue;
          operands[i] = Stored(builder, builder.Transpose(operands[i], {1, 0}));
        }
        Attributes attributes = graph.attributes(v);
        const Graph& body = *attributes.Get("body").AsRegion().graph;
        attributes.Set("body", MakeRegion(OnTransposed(body, weights)));
        const Node& node = graph.node(v);
        return builder.AddTyped(node.op, builder.context()->Intern(attributes),
                                node.type, operands, node.provenance);
      });
}

}  // namespace cleave
