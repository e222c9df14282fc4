// The spaces that the reductions of a group's graph run over: one, or the rows
// of one and all elements that the rows give.
//
//   %1: f32[m] = reduce_sum(%x, axes: [1])     // rows of f32[m, n]
//   %2: f32[] = reduce_max(%1, axes: [0])      // a total of rows
//
//   FindRowsAndTotals(graph)->rows.shape    // [m, n], of which 1 is reduced
//   FindRowsAndTotals(graph)->totals.shape  // [m]
//   FindRowsAndTotals(graph)->read          // {%1}

#ifndef CLEAVE_ENGINE_CODEGEN_REDUCTION_SPACES_H_
#define CLEAVE_ENGINE_CODEGEN_REDUCTION_SPACES_H_

#include <optional>
#include <vector>

#include "engine/ir/graph.h"
#include "ops/primitive.h"
#include "ops/tensor_type.h"

namespace cleave {

inline bool IsReduction(const Graph& graph, Value v) {
  return ClassOf(ToPrimitive(graph.node(v).op)) == PrimitiveClass::kReduction;
}

struct ReductionSpace {
  Shape shape;
  std::vector<bool> reduced;  // per axis; empty: nothing is reduced
  bool reduces_last() const { return !reduced.empty() && reduced.back(); }
  bool keeps_none() const;
  // The extents that are kept.
  Shape RowShape() const;
  bool operator==(const ReductionSpace& other) const {
    return shape == other.shape && reduced == other.reduced;
  }
};

// The spaces of the reductions, in the order of the first of each.
std::vector<ReductionSpace> ReductionSpaces(const Graph& graph);

struct RowsAndTotals {
  ReductionSpace rows;
  ReductionSpace totals;
  // The values of rows that are stored for the totals: the last that rest on
  // the rows' reductions and on no total, where totals, or what rests on them,
  // read them, movement seen through. Each has the shape of rows.
  std::vector<Value> read;
};

// nullopt where the graph has no such two spaces: the totals reduce all of a
// space that has the shape of rows, axis by axis, and no row reads a total.
std::optional<RowsAndTotals> FindRowsAndTotals(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_REDUCTION_SPACES_H_
