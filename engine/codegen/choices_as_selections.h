// Choices between branches that cannot fail, as selections of their results: a
// device computes both without waiting for the condition, where a branch by
// itself would run on the host.
//
//   %y = cond(%p, %x, then: sqrt, else: exp)
//   -> select(broadcast_in_dim(%p), sqrt(%x), exp(%x))

#ifndef CLEAVE_ENGINE_CODEGEN_CHOICES_AS_SELECTIONS_H_
#define CLEAVE_ENGINE_CODEGEN_CHOICES_AS_SELECTIONS_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with such choices in that form. A branch may fail that has an index
// or a divisor which is computed, a loop or a choice of its own; such a choice
// stays. A graph with composite nodes comes back as it is. O(nodes).
Graph ChoicesAsSelections(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_CHOICES_AS_SELECTIONS_H_
