// emit::Add, emit::Select, ..: shorthands for building graphs of primitives
// whose types are known to fit. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_TABLE_EMIT_H_
#define CLEAVE_TRANSFORMS_TABLE_EMIT_H_

#include <vector>

#include "engine/ir/graph.h"
#include "ops/exact.h"

namespace cleave::emit {

// Pointwise; operands of one type.
Value Add(GraphBuilder& b, Value x, Value y);
Value Mul(GraphBuilder& b, Value x, Value y);
Value Div(GraphBuilder& b, Value x, Value y);
Value Eq(GraphBuilder& b, Value x, Value y);
Value Select(GraphBuilder& b, Value condition, Value x, Value y);
Value Convert(GraphBuilder& b, Value x, DType dtype);
// A constant of x's type.
Value Like(GraphBuilder& b, Value x, const Exact& value);

// x + y, where an invalid value stands for a symbolic zero.
Value AddTangents(GraphBuilder& b, Value x, Value y);

// Axis `from` of x comes to stand at `to`; the others keep their order.
Value MoveAxis(GraphBuilder& b, Value x, int from, int to);
// `axes` (ascending) of x come to stand at the end, merged into one.
Value MergeAxesAtEnd(GraphBuilder& b, Value x, const std::vector<int>& axes);
// x read along `axis` from `start`, `size` elements, the other axes whole.
Value SliceAxis(GraphBuilder& b, Value x, int axis, const Dim& start,
                const Dim& size);
// x, `fill` (0-d) between neighbours and at both ends of each axis.
Value Pad(GraphBuilder& b, Value x, Value fill, const std::vector<Dim>& low,
          const std::vector<Dim>& high, const std::vector<Dim>& interior);
// x shifted by one along `axis`, towards the end or, if `back`, the beginning.
Value Shift(GraphBuilder& b, Value x, int axis, bool back, const Exact& fill);
// The extent of `size` elements with `interior` others between neighbours.
Dim SpreadExtent(const Dim& size, const Dim& interior);
// x in another shape of the same extents, written as other expressions: what
// makes them equal is known, and not proved again.
Value WithShape(GraphBuilder& b, Value x, const Shape& shape);
// x repeated along new axes, which are those of `shape` not in `axes`; a
// broadcast of a broadcast is one.
Value Broadcast(GraphBuilder& b, Value x, const Shape& shape,
                const std::vector<int>& axes);
// A reduction's result spread over the axes that it removed.
Value Unreduce(GraphBuilder& b, Value y, const Shape& shape,
               const std::vector<int>& axes);
Value ReduceSum(GraphBuilder& b, Value x, const std::vector<int>& axes);

std::vector<int> Ints(const Attributes& attributes, absl::string_view name);
// 0, 1, .., count - 1, each plus `first`.
std::vector<int> Range(int count, int first = 0);
// The permutation that undoes this one.
std::vector<int> InverseOf(const std::vector<int>& permutation);
// Whether a tensor of this dtype has tangents.
bool IsInexact(DType dtype);

}  // namespace cleave::emit

#endif  // CLEAVE_TRANSFORMS_TABLE_EMIT_H_
