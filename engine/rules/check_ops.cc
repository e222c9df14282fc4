#include "engine/rules/check_ops.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/bind/op_lines.h"
#include "engine/ir/graph_text.h"
#include "engine/rules/check_guards.h"
#include "engine/rules/linearity.h"
#include "engine/rules/place_by_line.h"
#include "engine/rules/rule_set_impl.h"
#include "engine/rules/symbolic_call.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// Mistakes reported for one op: one body's mistake shows in many combinations.
constexpr size_t kMaxDiagnosticsPerOp = 4;

// The branches of static conditions that some call takes, or may take.
class TakenBranches : public BranchObserver {
 public:
  void Decided(const Expr& condition, bool holds) override {
    taken_.emplace(&condition, holds);
  }
  void LeftOpen(const Expr& condition) override {
    taken_.emplace(&condition, true);
    taken_.emplace(&condition, false);
  }
  bool Has(const Expr& condition, bool holds) const {
    return taken_.count({&condition, holds}) != 0;
  }

 private:
  std::set<std::pair<const Expr*, bool>> taken_;
};

class OpChecker {
 public:
  // Checks what `item` says, the op's own declaration or an override of it.
  OpChecker(const RuleSet& rules, const Callable& callable, const Item& item,
            std::vector<Diagnostic>* diagnostics)
      : rules_(rules),
        callable_(callable),
        item_(item),
        source_(rules.SourceOf(item)),
        diagnostics_(diagnostics) {}

  void Run() {
    const SymbolicCalls calls(callable_);
    error_held_.resize(callable_.item->errors.size());
    error_open_.resize(callable_.item->errors.size());
    bool complete = calls.exhaustive();
    for (int i = 0;
         i < calls.count() && found_ < kMaxDiagnosticsPerOp && !BudgetEnded();
         ++i) {
      complete = CheckCall(calls, i) && complete;
    }
    if (!complete || found_ > 0) return;
    CheckBranches(calls);
    if (IsOwn()) CheckErrors(calls);
  }

  // False if the combination could not be judged.
  bool CheckCall(const SymbolicCalls& calls, int i) {
    const RuleSet::Impl& impl = rules_.impl();
    GraphBuilder builder(impl.context);
    const absl::StatusOr<SymbolicCall> call =
        calls.Make(i, impl.library, builder);
    if (!call.ok()) {
      // Strings without a default cannot be made up.
      if (call.status().code() != absl::StatusCode::kUnimplemented) {
        Report(call.status(), std::nullopt, nullptr, "");
      }
      return false;
    }
    context_ = call->description;
    if (IsOwn() && !ObserveErrors(builder, *call)) return false;
    const auto results =
        rules_.Call(builder, callable_.name, call->arguments, call->attributes);
    if (!results.ok()) return NoteRejection(results.status());
    for (const auto& result : *results) {
      if (!result.has_value()) continue;
      Value node = *result;
      if (builder.graph().node(node).op == ToOpId(Primitive::kResult)) {
        node = builder.graph().operands(node)[0];
      }
      return CheckSignature(RuleSet::SignatureOf(builder.graph(), node));
    }
    return true;
  }

 private:
  bool IsOwn() const { return &item_ == callable_.item; }

  // A call that is rejected says what its declaration or types do not allow.
  bool NoteRejection(const absl::Status& status) {
    if (status.GetPayload(kErrorClausePayload).has_value()) return true;
    if (status.code() == absl::StatusCode::kInvalidArgument &&
        absl::StartsWith(status.message(),
                         absl::StrCat("`", callable_.name, "`: "))) {
      return true;
    }
    Report(status, std::nullopt, nullptr, "");
    return false;
  }

  // Which error clauses hold, or may.
  bool ObserveErrors(GraphBuilder& builder, const SymbolicCall& call) {
    if (callable_.item->errors.empty()) return true;
    const RuleSet::Impl& impl = rules_.impl();
    Elaborator elaborator(impl.library, *impl.context, callable_.name, nullptr);
    elaborator.EnterSource(*callable_.source);
    absl::StatusOr<BoundCall> bound =
        Bind(callable_,
             GivenInGraph(call.arguments, call.attributes, builder,
                          elaborator.terms()),
             {}, elaborator);
    if (!bound.ok()) {
      std::fill(error_open_.begin(), error_open_.end(), true);
      return true;
    }
    for (size_t e = 0; e < callable_.item->errors.size(); ++e) {
      const auto truth = elaborator.EvalTruth(
          *callable_.item->errors[e].condition, bound->scope);
      if (!truth.ok()) {
        Report(truth.status(), elaborator.diagnostic(),
               elaborator.diagnostic_source(), "");
        return false;
      }
      const bool* known = std::get_if<bool>(&*truth);
      if (known == nullptr) error_open_[e] = true;
      if (known != nullptr && *known) error_held_[e] = true;
    }
    return true;
  }

