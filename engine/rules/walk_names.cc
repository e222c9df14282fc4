// NameChecker: scopes, and the names in types, bodies and expressions.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/bind/builtins.h"
#include "engine/rules/name_checker.h"
#include "ops/dtype.h"

namespace cleave {

bool IsConstantName(const std::string& name) {
  return name == "true" || name == "false" || name == "inf" || name == "nan" ||
         name == "pi" || name == "_" || ParseDType(name).ok();
}

void NameChecker::Report(DiagnosticKind kind, SourceRange range,
                         std::string message, std::string help) {
  diagnostics_->push_back(
      {kind, std::move(message), range, std::move(help), ""});
}

std::string NameChecker::DidYouMean(const std::string& name,
                                    const std::vector<std::string>& names) {
  const std::string closest = ClosestName(name, names);
  return closest.empty() ? "" : absl::StrCat("did you mean `", closest, "`?");
}

void NameChecker::Enter() { scopes_.emplace_back(); }

void NameChecker::Leave() {
  for (const auto& [name, entry] : scopes_.back()) {
    if (entry.must_be_used && !entry.used) {
      Report(DiagnosticKind::kUnused, entry.range,
             absl::StrCat(entry.what, " `", name, "` is never used"));
    }
  }
  scopes_.pop_back();
}

NameChecker::Name* NameChecker::Lookup(const std::string& name) {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto it = scope->find(name);
    if (it != scope->end()) return &it->second;
  }
  return nullptr;
}

void NameChecker::Define(const std::string& name, SourceRange range,
                         absl::string_view what, bool must_be_used) {
  Names& names = scopes_.back();
  if (names.count(name) > 0) {
    Report(DiagnosticKind::kDuplicate, range,
           absl::StrCat("`", name, "` is defined twice"));
    return;
  }
  names[name] = {range, false, must_be_used, what, "", ""};
}

void NameChecker::DefineTypeNames(const TypeExpr& type,
                                  const std::string& variadic) {
  if (type.dtype != nullptr && type.dtype->kind == ExprKind::kName &&
      !IsConstantName(type.dtype->text) &&
      Lookup(type.dtype->text) == nullptr) {
    Define(type.dtype->text, type.dtype->range, "dtype", false);
  }
  for (const AxisExpr& axis : type.axes) {
    const Expr* e = axis.size.get();
    if (e->kind == ExprKind::kSpread) e = e->children[0].get();
    if (e->kind == ExprKind::kIndex && !variadic.empty()) {
      e = e->children[0].get();
    }
    if (e->kind == ExprKind::kName && Lookup(e->text) == nullptr) {
      Define(e->text, e->range, "size", false);
    }
  }
}

void NameChecker::DefineResults(const Callable& callable) {
  for (const ResultDecl& result : callable.results) {
    if (scopes_.back().count(result.name) == 0 &&
        Lookup(result.name) == nullptr) {
      Define(result.name, result.range, "result", false);
    }
  }
}

namespace {

// "an input", "a `let`".
std::string WithArticle(absl::string_view what) {
  return absl::StrCat(what[0] == 'i' || what[0] == 'a' ? "an " : "a ", what);
}

}  // namespace

void NameChecker::DefineClash(const std::string& name, SourceRange range,
                              absl::string_view what, const Name& other,
                              std::string help) {
  std::string clash = absl::StrCat("`", name, "` is ", WithArticle(other.what),
                                   ", and here would be ", what);
  scopes_.back()[name] = {
      range, false, false, "second use", std::move(clash), std::move(help)};
}

bool NameChecker::IsResult(const std::string& name) const {
  if (item_.body == nullptr) return false;
  const auto is_name = [&](const Expr& e) {
    return e.kind == ExprKind::kName && e.text == name;
  };
  for (const Statement& statement : item_.body->statements) {
    if (statement.kind != StatementKind::kResult ||
        !statement.equation.name.empty()) {
      continue;
    }
    const Expr& value = *statement.equation.value;
    if (is_name(value)) return true;
    for (const Equation& field : value.fields) {
      if (field.name == name && !field.indexed && is_name(*field.value)) {
        return true;
      }
    }
  }
  return false;
}

void NameChecker::DefineResultsOrClash(const Callable& callable) {
  for (const ResultDecl& result : callable.results) {
    if (scopes_.back().count(result.name) > 0) continue;
    const Name* other = Lookup(result.name);
    if (other == nullptr) {
      Define(result.name, result.range, "result", false);
      continue;
    }
    // A `let` of the value that the body gives under its name.
    if (other->what == "`let`" && IsResult(result.name)) continue;
    const bool is_let = other->what == "`let`";
    DefineClash(result.name, result.range, "the result", *other,
                is_let ? "give the `let` another name"
                       : absl::StrCat("name the ", other->what,
                                      " above this line: `let ", result.name,
                                      "_in = ", result.name, "`"));
  }
}

