#include "transforms/vjp/transpose_primitive.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"

namespace cleave {
namespace {

// The cotangent of a broadcast's operand: sums over the axes that are new, and
// over those that it stretched.
Value TransposeBroadcast(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  const std::vector<int> axes = emit::Ints(node.attributes, "axes");
  const Shape& shape = node.result_types[0].shape;
  std::vector<bool> keeps(shape.size(), false);
  for (size_t d = 0; d < axes.size(); ++d) {
    // Extents other than 1 agree, by a guard where their names differ.
    keeps[axes[d]] =
        node.types[0].shape[d] != Dim(1) || shape[axes[d]] == Dim(1);
  }
  std::vector<int> summed;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!keeps[d]) summed.push_back(static_cast<int>(d));
  }
  const Value sum =
      summed.empty() ? node.dy() : emit::ReduceSum(b, node.dy(), summed);
  return emit::WithShape(b, sum, node.types[0].shape);
}

Value TransposeConvert(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  const DType dtype = node.types[0].dtype;
  Value dy = node.dy();
  // The operand was a real number made complex.
  if (IsComplex(b.type(dy).dtype) && !IsComplex(dtype)) {
    dy = b.Apply(Primitive::kReal, {dy});
  }
  return emit::Convert(b, dy, dtype);
}

// Products are linear in either factor; the other is known.
Value TransposeFactor(const TransposeNode& node, int i) {
  return emit::Mul(node.builder, node.dy(),
                   Conjugate(node.builder, node.x(1 - i)));
}

absl::Status NotLinear(const TransposeNode& node) {
  return absl::InternalError(
      absl::StrCat("transpose: `", PrimitiveName(node.primitive),
                   "` is not linear in the operands that are marked"));
}

// The cotangent of operand i of a pointwise primitive, or of a movement or
// reduction with one operand.
absl::StatusOr<Value> TransposeOperand(const TransposeNode& node, int i) {
  GraphBuilder& b = node.builder;
  const Value dy = node.dy();
  switch (node.primitive) {
    case Primitive::kNeg:
      return b.Apply(Primitive::kNeg, {dy});
    case Primitive::kAdd:
      return dy;
    case Primitive::kSub:
      return i == 0 ? dy : b.Apply(Primitive::kNeg, {dy});
    case Primitive::kMul:
      if (node.linear[1 - i]) break;
      return TransposeFactor(node, i);
    case Primitive::kDiv:
      if (i != 0 || node.linear[1]) break;
      return emit::Div(b, dy, Conjugate(b, node.x(1)));
    case Primitive::kFma:
      if (i == 2) return dy;
      if (node.linear[1 - i]) break;
      return TransposeFactor(node, i);
    case Primitive::kLdexp:
      if (i != 0) break;
      return b.Add(Primitive::kLdexp, {}, {dy, node.x(1)});
    case Primitive::kSelect:
      if (i == 0) break;
      return i == 1
                 ? emit::Select(b, node.x(0), dy, emit::Like(b, dy, Exact(0)))
                 : emit::Select(b, node.x(0), emit::Like(b, dy, Exact(0)), dy);
    case Primitive::kConvert:
      return TransposeConvert(node);
    case Primitive::kReal:
      return b.Apply(Primitive::kComplex, {dy, emit::Like(b, dy, Exact(0))});
    case Primitive::kImag:
      return b.Apply(Primitive::kComplex, {emit::Like(b, dy, Exact(0)), dy});
    case Primitive::kComplex:
      return b.Apply(i == 0 ? Primitive::kReal : Primitive::kImag, {dy});
    case Primitive::kBroadcastInDim:
      return TransposeBroadcast(node);
    case Primitive::kReshape:
      return b.Add(Primitive::kReshape,
                   {{"shape", StaticValue::Dims(node.types[0].shape)}}, {dy});
    case Primitive::kTranspose:
      return b.Transpose(dy,
                         emit::InverseOf(emit::Ints(node.attributes, "axes")));
    case Primitive::kReverse:
      return b.Add(Primitive::kReverse, node.attributes, {dy});
    case Primitive::kReduceSum:
      return emit::Unreduce(b, dy, node.types[0].shape,
                            emit::Ints(node.attributes, "axes"));
    default:
      break;
  }
  return NotLinear(node);
}

}  // namespace

Value Conjugate(GraphBuilder& b, Value x) {
  if (!IsComplex(b.type(x).dtype)) return x;
  return b.Apply(Primitive::kComplex,
                 {b.Apply(Primitive::kReal, {x}),
                  b.Apply(Primitive::kNeg, {b.Apply(Primitive::kImag, {x})})});
}

Value SumWhere(GraphBuilder& b, Value mask, Value x) {
  const Value kept = emit::Select(b, mask, x, emit::Like(b, x, Exact(0)));
  return emit::ReduceSum(b, kept, emit::Range(b.type(x).rank()));
}

Cotangents TransposePrimitive(const TransposeNode& node) {
  switch (node.primitive) {
    case Primitive::kPad:
      return TransposePad(node);
    case Primitive::kSlice:
      return TransposeSlice(node);
    case Primitive::kConcatenate:
      return TransposeConcatenate(node);
    case Primitive::kWindows:
    case Primitive::kWindowsAdd:
      return TransposeWindows(node);
    case Primitive::kLinearScan:
      return TransposeLinearScan(node);
    case Primitive::kDotGeneral:
      return TransposeDotGeneral(node);
    case Primitive::kConv:
      return TransposeConv(node);
    case Primitive::kGather:
      return TransposeGather(node);
    case Primitive::kScatter:
      return TransposeScatter(node);
    case Primitive::kScan:
      return TransposeScan(node);
    case Primitive::kCond:
      return TransposeCond(node);
    default:
      break;
  }
  std::vector<Value> cotangents(node.operands.size());
  for (size_t i = 0; i < cotangents.size(); ++i) {
    if (!node.linear[i]) continue;
    CLEAVE_ASSIGN_OR_RETURN(cotangents[i],
                            TransposeOperand(node, static_cast<int>(i)));
  }
  return cotangents;
}

}  // namespace cleave
