#include "engine/codegen/panels.h"

#include <algorithm>
#include <vector>

#include "engine/codegen/stored.h"
#include "ops/check.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/primitive.h"

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
  for (const int64_t vectors : {4, 2}) {
    if (*columns % (vectors * vector) == 0) return vectors * vector;
  }
  return std::nullopt;
}

Value StorePanels(GraphBuilder& builder, Value matrix, int64_t contracted) {
  const TensorType& type = builder.type(matrix);
  const auto width = ColumnsOfPanels(type, contracted);
  CLEAVE_CHECK(width.has_value()) << "a matrix that has no whole panels";
  const Dim terms = type.shape[contracted];
  const Dim panels(*type.shape[1 - contracted].Value() / *width);
  if (contracted == 1) matrix = builder.Transpose(matrix, {1, 0});
  matrix = builder.Reshape(matrix, {terms, panels, Dim(*width)});
  return Stored(builder, Exchange(builder, matrix));
}

Value MatrixOf(GraphBuilder& builder, Value panels) {
  const Shape& shape = builder.type(panels).shape;
  const Shape matrix = {shape[1], shape[0] * shape[2]};
  return builder.Reshape(Exchange(builder, panels), matrix);
}

std::optional<Value> PanelsOfMatrix(const Graph& graph, Value matrix) {
  if (graph.node(matrix).op != ToOpId(Primitive::kReshape)) return std::nullopt;
  const Value transposed = graph.operands(matrix)[0];
  if (graph.node(transposed).op != ToOpId(Primitive::kTranspose) ||
      graph.type(transposed).rank() != 3) {
    return std::nullopt;
  }
  const auto axes = graph.attributes(transposed).GetInts("axes");
  if (!std::equal(axes.begin(), axes.end(), kExchanged)) return std::nullopt;
  const Value panels = graph.operands(transposed)[0];
  const Shape& shape = graph.type(panels).shape;
  const Shape expected = {shape[1], shape[0] * shape[2]};
  return graph.type(matrix).shape == expected ? std::optional(panels)
                                              : std::nullopt;
}

}  // namespace cleave