void NameChecker::DefineBinders(const std::vector<Binder>& binders) {
  for (const Binder& binder : binders) {
    if (binder.bound != nullptr) Walk(*binder.bound);
  }
  for (const Binder& binder : binders) {
    if (Lookup(binder.name) != nullptr && !IsIndex(binder.name)) {
      Report(DiagnosticKind::kDuplicate, binder.range,
             absl::StrCat("the index `", binder.name,
                          "` bears the name of a value in scope"));
    }
  }
  Enter();
  for (const Binder& binder : binders) {
    Define(binder.name, binder.range, "index", false);
    indices_.insert(binder.name);
  }
}

bool NameChecker::IsIndex(const std::string& name) {
  const Name* entry = Lookup(name);
  return entry != nullptr && entry->what == "index";
}

void NameChecker::WalkType(const TypeExpr& type) {
  if (type.dtype != nullptr) Walk(*type.dtype);
  for (const AxisExpr& axis : type.axes) {
    Walk(*axis.size);
    if (axis.bound != nullptr) Walk(*axis.bound);
    if (axis.at.empty()) continue;
    if (Name* name = Lookup(axis.at)) {
      name->used = true;
    } else {
      Report(DiagnosticKind::kUnknownName, axis.range,
             absl::StrCat("there is no attribute `", axis.at, "`"));
    }
  }
}

void NameChecker::WalkBody(const Body& body) {
  Enter();
  WalkStatements(body);
  Leave();
}

void NameChecker::WalkStatements(const Body& body) {
  for (const Statement& statement : body.statements) {
    if (statement.kind == StatementKind::kLet) {
      WalkEquation(statement.equation);
      Define(statement.equation.name, statement.equation.range, "`let`", true);
    } else if (statement.kind == StatementKind::kResult) {
      WalkEquation(statement.equation);
    }
  }
}

void NameChecker::WalkEquation(const Equation& equation) {
  DefineBinders(equation.indices);
  Walk(*equation.value);
  Leave();
}

const Item* NameChecker::FindDef(const std::string& name) const {
  return library_.FindDef(name, library_.SourceOf(item_));
}

void NameChecker::WalkCallee(const std::string& callee, SourceRange range) {
  if (FindDef(callee) != nullptr || library_.FindCallable(callee) != nullptr ||
      IsBuiltin(callee) || callee == "sum") {
    return;
  }
  // `full([70000], 1.0)`, a value of an example.
  if (item_.kind == ItemKind::kExample && callee == "full") return;
  if (const Item* def = library_.FindShippedDef(callee)) {
    const Source& source = library_.SourceOf(*def);
    Report(DiagnosticKind::kUnknownOp, range,
           absl::StrCat("`", callee, "` is a def of the shipped rules (",
                        source.name(), ":",
                        source.PositionOf(def->range.begin).line,
                        "), which is private to them"),
           "declare one of your own, by the same name if you like");
    return;
  }
  std::vector<std::string> names = BuiltinNames();
  for (const auto& [name, unused] : library_.callables()) {
    names.push_back(name);
  }
  for (const std::string& name : library_.DefNames()) names.push_back(name);
  Report(DiagnosticKind::kUnknownOp, range,
         absl::StrCat("there is no op, def or builtin `", callee, "`"),
         DidYouMean(callee, names));
}

void NameChecker::WalkArguments(const std::string& callee,
                                const std::vector<ExprPtr>& positional,
                                const std::vector<NamedExpr>& named,
                                SourceRange range) {
  for (const ExprPtr& e : positional) Walk(*e);
  for (const NamedExpr& e : named) Walk(*e.value);
  const Callable* callable = library_.FindCallable(callee);
  if (callable == nullptr || FindDef(callee) != nullptr) return;
  std::vector<std::string> names;
  for (const InputDecl& input : callable->inputs) {
    names.push_back(input.name);
  }
  for (const AttributeDecl& attribute : callable->attributes) {
    names.push_back(attribute.name);
  }
  for (const NamedExpr& e : named) {
    if (std::find(names.begin(), names.end(), e.name) == names.end()) {
      Report(DiagnosticKind::kUnknownAttribute, e.range,
             absl::StrCat("`", callee, "` has no argument `", e.name, "`"),
             DidYouMean(e.name, names));
    }
  }
  if (positional.size() > callable->positional.size()) {
    Report(DiagnosticKind::kArgument, range,
           absl::StrCat("`", callee, "` takes ", callable->positional.size(),
                        " arguments by position, not ", positional.size()));
  }
}

