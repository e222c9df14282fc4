#include "engine/rewrite/check_names.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/rewrite/builtins.h"
#include "ops/dtype.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

bool IsConstantName(const std::string& name) {
  return name == "true" || name == "false" || name == "inf" || name == "nan" ||
         name == "pi" || name == "_" || ParseDType(name).ok();
}

class NameChecker {
 public:
  NameChecker(const Library& library, const Item& item,
              std::vector<Diagnostic>* diagnostics)
      : library_(library), item_(item), diagnostics_(diagnostics) {}

  void Run() {
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
      case ItemKind::kExample:
        Enter();
        Walk(*item_.left);
        Walk(*item_.right);
        Leave();
        return;
    }
  }

 private:
  struct Name {
    SourceRange range;
    bool used = false;
    bool must_be_used = false;
    absl::string_view what;
  };
  using Names = std::map<std::string, Name>;

  void Report(DiagnosticKind kind, SourceRange range, std::string message,
              std::string help = "") {
    diagnostics_->push_back(
        {kind, std::move(message), range, std::move(help), ""});
  }

  static std::string DidYouMean(const std::string& name,
                                const std::vector<std::string>& names) {
    const std::string closest = ClosestName(name, names);
    return closest.empty() ? "" : absl::StrCat("did you mean `", closest, "`?");
  }

  void Enter() { scopes_.emplace_back(); }
  void Leave() {
    for (const auto& [name, entry] : scopes_.back()) {
      if (entry.must_be_used && !entry.used) {
        Report(DiagnosticKind::kUnused, entry.range,
               absl::StrCat(entry.what, " `", name, "` is never used"));
      }
    }
    scopes_.pop_back();
  }

  Name* Lookup(const std::string& name) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto it = scope->find(name);
      if (it != scope->end()) return &it->second;
    }
    return nullptr;
  }

  void Define(const std::string& name, SourceRange range,
              absl::string_view what, bool must_be_used) {
    Names& names = scopes_.back();
    if (names.count(name) > 0) {
      Report(DiagnosticKind::kDuplicate, range,
             absl::StrCat("`", name, "` is defined twice"));
      return;
    }
    names[name] = {range, false, must_be_used, what};
  }

  // Sizes, packs and dtype variables of a type: the first occurrence defines.
  void DefineTypeNames(const TypeExpr& type, const std::string& variadic) {
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

  void CheckOp() {
    std::vector<Diagnostic> ignored;
    const Callable callable = MakeCallable(item_, Source("", ""), &ignored);
    const bool is_host =
        item_.kind == ItemKind::kAten || item_.kind == ItemKind::kOnnx;
    Enter();
    for (const WhereClause& where : item_.where) {
      bool is_attribute = false;
      for (const AttributeDecl& attribute : callable.attributes) {
        is_attribute = is_attribute || attribute.name == where.variable;
      }
      if (!is_attribute) Define(where.variable, where.range, "dtype", true);
      if (!ParseDTypeClass(where.dtype_class).ok()) {
        Report(DiagnosticKind::kUnknownName, where.range,
               absl::StrCat("`", where.dtype_class, "` is no class of dtypes"),
               "the classes are int, float, complex, real, inexact, number, "
               "bool and any");
      }
    }
    // A fn may leave inputs unused, and so may a host's op.
    const bool must_use = item_.kind == ItemKind::kOp;
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
    for (const NamedExpr& let : item_.lets) {
      Walk(*let.value);
      Define(let.name, let.range, "`let`", true);
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
    for (const ErrorClause& error : item_.errors) Walk(*error.condition);
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
    CheckAccuracies();
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
    CheckOverrides(callable, is_host);
    Leave();
    Leave();
  }

  void DefineResults(const Callable& callable) {
    for (const ResultDecl& result : callable.results) {
      if (scopes_.back().count(result.name) == 0 &&
          Lookup(result.name) == nullptr) {
        Define(result.name, result.range, "result", false);
      }
    }
  }

  // Indices that are free in a law range over all their values.
  void CheckLaws(const Callable& callable) {
    for (const Law& law : item_.laws) {
      Enter();
      DefineResults(callable);
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

  void CheckAccuracies() {
    for (const AccuracyClause& accuracy : item_.accuracies) {
      Name* name = Lookup(accuracy.dtype);
      if (name != nullptr) {
        name->used = true;
      } else if (!ParseDType(accuracy.dtype).ok()) {
        Report(DiagnosticKind::kUnknownName, accuracy.range,
               absl::StrCat("`", accuracy.dtype, "` is no dtype"));
      }
      Walk(*accuracy.bound);
      if (accuracy.condition != nullptr) Walk(*accuracy.condition);
      if (accuracy.eps_of == nullptr) continue;
      Enter();
      // In the spec's indices.
      if (item_.spec != nullptr) {
        for (const Statement& statement : item_.spec->statements) {
          if (statement.kind != StatementKind::kResult) continue;
          for (const Binder& binder : statement.equation.indices) {
            Define(binder.name, binder.range, "index", false);
          }
        }
      }
      Walk(*accuracy.eps_of);
      Leave();
    }
  }

  void CheckOverrides(const Callable& callable, bool is_host) {
    std::set<std::string> lines;
    std::set<std::string> patterns;
    const auto input_of = [&](const std::string& name) -> const InputDecl* {
      for (const InputDecl& input : callable.inputs) {
        if (input.name == name) return &input;
      }
      return nullptr;
    };
    std::vector<std::string> names;
    for (const InputDecl& input : callable.inputs) names.push_back(input.name);
    for (const Statement& statement : item_.body->statements) {
      if (statement.kind == StatementKind::kJvp) {
        const std::string& name = statement.equation.name;
        const InputDecl* input = input_of(name);
        if (input == nullptr) {
          Report(DiagnosticKind::kDeadOverride, statement.range,
                 absl::StrCat("there is no input `", name,
                              "` for this derivative"),
                 DidYouMean(name, names));
          continue;
        }
        if (IsDiscrete(*input)) {
          Report(
              DiagnosticKind::kDeadOverride, statement.range,
              absl::StrCat("`", name, "` is discrete: no derivative is taken"));
        }
        if (!lines.insert(name).second) {
          Report(DiagnosticKind::kDuplicate, statement.range,
                 absl::StrCat("a second derivative by `", name, "`"));
        }
        Enter();
        DefineResults(callable);
        for (const InputDecl& other : callable.inputs) {
          const std::string tangent = absl::StrCat("d", other.name);
          if (Lookup(tangent) == nullptr) {
            Define(tangent, statement.range, "tangent", false);
          }
        }
        in_derivative_ = true;
        Walk(*statement.equation.value);
        in_derivative_ = false;
        Leave();
      } else if (statement.kind == StatementKind::kVmap ||
                 statement.kind == StatementKind::kVjp) {
        bool any_batched = statement.kind == StatementKind::kVjp;
        std::string pattern;
        Enter();
        for (const Statement::OverrideInput& input : statement.inputs) {
          any_batched = any_batched || !input.unbatched;
          absl::StrAppend(&pattern, input.name, input.unbatched ? "@_," : ",");
          if (statement.kind == StatementKind::kVjp) {
            if (Lookup(input.name) == nullptr) {
              Define(input.name, statement.range, "cotangent", false);
            }
          } else if (input_of(input.name) == nullptr) {
            Report(DiagnosticKind::kUnknownName, statement.range,
                   absl::StrCat("there is no input `", input.name, "`"),
                   DidYouMean(input.name, names));
          }
        }
        if (!any_batched) {
          Report(DiagnosticKind::kDeadOverride, statement.range,
                 "no input has a batch: the override is never used");
        }
        if (statement.kind == StatementKind::kVmap &&
            !patterns.insert(pattern).second) {
          Report(DiagnosticKind::kDeadOverride, statement.range,
                 "another override stands for the same inputs before this");
        }
        Walk(*statement.equation.value);
        Leave();
      }
    }
  }

  bool IsDiscrete(const InputDecl& input) const {
    if (input.is_static) return true;
    if (input.type.dtype == nullptr ||
        input.type.dtype->kind != ExprKind::kName) {
      return false;
    }
    const std::string& name = input.type.dtype->text;
    const absl::StatusOr<DType> dtype = ParseDType(name);
    if (dtype.ok()) return !InClass(*dtype, DTypeClass::kInexact);
    for (const WhereClause& where : item_.where) {
      if (where.variable == name) {
        return where.dtype_class == "int" || where.dtype_class == "bool";
      }
    }
    return false;
  }

  void CheckDef() {
    Enter();
    for (const std::string& parameter : item_.parameters) {
      Define(parameter, item_.range, "parameter", true);
    }
    WalkStatements(*item_.body);
    Leave();
  }

  void CheckDerivative() {
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

  void CheckNumeric() {
    const std::optional<Primitive> primitive = FindPrimitive(item_.name);
    if (!primitive.has_value() ||
        ClassOf(*primitive) != PrimitiveClass::kPointwise) {
      Report(
          DiagnosticKind::kUnknownOp, item_.range,
          absl::StrCat("there is no pointwise primitive `", item_.name, "`"));
    }
    Enter();
    for (const InputDecl& input : item_.inputs) {
      Define(input.name, input.range, "input", true);
    }
    WalkStatements(*item_.body);
    Leave();
  }

  // Names of the pattern stand for any operand.
  void CheckRewrite() {
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
    Leave();
  }

  void WalkType(const TypeExpr& type) {
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

  // A body in a scope of its own.
  void WalkBody(const Body& body) {
    Enter();
    WalkStatements(body);
    Leave();
  }

  void WalkStatements(const Body& body) {
    for (const Statement& statement : body.statements) {
      if (statement.kind == StatementKind::kLet) {
        WalkEquation(statement.equation);
        Define(statement.equation.name, statement.equation.range, "`let`",
               true);
      } else if (statement.kind == StatementKind::kResult) {
        WalkEquation(statement.equation);
      }
    }
  }

  void DefineBinders(const std::vector<Binder>& binders) {
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
  bool IsIndex(const std::string& name) {
    const Name* entry = Lookup(name);
    return entry != nullptr && entry->what == "index";
  }

  void WalkEquation(const Equation& equation) {
    DefineBinders(equation.indices);
    Walk(*equation.value);
    Leave();
  }

  void WalkCallee(const std::string& callee, SourceRange range) {
    if (library_.FindDef(callee) != nullptr ||
        library_.FindCallable(callee) != nullptr || IsBuiltin(callee) ||
        callee == "sum") {
      return;
    }
    std::vector<std::string> names = BuiltinNames();
    for (const auto& [name, unused] : library_.callables()) {
      names.push_back(name);
    }
    for (const auto& [name, unused] : library_.defs()) names.push_back(name);
    Report(DiagnosticKind::kUnknownOp, range,
           absl::StrCat("there is no op, def or builtin `", callee, "`"),
           DidYouMean(callee, names));
  }

  void WalkArguments(const std::string& callee,
                     const std::vector<ExprPtr>& positional,
                     const std::vector<NamedExpr>& named, SourceRange range) {
    for (const ExprPtr& e : positional) Walk(*e);
    for (const NamedExpr& e : named) Walk(*e.value);
    const Callable* callable = library_.FindCallable(callee);
    if (callable == nullptr || library_.FindDef(callee) != nullptr) return;
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

  void Walk(const Expr& e) {
    switch (e.kind) {
      case ExprKind::kName: {
        if (Name* name = Lookup(e.text)) {
          name->used = true;
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
          if (library_.FindDef(e.callee) != nullptr || IsBuiltin(e.callee)) {
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
      case ExprKind::kWhile:
        for (const Equation& carry : e.fields) Walk(*carry.value);
        if (e.kind == ExprKind::kScan) {
          for (const ExprPtr& child : e.children) Walk(*child);
        }
        Enter();
        for (const Equation& carry : e.fields) {
          Define(carry.name, carry.range, "carry", false);
        }
        for (const Binder& binder : e.binders) {
          Define(binder.name, binder.range, "element", false);
        }
        if (e.kind == ExprKind::kWhile) {
          for (const ExprPtr& child : e.children) Walk(*child);
        }
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

  const Library& library_;
  const Item& item_;
  std::vector<Diagnostic>* diagnostics_;
  std::vector<Names> scopes_;
  std::set<std::string> indices_;
  bool in_derivative_ = false;
};

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
