// PickElements: a value at one place of some of its axes, computed from what it
// reads there rather than as a slice of the whole.
//
//   %2 = gather(%x, %i, %fill)       // i: [p, 2, 1], x: [n, c]
//   %3 = mul(%w, %2)                 // w: [p, 2, c]
//   PickElements of %3 at place 1 of axis 1
//   -> mul(%w[:, 1:2, :], gather(%x, %i[:, 1:2, :], %fill))

#ifndef CLEAVE_ENGINE_CODEGEN_PICK_ELEMENTS_H_
#define CLEAVE_ENGINE_CODEGEN_PICK_ELEMENTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/ir/rewrite_graph.h"
#include "ops/tensor_type.h"

namespace cleave {

class PickElements {
 public:
  // For each axis of a value the place on it; -1: all of them.
  using Places = std::vector<int64_t>;

  // The copy outlives this.
  explicit PickElements(GraphCopy& copy);

  // The value of `v`, which is copied, with extent 1 along the axes that have a
  // place. O(nodes that v is computed by).
  Value At(Value v, const Places& places);

  // The operations for one element of v that At adds to those of what v reads
  // by indices, or a number above `most`; `gathers` says whether it reads any
  // by indices that vary along an axis of `places`. O(most).
  int Cost(Value v, const Places& places, int most, bool* gathers);

 private:
  Value Sliced(Value v, const Places& places);
  Value Gathered(Value v, const Places& places);
  // The node with its operands at those places.
  Value Passed(Value v, const Places& places);
  // A node that is a number there, or one of two values by one: an iota, a
  // comparison of integers, a selection.
  std::optional<Value> Known(Value v, const Places& places);
  // Whether the index alone decides all axes that have a place.
  bool IsOfIndex(Value v, const Places& places) const;
  // Whether At goes through the node, rather than to slice it.
  bool IsPassed(Value v, const Places& places) const;
  // The places on the axes of the operands of a node that is passed.
  Places PlacesInside(Value v, const Places& places) const;
  TensorType TypeAt(Value v, const Places& places) const;

  const Graph& graph_;
  GraphCopy& copy_;
  std::map<std::pair<Value, Places>, Value> picked_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_PICK_ELEMENTS_H_
