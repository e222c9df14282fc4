#include "engine/rules/check.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/rules/check_names.h"
#include "engine/rules/check_ops.h"
#include "engine/rules/rule_set_impl.h"
#include "ops/status_macros.h"

namespace cleave {

absl::StatusOr<TensorType> DeclaredType(const TypeExpr& type,
                                        Elaborator& elaborator, Scope& scope) {
  TensorType result;
  CLEAVE_ASSIGN_OR_RETURN(const DTypePtr dtype,
                          elaborator.EvalDType(*type.dtype, scope));
  if (!dtype->dtype().has_value()) {
    return elaborator.Fail(DiagnosticKind::kType, type.range,
                           "the dtype of this input is fixed, like `f32`");
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

namespace {

// Reports each item that comes back to itself by calls.
class CycleFinder {
 public:
  CycleFinder(const Library& library, std::vector<Diagnostic>* diagnostics)
      : library_(library), diagnostics_(diagnostics) {}

  void Visit(const Item& start) {
    path_.clear();
    done_.clear();
    start_ = &start;
    Follow(start);
  }

 private:
  // True once a cycle through the start is reported.
  bool Follow(const Item& item) {
    for (const NamedExpr& call : CallsOf(item)) {
      const Item* callee = library_.FindDef(call.name);
      if (callee == nullptr) {
        const Callable* callable = library_.FindCallable(call.name);
        if (callable != nullptr) callee = callable->item;
      }
      if (callee == nullptr) continue;
      if (callee == start_) {
        std::string path = absl::StrCat("`", CallableName(*start_), "`");
        for (const Item* step : path_) {
          absl::StrAppend(&path, " -> `", CallableName(*step), "`");
        }
        absl::StrAppend(&path, " -> `", CallableName(*start_), "`");
        const bool is_def = start_->kind == ItemKind::kDef;
        // The place of the call in the start itself.
        diagnostics_->push_back(
            {is_def ? DiagnosticKind::kRecursive : DiagnosticKind::kCycle,
             absl::StrCat(is_def ? "a def must not call itself: "
                                 : "an op must not need itself: ",
                          path),
             path_.empty() ? call.range : first_call_, "", ""});
        return true;
      }
      if (!done_.insert(callee).second) continue;
      if (path_.empty()) first_call_ = call.range;
      path_.push_back(callee);
      const bool found = Follow(*callee);
      path_.pop_back();
      if (found) return true;
    }
    return false;
  }

  const Library& library_;
  std::vector<Diagnostic>* diagnostics_;
  const Item* start_ = nullptr;
  SourceRange first_call_;
  std::vector<const Item*> path_;
  std::set<const Item*> done_;
};

}  // namespace

std::vector<Diagnostic> CheckFile(const RuleSet& rules, const LoadedFile& file,
                                  bool generated) {
  const Library& library = rules.impl().library;
  std::vector<Diagnostic> diagnostics;
  CycleFinder cycles(library, &diagnostics);
  for (const RuleFile::Entry& entry : file.file.entries) {
    if (!entry.item.has_value()) continue;
    CheckNames(library, *entry.item, &diagnostics);
    cycles.Visit(*entry.item);
  }
  // Simplifying counts on them, whoever wrote them.
  if (diagnostics.empty()) {
    for (const RuleFile::Entry& entry : file.file.entries) {
      if (!entry.item.has_value() || entry.item->kind != ItemKind::kRewrite) {
        continue;
      }
      std::variant<Rewrite, Diagnostic> compiled =
          CompileRewrite(library, *entry.item, *rules.context());
      if (Diagnostic* mistake = std::get_if<Diagnostic>(&compiled)) {
        diagnostics.push_back(std::move(*mistake));
      }
    }
  }
  if (generated) {
    diagnostics.erase(std::remove_if(diagnostics.begin(), diagnostics.end(),
                                     [](const Diagnostic& d) {
                                       return d.kind == DiagnosticKind::kUnused;
                                     }),
                      diagnostics.end());
    return diagnostics;
  }
  // Elaboration would find the same mistakes again.
  if (!diagnostics.empty()) return diagnostics;
  for (const RuleFile::Entry& entry : file.file.entries) {
    if (!entry.item.has_value()) continue;
    const Item& item = *entry.item;
    if (item.kind == ItemKind::kJvp) {
      CheckDerivativeItem(rules, item, &diagnostics);
    } else if (item.kind == ItemKind::kNumeric) {
      CheckNumericItem(rules, item, &diagnostics);
    } else if (item.kind == ItemKind::kOp) {
      CheckOp(rules, *library.FindCallable(CallableName(item)), &diagnostics);
    } else if (item.kind == ItemKind::kFn) {
      CheckFunction(rules, *library.FindCallable(CallableName(item)),
                    &diagnostics);
    }
  }
  return diagnostics;
}

}  // namespace cleave
