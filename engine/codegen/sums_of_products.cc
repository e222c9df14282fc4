#include "engine/codegen/sums_of_products.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/codegen/contracted_axes.h"
#include "engine/codegen/products_of_windows.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// The operand without axes of its own, or with such of extent 1 alone: the
// elements of the other one are read once. Nullopt where both have some.
std::optional<int> SmallOperand(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kDotGeneral)) return std::nullopt;
  // The weights, which are to be finite, would not be stored.
  if (FiniteOperand(graph, v)) return std::nullopt;
  const DType dtype = graph.type(v).dtype;
  if (!IsFloat(dtype) && !IsInt(dtype)) return std::nullopt;
  for (const int side : {1, 0}) {
    const TensorType& type = graph.type(graph.operands(v)[side]);
    const std::vector<int> own = ContractedAxesOf(graph, v, side).own;
    if (std::all_of(own.begin(), own.end(),
                    [&](int axis) { return type.shape[axis] == Dim(1); })) {
      return side;
    }
  }
  return std::nullopt;
}

Value Convert(GraphBuilder& builder, Value x, DType dtype) {
  if (builder.type(x).dtype == dtype) return x;
  Attributes attributes;
  attributes.Set("dtype", dtype);
  return builder.Apply(Primitive::kConvert, {x}, attributes);
}

// `x`, whose axes are `small`, at the axes of the operand with those of `big`.
Value SpreadOver(GraphBuilder& builder, Value x, const ContractedAxes& small,
                 const ContractedAxes& big, const Shape& shape) {
  // By axis of the big operand, that of the small one.
  std::map<int, int> places;
  for (size_t i = 0; i < big.batch.size(); ++i) {
    places[big.batch[i]] = small.batch[i];
  }
  for (size_t i = 0; i < big.contract.size(); ++i) {
    places[big.contract[i]] = small.contract[i];
  }
  std::vector<int> order;
  std::vector<int> axes;
  Shape kept;
  for (const auto& [at, axis] : places) {
    order.push_back(axis);
    axes.push_back(at);
    kept.push_back(builder.type(x).shape[axis]);
  }
  // Axes of extent 1 go last, and away.
  order.insert(order.end(), small.own.begin(), small.own.end());
  x = builder.Reshape(builder.Transpose(x, order), kept);
  return builder.BroadcastInDim(x, shape, axes);
}

Value SumOfProducts(const Graph& graph, Value v, int small,
                    absl::Span<const Value> operands, GraphBuilder& builder) {
  const TensorType& type = graph.type(v);
  const bool narrow = type.dtype == DType::kF16 || type.dtype == DType::kBF16;
  const ContractedAxes axes[] = {ContractedAxesOf(graph, v, 0), ContractedAxesOf(graph, v, 1)};
  const ContractedAxes& big = axes[1 - small];
  std::vector<Value> factors;
  for (int side = 0; side < 2; ++side) {
    factors.push_back(
        Convert(builder, operands[side],
                narrow ? DType::kF32 : builder.type(operands[side]).dtype));
  }
  // The big operand stays as it lies in memory.
  const Shape shape = builder.type(factors[1 - small]).shape;
  factors[small] = SpreadOver(builder, factors[small], axes[small], big, shape);
  Value result = builder.Apply(Primitive::kMul, factors, Attributes());
  if (!big.contract.empty()) {
    std::vector<int> contract = big.contract;
    std::sort(contract.begin(), contract.end());
    Attributes attributes;
    attributes.Set("axes", StaticValue::Ints(contract));
    result = builder.Apply(Primitive::kReduceSum, {result}, attributes);
  }
  // The batch in front, in the order that the contraction has it.
  std::vector<int> order = big.batch;
  order.insert(order.end(), big.own.begin(), big.own.end());
  for (int& axis : order) {
    axis -= static_cast<int>(
        std::count_if(big.contract.begin(), big.contract.end(),
                      [&](int contracted) { return contracted < axis; }));
  }
  result = builder.Reshape(builder.Transpose(result, order), type.shape);
  return Convert(builder, result, type.dtype);
}

}  // namespace

Graph SumsOfProducts(const Graph& graph) {
  bool any = false;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    any |= SmallOperand(graph, Value{id}).has_value();
  }
  if (!any) return graph;
  return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    const std::optional<int> small = SmallOperand(graph, v);
    if (!small) return copy.Keep(v);
    copy.builder().SetProvenance(graph.node(v).provenance);
    return SumOfProducts(graph, v, *small, copy.Operands(v), copy.builder());
  });
}

}  // namespace cleave
