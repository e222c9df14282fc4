#include "engine/codegen/sums_of_products.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/codegen/contracted_axes.h"
#include "engine/codegen/products_of_windows.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

bool IsNumeric(const Graph& graph, Value dot) {
  const DType dtype = graph.type(dot).dtype;
  return IsFloat(dtype) || IsInt(dtype);
}

// Whether each element of the result is one product, which a pointwise kernel
// computes.
bool IsOuterProduct(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kDotGeneral) ||
      !IsNumeric(graph, v)) {
    return false;
  }
  const Shape& shape = graph.type(graph.operands(v)[0]).shape;
  const std::vector<int> contract = ContractedAxesOf(graph, v, 0).contract;
  return std::all_of(contract.begin(), contract.end(),
                     [&](int axis) { return shape[axis] == Dim(1); });
}

// The operand without axes of its own, or with such of extent 1 alone: the
// elements of the other one are read once. Nullopt where both have some.
std::optional<int> SmallOperand(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kDotGeneral)) return std::nullopt;
  // The weights, which are to be finite, would not be stored.
  if (!FiniteOperands(graph, v).empty()) return std::nullopt;
  if (!IsNumeric(graph, v)) return std::nullopt;
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
  const ContractedAxes axes[] = {ContractedAxesOf(graph, v, 0),
                                 ContractedAxesOf(graph, v, 1)};
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

// One product for each element, and 0, which makes -0 what a sum is: 0.
Value OuterProduct(const Graph& graph, Value v,
                   absl::Span<const Value> operands, GraphBuilder& builder) {
  const TensorType& type = graph.type(v);
  std::vector<Value> factors;
  int first_own = 0;
  for (const int side : {0, 1}) {
    const ContractedAxes axes = ContractedAxesOf(graph, v, side);
    const Shape& shape = graph.type(graph.operands(v)[side]).shape;
    std::vector<int> order = axes.batch;
    order.insert(order.end(), axes.own.begin(), axes.own.end());
    Shape kept;
    for (const int axis : order) kept.push_back(shape[axis]);
    order.insert(order.end(), axes.contract.begin(), axes.contract.end());
    const int batch = static_cast<int>(axes.batch.size());
    const int own = static_cast<int>(axes.own.size());
    std::vector<int> places(batch + own);
    std::iota(places.begin(), places.begin() + batch, 0);
    std::iota(places.begin() + batch, places.end(), batch + first_own);
    first_own += own;
    const Value x =
        builder.Reshape(builder.Transpose(operands[side], order), kept);
    factors.push_back(builder.BroadcastInDim(x, type.shape, places));
  }
  const Value product = builder.Apply(Primitive::kMul, factors);
  return builder.Apply(Primitive::kAdd,
                       {product, builder.Constant(Exact(0), type)});
}

}  // namespace

Graph SumsOfProducts(const Graph& graph) {
  return RewriteNodes(
      graph,
      [&](Value v) {
        return IsOuterProduct(graph, v) || SmallOperand(graph, v).has_value();
      },
      [&](GraphCopy& copy, Value v) {
        const auto operands = copy.Operands(v);
        return IsOuterProduct(graph, v)
                   ? OuterProduct(graph, v, operands, copy.builder())
                   : SumOfProducts(graph, v, *SmallOperand(graph, v), operands,
                                   copy.builder());
      });
}

}  // namespace cleave
