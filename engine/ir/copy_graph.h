// CopyGraph: a copy of a graph, whose context is another one. A reader of the
// copy does not depend on a writer that goes on to fill the graph's own
// context.
//
//   Graph own = CopyGraph(graph, std::make_shared<Context>());

#ifndef CLEAVE_ENGINE_IR_COPY_GRAPH_H_
#define CLEAVE_ENGINE_IR_COPY_GRAPH_H_

#include <memory>

#include "engine/ir/graph.h"

namespace cleave {

// Regions are copied, too. Each node keeps its id, its provenance and its type.
// O(nodes), and those of the regions for each different set of attributes.
Graph CopyGraph(const Graph& graph, const std::shared_ptr<Context>& context);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_COPY_GRAPH_H_