void NameChecker::Walk(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kName: {
      if (Name* name = Lookup(e.text)) {
        name->used = true;
        if (name->clash.empty()) return;
        Report(DiagnosticKind::kDuplicate, e.range, name->clash, name->help);
        for (Names& scope : scopes_) {
          const auto it = scope.find(e.text);
          if (it != scope.end()) it->second.used = true;
        }
        return;
      }
      if (IsConstantName(e.text) || library_.IsEnumWord(e.text)) return;
      std::vector<std::string> names;
      for (const Names& scope : scopes_) {
        for (const auto& [name, unused] : scope) names.push_back(name);
      }
      Report(DiagnosticKind::kUnknownName, e.range,
             absl::StrCat("`", e.text, "` is not defined here"),
             DidYouMean(e.text, names));
      return;
    }
    case ExprKind::kBinary:
      Walk(*e.children[0]);
      // Behind `is` stands a class or a dtype.
      if (e.text != "is") Walk(*e.children[1]);
      return;
    case ExprKind::kCall:
      if (e.text == "impossible" && !in_derivative_) {
        Report(DiagnosticKind::kPlacement, e.range,
               "`impossible` stands in derivatives only");
      }
      WalkCallee(e.text, e.range);
      WalkArguments(e.text, e.children, e.named, e.range);
      return;
    case ExprKind::kTransformCall:
      if (library_.FindCallable(e.callee) == nullptr) {
        WalkCallee(e.callee, e.range);
        // An example may say what the derivative of a primitive is somewhere.
        const bool is_shown = item_.kind == ItemKind::kExample &&
                              library_.FindDerivative(e.callee) != nullptr;
        if (!is_shown &&
            (FindDef(e.callee) != nullptr || IsBuiltin(e.callee))) {
          Report(DiagnosticKind::kUnknownOp, e.range,
                 absl::StrCat("`", e.callee, "` is no op and no fn"));
        }
      }
      WalkArguments(e.callee, e.children, e.named, e.range);
      for (const ExprPtr& second : e.seconds) Walk(*second);
      for (const NamedExpr& second : e.named_seconds) Walk(*second.value);
      return;
    case ExprKind::kComprehension:
      Walk(*e.children[1]);
      Enter();
      Define(e.binders[0].name, e.binders[0].range, "element", false);
      Walk(*e.children[0]);
      if (e.children.size() > 2) Walk(*e.children[2]);
      Leave();
      return;
    case ExprKind::kRecord: {
      std::set<std::string> fields;
      for (const Equation& field : e.fields) {
        if (!field.name.empty() && !fields.insert(field.name).second) {
          Report(DiagnosticKind::kDuplicate, field.range,
                 absl::StrCat("the field `", field.name, "` twice"));
        }
        WalkEquation(field);
      }
      return;
    }
    case ExprKind::kReduce:
      DefineBinders(e.binders);
      for (const ExprPtr& child : e.children) Walk(*child);
      Leave();
      return;
    case ExprKind::kFold:
      Walk(*e.fields[0].value);
      Walk(*e.children[0]);
      Enter();
      Define(e.fields[0].name, e.fields[0].range, "value", false);
      Define(e.binders[0].name, e.binders[0].range, "element", false);
      WalkBody(*e.body);
      Leave();
      return;
    case ExprKind::kScan:
    case ExprKind::kMap:
    case ExprKind::kWhile:
      for (const Equation& carry : e.fields) Walk(*carry.value);
      // The condition of a while reads the carries; its bound is known before.
      for (size_t i = e.kind == ExprKind::kWhile ? 1 : 0; i < e.children.size();
           ++i) {
        Walk(*e.children[i]);
      }
      Enter();
      for (const Equation& carry : e.fields) {
        Define(carry.name, carry.range, "carry", false);
      }
      for (const Binder& binder : e.binders) {
        Define(binder.name, binder.range, "element", false);
      }
      if (e.kind == ExprKind::kWhile) Walk(*e.children[0]);
      WalkBody(*e.body);
      Leave();
      return;
    case ExprKind::kCond:
      Walk(*e.children[0]);
      WalkBody(*e.body);
      WalkBody(*e.else_body);
      return;
    default:
      for (const ExprPtr& child : e.children) Walk(*child);
      return;
  }
}

}  // namespace cleave
