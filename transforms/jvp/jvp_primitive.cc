#include "transforms/jvp/jvp_primitive.h"

#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"

namespace cleave {
namespace {

// f(x + dx) = f(x) + f(dx): f of all tangents, zeros where there is none.
Tangent JvpLinear(const JvpNode& node) {
  std::vector<Value> tangents;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    tangents.push_back(node.DenseTangent(static_cast<int>(i)));
  }
  return node.builder.Add(node.primitive, node.attributes, tangents);
}

Tangent TangentOf(const JvpNode& node) {
  switch (node.primitive) {
    case Primitive::kConvert:
    case Primitive::kReal:
    case Primitive::kImag:
    case Primitive::kComplex:
      return JvpLinear(node);
    case Primitive::kLdexp:
      // x 2^i, i discrete.
      return node.builder.Add(Primitive::kLdexp, {}, {node.dx(0), node.x(1)});
    case Primitive::kMax:
    case Primitive::kMin:
      return JvpMaxMin(node);
    case Primitive::kReduceProd:
      return JvpReduceProd(node);
    case Primitive::kReduceMax:
    case Primitive::kReduceMin:
      return JvpReduceMaxMin(node);
    case Primitive::kDotGeneral:
    case Primitive::kConv:
      return JvpContraction(node);
    case Primitive::kLinearScan:
      return JvpLinearScan(node);
    case Primitive::kCumulativeMax:
    case Primitive::kCumulativeMin:
      return JvpCumulativeMaxMin(node);
    case Primitive::kGather:
      return JvpGather(node);
    case Primitive::kScatter:
      return JvpScatter(node);
    default:
      break;
  }
  if (DerivativeOf(node.primitive) == DerivativeKind::kLinear) {
    return JvpLinear(node);
  }
  return absl::InternalError(absl::StrCat(
      "jvp: `", PrimitiveName(node.primitive), "` has no derivative here"));
}

}  // namespace

Value JvpNode::DenseTangent(int i) const {
  return active(i) ? dx(i) : builder.Zeros(type(i));
}

absl::StatusOr<JvpNodeResult> JvpPrimitive(const JvpNode& node) {
  if (node.primitive == Primitive::kScan) return JvpScan(node);
  if (node.primitive == Primitive::kCond) return JvpCond(node);
  if (node.primitive == Primitive::kWhile) return JvpWhile(node);
  if (node.primitive == Primitive::kSort) {
    CLEAVE_ASSIGN_OR_RETURN(const Value values, JvpSort(node));
    return JvpNodeResult{{values, Value()}, {}};
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value tangent, TangentOf(node));
  return JvpNodeResult{{tangent}, {}};
}

}  // namespace cleave
