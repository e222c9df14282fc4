#include "engine/codegen/matrix_product.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/codegen/axes_inside.h"
#include "engine/codegen/contracted_axes.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

// An input by strides, one for each axis of a value that is movement of it.
struct Strided {
  Value input;
  Dim offset;
  std::vector<Dim> strides;
};

std::vector<Dim> RowMajor(const Shape& shape) {
  std::vector<Dim> strides(shape.size(), Dim(1));
  for (size_t d = shape.size(); d-- > 1;) {
    strides[d - 1] = strides[d] * shape[d];
  }
  return strides;
}

// The strides behind a reshape: of axes of extent 1 that come and go, or of
// elements that lie one behind the other.
std::optional<Strided> Reshaped(Strided from, const Shape& old_shape,
                                const Shape& shape) {
  if (from.strides == RowMajor(old_shape)) {
    from.strides = RowMajor(shape);
    return from;
  }
  auto strides = AxesBehindUnitReshape(shape, old_shape, from.strides, Dim(0));
  if (!strides.has_value()) return std::nullopt;
  from.strides = *std::move(strides);
  return from;
}

std::optional<Strided> Find(const Graph& graph, Value v) {
  if (!IsPrimitive(graph.node(v).op)) return std::nullopt;
  const Primitive primitive = ToPrimitive(graph.node(v).op);
  const Shape& shape = graph.type(v).shape;
  if (primitive == Primitive::kInput) {
    return Strided{v, Dim(0), RowMajor(shape)};
  }
  if (graph.operands(v).empty()) return std::nullopt;
  const Value x = graph.operands(v)[0];
  const Shape& from = graph.type(x).shape;
  const Attributes& attributes = graph.attributes(v);
  switch (primitive) {
    case Primitive::kTranspose:
    case Primitive::kBroadcastInDim:
    case Primitive::kSlice:
    case Primitive::kReshape:
      break;
    default:
      return std::nullopt;
  }
  std::optional<Strided> found = Find(graph, x);
  if (!found.has_value()) return std::nullopt;
  if (primitive == Primitive::kReshape) {
    return Reshaped(*std::move(found), from, shape);
  }
  std::vector<Dim> strides(shape.size(), Dim(0));
  if (primitive == Primitive::kTranspose) {
    const std::vector<int64_t> axes = attributes.GetInts("axes");
    for (size_t d = 0; d < axes.size(); ++d) {
      strides[d] = found->strides[axes[d]];
    }
  } else if (primitive == Primitive::kBroadcastInDim) {
    const std::vector<int64_t> axes = attributes.GetInts("axes");
    for (size_t d = 0; d < axes.size(); ++d) {
      const bool repeats = from[d] == Dim(1) && shape[axes[d]] != Dim(1);
      if (!repeats) strides[axes[d]] = found->strides[d];
    }
  } else {
    const auto starts = attributes.GetDims("start");
    const auto steps = attributes.GetDims("stride");
    for (size_t d = 0; d < shape.size(); ++d) {
      found->offset = found->offset + starts[d] * found->strides[d];
      strides[d] = steps[d] * found->strides[d];
    }
  }
  found->strides = std::move(strides);
  return found;
}

int InputNumber(const Graph& graph, Value input) {
  int number = 0;
  while (graph.inputs()[number].value != input) ++number;
  return number;
}

// The stride of several axes as one, the first outermost; nullopt where one of
// them does not go on as the next one does.
std::optional<Dim> StrideOfAll(const std::vector<int>& axes, const Shape& shape,
                               const std::vector<Dim>& strides) {
  std::optional<Dim> inner;  // the first axis of those behind it
  std::optional<Dim> all;
  for (size_t i = axes.size(); i-- > 0;) {
    const int axis = axes[i];
    if (shape[axis] == Dim(1)) continue;
    if (!all.has_value()) {
      all = strides[axis];
    } else if (strides[axis] != *inner) {
      return std::nullopt;
    }
    inner = strides[axis] * shape[axis];
  }
  return all.value_or(Dim(1));
}

