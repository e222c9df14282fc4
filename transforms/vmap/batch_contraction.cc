// Batching of dot_general and conv.

#include <optional>
#include <utility>
#include <vector>

#include "engine/ir/graph_text.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/vmap/batch.h"

namespace cleave {
namespace {

// The axes of an operand, moved behind its batch if it has one.
std::vector<int> Shifted(const BatchNode& node, int operand,
                         absl::string_view name) {
  std::vector<int> axes = emit::Ints(node.attributes, name);
  if (node.batched(operand)) {
    for (int& axis : axes) ++axis;
  }
  return axes;
}

// With both operands batched the batch is one more batch axis; of one alone, a
// free axis, which is then moved to the front.
absl::StatusOr<Value> BatchDotGeneral(const BatchNode& node) {
  std::vector<int> batch_a = Shifted(node, 0, "batch_a");
  std::vector<int> batch_b = Shifted(node, 1, "batch_b");
  const std::vector<int> contract_a = Shifted(node, 0, "contract_a");
  const std::vector<int> contract_b = Shifted(node, 1, "contract_b");
  const bool both = node.batched(0) && node.batched(1);
  if (both) {
    batch_a.insert(batch_a.begin(), 0);
    batch_b.insert(batch_b.begin(), 0);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const Value y,
      node.builder.Add(Primitive::kDotGeneral,
                       {{"batch_a", StaticValue::Ints(batch_a)},
                        {"batch_b", StaticValue::Ints(batch_b)},
                        {"contract_a", StaticValue::Ints(contract_a)},
                        {"contract_b", StaticValue::Ints(contract_b)}},
                       {node.value(0), node.value(1)}));
  if (both) return y;
  // The result is batch.., free_a.., free_b..: the new axis is the first of its
  // operand's free ones.
  int at = static_cast<int>(batch_a.size());
  if (node.batched(1)) {
    at += node.types[0].rank() - static_cast<int>(batch_a.size()) -
          static_cast<int>(contract_a.size());
  }
  return emit::MoveAxis(node.builder, y, at, 0);
}

// Axis 0, of `groups` equal parts, with the batch behind the groups' number:
// [batch, groups * n, ..] becomes [groups * batch * n, ..].
absl::StatusOr<Value> FoldBehindGroups(GraphBuilder& b, Value x,
                                       const Dim& groups) {
  const Shape shape = b.type(x).shape;
  Shape rest(shape.begin() + 2, shape.end());
  if (groups != Dim(1)) {
    const Dim part = Dim::FloorDiv(shape[1], groups);
    Shape split = {shape[0], groups, part};
    split.insert(split.end(), rest.begin(), rest.end());
    CLEAVE_ASSIGN_OR_RETURN(
        x,
        b.Add(Primitive::kReshape, {{"shape", StaticValue::Dims(split)}}, {x}));
    x = emit::MoveAxis(b, x, 0, 1);
  }
  rest.insert(rest.begin(), shape[0] * shape[1]);
  return b.Add(Primitive::kReshape, {{"shape", StaticValue::Dims(rest)}}, {x});
}

// One example after the other: the number of groups is a known number >= 1,
// which the batch need not be.
absl::StatusOr<Value> ConvLoop(const BatchNode& node) {
  GraphBuilder body(node.builder.context());
  const Value x = body.Input("x", node.types[0]);
  const Value w = body.Input("w", node.types[1]);
  CLEAVE_ASSIGN_OR_RETURN(const Value y,
                          body.Add(Primitive::kConv, node.attributes, {x, w}));
  CLEAVE_ASSIGN_OR_RETURN(Region region,
                          BuildRegion(std::move(body), {{"y", y}}));
  CLEAVE_ASSIGN_OR_RETURN(const Value scan,
                          node.builder.Add(Primitive::kScan,
                                           {{"body", std::move(region)},
                                            {"consts", 0},
                                            {"carries", 0},
                                            {"length", node.batch},
                                            {"reverse", false}},
                                           {node.value(0), node.value(1)}));
  return node.builder.Result(scan, 0);
}

absl::StatusOr<Value> BatchConv(const BatchNode& node) {
  GraphBuilder& b = node.builder;
  const Dim batch = node.batch;
  Attributes attributes = node.attributes;
  const Dim groups = attributes.Get("groups").AsDim();
  const Dim batch_groups = attributes.Get("batch_groups").AsDim();
  if (!node.batched(1)) {
    // x alone: the examples are more of the batch N, each group's together.
    CLEAVE_ASSIGN_OR_RETURN(const Value x,
                            FoldBehindGroups(b, node.value(0), batch_groups));
    CLEAVE_ASSIGN_OR_RETURN(
        const Value y, b.Add(Primitive::kConv, attributes, {x, node.value(1)}));
    Shape shape = b.type(y).shape;
    shape[0] = Dim::FloorDiv(node.types[0].shape[0], batch_groups);
    shape.insert(shape.begin(), batch);
    return b.Add(Primitive::kReshape, {{"shape", StaticValue::Dims(shape)}},
                 {y});
  }
  const Dim outputs = node.types[1].shape[0];
  if (!node.batched(0)) {
    // w alone: the examples are more of the outputs O, each group's together.
    const Dim parts = groups == Dim(1) ? batch_groups : groups;
    CLEAVE_ASSIGN_OR_RETURN(const Value w,
                            FoldBehindGroups(b, node.value(1), parts));
    CLEAVE_ASSIGN_OR_RETURN(
        const Value y, b.Add(Primitive::kConv, attributes, {node.value(0), w}));
    const Shape shape = b.type(y).shape;
    Shape split = {shape[0], parts, batch, Dim::FloorDiv(outputs, parts)};
    split.insert(split.end(), shape.begin() + 2, shape.end());
    Shape joined = {batch, shape[0], outputs};
    joined.insert(joined.end(), shape.begin() + 2, shape.end());
    CLEAVE_ASSIGN_OR_RETURN(
        const Value apart,
        b.Add(Primitive::kReshape, {{"shape", StaticValue::Dims(split)}}, {y}));
    return b.Add(Primitive::kReshape, {{"shape", StaticValue::Dims(joined)}},
                 {emit::MoveAxis(b, apart, 2, 0)});
  }
  const std::optional<int64_t> examples = batch.Value();
  if (!examples.has_value() || *examples < 1) return ConvLoop(node);
  // Both: each example is a group of its own, of the channels where there are
  // groups of them already, of the batch otherwise.
  Value x = node.value(0);
  const Shape& xs = node.types[0].shape;
  Shape x_shape = xs;
  if (groups == Dim(1)) {
    attributes.Set("batch_groups", batch * batch_groups);
    x_shape[0] = batch * xs[0];
  } else {
    attributes.Set("groups", batch * groups);
    x = emit::MoveAxis(b, x, 0, 1);
    x_shape[1] = batch * xs[1];
  }
  Shape w_shape = node.types[1].shape;
  w_shape[0] = batch * outputs;
  CLEAVE_ASSIGN_OR_RETURN(
      const Value y,
      b.Add(Primitive::kConv, attributes,
            {b.Reshape(x, x_shape), b.Reshape(node.value(1), w_shape)}));
  Shape split = b.type(y).shape;
  split[0] = Dim::FloorDiv(xs[0], batch_groups);
  split[1] = outputs;
  split.insert(split.begin() + 1, batch);
  CLEAVE_ASSIGN_OR_RETURN(
      const Value apart,
      b.Add(Primitive::kReshape, {{"shape", StaticValue::Dims(split)}}, {y}));
  return emit::MoveAxis(b, apart, 1, 0);
}

}  // namespace

BatchedResults BatchContraction(const BatchNode& node) {
  const bool dot = node.primitive == Primitive::kDotGeneral;
  CLEAVE_ASSIGN_OR_RETURN(const Value y,
                          dot ? BatchDotGeneral(node) : BatchConv(node));
  return std::vector<BatchedValue>{{y, true}};
}

}  // namespace cleave
