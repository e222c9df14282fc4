// Tangents of max and min, reductions, contractions and scans.

#include <string>
#include <utility>
#include <vector>

#include "ops/status_macros.h"
#include "transforms/jvp/jvp_primitive.h"
#include "transforms/table/emit.h"

namespace cleave {
namespace {

std::string TieOf(const Attributes& attributes) {
  const StaticValue* tie = attributes.Find("tie");
  return tie == nullptr ? "even" : tie->AsString();
}

// x in the dtype that sums are kept in.
Value Accumulated(GraphBuilder& b, Value x) {
  return emit::Convert(b, x, AccumulationType(b.type(x).dtype));
}

// The products of the elements before each one along the last axis (behind
// each one if `reverse`), 1 for the first.
Value ExclusiveProducts(GraphBuilder& b, Value x, bool reverse) {
  const TensorType type = b.type(x);
  const int axis = type.rank() - 1;
  TensorType init = type;
  init.shape.pop_back();
  const Value inclusive = b.Apply(
      Primitive::kLinearScan, {x, b.Zeros(type), b.Constant(Exact(1), init)},
      {{"axis", axis}, {"reverse", reverse}});
  return emit::Shift(b, inclusive, axis, reverse, Exact(1));
}

}  // namespace

// The tangent of the operand that is taken. At a tie: half of each, or the
// first's, or the second's. Where one is NaN, so is the slope. An operand that
// is not taken is selected away, not multiplied by 0: its tangent, and in
// reverse its own slope, may be infinite.
Tangent JvpMaxMin(const JvpNode& node) {
  GraphBuilder& b = node.builder;
  const bool max = node.primitive == Primitive::kMax;
  const Value wins[] = {
      b.Apply(max ? Primitive::kGt : Primitive::kLt, {node.x(0), node.x(1)}),
      b.Apply(max ? Primitive::kLt : Primitive::kGt, {node.x(0), node.x(1)})};
  const Value tied = emit::Eq(b, node.x(0), node.x(1));
  const std::string tie = TieOf(node.attributes);
  const Exact half = Exact(1) / Exact(2);
  const Exact shares[] = {
      tie == "even" ? half : Exact(tie == "first" ? 1 : 0),
      tie == "even" ? half : Exact(tie == "second" ? 1 : 0)};
  Value sum;
  for (int i = 0; i < 2; ++i) {
    if (!node.active(i)) continue;
    const auto constant = [&](const Exact& value) {
      return emit::Like(b, node.x(i), value);
    };
    const Value slope = emit::Select(
        b, wins[i], constant(Exact(1)),
        emit::Select(b, tied, constant(shares[i]), constant(Exact::NaN())));
    sum = emit::AddTangents(b, sum,
                            emit::Select(b, wins[1 - i], constant(Exact(0)),
                                         emit::Mul(b, node.dx(i), slope)));
  }
  return sum;
}

// dy = sum_i dx_i prod_(j != i) x_j, the product by those before and behind i:
// no division, hence right at zeros, to any order.
Tangent JvpReduceProd(const JvpNode& node) {
  GraphBuilder& b = node.builder;
  const std::vector<int> axes = emit::Ints(node.attributes, "axes");
  const DType dtype = node.type(0).dtype;
  const Value x = Accumulated(b, emit::MergeAxesAtEnd(b, node.x(0), axes));
  const Value dx = Accumulated(b, emit::MergeAxesAtEnd(b, node.dx(0), axes));
  const Value others = emit::Mul(b, ExclusiveProducts(b, x, false),
                                 ExclusiveProducts(b, x, true));
  const Value sum =
      emit::ReduceSum(b, emit::Mul(b, dx, others), {b.type(x).rank() - 1});
  return emit::Convert(b, sum, dtype);
}

// The tangent of the element that is taken: the mean over equal ones, or the
// first one's. The mean at NaN is 0 / 0.
Tangent JvpReduceMaxMin(const JvpNode& node) {
  GraphBuilder& b = node.builder;
  const std::vector<int> axes = emit::Ints(node.attributes, "axes");
  const TensorType type = node.type(0);
  if (TieOf(node.attributes) == "first") {
    const bool max = node.primitive == Primitive::kReduceMax;
    const Value at = b.Apply(max ? Primitive::kArgmax : Primitive::kArgmin,
                             {node.x(0)}, {{"axes", StaticValue::Ints(axes)}});
    // The argmax of nothing is -1, where the fill is read.
    const Value merged = emit::MergeAxesAtEnd(b, node.dx(0), axes);
    const int batch = b.type(merged).rank() - 1;
    Shape shape = b.type(at).shape;
    shape.push_back(1);
    return b.Add(
        Primitive::kGather,
        {{"axes", StaticValue::Ints(std::vector<int>{batch})},
         {"batch", batch},
         {"mode", "fill"}},
        {merged, b.Reshape(at, shape), b.Constant(Exact(0), type.dtype)});
  }
  const Value taken =
      emit::Eq(b, node.x(0), emit::Unreduce(b, node.y(), type.shape, axes));
  const Value dx =
      Accumulated(b, emit::Select(b, taken, node.dx(0), b.Zeros(type)));
  const Value sum = emit::ReduceSum(b, dx, axes);
  Value count =
      emit::ReduceSum(b, emit::Convert(b, taken, b.type(dx).dtype), axes);
  Dim elements = 1;
  for (int axis : axes) elements = elements * type.shape[axis];
  if (Compare(elements, CompareOp::kGt, 0) != Truth::kTrue) {
    // The extremum of nothing is a constant: 0 / 1.
    const Value nothing = emit::Eq(
        b,
        b.BroadcastInDim(b.Apply(Primitive::kExtent, {}, {{"value", elements}}),
                         b.type(count).shape, {}),
        b.Zeros({DType::kI64, b.type(count).shape}));
    count = emit::Select(b, nothing, emit::Like(b, count, Exact(1)), count);
  }
  return emit::Convert(b, emit::Div(b, sum, count), type.dtype);
}

// Bilinear: f(a, b)' = f(da, b) + f(a, db).
Tangent JvpContraction(const JvpNode& node) {
  Value sum;
  for (int i = 0; i < 2; ++i) {
    if (!node.active(i)) continue;
    std::vector<Value> operands = node.operands;
    operands[i] = node.dx(i);
    CLEAVE_ASSIGN_OR_RETURN(
        const Value term,
        node.builder.Add(node.primitive, node.attributes, operands));
    sum = emit::AddTangents(node.builder, sum, term);
  }
  return sum;
}

// y_i = a_i y_(i-1) + b_i: dy_i = a_i dy_(i-1) + (da_i y_(i-1) + db_i), which
// is a linear_scan again.
Tangent JvpLinearScan(const JvpNode& node) {
  GraphBuilder& b = node.builder;
  const int axis = static_cast<int>(node.attributes.GetInt("axis"));
  const bool reverse = node.attributes.GetBool("reverse");
  Value drive = node.dx(1);
  if (node.active(0)) {
    const Shape shape = node.type(0).shape;
    Shape first = shape;
    first[axis] = 1;
    const Value init = b.Reshape(node.x(2), first);
    CLEAVE_ASSIGN_OR_RETURN(
        const Value all, b.Add(Primitive::kConcatenate, {{"axis", axis}},
                               reverse ? std::vector<Value>{node.y(), init}
                                       : std::vector<Value>{init, node.y()}));
    const Value before =
        emit::SliceAxis(b, all, axis, reverse ? 1 : 0, shape[axis]);
    drive = emit::AddTangents(b, emit::Mul(b, node.dx(0), before), drive);
  }
  if (!drive.valid()) drive = b.Zeros(node.type(1));
  return b.Add(Primitive::kLinearScan, node.attributes,
               {node.x(0), drive, node.DenseTangent(2)});
}

// The mean of the tangents of all elements so far that equal the extremum: sums
// and counts that start again where it changes, as linear scans. NaN stays, and
// equals nothing: 0 / 0.
Tangent JvpCumulativeMaxMin(const JvpNode& node) {
  GraphBuilder& b = node.builder;
  const int axis = static_cast<int>(node.attributes.GetInt("axis"));
  const bool reverse = node.attributes.GetBool("reverse");
  const TensorType type = node.type(0);
  const Value before = emit::Shift(b, node.y(), axis, reverse, Exact::NaN());
  const DType dtype = AccumulationType(type.dtype);
  const Value stays = emit::Convert(b, emit::Eq(b, node.y(), before), dtype);
  const Value taken = emit::Eq(b, node.x(0), node.y());
  const Value dx = emit::Convert(
      b, emit::Select(b, taken, node.dx(0), b.Zeros(type)), dtype);
  TensorType init{dtype, type.shape};
  init.shape.erase(init.shape.begin() + axis);
  const Value zero = b.Zeros(init);
  CLEAVE_ASSIGN_OR_RETURN(
      const Value sum,
      b.Add(Primitive::kLinearScan, node.attributes, {stays, dx, zero}));
  CLEAVE_ASSIGN_OR_RETURN(const Value count,
                          b.Add(Primitive::kLinearScan, node.attributes,
                                {stays, emit::Convert(b, taken, dtype), zero}));
  return emit::Convert(b, emit::Div(b, sum, count), type.dtype);
}

}  // namespace cleave
