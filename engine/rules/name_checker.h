// NameChecker: the names of one item. Internal to check_names.h: the clauses of
// an item are walked in check_names.cc and check_claims.cc, scopes and
// expressions in walk_names.cc.

#ifndef CLEAVE_ENGINE_RULES_NAME_CHECKER_H_
#define CLEAVE_ENGINE_RULES_NAME_CHECKER_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/bind/library.h"
#include "engine/lang/ast.h"
#include "engine/lang/diagnostic.h"
#include "engine/lang/source.h"

namespace cleave {

// Whether a name always means the same: `true`, `inf`, a dtype, ...
bool IsConstantName(const std::string& name);

// The input of that name; null where there is none.
const InputDecl* FindInput(const Callable& callable, const std::string& name);
std::vector<std::string> InputNames(const Callable& callable);

// Walks an item once, with a stack of scopes; what is wrong goes to
// `diagnostics`.
class NameChecker {
 public:
  NameChecker(const Library& library, const Item& item,
              std::vector<Diagnostic>* diagnostics)
      : library_(library), item_(item), diagnostics_(diagnostics) {}

  void Run();

 private:
  struct Name {
    SourceRange range;
    bool used = false;
    bool must_be_used = false;
    absl::string_view what;
    // Another meaning of the name here: a mistake where it is used.
    std::string clash;
    std::string help;
  };
  using Names = std::map<std::string, Name>;

  // --- items (check_names.cc)
  void CheckOp();
  // An `override` item: in the names of the op's signature.
  void CheckOverrideItem();
  // The names of a signature, which `item` declares.
  void DefineSignature(const Item& item, const Callable& callable,
                       bool must_use);
  void CheckBody(const Callable& callable);
  // Indices that are free in a law range over all their values.
  void CheckLaws(const Callable& callable);
  void CheckJvpLine(const Callable& callable, const Statement& statement);
  void CheckVjpLine(const Callable& callable, const Statement& statement);
  void CheckVmapLine(const Callable& callable, const Statement& statement);
  static bool IsDiscrete(const Item& op, const InputDecl& input);
  void CheckDef();
  void CheckDerivative();
  // An `example` item: of an op, or of a primitive with a `jvp` item. Nothing
  // else is evaluated by the checker.
  void CheckExample();
  void CheckNumeric();
  // Names of the pattern stand for any operand.
  void CheckRewrite();
  void CheckDTypeClass(const WhereClause& where);

  // --- claims (check_claims.cc)
  void CheckApproximations(const Callable& callable);
  void CheckAccuracies(const Callable& callable);
  // Walks a number of a claim, which is not negative.
  void CheckBound(const Expr& bound);
  void CheckRanges(const Callable& callable,
                   const std::vector<InputRange>& ranges);

  // --- scopes and expressions (walk_names.cc)
  void Report(DiagnosticKind kind, SourceRange range, std::string message,
              std::string help = "");
  static std::string DidYouMean(const std::string& name,
                                const std::vector<std::string>& names);
  void Enter();
  void Leave();
  Name* Lookup(const std::string& name);
  void Define(const std::string& name, SourceRange range,
              absl::string_view what, bool must_be_used);
  // Sizes, packs and dtype variables of a type: the first occurrence defines.
  void DefineTypeNames(const TypeExpr& type, const std::string& variadic);
  void DefineResults(const Callable& callable);
  // Results that a derivative may name: a name that means something else, too,
  // is a mistake where it is used.
  void DefineResultsOrClash(const Callable& callable);
  // Whether the item's body gives the value called `name` as that result.
  bool IsResult(const std::string& name) const;
  // Defines what means something else as well.
  void DefineClash(const std::string& name, SourceRange range,
                   absl::string_view what, const Name& other, std::string help);
  void DefineBinders(const std::vector<Binder>& binders);
  bool IsIndex(const std::string& name);
  void WalkType(const TypeExpr& type);
  // A body in a scope of its own.
  void WalkBody(const Body& body);
  void WalkStatements(const Body& body);
  void WalkEquation(const Equation& equation);
  // The def that a call in the item means.
  const Item* FindDef(const std::string& name) const;
  void WalkCallee(const std::string& callee, SourceRange range);
  void WalkArguments(const std::string& callee,
                     const std::vector<ExprPtr>& positional,
                     const std::vector<NamedExpr>& named, SourceRange range);
  void Walk(const Expr& e);

  const Library& library_;
  const Item& item_;
  std::vector<Diagnostic>* diagnostics_;
  std::vector<Names> scopes_;
  std::set<std::string> indices_;
  bool in_derivative_ = false;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_NAME_CHECKER_H_
