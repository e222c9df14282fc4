#include "engine/codegen/panels.h"

#include <algorithm>
#include <vector>

#include "engine/codegen/stored.h"
#include "engine/codegen/up_to_multiple.h"
#include "ops/check.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// The panels' axes in the matrix, and the matrix's in panels.
constexpr int kExchanged[] = {1, 0, 2};

Value Exchange(GraphBuilder& builder, Value x) {
  return builder.Transpose(x, {kExchanged, kExchanged + 3});
}

}  // namespace

std::optional<int64_t> ColumnsOfPanels(const TensorType& matrix,
                                       int64_t contracted) {
  // Tiles have two or four of the longest vectors beside each other.
  constexpr int64_t kVectorBytes = 64;
  if (!IsFloat(matrix.dtype) || matrix.shape.size() != 2) return std::nullopt;
  const auto columns = matrix.shape[1 - contracted].Value();
  if (!columns.has_value() || *columns == 0) return std::nullopt;
  // Halves are summed in f32.
  const int64_t vector =
      kVectorBytes / std::max<int64_t>(ByteSize(matrix.dtype), 4);
  std::optional<int64_t> best;
  // A quarter of the work may be in vain.
  int64_t least = *columns + *columns / 4 + 1;
  for (const int64_t vectors : {4, 2}) {
    const int64_t padded = UpToMultiple(*columns, vectors * vector);
    if (padded >= least) continue;
    least = padded;
    best = vectors * vector;
  }
  return best;
}

Value StorePanels(GraphBuilder& builder, Value matrix, int64_t contracted) {
  const TensorType type = builder.type(matrix);
  const auto width = ColumnsOfPanels(type, contracted);
  CLEAVE_CHECK(width.has_value()) << "a matrix that has no panels";
  const Dim terms = type.shape[contracted];
  const int64_t columns =
      UpToMultiple(*type.shape[1 - contracted].Value(), *width);
  if (contracted == 1) matrix = builder.Transpose(matrix, {1, 0});
  matrix = WithZerosBehind(builder, matrix, {terms, Dim(columns)});
  matrix = builder.Reshape(matrix, {terms, Dim(columns / *width), Dim(*width)});
  return Stored(builder, Exchange(builder, matrix));
}

Value MatrixOf(GraphBuilder& builder, Value panels, const Dim& columns) {
  const Shape shape = builder.type(panels).shape;
  const Value all = builder.Reshape(Exchange(builder, panels),
                                    {shape[1], shape[0] * shape[2]});
  return FirstOf(builder, all, {shape[1], columns});
}

std::optional<Value> PanelsOfMatrix(const Graph& graph, Value matrix) {
  const auto is = [&](Value v, Primitive primitive) {
    return graph.node(v).op == ToOpId(primitive);
  };
  Value all = matrix;
  if (is(all, Primitive::kSlice)) {
    const Attributes& attributes = graph.attributes(all);
    all = graph.operands(all)[0];
    if (attributes.GetDims("start") != std::vector<Dim>(2, Dim(0)) ||
        attributes.GetDims("stride") != std::vector<Dim>(2, Dim(1)) ||
        graph.type(all).shape[0] != graph.type(matrix).shape[0]) {
      return std::nullopt;
    }
  }
  if (!is(all, Primitive::kReshape)) return std::nullopt;
  const Value transposed = graph.operands(all)[0];
  if (!is(transposed, Primitive::kTranspose) ||
      graph.type(transposed).rank() != 3) {
    return std::nullopt;
  }
  const auto axes = graph.attributes(transposed).GetInts("axes");
  if (!std::equal(axes.begin(), axes.end(), kExchanged)) return std::nullopt;
  const Value panels = graph.operands(transposed)[0];
  const Shape& shape = graph.type(panels).shape;
  const Shape expected = {shape[1], shape[0] * shape[2]};
  return graph.type(all).shape == expected ? std::optional(panels)
                                           : std::nullopt;
}

Value FirstOf(GraphBuilder& builder, Value x, const Shape& shape) {
  if (builder.type(x).shape == shape) return x;
  Attributes slice;
  slice.Set("start", StaticValue::Dims(std::vector<Dim>(shape.size(), Dim(0))));
  slice.Set("size", StaticValue::Dims(shape));
  slice.Set("stride",
            StaticValue::Dims(std::vector<Dim>(shape.size(), Dim(1))));
  return builder.Apply(Primitive::kSlice, {x}, slice);
}

Value WithZerosBehind(GraphBuilder& builder, Value x, const Shape& shape) {
  const Shape& from = builder.type(x).shape;
  if (from == shape) return x;
  std::vector<Dim> none(shape.size(), Dim(0));
  Attributes pad;
  pad.Set("interior", StaticValue::Ints(std::vector<int64_t>(shape.size(), 0)));
  pad.Set("low", StaticValue::Dims(none));
  none.back() = shape.back() - from.back();
  pad.Set("high", StaticValue::Dims(none));
  const Value zero = builder.Constant(Exact(0), builder.type(x).dtype);
  return builder.Apply(Primitive::kPad, {x, zero}, pad);
}

}  // namespace cleave
