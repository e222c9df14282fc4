// Elaborator: expressions of a rule to what they mean (RuleValue): static
// values are computed, defs inlined, folds unrolled, tensors become Terms.

#ifndef CLEAVE_ENGINE_ELABORATE_ELABORATOR_H_
#define CLEAVE_ENGINE_ELABORATE_ELABORATOR_H_

#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/bind/library.h"
#include "engine/elaborate/branch_observer.h"
#include "engine/elaborate/callees.h"
#include "engine/elaborate/rule_value.h"
#include "engine/elaborate/signature.h"
#include "engine/elaborate/term_maker.h"
#include "engine/ir/context.h"
#include "engine/lang/ast.h"
#include "engine/lang/diagnostic.h"

namespace cleave {

// Limits that keep a hostile file from hanging or exhausting the engine, beside
// those of the call (ops/budget.h); beyond them elaboration fails.
inline constexpr int kMaxInliningDepth = 100;   // defs within defs
inline constexpr int kMaxListLength = 4096;     // of static lists
inline constexpr int kMaxMultipliedPower = 64;  // x^k as products
inline constexpr int kMaxElementHeight = 400;   // of one element's expression

class BuiltinCall;  // engine/elaborate/builtin_call.h

class Elaborator {
 public:
  // `rule` names the provenance of what is made. The library, the context and
  // the callees outlive the elaborator, which outlives its terms. Without
  // callees it makes no calls of ops.
  Elaborator(const Library& library, Context& context, std::string rule,
             const Callees* callees);

  // The source that ranges of evaluated expressions belong to.
  void EnterSource(const Source& source) { source_ = &source; }

  using Result = absl::StatusOr<RuleValue>;
  // The meaning of `e`. A mistake is InvalidArgument with its place in the
  // message, and is kept in diagnostic().
  Result Eval(const Expr& e, Scope& scope);
  // The last statement's value; overrides are left alone. `declared`: types of
  // results by name, which give ranges to the indices of equations.
  struct DeclaredResult {
    std::string name;
    std::optional<TermType> type;  // nullopt: absent or not declared
    bool absent = false;
  };
  Result EvalBody(const Body& body, Scope& scope,
                  const std::vector<DeclaredResult>& declared = {});

  // The lets of a body, into `scope`.
  absl::Status EvalLets(const Body& body, Scope& scope);

  using Arguments = GivenArguments;
  // A call that stays one: its result, or the record of its results.
  Result CallOp(const Callable& callable, const Arguments& arguments,
                SourceRange range);
  // The same of one that is bound; `call` outlives what is made of it.
  Result CallBound(const BoundCall& call, SourceRange range);

  // The truth of a static condition; `why` describes the guard of one that
  // rests on unknown sizes: it is assumed to be as it is for large sizes.
  absl::StatusOr<bool> EvalCondition(const Expr& e, Scope& scope,
                                     absl::string_view why);
  // Undecided conditions stay.
  absl::StatusOr<std::variant<bool, Condition>> EvalTruth(const Expr& e,
                                                          Scope& scope);
  absl::StatusOr<Dim> EvalDim(const Expr& e, Scope& scope);
  absl::StatusOr<Shape> EvalDims(const Expr& e, Scope& scope);
  absl::StatusOr<DTypePtr> EvalDType(const Expr& e, Scope& scope);

  // A tensor: numbers, extents and indices become terms.
  absl::StatusOr<TermPtr> ToTerm(const RuleValue& value, SourceRange range);

  TermMaker& terms() { return terms_; }
  std::vector<ShapeGuard>& guards() { return terms_.guards(); }
  // The guards by which a branch was chosen: at other sizes another branch is.
  const std::vector<ShapeGuard>& choices() const { return choices_; }
  const Library& library() const { return library_; }
  Context& context() { return context_; }

  // A static condition, or whether an optional value is there; nullopt for a
  // tensor that is neither.
  static std::optional<std::variant<bool, Condition>> TruthOf(
      const RuleValue& value);

  absl::Status Fail(DiagnosticKind kind, SourceRange range,
                    absl::string_view message, absl::string_view help = "");
  // Adds the place to an error of TermMaker and the like.
  absl::Status At(const absl::Status& status, SourceRange range,
                  DiagnosticKind kind = DiagnosticKind::kShape);
  // The first mistake found; its range belongs to diagnostic_source().
  const std::optional<Diagnostic>& diagnostic() const { return diagnostic_; }
  const Source* diagnostic_source() const { return diagnostic_source_; }

  // Names for extents that are known only at run time, by what they would be
  // called here.
  std::map<std::string, Dim>& dynamic_names() { return dynamic_names_; }
  // Forgets what one elaboration left: guards and counts.
  void Restart() {
    guards().clear();
    choices_.clear();
    dynamic_extents_ = 0;
  }

  // Tells `observer` from here on, which outlives this; null: nobody. As it is
  // made, an elaborator tells that of its callees.
  void Observe(BranchObserver* observer) { observer_ = observer; }
  // A statement whose value this is stands in an override.
  Result EvalStatement(const Statement& statement, Scope& scope);
  // The arm that an observer is told of, where a condition is evaluated
  // elsewhere.
  void Decide(const Expr& condition, bool holds) {
    if (observer_ != nullptr) observer_->Decided(condition, holds);
  }

  // The place in the provenance of what is made from here on.
  void SetPlace(SourceRange range);

 private:
  friend class BuiltinCall;

  // Assumes a condition that sizes leave open.
  void Choose(const Condition& assumed, absl::string_view why) {
    choices_.push_back(
        {assumed.lhs, assumed.op, assumed.rhs, std::string(why)});
    guards().push_back(choices_.back());
  }

