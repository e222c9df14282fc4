// ContractedAxes: the axes of one operand of a dot_general by what the
// contraction does along them.

#ifndef CLEAVE_ENGINE_CODEGEN_CONTRACTED_AXES_H_
#define CLEAVE_ENGINE_CODEGEN_CONTRACTED_AXES_H_

#include <vector>

#include "engine/ir/graph.h"
#include "ops/dim.h"

namespace cleave {

struct ContractedAxes {
  std::vector<int> batch;     // in the order of the result's first axes
  std::vector<int> contract;  // in the order of the other operand's
  std::vector<int> own;       // ascending
};

// The extent of several axes as one.
Dim ExtentOfAxes(const Shape& shape, const std::vector<int>& axes);

// The axes of operand `side`, 0 or 1, of a dot_general.
ContractedAxes ContractedAxesOf(const Graph& graph, Value dot, int side);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_CONTRACTED_AXES_H_
