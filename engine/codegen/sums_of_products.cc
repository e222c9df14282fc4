#include "engine/codegen/sums_of_products.h"

#include <utility>
#include <vector>

#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// The batch axes, then the contracted ones; empty where there are others.
std::vector<int> Order(const Graph& graph, Value v, int side) {
  const Attributes& attributes = graph.attributes(v);
  std::vector<int> order;
  for (const char* role : {"batch_", "contract_"}) {
    const std::string name = std::string(role) + (side == 0 ? "a" : "b");
    for (const int64_t axis : attributes.GetInts(name)) {
      order.push_back(static_cast<int>(axis));
    }
  }
  const int rank = graph.type(graph.operands(v)[side]).rank();
  return static_cast<int>(order.size()) == rank ? order : std::vector<int>();
}

bool IsSumOfProducts(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kDotGeneral)) return false;
  const DType dtype = graph.type(v).dtype;
  return (IsFloat(dtype) || IsInt(dtype)) && !Order(graph, v, 0).empty() &&
         !Order(graph, v, 1).empty();
}

Value Convert(GraphBuilder& builder, Value x, DType dtype) {
  if (builder.type(x).dtype == dtype) return x;
  Attributes attributes;
  attributes.Set("dtype", dtype);
  return builder.Apply(Primitive::kConvert, {x}, attributes);
}

Value SumOfProducts(const Graph& graph, Value v,
                    const std::vector<Value>& operands, GraphBuilder& builder) {
  const DType dtype = graph.type(v).dtype;
  const bool narrow = dtype == DType::kF16 || dtype == DType::kBF16;
  std::vector<Value> factors;
  for (int side = 0; side < 2; ++side) {
    const Value x =
        Convert(builder, operands[side],
                narrow ? DType::kF32 : builder.type(operands[side]).dtype);
    factors.push_back(builder.Transpose(x, Order(graph, v, side)));
  }
  Value result = builder.Apply(Primitive::kMul, factors, Attributes());
  const int batch = graph.type(v).rank();
  std::vector<int64_t> axes;
  for (int d = batch; d < builder.type(result).rank(); ++d) axes.push_back(d);
  if (!axes.empty()) {
    Attributes attributes;
    attributes.Set("axes", StaticValue::Ints(axes));
    result = builder.Apply(Primitive::kReduceSum, {result}, attributes);
  }
  return Convert(builder, result, dtype);
}

}  // namespace

Graph SumsOfProducts(const Graph& graph) {
  bool any = false;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    any |= IsSumOfProducts(graph, Value{id});
  }
  if (!any) return graph;
  GraphBuilder builder(graph.context());
  for (const ShapeGuard& guard : graph.guards()) builder.AddGuard(guard);
  std::vector<Value> copies(graph.size());
  for (const NamedValue& input : graph.inputs()) {
    copies[input.value.id] = builder.Input(input.name, graph.type(input.value));
  }
  std::vector<Value> operands;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    const Node& node = graph.node(v);
    if (node.op == ToOpId(Primitive::kInput)) continue;
    operands.clear();
    for (const Value operand : graph.operands(v)) {
      operands.push_back(copies[operand.id]);
    }
    if (IsSumOfProducts(graph, v)) {
      builder.SetProvenance(node.provenance);
      copies[id] = SumOfProducts(graph, v, operands, builder);
    } else {
      copies[id] = builder.AddTyped(node.op, node.attributes, node.type,
                                    operands, node.provenance);
    }
  }
  std::vector<NamedValue> outputs;
  for (const NamedValue& output : graph.outputs()) {
    outputs.push_back({output.name, copies[output.value.id]});
  }
  return *std::move(builder).Build(std::move(outputs));
}

}  // namespace cleave