  // elaborate_expr.cc
  Result EvalNew(const Expr& e, Scope& scope);
  Result EvalName(const Expr& e, Scope& scope);
  Result EvalUnary(const Expr& e, Scope& scope);
  Result EvalBinary(const Expr& e, Scope& scope);
  Result EvalAndOr(const Expr& e, Scope& scope);
  Result EvalIf(const Expr& e, Scope& scope);
  Result EvalMember(const Expr& e, Scope& scope);
  Result EvalList(const Expr& e, Scope& scope);
  Result EvalComprehension(const Expr& e, Scope& scope);
  Result EvalRecord(const Expr& e, Scope& scope,
                    const std::vector<DeclaredResult>& declared);
  Result EvalCoalesce(const Expr& e, Scope& scope);
  Result EvalTie(const Expr& e, Scope& scope);
  Result Matmul(const TermPtr& a, const TermPtr& b, SourceRange range);
  Result Arithmetic(absl::string_view op, const RuleValue& a,
                    const RuleValue& b, SourceRange range);
  Result StaticArithmetic(absl::string_view op, const RuleValue& a,
                          const RuleValue& b, SourceRange range);
  Result Compare(absl::string_view op, const RuleValue& a, const RuleValue& b,
                 SourceRange range);
  absl::StatusOr<std::variant<bool, Condition>> StaticEqual(const RuleValue& a,
                                                            const RuleValue& b,
                                                            SourceRange range);
  Result IsOf(const RuleValue& value, const Expr& of, Scope& scope,
              SourceRange range);
  Result Power(const RuleValue& base, const RuleValue& exponent,
               SourceRange range);
  Result ApplyPointwise(Primitive primitive, const std::vector<RuleValue>& args,
                        const Attributes& attributes, SourceRange range);
  Result Concatenate(const RuleValue& a, const RuleValue& b, SourceRange range);
  Result Range(const RuleValue& a, const RuleValue& b, SourceRange range);
  absl::StatusOr<RuleList> AsElements(const RuleValue& value,
                                      SourceRange range);

  // elaborate_index.cc
  Result EvalEquation(const Equation& equation, Scope& scope,
                      const DeclaredResult* declared);
  Result EvalIndex(const Expr& e, Scope& scope);
  Result EvalReduce(const Expr& e, Scope& scope, bool tie_first);
  Result ReadArray(const TermPtr& array, const Expr& e, Scope& scope);
  Result Subscript(const RuleList& list, const Expr& e, Scope& scope);
  struct BoundIndices;
  absl::Status BindIndices(const std::vector<Binder>& binders, Scope& outer,
                           Scope& inner, BoundIndices* bound);
  absl::Status Close(const BoundIndices& bound, SourceRange range,
                     std::vector<IndexPtr>* indices,
                     std::vector<AxisGroup>* groups);
  // Evaluates `evaluate` again as long as packs get known on the way.
  template <typename F>
  auto Settle(const BoundIndices& bound, const std::vector<ExprPtr>& learn_from,
              Scope& scope, F evaluate) -> decltype(evaluate());
  void Learn(const Expr& e, Scope& scope);

  // elaborate_call.cc
  Result EvalCall(const Expr& e, Scope& scope, absl::string_view tie);
  absl::StatusOr<Arguments> EvalArguments(
      const std::vector<ExprPtr>& positional,
      const std::vector<NamedExpr>& named, Scope& scope);
  Result CallDef(const Item& def, const Arguments& arguments,
                 SourceRange range);
  Result EvalTransformCall(const Expr& e, Scope& scope);
  // `call` is that of f, `results` are its results by name.
  Result EvalVjpCall(
      const Expr& e, const Callable& callable, const TermPtr& call,
      const std::vector<std::pair<std::string, RuleValue>>& results,
      const Arguments& seconds);
  // elaborate_builtin.cc
  // Nullopt: `name` is no builtin for these arguments.
  absl::StatusOr<std::optional<RuleValue>> CallStaticBuiltin(
      const std::string& name, const Arguments& arguments, SourceRange range);
  absl::StatusOr<std::optional<RuleValue>> CallBuiltin(
      const std::string& name, const Arguments& arguments,
      absl::string_view tie, SourceRange range);
  absl::StatusOr<std::optional<RuleValue>> StaticExtremum(bool is_max,
                                                          const RuleValue& a,
                                                          const RuleValue& b,
                                                          SourceRange range);
  Result CallPointwise(Primitive primitive, BuiltinCall& call,
                       SourceRange range);

  // elaborate_body.cc
  Result EvalFold(const Expr& e, Scope& scope);
  Result EvalScan(const Expr& e, Scope& scope);  // and map
  Result EvalWhile(const Expr& e, Scope& scope);
  // An array that a loop carries or runs over.
  absl::StatusOr<TermPtr> EvalArray(const Expr& e, Scope& scope);
  // The carries of `body`, the value of e's body, as results of the loop, which
  // begins with `first`.
  absl::Status AddNextCarries(const Expr& e, const RuleValue& body,
                              const std::vector<TermPtr>& first,
                              RegionTerm* region, CallTerm* call);
  Result EvalCond(const Expr& e, Scope& scope);

  Dim DynamicExtent(const std::string& name) const;
  absl::Status CheckList(size_t size, SourceRange range);

  const Library& library_;
  Context& context_;
  std::string rule_;
  const Callees* callees_;
  BranchObserver* observer_;
  const Source* source_ = nullptr;
  TermMaker terms_;
  std::vector<ShapeGuard> choices_;
  std::list<BoundCall> calls_;  // those that terms hold
  std::optional<Diagnostic> diagnostic_;
  const Source* diagnostic_source_ = nullptr;
  int depth_ = 0;
  int dynamic_extents_ = 0;
  std::map<std::string, Dim> dynamic_names_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_ELABORATE_ELABORATOR_H_