  bool CheckSignature(const Signature& signature) {
    const RuleSet::Impl& impl = rules_.impl();
    const bool has_body = !LinesOf(callable_, StatementKind::kResult).empty();
    if (has_body &&
        !Compile(signature, [&](OpCompiler& compiler) -> absl::Status {
          CLEAVE_ASSIGN_OR_RETURN(const Graph body, compiler.Body());
          CheckSizes(body, compiler, "the body",
                     OwnLine(StatementKind::kResult));
          return absl::OkStatus();
        })) {
      return false;
    }
    if (IsOwn() && callable_.item->spec != nullptr &&
        !Compile(signature, [&](OpCompiler& compiler) -> absl::Status {
          CLEAVE_ASSIGN_OR_RETURN(const Graph spec, compiler.Spec());
          CheckSizes(spec, compiler, "the spec", callable_.item->spec->range);
          return absl::OkStatus();
        })) {
      return false;
    }
    std::vector<bool> active;
    for (const TypeId type : signature.operands) {
      active.push_back(
          InClass(impl.context->types(type)[0].dtype, DTypeClass::kInexact));
    }
    std::optional<RuleSet::JvpOverride> jvp;
    // Without a body, whether the signature binds is found out here.
    const bool has_jvp = !LinesOf(callable_, StatementKind::kJvp).empty();
    if ((has_jvp || !has_body) &&
        !Compile(signature, [&](OpCompiler& compiler) -> absl::Status {
          CLEAVE_ASSIGN_OR_RETURN(jvp, compiler.Jvp(active));
          if (jvp.has_value()) {
            CheckSizes(jvp->graph, compiler, "this derivative",
                       OwnLine(StatementKind::kJvp));
          }
          return absl::OkStatus();
        })) {
      return false;
    }
    if (jvp.has_value() && !CheckLinesAlone(signature)) return false;
    if (jvp.has_value() && !CheckLinearJvp(signature, jvp->graph)) return false;
    const std::vector<bool> live(callable_.results.size(), true);
    std::optional<RuleSet::VjpOverride> vjp;
    if (!LinesOf(callable_, StatementKind::kVjp).empty() &&
        !Compile(signature, [&](OpCompiler& compiler) -> absl::Status {
          CLEAVE_ASSIGN_OR_RETURN(vjp, compiler.Vjp(live));
          if (vjp.has_value()) {
            CheckSizes(vjp->graph, compiler, "this derivative",
                       OwnLine(StatementKind::kVjp));
          }
          return absl::OkStatus();
        })) {
      return false;
    }
    const auto place = OwnLine(StatementKind::kVjp);
    if (place.has_value() && vjp.has_value() &&
        !IsLinear(signature, vjp->graph)) {
      Add({DiagnosticKind::kNotLinear,
           "the cotangents are not linear in those of the results", *place, "",
           ""});
      return false;
    }
    return CheckVmap(signature);
  }

  // Each line of jvp where its input is the only one that has a tangent: the
  // terms of the others would broadcast its own.
  bool CheckLinesAlone(const Signature& signature) {
    for (const OpLine& line : LinesOf(callable_, StatementKind::kJvp)) {
      if (line.part.item != &item_) continue;
      if (!Compile(signature, [&](OpCompiler& compiler) -> absl::Status {
            return compiler
                .Jvp(ActiveAlone(signature, line.statement->equation.name))
                .status();
          })) {
        return false;
      }
    }
    return true;
  }

  std::vector<bool> ActiveAlone(const Signature& signature,
                                const std::string& input) const {
    std::vector<bool> active;
    for (const std::string& name : OperandInputs(signature)) {
      active.push_back(name == input);
    }
    return active;
  }

