// Cotangents on their way back, with what select keeps from them.
//
// A branch that select does not take gets the cotangent 0, and 0 times the
// infinite slope that it may have there would be NaN. So the condition travels
// beside the cotangent, through all that works element by element and out of
// the rules of whole ops, and is applied behind it: select(c, dy * slope, 0),
// not select(c, dy, 0) * slope.
// Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_VJP_GUARDED_H_
#define CLEAVE_TRANSFORMS_VJP_GUARDED_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "transforms/table/rule_table.h"

namespace cleave {

// `value` where `mask` (bool, of the value's shape) holds, 0 elsewhere; without
// a mask, everywhere. An invalid value is a symbolic zero.
struct Guarded {
  Value value;
  Value mask;
  bool zeroed = false;  // the value is 0 already where the mask does not hold

  bool valid() const { return value.valid(); }
};

// x with this shape: extents that only a guard makes equal are written in
// different ways.
Guarded WithShape(GraphBuilder& b, const Guarded& x, const Shape& shape);
// The cotangent as one value; invalid for a symbolic zero.
Value Unguarded(GraphBuilder& b, const Guarded& x);
// x + y, with the mask that both share, or where one of theirs holds.
Guarded AddGuarded(GraphBuilder& b, const Guarded& x, const Guarded& y);
// The part of x that reaches the side of a select by `condition` which is taken
// where it is `side`.
Guarded Guard(GraphBuilder& b, const Guarded& x, Value condition, bool side);

// The part of x where `mask` holds as well; a mask that is not valid holds
// everywhere.
Guarded WithMask(GraphBuilder& b, const Guarded& x, Value mask);
// The cotangents that a rule gives for its inputs `arguments`, per operand.
std::vector<Guarded> OutputsOf(GraphBuilder& b, const CotangentRule& rule,
                               absl::Span<const Value> arguments);

// The mask of the cotangents of v's operands, where v is a primitive of `graph`
// whose result has the cotangents' mask `mask`, and each element of theirs is
// made of those of one element of its; invalid where that is not so, or there
// is no mask.
Value MaskOfOperands(GraphBuilder& b, const Graph& graph, Value v, Value mask);

// The cotangents that have come back to the nodes of `graph` so far. The graph
// and the builder must outlive it.
class CotangentTable {
 public:
  CotangentTable(GraphBuilder& builder, const Graph& graph)
      : builder_(builder), graph_(graph), of_(graph.size()) {}

  // Adds to the cotangent of a node with one result.
  void Give(Value v, const Guarded& cotangent);
  // The cotangent of a node with one result; invalid: a symbolic zero.
  const Guarded& of(Value v) const { return of_[v.id]; }
  // Hands what a `result` node has to the node that it projects.
  void GiveToTuple(Value result);
  // Per result of v; empty where nothing has come back.
  std::vector<Guarded> Results(Value v) const;

 private:
  GraphBuilder& builder_;
  const Graph& graph_;
  std::vector<Guarded> of_;  // by node
  absl::flat_hash_map<uint32_t, std::vector<Guarded>> tuples_;
};

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_GUARDED_H_
