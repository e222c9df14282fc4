// The axes of a group, as few as its operations tell apart: axes of extent 1
// are dropped, and neighbours that every node treats alike become one. A chain
// over f32[B, S, H] is a chain over f32[B*S*H]; a softmax of it is rows of H.
//
// Inputs and outputs keep their elements in the same row-major order.

#ifndef CLEAVE_ENGINE_CODEGEN_COLLAPSE_AXES_H_
#define CLEAVE_ENGINE_CODEGEN_COLLAPSE_AXES_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph of a group (ExtractGroup) with fewer axes. O(nodes * rank).
absl::StatusOr<Graph> CollapseAxes(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_COLLAPSE_AXES_H_
