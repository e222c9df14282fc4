// GraphKey: a graph's structure as bytes, to find again what was made of it.
//
//   std::string key = GraphKey(graph);
//   cache.Find(key);  // the kernel of this graph, or of an equal one

#ifndef CLEAVE_ENGINE_IR_GRAPH_KEY_H_
#define CLEAVE_ENGINE_IR_GRAPH_KEY_H_

#include <string>

#include "engine/ir/graph.h"

namespace cleave {

// Two graphs of one context have one key where they have the same nodes in the
// same order, the same inputs with their names, outputs and guards. The names
// of outputs and provenance are no part of it. Attributes and types are their
// ids in the context, so that keys of two contexts cannot be compared.
// O(nodes).
std::string GraphKey(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_GRAPH_KEY_H_
