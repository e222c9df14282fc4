#include "transforms/vjp/guarded.h"

#include "transforms/table/emit.h"

namespace cleave {
namespace {

// Whether x is the negation of y: a builder makes each value once, and drops
// what nothing uses.
bool IsNot(GraphBuilder& b, Value x, Value y) {
  return b.Apply(Primitive::kNot, {y}) == x;
}

}  // namespace

Guarded WithShape(GraphBuilder& b, const Guarded& x, const Shape& shape) {
  if (!x.valid()) return x;
  return {emit::WithShape(b, x.value, shape),
          x.mask.valid() ? emit::WithShape(b, x.mask, shape) : x.mask,
          x.zeroed};
}

Value Unguarded(GraphBuilder& b, const Guarded& x) {
  if (!x.value.valid() || !x.mask.valid() || x.zeroed) return x.value;
  return emit::Select(b, x.mask, x.value, emit::Like(b, x.value, Exact(0)));
}

Guarded AddGuarded(GraphBuilder& b, const Guarded& x, const Guarded& y) {
  if (!x.valid()) return y;
  if (!y.valid()) return x;
  if (x.mask == y.mask) {
    return {emit::Add(b, x.value, y.value), x.mask, x.zeroed && y.zeroed};
  }
  const Value sum = emit::Add(b, Unguarded(b, x), Unguarded(b, y));
  if (!x.mask.valid() || !y.mask.valid() || IsNot(b, x.mask, y.mask) ||
      IsNot(b, y.mask, x.mask)) {
    return {sum, Value()};
  }
  return {sum, b.Apply(Primitive::kOr, {x.mask, y.mask}), true};
}

Guarded Guard(GraphBuilder& b, const Guarded& x, Value condition, bool side) {
  if (!x.valid()) return x;
  return WithMask(b, x,
                  side ? condition : b.Apply(Primitive::kNot, {condition}));
}

Guarded WithMask(GraphBuilder& b, const Guarded& x, Value mask) {
  if (!x.valid() || !mask.valid()) return x;
  if (!x.mask.valid()) return {x.value, mask};
  return {x.value, b.Apply(Primitive::kAnd, {x.mask, mask})};
}

std::vector<Guarded> OutputsOf(GraphBuilder& b, const CotangentRule& rule,
                               absl::Span<const Value> arguments) {
  const std::vector<Value> outputs = b.Inline(rule.graph, arguments);
  std::vector<Guarded> result(rule.has_cotangent.size());
  size_t next = 0;
  for (size_t i = 0; i < result.size(); ++i) {
    if (rule.has_cotangent[i]) result[i].value = outputs[next++];
  }
  for (size_t i = 0; i < result.size(); ++i) {
    if (rule.has_mask[i]) result[i].mask = outputs[next++];
  }
  return result;
}

Value MaskOfOperands(GraphBuilder& b, const Graph& graph, Value v, Value mask) {
  if (!mask.valid()) return mask;
  const Primitive primitive = ToPrimitive(graph.node(v).op);
  if (ClassOf(primitive) == PrimitiveClass::kPointwise) return mask;
  switch (primitive) {
    case Primitive::kReshape:
      return b.Reshape(mask, graph.type(graph.operands(v)[0]).shape);
    case Primitive::kReduceSum:
      return emit::Unreduce(b, mask, graph.type(graph.operands(v)[0]).shape,
                            emit::Ints(graph.attributes(v), "axes"));
    case Primitive::kTranspose:
      return b.Transpose(
          mask, emit::InverseOf(emit::Ints(graph.attributes(v), "axes")));
    case Primitive::kReverse:
      return b.Apply(Primitive::kReverse, {mask}, graph.attributes(v));
    default:
      return Value();
  }
}

void CotangentTable::Give(Value v, const Guarded& cotangent) {
  if (!cotangent.valid()) return;
  of_[v.id] = AddGuarded(builder_, of_[v.id],
                         WithShape(builder_, cotangent, graph_.type(v).shape));
}

void CotangentTable::GiveToTuple(Value result) {
  const Value node = graph_.operands(result)[0];
  std::vector<Guarded>& tuple = tuples_[node.id];
  tuple.resize(graph_.types(node).size());
  Guarded& place = tuple[graph_.attributes(result).GetInt("index")];
  place = AddGuarded(builder_, place, of_[result.id]);
}

std::vector<Guarded> CotangentTable::Results(Value v) const {
  const auto tuple = tuples_.find(v.id);
  if (tuple != tuples_.end()) return tuple->second;
  if (!of_[v.id].valid()) return {};
  return {of_[v.id]};
}

}  // namespace cleave
