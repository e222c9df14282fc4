#include "engine/rules/primitive_jvp.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/elaborate/elaborator.h"
#include "ops/infer_type.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"

namespace cleave {

absl::StatusOr<Graph> CompilePrimitiveJvp(const Library& library,
                                          const Item& item,
                                          std::shared_ptr<Context> context,
                                          const Signature& signature,
                                          const std::vector<bool>& active,
                                          const Callees& callees) {
  if (item.parameters.size() != signature.operands.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the derivative of `", item.name, "` names ", item.parameters.size(),
        " operands, not ", signature.operands.size()));
  }
  Elaborator elaborator(library, *context, absl::StrCat("jvp ", item.name),
                        &callees);
  elaborator.EnterSource(library.SourceOf(item));
  GraphBuilder builder(context);
  Scope scope;
  std::vector<TensorType> types;
  for (size_t i = 0; i < signature.operands.size(); ++i) {
    types.push_back(context->types(signature.operands[i]).front());
    const Value value = builder.Input(item.parameters[i], types[i]);
    scope.Set(item.parameters[i], elaborator.terms().InGraph(value, types[i]));
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const InferredType inferred,
      InferType(ToPrimitive(signature.op),
                context->attributes(signature.attributes), types));
  const TensorType& result = inferred.results[0];
  const Value y = builder.Input("y", result);
  scope.Set("y", elaborator.terms().InGraph(y, result));
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string name = absl::StrCat("d", item.parameters[i]);
    if (active[i]) {
      const Value tangent = builder.Input(name, types[i]);
      scope.Set(name, elaborator.terms().InGraph(tangent, types[i]));
    } else {
      scope.Set(name,
                elaborator.terms().Zero(DTypeVariable::Known(types[i].dtype),
                                        types[i].shape));
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value,
                          elaborator.EvalBody(*item.body, scope));
  if (value.Is(RuleValue::Kind::kImpossible)) {
    return Impossible(value.AsImpossible().why);
  }
  CLEAVE_ASSIGN_OR_RETURN(TermPtr term,
                          elaborator.ToTerm(value, item.body->range));
  if (!DTypeVariable::Unify(term->dtype, DTypeVariable::Known(result.dtype))) {
    return elaborator.Fail(
        DiagnosticKind::kType, item.body->range,
        absl::StrCat("the tangent is ", DTypeName(ResolvedDType(*term)),
                     ", not ", DTypeName(result.dtype)));
  }
  absl::StatusOr<TermPtr> shaped =
      elaborator.terms().BroadcastTo(term, result.shape);
  if (!shaped.ok()) return elaborator.At(shaped.status(), item.body->range);
  TermLowerer lowerer(builder, &callees);
  CLEAVE_ASSIGN_OR_RETURN(const Value tangent, lowerer.Lower(*shaped));
  return std::move(builder).Build({{"y.tangent", tangent}});
}

}  // namespace cleave
