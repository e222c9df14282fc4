// Graphs as JSON, for programs that do not read graph text.
//
//   {"inputs": [{"name": "x", "type": "f32[3]", "node": 0}],
//    "nodes": [{"node": 1, "op": "exp", "operands": [0], "types": ["f32[3]"],
//               "attributes": {}, "rule": "softplus, activation.rules:12"}],
//    "guards": [], "outputs": [{"name": "y", "type": "f32[3]", "node": 1}]}

#ifndef CLEAVE_ENGINE_IR_GRAPH_JSON_H_
#define CLEAVE_ENGINE_IR_GRAPH_JSON_H_

#include <string>

#include "engine/ir/graph.h"

namespace cleave {

// Nodes are in topological order, inputs left out. Attributes are strings, as
// PrintAttribute writes them, but for regions, which are objects like this one;
// `rule` is where a node comes from, and left out where the caller made it.
// Deterministic, as PrintGraph is; ends with a newline.
std::string GraphToJson(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_GRAPH_JSON_H_
