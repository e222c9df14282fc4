// Panels of columns: the right side of a product as its tiles read it, line by
// line. A product packs it for itself; where many products read the same one,
// as the rounds of a loop do, it is stored so once, before them.
//
//   %k: f32[4096, 64], contracted along its last axis
//   -> %panels: f32[64, 64, 64]                      // [panel, term, column]
//      reshape(transpose(%panels, axes: [1, 0, 2]))  // [term, all columns]

#ifndef CLEAVE_ENGINE_CODEGEN_PANELS_H_
#define CLEAVE_ENGINE_CODEGEN_PANELS_H_

#include <cstdint>
#include <optional>

#include "engine/ir/graph.h"
#include "ops/tensor_type.h"

namespace cleave {

// Columns of a panel of such a matrix, which is summed over the axis
// `contracted`: as many as fill the registers of a tile, in whole panels.
// Nullopt where the columns are not a number of these, or open.
std::optional<int64_t> ColumnsOfPanels(const TensorType& matrix,
                                       int64_t contracted);

// The panels of that matrix, in memory; it has ColumnsOfPanels.
Value StorePanels(GraphBuilder& builder, Value matrix, int64_t contracted);

// The matrix that panels hold, [terms, columns].
Value MatrixOf(GraphBuilder& builder, Value panels);

// The panels of which a value is MatrixOf; nullopt where it is something else.
std::optional<Value> PanelsOfMatrix(const Graph& graph, Value matrix);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_PANELS_H_
