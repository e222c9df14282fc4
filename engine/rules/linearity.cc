#include "engine/rules/linearity.h"

#include <algorithm>

#include "ops/budget.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using L = Linearity;

bool IsConstant(L x) { return x == L::kZero || x == L::kConstant; }

// A function that is as linear as `result` as long as another operand, a
// condition, say, is constant.
L Under(L other, L result) {
  if (other == L::kUnknown) return L::kUnknown;
  return IsConstant(other) ? result : L::kNonlinear;
}

// A function that is linear in all of its operands together (sums).
L Sum(L a, L b) {
  if (a == L::kUnknown || b == L::kUnknown) return L::kUnknown;
  if (a == L::kNonlinear || b == L::kNonlinear) return L::kNonlinear;
  if (a == L::kZero) return b;
  if (b == L::kZero) return a;
  // A constant beside a tangent: affine.
  return a == b ? a : L::kNonlinear;
}

// A function that is linear in each operand (products).
L Product(L a, L b) {
  if (a == L::kZero || b == L::kZero) return L::kZero;
  if (a == L::kUnknown || b == L::kUnknown) return L::kUnknown;
  if (IsConstant(a)) return b;
  if (IsConstant(b)) return a;
  return L::kNonlinear;
}

L OfPrimitive(Primitive p, const Attributes& attributes,
              const std::vector<L>& x) {
  switch (p) {
    case Primitive::kConstant: {
      const StaticValue& value = attributes.Get("value");
      const bool is_zero =
          value.kind() == StaticValue::Kind::kReal  ? value.AsReal() == Exact(0)
          : value.kind() == StaticValue::Kind::kInt ? value.AsDim() == Dim(0)
                                                    : false;
      return is_zero ? L::kZero : L::kConstant;
    }
    case Primitive::kNeg:
    case Primitive::kReal:
    case Primitive::kImag:
    case Primitive::kConvert:
    case Primitive::kBroadcastInDim:
    case Primitive::kReshape:
    case Primitive::kTranspose:
    case Primitive::kSlice:
    case Primitive::kReverse:
    case Primitive::kReduceSum:
    case Primitive::kWindowsAdd:
    case Primitive::kResult:
      return x[0];
    case Primitive::kAdd:
    case Primitive::kSub:
    case Primitive::kPad:
    case Primitive::kWindows:
    case Primitive::kComplex:
      return Sum(x[0], x[1]);
    case Primitive::kConcatenate: {
      L sum = x[0];
      for (L y : x) sum = Sum(sum, y);
      return sum;
    }
    case Primitive::kMul:
    case Primitive::kDotGeneral:
    case Primitive::kConv:
      return Product(x[0], x[1]);
    case Primitive::kDiv:
      return Under(x[1], x[0]);
    case Primitive::kFma:
      return Sum(Product(x[0], x[1]), x[2]);
    case Primitive::kSelect:
      return Under(x[0], Sum(x[1], x[2]));
    case Primitive::kGather:
    case Primitive::kScatter:
      return Under(x[1], Sum(x[0], x[2]));
    case Primitive::kLinearScan:
      return Under(x[0], Sum(x[1], x[2]));
    default:
      break;
  }
  L result = L::kConstant;
  for (L y : x) {
    if (y == L::kUnknown) return L::kUnknown;
    if (!IsConstant(y)) result = L::kNonlinear;
  }
  // The bodies of loops, which may use a tangent, are not looked into.
  if (result == L::kNonlinear && ClassOf(p) == PrimitiveClass::kControl) {
    return L::kUnknown;
  }
  return result;
}

}  // namespace

absl::StatusOr<std::vector<Linearity>> LinearityOf(
    const Graph& graph, const std::vector<Linearity>& inputs,
    const RuleSet& rules) {
  std::vector<std::vector<L>> results(graph.size());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    results[graph.inputs()[i].value.id] = {inputs[i]};
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    if (!results[id].empty()) continue;
    CLEAVE_RETURN_IF_ERROR(ChargeBudget(BudgetKind::kNodes));
    const Node& node = graph.node(v);
    std::vector<L> operands;
    for (const Value operand : graph.operands(v)) {
      operands.push_back(results[operand.id][0]);
    }
    if (node.op == ToOpId(Primitive::kResult)) {
      const std::vector<L>& tuple = results[graph.operands(v)[0].id];
      const int64_t index = graph.attributes(v).GetInt("index");
      results[id] = {tuple[std::min<size_t>(index, tuple.size() - 1)]};
      continue;
    }
    if (IsPrimitive(node.op)) {
      results[id] = {
          OfPrimitive(ToPrimitive(node.op), graph.attributes(v), operands)};
      continue;
    }
    if (std::all_of(operands.begin(), operands.end(), IsConstant)) {
      results[id].assign(graph.types(v).size(), L::kConstant);
      continue;
    }
    CLEAVE_ASSIGN_OR_RETURN(const Graph* body,
                            rules.Body(RuleSet::SignatureOf(graph, v)));
    CLEAVE_ASSIGN_OR_RETURN(results[id], Deeper([&] {
                              return LinearityOf(*body, operands, rules);
                            }));
  }
  std::vector<L> outputs;
  for (const NamedValue& output : graph.outputs()) {
    outputs.push_back(results[output.value.id][0]);
  }
  return outputs;
}

}  // namespace cleave
