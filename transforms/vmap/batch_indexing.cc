// Batching of gather and scatter. Their attribute `batch` counts the axes that
// x and index share; an axis of x alone that is not indexed is one more of the
// elements that each index selects.

#include <string>
#include <vector>

#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/vmap/batch.h"

namespace cleave {
namespace {

// x[batch, B.., X..] as x[B.., batch, X..].
Value BehindShared(const BatchNode& node, Value x) {
  return emit::MoveAxis(node.builder, x, 0,
                        static_cast<int>(node.attributes.GetInt("batch")));
}

Attributes Shifted(const BatchNode& node, bool share) {
  Attributes attributes = node.attributes;
  std::vector<int> axes = emit::Ints(attributes, "axes");
  for (int& axis : axes) ++axis;
  attributes.Set("axes", StaticValue::Ints(axes));
  if (share) attributes.Set("batch", attributes.GetInt("batch") + 1);
  return attributes;
}

// index's axes before its last.
int IndexRank(const BatchNode& node) { return node.types[1].rank() - 1; }

absl::StatusOr<Value> GatherWithFill(const BatchNode& node, Value x,
                                     Value fill) {
  GraphBuilder& b = node.builder;
  const Value index = node.value(1);
  if (node.batched(0) && node.batched(1)) {
    return b.Add(Primitive::kGather, Shifted(node, true), {x, index, fill});
  }
  const int batch = static_cast<int>(node.attributes.GetInt("batch"));
  if (node.batched(0)) {
    CLEAVE_ASSIGN_OR_RETURN(const Value y,
                            b.Add(Primitive::kGather, Shifted(node, false),
                                  {BehindShared(node, x), index, fill}));
    return emit::MoveAxis(b, y, IndexRank(node), 0);
  }
  // index alone: the examples are more of I...
  CLEAVE_ASSIGN_OR_RETURN(const Value y,
                          b.Add(Primitive::kGather, node.attributes,
                                {x, BehindShared(node, index), fill}));
  return emit::MoveAxis(b, y, batch, 0);
}

}  // namespace

BatchedResults BatchGather(const BatchNode& node) {
  GraphBuilder& b = node.builder;
  const Value x = node.value(0);
  if (!node.batched(2)) {
    CLEAVE_ASSIGN_OR_RETURN(const Value y,
                            GatherWithFill(node, x, node.value(2)));
    return std::vector<BatchedValue>{{y, true}};
  }
  // Each example has its own fill: selected where a gather of `true` reads the
  // fill `false`.
  const TensorType type = b.type(x);
  const Value zero = b.Constant(Exact(0), type.dtype);
  const Value no = b.Constant(Exact(0), DType::kBool);
  const Value mask = b.Constant(Exact(1), TensorType{DType::kBool, type.shape});
  Value y;
  Value inside;
  if (node.batched(0) || node.batched(1)) {
    CLEAVE_ASSIGN_OR_RETURN(y, GatherWithFill(node, x, zero));
    CLEAVE_ASSIGN_OR_RETURN(inside, GatherWithFill(node, mask, no));
  } else {
    const Value index = node.value(1);
    CLEAVE_ASSIGN_OR_RETURN(
        y, b.Add(Primitive::kGather, node.attributes, {x, index, zero}));
    CLEAVE_ASSIGN_OR_RETURN(
        inside, b.Add(Primitive::kGather, node.attributes, {mask, index, no}));
    y = InFront(b, {y, false}, node.batch);
    inside = InFront(b, {inside, false}, node.batch);
  }
  const Shape shape = b.type(y).shape;
  return std::vector<BatchedValue>{
      {emit::Select(b, inside, y,
                    emit::Broadcast(b, node.value(2), shape, {0})),
       true}};
}

BatchedResults BatchScatter(const BatchNode& node) {
  GraphBuilder& b = node.builder;
  if (node.batched(1)) {
    CLEAVE_ASSIGN_OR_RETURN(const Value y, node.Same(Shifted(node, true)));
    return std::vector<BatchedValue>{{y, true}};
  }
  // The same places for all examples: the batch is one of the elements that
  // each index selects, behind B.. in x and behind B.., I.. in the updates.
  CLEAVE_ASSIGN_OR_RETURN(
      const Value y,
      b.Add(Primitive::kScatter, Shifted(node, false),
            {BehindShared(node, node.front(0)), node.value(1),
             emit::MoveAxis(b, node.front(2), 0, IndexRank(node))}));
  const int batch = static_cast<int>(node.attributes.GetInt("batch"));
  return std::vector<BatchedValue>{{emit::MoveAxis(b, y, batch, 0), true}};
}

}  // namespace cleave
