#include "engine/codegen/sums_of_products.h"

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/ir/rewrite_graph.h"
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
                    absl::Span<const Value> operands, GraphBuilder& builder) {
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
  return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    if (!IsSumOfProducts(graph, v)) return copy.Keep(v);
    copy.builder().SetProvenance(graph.node(v).provenance);
    return SumOfProducts(graph, v, copy.Operands(v), copy.builder());
  });
}

}  // namespace cleave