  bool CheckVmap(const Signature& signature) {
    for (const OpLine& line : LinesOf(callable_, StatementKind::kVmap)) {
      if (line.part.item != &item_) continue;
      const Statement& statement = *line.statement;
      std::vector<bool> batched;
      for (const std::string& name : OperandInputs(signature)) {
        bool is_batched = false;
        for (const Statement::OverrideInput& input : statement.inputs) {
          if (input.name == name) is_batched = !input.unbatched;
        }
        batched.push_back(is_batched);
      }
      OpCompiler compiler = rules_.impl().MakeCompiler(callable_);
      absl::Status status =
          compiler.BindSignature(signature, batched, Dim::Variable("batch"));
      absl::StatusOr<std::optional<Graph>> graph = std::nullopt;
      if (status.ok()) graph = compiler.Vmap(batched);
      if (status.ok()) status = graph.status();
      if (!Judge(status, compiler)) return false;
      if (graph->has_value()) {
        CheckSizes(**graph, compiler, "this batch rule", statement.range);
      }
    }
    return true;
  }

  // The first line of the item's own of this kind.
  std::optional<SourceRange> OwnLine(StatementKind kind) const {
    for (const OpLine& line : LinesOf(callable_, kind)) {
      if (line.part.item == &item_) return line.statement->range;
    }
    return std::nullopt;
  }

  // Reports a guard of `graph` that the declaration does not imply. Lines of
  // the op itself are not reported once more of an override.
  void CheckSizes(const Graph& graph, OpCompiler& compiler,
                  absl::string_view what, std::optional<SourceRange> place) {
    if (!place.has_value()) return;
    const std::optional<UnimpliedGuard> found =
        FindUnimpliedGuard(graph, callable_, compiler, rules_.impl());
    if (!found.has_value()) return;
    Add({DiagnosticKind::kShape,
         absl::StrCat(what, " needs more than the declaration asks for: ",
                      PrintGuard(found->guard)),
         *place,
         absl::StrCat("found with ", context_, ", ", found->sizes,
                      "; name equal sizes alike, or say what is no call by an "
                      "`error` clause"),
         ""});
  }

  // Per operand of a call of this op, the input that it is of.
  std::vector<std::string> OperandInputs(const Signature& signature) const {
    const absl::StatusOr<CallLayout> layout = CallLayout::Of(
        callable_, rules_.context()->attributes(signature.attributes),
        signature.operands.size());
    CLEAVE_CHECK(layout.ok()) << layout.status().message();
    std::vector<std::string> names;
    for (const size_t input : layout->InputsOfOperands()) {
      names.push_back(callable_.inputs[input].name);
    }
    return names;
  }

  // Whether an override is linear in its inputs behind the operands: tangents
  // of jvp, cotangents of vjp.
  bool IsLinear(const Signature& signature, const Graph& override) const {
    std::vector<Linearity> inputs(signature.operands.size(),
                                  Linearity::kConstant);
    inputs.resize(override.inputs().size(), Linearity::kLinear);
    const auto linearity = LinearityOf(override, inputs, rules_);
    if (!linearity.ok()) return true;  // a callee's mistake is its own
    return std::none_of(linearity->begin(), linearity->end(), [](Linearity l) {
      return l == Linearity::kNonlinear || l == Linearity::kConstant;
    });
  }

  // Checks all jvp lines at once, then, for the place, each alone.
  bool CheckLinearJvp(const Signature& signature, const Graph& jvp) {
    if (IsLinear(signature, jvp)) return true;
    for (const OpLine& line : LinesOf(callable_, StatementKind::kJvp)) {
      if (line.part.item != &item_) continue;
      const std::string& input = line.statement->equation.name;
      OpCompiler compiler = rules_.impl().MakeCompiler(callable_);
      if (!compiler.BindSignature(signature).ok()) return true;
      const auto alone = compiler.Jvp(ActiveAlone(signature, input));
      if (!alone.ok() || !alone->has_value() ||
          IsLinear(signature, (*alone)->graph)) {
        continue;
      }
      Add({DiagnosticKind::kNotLinear,
           absl::StrCat("the derivative is not linear in `",
                        line.statement->inputs.empty()
                            ? absl::StrCat("d", input)
                            : line.statement->inputs[0].name,
                        "`"),
           line.statement->range, "", ""});
      return false;
    }
    return true;
  }

  bool Compile(const Signature& signature,
               const std::function<absl::Status(OpCompiler&)>& compile) {
    OpCompiler compiler = rules_.impl().MakeCompiler(callable_);
    compiler.elaborator().Observe(&taken_);
    absl::Status status = compiler.BindSignature(signature);
    if (status.ok()) status = compile(compiler);
    return Judge(status, compiler);
  }

