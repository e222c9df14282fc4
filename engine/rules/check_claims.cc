// The claims of an op: how far its body may be from its spec.

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/rules/name_checker.h"
#include "ops/dtype.h"

namespace cleave {

void NameChecker::CheckRanges(const Callable& callable,
                              const std::vector<InputRange>& ranges) {
  for (const InputRange& on : ranges) {
    const InputDecl* const input = FindInput(callable, on.input);
    if (input == nullptr || input->is_static) {
      Report(DiagnosticKind::kUnknownName, on.range,
             absl::StrCat("there is no input `", on.input,
                          "` whose elements a range could choose"),
             DidYouMean(on.input, InputNames(callable)));
    } else if (Name* const name = Lookup(on.input)) {
      name->used = true;
    }
    Walk(*on.low);
    Walk(*on.high);
  }
}

void NameChecker::CheckBound(const Expr& bound) {
  if (bound.kind == ExprKind::kUnary && bound.text == "-" &&
      bound.children[0]->kind == ExprKind::kNumber) {
    Report(DiagnosticKind::kBadNumber, bound.range,
           "what a claim allows is negative");
  }
  Walk(bound);
}

void NameChecker::CheckApproximations(const Callable& callable) {
  const ApproximationClause* whole = nullptr;
  for (const ApproximationClause& approximation : item_.approximations) {
    if (item_.spec == nullptr) {
      Report(DiagnosticKind::kPlacement, approximation.range,
             "there is no spec that the body could approximate");
    }
    if (whole != nullptr) {
      Report(DiagnosticKind::kDuplicate, approximation.range,
             "the clause above this one holds for all elements",
             "a clause without `on` stands last");
    }
    if (approximation.on.empty()) whole = &approximation;
    CheckBound(*approximation.bound);
    if (approximation.condition != nullptr) {
      CheckBound(*approximation.condition);
    }
    CheckRanges(callable, approximation.on);
  }
}

void NameChecker::CheckAccuracies(const Callable& callable) {
  // The clause of each dtype that stands before.
  std::map<std::string, const AccuracyClause*> before;
  for (const AccuracyClause& accuracy : item_.accuracies) {
    Name* name = Lookup(accuracy.dtype);
    if (name != nullptr) {
      name->used = true;
    } else if (!ParseDType(accuracy.dtype).ok()) {
      Report(DiagnosticKind::kUnknownName, accuracy.range,
             absl::StrCat("`", accuracy.dtype, "` is no dtype"));
    }
    const AccuracyClause*& above = before[accuracy.dtype];
    if (above != nullptr && above->on.empty()) {
      Report(DiagnosticKind::kDuplicate, accuracy.range,
             absl::StrCat("the clause of `", accuracy.dtype,
                          "` above this one holds for all elements"),
             "a clause without `on` stands last");
    } else if (above != nullptr && above->unit != accuracy.unit) {
      Report(DiagnosticKind::kPlacement, accuracy.range,
             absl::StrCat("claims of `", accuracy.dtype, "` in ", above->unit,
                          " and in ", accuracy.unit),
             "the claims of one dtype have one unit");
    }
    above = &accuracy;
    CheckBound(*accuracy.bound);
    if (accuracy.condition != nullptr) CheckBound(*accuracy.condition);
    CheckRanges(callable, accuracy.on);
    if (accuracy.eps_of == nullptr) continue;
    Enter();
    // In the spec's indices.
    const auto define = [&](const Equation& equation) {
      for (const Binder& binder : equation.indices) {
        if (scopes_.back().count(binder.name) != 0) continue;
        Define(binder.name, binder.range, "index", false);
      }
    };
    if (item_.spec != nullptr) {
      for (const Statement& statement : item_.spec->statements) {
        if (statement.kind != StatementKind::kResult) continue;
        define(statement.equation);
        for (const Equation& field : statement.equation.value->fields) {
          define(field);
        }
      }
    }
    Walk(*accuracy.eps_of);
    Leave();
  }
}

}  // namespace cleave
