// BaseReads: the values that a node reads once movement is seen through: x, of
// exp(transpose(x)). Internal to engine/codegen.

#ifndef CLEAVE_ENGINE_CODEGEN_BASE_READS_H_
#define CLEAVE_ENGINE_CODEGEN_BASE_READS_H_

#include <vector>

#include "engine/ir/graph.h"

namespace cleave {

// A read of a value that is no movement.
struct BaseRead {
  Value base;
  // For each axis of the base the reader's axis that runs along it; -1 for an
  // axis of extent 1.
  std::vector<int> axes;
  bool moved = false;      // at other places: slices, padding, reversal, ...
  bool repeated = false;   // an element is read more than once
  bool scattered = false;  // windows, gathers, reshapes, a structured reader
};

// The reads of a node that is no movement, or of the movement that a graph
// returns. O(operands and the movement behind them).
std::vector<BaseRead> BaseReads(const Graph& graph, Value node);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_BASE_READS_H_
