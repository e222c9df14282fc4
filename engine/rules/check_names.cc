#include "engine/rules/check_names.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/bind/builtins.h"
#include "engine/bind/op_lines.h"
#include "engine/rules/name_checker.h"
#include "ops/dtype.h"
#include "ops/primitive.h"

namespace cleave {

const InputDecl* FindInput(const Callable& callable, const std::string& name) {
  for (const InputDecl& input : callable.inputs) {
    if (input.name == name) return &input;
  }
  return nullptr;
}

std::vector<std::string> InputNames(const Callable& callable) {
  std::vector<std::string> names;
  for (const InputDecl& input : callable.inputs) names.push_back(input.name);
  return names;
}

void NameChecker::Run() {
  switch (item_.kind) {
    case ItemKind::kOp:
    case ItemKind::kAten:
    case ItemKind::kOnnx:
    case ItemKind::kFn:
      return CheckOp();
    case ItemKind::kDef:
      return CheckDef();
    case ItemKind::kJvp:
      return CheckDerivative();
    case ItemKind::kNumeric:
      return CheckNumeric();
    case ItemKind::kRewrite:
      return CheckRewrite();
    case ItemKind::kOverride:
      return CheckOverrideItem();
    case ItemKind::kExample:
      return CheckExample();
  }
}

void NameChecker::DefineSignature(const Item& item, const Callable& callable,
                                  bool must_use) {
  const bool is_host =
      item.kind == ItemKind::kAten || item.kind == ItemKind::kOnnx;
  for (const WhereClause& where : item.where) {
    bool is_attribute = false;
    for (const AttributeDecl& attribute : callable.attributes) {
      is_attribute = is_attribute || attribute.name == where.variable;
    }
    if (!is_attribute)
      Define(where.variable, where.range, "dtype", must_use || is_host);
    CheckDTypeClass(where);
  }
  for (const AttributeDecl& attribute : callable.attributes) {
    // An attribute of type dim is a size of its name.
    Define(attribute.name, attribute.range, "attribute",
           must_use && attribute.type != "dim");
    if (!attribute.axis_of.empty()) {
      const bool known =
          std::any_of(callable.inputs.begin(), callable.inputs.end(),
                      [&](const InputDecl& input) {
                        return input.name == attribute.axis_of;
                      });
      if (!known) {
        Report(DiagnosticKind::kUnknownName, attribute.range,
               absl::StrCat("there is no input `", attribute.axis_of, "`"));
      }
    }
  }
  for (const InputDecl& input : callable.inputs) {
    Define(input.name, input.range, "input", must_use);
  }
  for (const InputDecl& input : callable.inputs) {
    DefineTypeNames(input.type, input.variadic_index);
  }
  // A host's result may be of a dtype that its body gives.
  for (const ResultDecl& result : callable.results) {
    if (is_host && result.type.dtype != nullptr &&
        result.type.dtype->kind == ExprKind::kName &&
        !IsConstantName(result.type.dtype->text) &&
        Lookup(result.type.dtype->text) == nullptr) {
      Define(result.type.dtype->text, result.type.range, "dtype", false);
    }
  }
  for (const InputDecl& input : callable.inputs) {
    Enter();
    if (!input.variadic_index.empty()) {
      Define(input.variadic_index, input.range, "index", false);
    }
    WalkType(input.type);
    Leave();
  }
  for (const AttributeDecl& attribute : callable.attributes) {
    if (attribute.list_length != nullptr) Walk(*attribute.list_length);
    if (attribute.default_value != nullptr) {
      Enter();
      for (const std::string& value : attribute.enum_values) {
        Define(value, attribute.range, "value", false);
      }
      Walk(*attribute.default_value);
      Leave();
    }
  }
  for (const NamedExpr& let : item.lets) {
    Walk(*let.value);
    Define(let.name, let.range, "`let`", must_use || is_host);
  }
  for (const ResultDecl& result : callable.results) {
    for (const AxisExpr& axis : result.type.axes) {
      if (axis.is_new && axis.size->kind == ExprKind::kName &&
          Lookup(axis.size->text) == nullptr) {
        Define(axis.size->text, axis.size->range, "size", false);
      }
    }
    WalkType(result.type);
    if (result.condition != nullptr) Walk(*result.condition);
  }
}

void NameChecker::CheckOp() {
  std::vector<Diagnostic> ignored;
  const Source nowhere("", "");
  const Callable callable = MakeCallable(item_, nowhere, &ignored);
  Enter();
  // A fn may leave inputs unused, and so may a host's op, or what a host
  // computes.
  DefineSignature(item_, callable,
                  item_.kind == ItemKind::kOp &&
                      Declares(item_.body, StatementKind::kResult));
  for (const ErrorClause& error : item_.errors) Walk(*error.condition);
  for (const DomainClause& domain : item_.domains) Walk(*domain.condition);
  if (item_.spec != nullptr) {
    Enter();
    WalkBody(*item_.spec);
    Leave();
  }
  CheckLaws(callable);
  for (const SpecialClause& special : item_.specials) {
    Enter();
    DefineResults(callable);
    DefineBinders(special.equation.indices);
    Walk(*special.condition);
    Walk(*special.equation.value);
    Leave();
    Leave();
  }
  CheckApproximations(callable);
  CheckAccuracies(callable);
  CheckBody(callable);
  Leave();
}

void NameChecker::CheckOverrideItem() {
  const Callable* callable = library_.FindCallable(item_.name);
  if (callable == nullptr || callable->item->kind != ItemKind::kOp) return;
  Enter();
  // A mistake in the signature is reported where the signature stands.
  std::vector<Diagnostic> ignored;
  std::vector<Diagnostic>* const saved = std::exchange(diagnostics_, &ignored);
  DefineSignature(*callable->item, *callable, false);
  diagnostics_ = saved;
  CheckBody(*callable);
  Leave();
}

void NameChecker::CheckBody(const Callable& callable) {
  if (item_.body == nullptr) return;
  std::set<std::string> lines;
  for (const Statement& statement : item_.body->statements) {
    if (statement.kind == StatementKind::kLet ||
        statement.kind == StatementKind::kResult ||
        lines.insert(LineName(statement)).second) {
      continue;
    }
    Report(DiagnosticKind::kDuplicate, statement.range,
           absl::StrCat(LineName(statement), " is given twice"));
  }
  Enter();
  WalkStatements(*item_.body);
  Enter();
  for (const Equation& mutates : item_.mutates) {
    const bool known = std::any_of(
        callable.inputs.begin(), callable.inputs.end(),
        [&](const InputDecl& input) { return input.name == mutates.name; });
    if (!known) {
      Report(DiagnosticKind::kUnknownName, mutates.range,
             absl::StrCat("there is no argument `", mutates.name, "`"));
    }
    Walk(*mutates.value);
  }
  Leave();
  for (const Statement& statement : item_.body->statements) {
    if (statement.kind == StatementKind::kJvp) {
      CheckJvpLine(callable, statement);
    } else if (statement.kind == StatementKind::kVjp) {
      CheckVjpLine(callable, statement);
    }
  }
  Leave();
  // A batch of the op sees the signature alone.
  for (const Statement& statement : item_.body->statements) {
    if (statement.kind == StatementKind::kVmap) {
      CheckVmapLine(callable, statement);
    }
  }
}

void NameChecker::CheckLaws(const Callable& callable) {
  for (const Law& law : item_.laws) {
    if (law.relation->kind == ExprKind::kRecord) {
      Report(DiagnosticKind::kPlacement, law.range,
             "a record in a spec stands in braces",
             "a line with `{`, the record, a line with `}`; without braces it "
             "is a law, which holds or does not");
      continue;
    }
    Enter();
    DefineResultsOrClash(callable);
    std::set<std::string> bound;
    const std::function<void(const Expr&)> define_free = [&](const Expr& e) {
      if (e.kind == ExprKind::kIndex) {
        for (size_t i = 1; i < e.children.size(); ++i) {
          const Expr* at = e.children[i].get();
          if (at->kind == ExprKind::kSpread) at = at->children[0].get();
          if (at->kind == ExprKind::kName && bound.count(at->text) == 0 &&
              Lookup(at->text) == nullptr) {
            Define(at->text, at->range, "index", false);
          }
        }
      }
      // Indices of reductions are not free.
      for (const Binder& binder : e.binders) bound.insert(binder.name);
      for (const ExprPtr& child : e.children) define_free(*child);
      for (const Binder& binder : e.binders) bound.erase(binder.name);
    };
    define_free(*law.relation);
    if (law.condition != nullptr) define_free(*law.condition);
    Walk(*law.relation);
    if (law.condition != nullptr) Walk(*law.condition);
    Leave();
  }
}

void NameChecker::CheckJvpLine(const Callable& callable,
                               const Statement& statement) {
  const std::string& name = statement.equation.name;
  const InputDecl* input = FindInput(callable, name);
  if (input == nullptr) {
    Report(DiagnosticKind::kDeadOverride, statement.range,
           absl::StrCat("there is no input `", name, "` for this derivative"),
           DidYouMean(name, InputNames(callable)));
    return;
  }
  if (IsDiscrete(*callable.item, *input)) {
    Report(DiagnosticKind::kDeadOverride, statement.range,
           absl::StrCat("`", name, "` is discrete: no derivative is taken"));
  }
  Enter();
  DefineResultsOrClash(callable);
  if (!statement.inputs.empty()) {
    const Statement::OverrideInput& tangent = statement.inputs[0];
    if (Lookup(tangent.name) != nullptr) {
      Report(DiagnosticKind::kDuplicate, tangent.range,
             absl::StrCat("the tangent has a name of its own: `", tangent.name,
                          "` has a meaning here"));
    } else {
      Define(tangent.name, tangent.range, "tangent", false);
    }
  } else {
    const std::string tangent = absl::StrCat("d", name);
    if (const Name* other = Lookup(tangent)) {
      DefineClash(tangent, statement.range,
                  absl::StrCat("the tangent of `", name, "`"), *other,
                  absl::StrCat("name the tangent otherwise: `jvp ", name,
                               " (t) = ..`"));
    } else {
      Define(tangent, statement.range, "tangent", false);
    }
  }
  in_derivative_ = true;
  Walk(*statement.equation.value);
  in_derivative_ = false;
  Leave();
}

void NameChecker::CheckVjpLine(const Callable& callable,
                               const Statement& statement) {
  Enter();
  DefineResultsOrClash(callable);
  for (const Statement::OverrideInput& cotangent : statement.inputs) {
    if (Lookup(cotangent.name) != nullptr) {
      Report(DiagnosticKind::kDuplicate, cotangent.range,
             absl::StrCat("the cotangent has a name of its own: `",
                          cotangent.name, "` has a meaning here"));
    } else {
      Define(cotangent.name, cotangent.range, "cotangent", false);
    }
  }
  Walk(*statement.equation.value);
  Leave();
}

void NameChecker::CheckVmapLine(const Callable& callable,
                                const Statement& statement) {
  bool any_batched = false;
  for (const Statement::OverrideInput& input : statement.inputs) {
    any_batched = any_batched || !input.unbatched;
    if (FindInput(callable, input.name) != nullptr) continue;
    Report(DiagnosticKind::kUnknownName, input.range,
           absl::StrCat("there is no input `", input.name, "`"),
           DidYouMean(input.name, InputNames(callable)));
  }
  if (!any_batched) {
    Report(DiagnosticKind::kDeadOverride, statement.range,
           "no input has a batch: the override is never used");
  }
  Walk(*statement.equation.value);
}

bool NameChecker::IsDiscrete(const Item& op, const InputDecl& input) {
  if (input.is_static) return true;
  if (input.type.dtype == nullptr ||
      input.type.dtype->kind != ExprKind::kName) {
    return false;
  }
  const std::string& name = input.type.dtype->text;
  const absl::StatusOr<DType> dtype = ParseDType(name);
  if (dtype.ok()) return !InClass(*dtype, DTypeClass::kInexact);
  for (const WhereClause& where : op.where) {
    if (where.variable == name) {
      return where.dtype_class == "int" || where.dtype_class == "bool";
    }
  }
  return false;
}

void NameChecker::CheckDef() {
  Enter();
  for (const std::string& parameter : item_.parameters) {
    Define(parameter, item_.range, "parameter", true);
  }
  WalkStatements(*item_.body);
  Leave();
}

void NameChecker::CheckExample() {
  Enter();
  Walk(*item_.left);
  Walk(*item_.right);
  Leave();
  const Expr& left = *item_.left;
  const bool is_transform = left.kind == ExprKind::kTransformCall;
  if (left.kind != ExprKind::kCall && !is_transform) {
    Report(DiagnosticKind::kPlacement, left.range,
           "the left side of an example is a call, or a `jvp` or `vjp` of one",
           "`f(x) = (y = 1.0)` states one result of several");
    return;
  }
  const std::string& name = is_transform ? left.callee : left.text;
  const Callable* const callable = library_.FindCallable(name);
  const bool is_op =
      callable != nullptr && callable->item->kind == ItemKind::kOp;
  if (is_op || library_.FindDerivative(name) != nullptr) return;
  // A name that means nothing was reported.
  if (callable == nullptr && FindDef(name) == nullptr && !IsBuiltin(name)) {
    return;
  }
  Report(DiagnosticKind::kPlacement, left.range,
         absl::StrCat("`", name, "` is no op, and no primitive with a `jvp` ",
                      "item: its example would not be checked"));
}

void NameChecker::CheckDerivative() {
  const std::optional<Primitive> primitive = FindPrimitive(item_.name);
  if (!primitive.has_value()) {
    std::vector<std::string> names;
    for (int i = 0; i < kNumPrimitives; ++i) {
      names.emplace_back(PrimitiveName(static_cast<Primitive>(i)));
    }
    Report(DiagnosticKind::kUnknownOp, item_.range,
           absl::StrCat("there is no primitive `", item_.name, "`"),
           DidYouMean(item_.name, names));
    return;
  }
  if (DerivativeOf(*primitive) != DerivativeKind::kRule) {
    Report(DiagnosticKind::kDeadOverride, item_.range,
           absl::StrCat("the derivative of `", item_.name,
                        "` is not given by a rule: this is never used"));
    return;
  }
  if (OperandCount(*primitive) != static_cast<int>(item_.parameters.size())) {
    Report(DiagnosticKind::kArgument, item_.range,
           absl::StrCat("`", item_.name, "` has ", OperandCount(*primitive),
                        " operands, not ", item_.parameters.size()));
    return;
  }
  Enter();
  for (const std::string& parameter : item_.parameters) {
    const bool is_tangent =
        parameter[0] == 'd' &&
        std::count(item_.parameters.begin(), item_.parameters.end(),
                   parameter.substr(1)) > 0;
    if (parameter == "y" || is_tangent) {
      Report(
          DiagnosticKind::kDuplicate, item_.range,
          absl::StrCat("an operand has a name of its own: `", parameter,
                       "` is ", parameter == "y" ? "the result" : "a tangent"));
      Leave();
      return;
    }
    Define(parameter, item_.range, "operand", false);
  }
  for (const std::string& parameter : item_.parameters) {
    Define(absl::StrCat("d", parameter), item_.range, "tangent", false);
  }
  Define("y", item_.range, "result", false);
  in_derivative_ = true;
  Enter();
  WalkStatements(*item_.body);
  Leave();
  in_derivative_ = false;
  Leave();
}

void NameChecker::CheckNumeric() {
  const std::optional<Primitive> primitive = FindPrimitive(item_.name);
  if (!primitive.has_value() ||
      ClassOf(*primitive) != PrimitiveClass::kPointwise) {
    Report(DiagnosticKind::kUnknownOp, item_.range,
           absl::StrCat("there is no pointwise primitive `", item_.name, "`"));
  }
  Enter();
  for (const InputDecl& input : item_.inputs) {
    Define(input.name, input.range, "input", true);
  }
  WalkStatements(*item_.body);
  Leave();
}

void NameChecker::CheckDTypeClass(const WhereClause& where) {
  if (ParseDTypeClass(where.dtype_class).ok()) return;
  Report(DiagnosticKind::kUnknownName, where.range,
         absl::StrCat("`", where.dtype_class, "` is no class of dtypes"),
         "the classes are int, float, complex, real, inexact, number, "
         "bool and any");
}

void NameChecker::CheckRewrite() {
  Enter();
  const std::function<void(const Expr&)> define = [&](const Expr& e) {
    if (e.kind == ExprKind::kName && !IsConstantName(e.text) &&
        Lookup(e.text) == nullptr) {
      Define(e.text, e.range, "operand", false);
    }
    for (const ExprPtr& child : e.children) define(*child);
  };
  define(*item_.left);
  Walk(*item_.left);
  Walk(*item_.right);
  std::set<std::string> seen;
  for (const WhereClause& where : item_.where) {
    if (Lookup(where.variable) == nullptr) {
      Report(
          DiagnosticKind::kUnknownName, where.range,
          absl::StrCat("`", where.variable, "` is no operand of this rewrite"));
    } else if (!seen.insert(where.variable).second) {
      Report(
          DiagnosticKind::kDuplicate, where.range,
          absl::StrCat("the class of `", where.variable, "` is given twice"));
    }
    CheckDTypeClass(where);
  }
  Leave();
}

namespace {

void CollectCalls(const Expr& e, std::vector<NamedExpr>* calls);

void CollectCalls(const Body& body, std::vector<NamedExpr>* calls) {
  for (const Statement& statement : body.statements) {
    if (statement.kind == StatementKind::kLet ||
        statement.kind == StatementKind::kResult) {
      CollectCalls(*statement.equation.value, calls);
    }
  }
}

void CollectCalls(const Expr& e, std::vector<NamedExpr>* calls) {
  if (e.kind == ExprKind::kCall) {
    calls->push_back({e.text, nullptr, e.range});
  } else if (e.kind == ExprKind::kTransformCall) {
    calls->push_back({e.callee, nullptr, e.range});
  }
  for (const ExprPtr& child : e.children) CollectCalls(*child, calls);
  for (const NamedExpr& named : e.named) CollectCalls(*named.value, calls);
  for (const ExprPtr& child : e.seconds) CollectCalls(*child, calls);
  for (const NamedExpr& named : e.named_seconds) {
    CollectCalls(*named.value, calls);
  }
  for (const Equation& field : e.fields) CollectCalls(*field.value, calls);
  if (e.body != nullptr) CollectCalls(*e.body, calls);
  if (e.else_body != nullptr) CollectCalls(*e.else_body, calls);
}

}  // namespace

void CheckNames(const Library& library, const Item& item,
                std::vector<Diagnostic>* diagnostics) {
  NameChecker(library, item, diagnostics).Run();
}

std::vector<NamedExpr> CallsOf(const Item& item) {
  std::vector<NamedExpr> calls;
  for (const NamedExpr& let : item.lets) CollectCalls(*let.value, &calls);
  if (item.body != nullptr) CollectCalls(*item.body, &calls);
  return calls;
}

}  // namespace cleave