  bool Judge(const absl::Status& status, OpCompiler& compiler) {
    if (status.ok()) return true;
    // A refusal, not supported yet or impossible, is no mistake of the author.
    if (status.code() == absl::StatusCode::kUnimplemented) return false;
    Report(status, compiler.elaborator().diagnostic(),
           compiler.elaborator().diagnostic_source(), context_);
    return false;
  }

  void Report(const absl::Status& status,
              const std::optional<Diagnostic>& diagnostic, const Source* source,
              const std::string& context) {
    if (absl::IsCancelled(status) || absl::IsDeadlineExceeded(status)) return;
    Diagnostic d;
    if (diagnostic.has_value() && source == &source_) {
      d = *diagnostic;
    } else if (!IsOwn() && source == callable_.source) {
      return;  // it is reported of the op's own
    } else {
      // Found while lowering, or in another file: the line is in the message.
      d.kind = absl::IsResourceExhausted(status) ? DiagnosticKind::kLimit
               : absl::StrContains(status.message(), "is not defined")
                   ? DiagnosticKind::kUnknownName
               : absl::StrContains(status.message(), "dtype") ||
                       absl::StrContains(status.message(), "is wanted") ||
                       absl::StrContains(status.message(), "is meant")
                   ? DiagnosticKind::kType
               : absl::StrContains(status.message(), "index") ||
                       absl::StrContains(status.message(), "range")
                   ? DiagnosticKind::kIndex
                   : DiagnosticKind::kShape;
      d.message = std::string(status.message());
      d.range = item_.range;
      PlaceByLine(source_, &d);
    }
    if (!context.empty() && d.help.empty()) {
      d.help = absl::StrCat("found with ", context);
    }
    Add(std::move(d));
  }

  void Add(Diagnostic d) {
    for (const Diagnostic& other : *diagnostics_) {
      if (other.range.begin == d.range.begin && other.kind == d.kind) return;
    }
    ++found_;
    diagnostics_->push_back(std::move(d));
  }

  // Whether `T is int` is the same for all dtypes of T's class.
  bool IsClassConstant(const Expr& e) const {
    const auto asked = ParseDTypeClass(e.children[1]->text);
    for (const WhereClause& where : callable_.item->where) {
      const auto given = ParseDTypeClass(where.dtype_class);
      if (where.variable != e.children[0]->text || !given.ok() || !asked.ok()) {
        continue;
      }
      std::set<bool> answers;
      for (DType dtype : AllDTypes()) {
        if (InClass(dtype, *given)) answers.insert(InClass(dtype, *asked));
      }
      return answers.size() == 1;
    }
    return false;
  }

  // Whether it rests on enumerated names alone: as a condition, or as a value.
  bool IsDecidable(const Expr& e, const SymbolicCalls& calls,
                   bool as_value = false) const {
    switch (e.kind) {
      case ExprKind::kName:
        return calls.enumerated().count(e.text) > 0 || e.text == "true" ||
               e.text == "false" ||
               (as_value ? rules_.impl().library.IsEnumWord(e.text)
                         : calls.optional().count(e.text) > 0);
      case ExprKind::kUnary:
        return e.text == "not" && IsDecidable(*e.children[0], calls, as_value);
      case ExprKind::kBinary: {
        if (e.text == "is") return IsClassConstant(e);
        if (e.text != "and" && e.text != "or" && e.text != "==" &&
            e.text != "!=") {
          return false;
        }
        const bool compares = e.text == "==" || e.text == "!=";
        return IsDecidable(*e.children[0], calls, compares) &&
               IsDecidable(*e.children[1], calls, compares);
      }
      default:
        return false;
    }
  }

  void CheckBranches(const SymbolicCalls& calls) {
    const std::function<void(const Expr&)> walk = [&](const Expr& e) {
      if (e.kind == ExprKind::kIf) {
        const Expr& condition = *e.children[0];
        const bool then = taken_.Has(condition, true);
        const bool otherwise = taken_.Has(condition, false);
        if (then != otherwise && IsDecidable(condition, calls)) {
          if (!then) {
            Add({DiagnosticKind::kUnreachable,
                 "this branch is never taken: the condition is false for all "
                 "attributes and inputs",
                 e.children[1]->range, "", ""});
          } else if (e.children.size() > 2) {
            Add({DiagnosticKind::kUnreachable,
                 "this branch is never taken: the condition holds for all "
                 "attributes and inputs",
                 e.children[2]->range, "", ""});
          }
        }
      }
      for (const ExprPtr& child : e.children) walk(*child);
      for (const NamedExpr& named : e.named) walk(*named.value);
      for (const Equation& field : e.fields) walk(*field.value);
    };
    if (item_.body == nullptr) return;
    for (const Statement& statement : item_.body->statements) {
      if (statement.kind == StatementKind::kLet ||
          statement.kind == StatementKind::kResult) {
        walk(*statement.equation.value);
      }
    }
  }

