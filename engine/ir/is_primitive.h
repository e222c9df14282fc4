// Is: whether a node is of a primitive.

#ifndef CLEAVE_ENGINE_IR_IS_PRIMITIVE_H_
#define CLEAVE_ENGINE_IR_IS_PRIMITIVE_H_

#include "engine/ir/graph.h"
#include "ops/primitive.h"

namespace cleave {

// Composite nodes are of none.
inline bool Is(const Graph& graph, Value v, Primitive primitive) {
  return graph.node(v).op == ToOpId(primitive);
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_IS_PRIMITIVE_H_
