// Builtins of lists, shapes and dtypes.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/elaborate/builtin_call.h"
#include "engine/elaborate/plan_einsum.h"
#include "engine/elaborate/promote.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;
using Result = BuiltinCall::Result;

Result Len(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleList list, call.List(0));
  return RuleValue(static_cast<int>(list.size()));
}

// The numbers of a list combined, from `first` on.
Result Fold(BuiltinCall& call, absl::string_view op, RuleValue first) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleList list, call.List(0));
  RuleValue total = std::move(first);
  for (const RuleValue& element : list) {
    if (!element.IsNumber()) {
      return call.Wrong(absl::StrCat("takes a list of numbers; it holds ",
                                     element.KindName()));
    }
    CLEAVE_ASSIGN_OR_RETURN(total, call.Combine(op, total, element));
  }
  return total;
}

Result Size(BuiltinCall& call) { return Fold(call, "*", 1); }

Result IsKnown(BuiltinCall& call) {
  const RuleValue& size = call.operands()[0];
  if (!size.Is(Kind::kInt)) {
    return call.Wrong(absl::StrCat("takes a size, not ", size.KindName()));
  }
  return RuleValue(size.AsDim().Value().has_value());
}

Result ShapeOf(BuiltinCall& call) {
  if (call.operands()[0].Is(Kind::kAbsent)) return RuleValue(RuleList{});
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
  return DimList(x->shape);
}

Result DTypeOf(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
  return RuleValue(x->dtype);
}

Result Acc(BuiltinCall& call) {
  const RuleValue& value = call.operands()[0];
  if (!value.Is(Kind::kDType) || !value.AsDType()->dtype().has_value()) {
    return call.Wrong("takes a dtype that is known");
  }
  return RuleValue(
      DTypeVariable::Known(AccumulationType(*value.AsDType()->dtype())));
}

// A list without some places, or with 1 there.
Result Without(BuiltinCall& call, bool keep) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleList list, call.List(0));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int> places,
                          call.Places(1, list.size()));
  RuleList result;
  for (size_t d = 0; d < list.size(); ++d) {
    const bool named =
        std::count(places.begin(), places.end(), static_cast<int>(d)) > 0;
    if (!named) result.push_back(list[d]);
    if (named && keep) result.push_back(RuleValue(1));
  }
  return RuleValue(std::move(result));
}

Result Drop(BuiltinCall& call) { return Without(call, false); }
Result Keep(BuiltinCall& call) { return Without(call, true); }

Result BroadcastOf(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Shape> shapes, call.Shapes(0));
  absl::StatusOr<Shape> shape = call.terms().Broadcast(shapes);
  if (!shape.ok()) return call.At(shape.status());
  return DimList(*shape);
}

Result PromoteAten(BuiltinCall& call) {
  std::vector<PromotionOperand> operands;
  for (const RuleValue& value : call.operands()) {
    if (value.Is(Kind::kAbsent)) continue;
    if (value.IsNumber() || value.Is(Kind::kBool)) {
      operands.push_back({value.Is(Kind::kBool)  ? DType::kBool
                          : value.Is(Kind::kInt) ? DType::kI64
                                                 : DType::kF64,
                          PromotionOperand::Kind::kNumber});
      continue;
    }
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.ToTerm(value));
    const std::optional<DType> dtype = x->dtype->dtype();
    if (!dtype.has_value()) {
      return call.At(absl::InvalidArgumentError(
                         "the dtype of an operand is not known here"),
                     DiagnosticKind::kType);
    }
    operands.push_back({*dtype, x->shape.empty()
                                    ? PromotionOperand::Kind::kScalarTensor
                                    : PromotionOperand::Kind::kTensor});
  }
  return RuleValue(DTypeVariable::Known(PromoteLikeAten(operands)));
}

Result EinsumPlan(BuiltinCall& call) {
  const RuleValue& equation = call.operands()[0];
  if (!equation.Is(Kind::kString)) return call.Wrong("takes an equation");
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Shape> shapes, call.Shapes(1));
  absl::StatusOr<StaticValue> plan = PlanEinsum(equation.AsString(), shapes);
  if (!plan.ok()) return call.At(plan.status(), DiagnosticKind::kArgument);
  return FromStatic(*plan);
}

struct Row {
  absl::string_view name;
  BuiltinFunction function;
};
constexpr Row kRows[] = {
#define STATIC_BUILTIN(name, signature, function) {name, function},
#define BUILTIN(name, signature, function)
#include "engine/bind/builtin.def"
};

}  // namespace

BuiltinFunction FindStaticBuiltin(absl::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.function;
  }
  return nullptr;
}

BuiltinCall::Result SumOfList(BuiltinCall& call) { return Fold(call, "+", 0); }

}  // namespace cleave
