// Products beside masks: elements that a selection leaves out behind a product
// need no sum, and an operand that a mask made 0 in whole blocks adds nothing.
//
//   %1 = dot_general(%q, %k, ..)                 // scores
//   %2 = select(%mask, %1, %lowest)              // WantedWhere of %1: %mask
//   %3 = exp(%2)
//   %4 = dot_general(%3, %v, .., zeros: true)    // by MarkZeros
//
// A mask is of bools that no float decides: a kernel's input, or a comparison
// of indices, as those of attention are. Blocks of them are alike.

#ifndef CLEAVE_ENGINE_CODEGEN_MASKED_PRODUCTS_H_
#define CLEAVE_ENGINE_CODEGEN_MASKED_PRODUCTS_H_

#include <optional>

#include "engine/ir/graph.h"

namespace cleave {

// The graph whose contractions of f32 and f64 tell (`zeros`) where an operand
// is elementwise of what a mask selects, or a movement of that. The same
// values. A graph with composite nodes comes back as it is. O(nodes).
Graph MarkZeros(const Graph& graph);

// Where elements of a node are wanted.
struct Wanted {
  Value mask;  // a bool for each element of the node
  bool where;  // that it is to be
};

// A mask by which a selection takes the node's elements, computed on or not, or
// leaves them out, and which nothing else reads. Nullopt where there is none.
// O(nodes) for each node on the way to the selection.
std::optional<Wanted> WantedWhere(const Graph& graph, Value v);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_MASKED_PRODUCTS_H_
