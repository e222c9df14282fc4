// IndexTables: index arithmetic that no input decides, which is computed once,
// when a graph is planned.
//
// The indices of `x[i * 5 // 3]` for i in [0, 5) are the table 0, 1, 3, 5, 6.
// Kernels read it rather than divide for every element, and have less code.
// Only integers and bools are stored. They may follow from elementary
// arithmetic of floats, which has the same bits wherever it is computed.
//
//   const std::vector<bool> tables = IndexTables(graph);
//   if (tables[v.id]) { ... }

#ifndef CLEAVE_ENGINE_CODEGEN_INDEX_TABLES_H_
#define CLEAVE_ENGINE_CODEGEN_INDEX_TABLES_H_

#include <vector>

#include "engine/ir/graph.h"

namespace cleave {

// A table has at most so many elements: 32 KiB of int64, which stay in the
// first cache.
inline constexpr int64_t kMaxTableElements = 4096;

// For each node whether no input decides it, its extents are numbers and it has
// the same bits wherever it is computed: integers and bools, and elementary
// arithmetic of f32 and f64. O(nodes).
std::vector<bool> ClosedNodes(const Graph& graph);

// For each node whether it is a table: the last node of arithmetic on integers
// or bools that is worth storing, with an integer division or as much else.
// Extents must be numbers. O(nodes).
std::vector<bool> IndexTables(const Graph& graph);

// The nodes that a table is computed by, and the table, in topological order,
// without movement. O(nodes).
std::vector<Value> NodesOfTable(const Graph& graph, Value table);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_INDEX_TABLES_H_
