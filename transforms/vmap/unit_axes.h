// A normal form for comparing graphs of primitives: axes of the literal extent
// 1 are left out where nothing depends on them, a reshape of a reshape is one,
// and a contraction reads what its operands are transposed from. An op then
// computes the same nodes on [B, 1, n] as on [B, n]. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_VMAP_UNIT_AXES_H_
#define CLEAVE_TRANSFORMS_VMAP_UNIT_AXES_H_

#include <vector>

#include "absl/types/span.h"
#include "engine/ir/graph.h"

namespace cleave {

// `shape` without its extents 1.
Shape WithoutUnitAxes(const Shape& shape);

// Copies `graph`, of primitives, into `builder` with `arguments` for its inputs
// (of their types) and returns its outputs without their unit axes. Each node
// is replaced by one of equal elements, bit by bit, so that equal results stand
// for equal outputs up to unit axes. A node on whose unit axes something
// depends (a sum over one, an index along one) stays as it is.
std::vector<Value> InlineWithoutUnitAxes(GraphBuilder& builder,
                                         const Graph& graph,
                                         absl::Span<const Value> arguments);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VMAP_UNIT_AXES_H_
