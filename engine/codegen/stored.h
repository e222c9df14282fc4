// Stored: a value that has its own place in memory. A contraction reads its
// operands many times, each time through the movement behind them; a node that
// is no movement is a kernel's result.

#ifndef CLEAVE_ENGINE_CODEGEN_STORED_H_
#define CLEAVE_ENGINE_CODEGEN_STORED_H_

#include "engine/ir/graph.h"

namespace cleave {

// The same in memory: a conversion to its own dtype, which no graph has beside.
Value Stored(GraphBuilder& builder, Value x);

// Whether the node is of Stored.
bool IsStored(const Graph& graph, Value v);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_STORED_H_
