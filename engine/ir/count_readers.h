// CountReaders: how often each value of a graph is read.

#ifndef CLEAVE_ENGINE_IR_COUNT_READERS_H_
#define CLEAVE_ENGINE_IR_COUNT_READERS_H_

#include <vector>

#include "engine/ir/graph.h"

namespace cleave {

// Per node how many operands and outputs it is; a node that reads a value twice
// counts twice. O(nodes and operands).
//
//   %1 = mul(%x, %x), return y = %1: 2 of %x, 1 of %1
std::vector<int> CountReaders(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_COUNT_READERS_H_