  // An error that rests on enumerated names, or on sizes that decide it.
  void CheckErrors(const SymbolicCalls& calls) {
    for (size_t e = 0; e < callable_.item->errors.size(); ++e) {
      const ErrorClause& error = callable_.item->errors[e];
      if (error_held_[e] || error_open_[e]) continue;
      // Numbers and sizes alone, which variables stand for.
      const std::function<bool(const Expr&)> is_size = [&](const Expr& x) {
        switch (x.kind) {
          case ExprKind::kNumber:
            return true;
          case ExprKind::kName:
            return IsSize(x.text);
          case ExprKind::kUnary:
          case ExprKind::kBinary:
            return std::all_of(
                x.children.begin(), x.children.end(),
                [&](const ExprPtr& child) { return is_size(*child); });
          default:
            return false;
        }
      };
      const std::function<bool(const Expr&)> decidable = [&](const Expr& x) {
        if (x.kind == ExprKind::kBinary &&
            (x.text == "and" || x.text == "or")) {
          return decidable(*x.children[0]) && decidable(*x.children[1]);
        }
        return is_size(x) || IsDecidable(x, calls);
      };
      if (decidable(*error.condition)) {
        Add({DiagnosticKind::kImpossible,
             absl::StrCat("\"", error.message, "\" can never be reported"),
             error.condition->range, "", ""});
      }
    }
  }

  // A single size of an input, for which a variable stands.
  bool IsSize(const std::string& name) const {
    for (const InputDecl& input : callable_.inputs) {
      for (const AxisExpr& axis : input.type.axes) {
        if (axis.size->kind == ExprKind::kName && axis.size->text == name) {
          return true;
        }
      }
    }
    return false;
  }

  const RuleSet& rules_;
  const Callable& callable_;
  const Item& item_;
  const Source& source_;
  std::vector<Diagnostic>* diagnostics_;
  size_t found_ = 0;
  std::string context_;
  TakenBranches taken_;
  std::vector<bool> error_held_;  // in some combination
  std::vector<bool> error_open_;  // may hold, by sizes
};

}  // namespace

void CheckOp(const RuleSet& rules, const Callable& callable,
             std::vector<Diagnostic>* diagnostics) {
  // The op's own lines stay right by themselves, also where overridden.
  Callable own = callable;
  own.overrides.clear();
  OpChecker(rules, own, *callable.item, diagnostics).Run();
}

void CheckOverride(const RuleSet& rules, const Callable& callable,
                   const Item& item, std::vector<Diagnostic>* diagnostics) {
  OpChecker(rules, callable, item, diagnostics).Run();
}

void CheckFunction(const RuleSet& rules, const Callable& callable,
                   std::vector<Diagnostic>* diagnostics) {
  for (const InputDecl& input : callable.inputs) {
    const char* kind = input.is_static                 ? "static"
                       : input.optional                ? "optional"
                       : !input.variadic_index.empty() ? "variadic"
                                                       : nullptr;
    if (kind == nullptr) continue;
    diagnostics->push_back(
        {DiagnosticKind::kPlacement,
         absl::StrCat("a `fn` takes tensors that are there when it runs: `",
                      input.name, "` cannot be ", kind),
         input.range, "", ""});
    return;
  }
  const absl::StatusOr<Graph> graph = rules.Function(callable.name);
  if (graph.ok() || graph.status().code() == absl::StatusCode::kUnimplemented) {
    return;
  }
  // The same by way of a call of it, which knows the place.
  const size_t before = diagnostics->size();
  OpChecker(rules, callable, *callable.item, diagnostics).Run();
  if (diagnostics->size() > before) return;
  if (absl::IsCancelled(graph.status()) ||
      absl::IsDeadlineExceeded(graph.status())) {
    return;
  }
  Diagnostic d{
      absl::IsResourceExhausted(graph.status()) ? DiagnosticKind::kLimit
                                                : DiagnosticKind::kType,
      std::string(graph.status().message()), callable.item->range, "", ""};
  PlaceByLine(*callable.source, &d);
  diagnostics->push_back(std::move(d));
}

}  // namespace cleave
