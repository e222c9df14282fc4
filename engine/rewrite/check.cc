#include "engine/rewrite/check.h"

#include "ops/status_macros.h"

namespace cleave {

absl::StatusOr<TensorType> DeclaredType(const TypeExpr& type,
                                        Elaborator& elaborator, Scope& scope) {
  TensorType result;
  CLEAVE_ASSIGN_OR_RETURN(const DTypePtr dtype,
                          elaborator.EvalDType(*type.dtype, scope));
  if (!dtype->dtype().has_value()) {
    return elaborator.Fail(DiagnosticKind::kType, type.range,
                           "the dtype of an fn's input is fixed");
  }
  result.dtype = *dtype->dtype();
  for (const AxisExpr& axis : type.axes) {
    if (axis.size->kind == ExprKind::kName &&
        scope.Find(axis.size->text) == nullptr) {
      scope.Set(axis.size->text, Dim::Variable(axis.size->text));
    }
    CLEAVE_ASSIGN_OR_RETURN(const Dim dim,
                            elaborator.EvalDim(*axis.size, scope));
    result.shape.push_back(dim);
  }
  return result;
}

std::vector<Diagnostic> CheckFile(const RuleSet& rules,
                                  const LoadedFile& file) {
  return {};
}

}  // namespace cleave