std::optional<MatrixProduct::Side> FindSide(const Graph& graph, Value dot,
                                            int side) {
  const ContractedAxes axes = ContractedAxesOf(graph, dot, side);
  const auto found = Find(graph, graph.operands(dot)[side]);
  if (!found.has_value()) return std::nullopt;
  MatrixProduct::Side result;
  result.input = InputNumber(graph, found->input);
  result.offset = found->offset;
  for (const int axis : axes.batch) {
    result.of_batch.push_back(found->strides[axis]);
  }
  const Shape& shape = graph.type(graph.operands(dot)[side]).shape;
  const auto of_own = StrideOfAll(axes.own, shape, found->strides);
  const auto of_terms = StrideOfAll(axes.contract, shape, found->strides);
  if (!of_own.has_value() || !of_terms.has_value()) return std::nullopt;
  result.of_own = *of_own;
  result.of_terms = *of_terms;
  return result;
}

// Makes one axis of two axes of the batch wherever both sides go on from one
// row of the inner axis to the next as they go on within it.
void MergeBatch(MatrixProduct& product) {
  const auto continues = [&](const MatrixProduct::Side& side, size_t d) {
    return side.of_batch[d] == side.of_batch[d + 1] * product.batch[d + 1];
  };
  for (size_t d = product.batch.size(); d-- > 0;) {
    const bool is_one = product.batch[d] == Dim(1);
    const bool merges = d + 1 < product.batch.size() &&
                        continues(product.left, d) &&
                        continues(product.right, d);
    if (!is_one && !merges) continue;
    if (merges) product.batch[d + 1] = product.batch[d] * product.batch[d + 1];
    const auto at = static_cast<std::ptrdiff_t>(d);
    product.batch.erase(product.batch.begin() + at);
    for (MatrixProduct::Side* side : {&product.left, &product.right}) {
      side->of_batch.erase(side->of_batch.begin() + at);
    }
  }
}

bool IsSmall(const Dim& extent) {
  const auto value = extent.Value();
  return value.has_value() && *value < kLeastProductExtent;
}

bool IsFloatProduct(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kDotGeneral)) return false;
  const DType dtype = graph.type(v).dtype;
  if (!IsFloat(dtype)) return false;
  for (const Value operand : graph.operands(v)) {
    if (graph.type(operand).dtype != dtype) return false;
  }
  return true;
}

}  // namespace

std::optional<MatrixProduct> FindMatrixProduct(const Graph& graph) {
  if (graph.outputs().size() != 1) return std::nullopt;
  Value dot = graph.outputs()[0].value;
  while (graph.node(dot).op == ToOpId(Primitive::kReshape)) {
    dot = graph.operands(dot)[0];
  }
  if (!IsFloatProduct(graph, dot)) return std::nullopt;
  const auto left = FindSide(graph, dot, 0);
  const auto right = FindSide(graph, dot, 1);
  if (!left.has_value() || !right.has_value()) return std::nullopt;
  MatrixProduct product;
  product.dtype = graph.type(dot).dtype;
  const Shape& of_left = graph.type(graph.operands(dot)[0]).shape;
  const Shape& of_right = graph.type(graph.operands(dot)[1]).shape;
  const ContractedAxes axes = ContractedAxesOf(graph, dot, 0);
  for (const int axis : axes.batch) product.batch.push_back(of_left[axis]);
  product.rows = ExtentOfAxes(of_left, axes.own);
  product.columns = ExtentOfAxes(of_right, ContractedAxesOf(graph, dot, 1).own);
  product.terms = ExtentOfAxes(of_left, axes.contract);
  product.left = *left;
  product.right = *right;
  MergeBatch(product);
  return product;
}

bool IsLargeProduct(const Graph& graph, Value node) {
  if (!IsFloatProduct(graph, node)) return false;
  for (const int side : {0, 1}) {
    const ContractedAxes axes = ContractedAxesOf(graph, node, side);
    const Shape& shape = graph.type(graph.operands(node)[side]).shape;
    if (IsSmall(ExtentOfAxes(shape, axes.own)) ||
        IsSmall(ExtentOfAxes(shape, axes.contract))) {
      return false;
    }
  }
  return true;
}

}  // namespace cleave
