// Panels of columns: the right side of a product as its tiles read it, line by
// line. A product packs it for itself; where many products read the same one,
// as the rounds of a loop do, it is stored so once, before them.
//
//   %k: f32[1000, 64], contracted along its last axis
//   -> %panels: f32[16, 64, 64]                // [panel, term, column]
//      %1 = transpose(%panels, axes: [1, 0, 2])
//      %2 = reshape(%1, shape: [64, 1024])     // [term, all columns]
//      slice(%2, size: [64, 1000], ..)         // without zeros behind

#ifndef CLEAVE_ENGINE_CODEGEN_PANELS_H_
#define CLEAVE_ENGINE_CODEGEN_PANELS_H_

#include <cstdint>
#include <optional>

#include "engine/ir/graph.h"
#include "ops/dim.h"
#include "ops/tensor_type.h"

namespace cleave {

// Columns of a panel of such a matrix, which is summed over the axis
// `contracted`: as many as fill the registers of a tile. Nullopt where panels
// would have many more columns than the matrix, or where it is open.
std::optional<int64_t> ColumnsOfPanels(const TensorType& matrix,
                                       int64_t contracted);

// The panels of that matrix, in memory, with zeros behind its columns; it has
// ColumnsOfPanels.
Value StorePanels(GraphBuilder& builder, Value matrix, int64_t contracted);

// The matrix of so many columns that panels hold, [terms, columns].
Value MatrixOf(GraphBuilder& builder, Value panels, const Dim& columns);

// The panels of which a value is MatrixOf; nullopt where it is something else.
std::optional<Value> PanelsOfMatrix(const Graph& graph, Value matrix);

// The first elements of x along each axis; x itself where it has that shape.
Value FirstOf(GraphBuilder& builder, Value x, const Shape& shape);

// x with zeros behind it along the last axis, in that shape.
Value WithZerosBehind(GraphBuilder& builder, Value x, const Shape& shape);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_PANELS_H_
