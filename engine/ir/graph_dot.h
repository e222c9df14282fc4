// GraphToDot: a graph as text for Graphviz, which draws it.
//
//   WriteFileAtomically("f.dot", GraphToDot(graph, {"forward"}));

#ifndef CLEAVE_ENGINE_IR_GRAPH_DOT_H_
#define CLEAVE_ENGINE_IR_GRAPH_DOT_H_

#include <set>
#include <string>

#include "engine/ir/graph.h"

namespace cleave {

struct DotOptions {
  std::string title;
  // Inputs and outputs that stand out, such as the values that a forward graph
  // saves.
  std::set<std::string> emphasized;
};

// The text of a Graphviz digraph: one box per node with its op, attributes and
// type, coloured by its class (the legend is in the title); constants stand in
// the boxes of their users. Regions are told by their number of nodes.
// Deterministic, as PrintGraph is.
std::string GraphToDot(const Graph& graph, const DotOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_GRAPH_DOT_H_
