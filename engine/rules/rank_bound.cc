#include "engine/rules/rank_bound.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/bind/op_lines.h"
#include "engine/rules/rule_set_impl.h"
#include "engine/rules/symbolic_call.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// Walks a declaration and what its body calls; `why()` is the first use of a
// pack that is no use of it as a whole, or the first branch that rests on what
// is not tried.
class PackUses {
 public:
  explicit PackUses(const Library& library) : library_(library) {}

  const std::string& why() const { return why_; }

  void CheckCallable(const Callable& callable) {
    if (!done_.insert(callable.item).second) return;
    const Names outer =
        std::exchange(names_, {callable.name, callable.source, {}, {}, {}, {}});
    CheckSignature(callable);
    for (const NamedExpr& let : callable.item->lets) Check(*let.value);
    for (const ErrorClause& error : callable.item->errors) {
      Check(*error.condition);
    }
    const std::vector<OpLine> body = LinesOf(callable, StatementKind::kResult);
    if (body.empty()) {
      Refuse("it has no decomposition");
    } else {
      names_.source = body[0].part.source;
      CheckBody(*body[0].part.item->body);
    }
    names_ = outer;
  }

 private:
  // The names of the declaration that is walked.
  struct Names {
    std::string name;
    const Source* source = nullptr;  // where its calls stand
    std::set<std::string> packs;
    std::set<std::string> axes;     // axis attributes that inputs bind
    std::set<std::string> tried;    // every value is tried
    std::set<std::string> present;  // may be absent
  };

  void Refuse(const std::string& why) {
    if (why_.empty()) why_ = absl::StrCat("`", names_.name, "`: ", why);
  }

  void CheckSignature(const Callable& callable) {
    if (!callable.has_result_types) {
      Refuse("its declaration has no shapes");
      return;
    }
    for (const InputDecl& input : callable.inputs) {
      if (input.is_static || !input.variadic_index.empty()) {
        Refuse(absl::StrCat("the lengths of `", input.name,
                            "` are not all tried"));
      }
      if (input.optional) names_.present.insert(input.name);
      for (const AxisExpr& axis : input.type.axes) {
        if (!axis.at.empty()) names_.axes.insert(axis.at);
        if (axis.size->kind != ExprKind::kSpread) continue;
        const Expr& pack = *axis.size->children[0];
        if (pack.kind == ExprKind::kName) names_.packs.insert(pack.text);
      }
    }
    for (const InputDecl& input : callable.inputs) CheckType(input.type);
    for (const ResultDecl& result : callable.results) {
      CheckType(result.type);
      if (result.condition != nullptr) CheckCondition(*result.condition);
    }
    for (const AttributeDecl& attribute : callable.attributes) {
      const std::string& type = attribute.type;
      if (type == "bool" || type == "enum") names_.tried.insert(attribute.name);
      if (attribute.optional) names_.present.insert(attribute.name);
      if (type == "dim") {
        if (attribute.list) names_.packs.insert(attribute.name);
      } else if (attribute.list || type == "int" || type == "str" ||
                 type == "axes" ||
                 (type == "axis" && names_.axes.count(attribute.name) == 0)) {
        Refuse(absl::StrCat("the values of `", attribute.name,
                            "` are not all tried"));
      }
    }
  }

  void CheckType(const TypeExpr& type) {
    for (const AxisExpr& axis : type.axes) {
      if (axis.is_new) {
        Refuse("an extent is known at run time only");
      } else if (axis.size->kind == ExprKind::kSpread) {
        if (axis.size->children[0]->kind != ExprKind::kName) {
          Refuse(absl::StrCat("`", PrintExpr(*axis.size),
                              "` is a list that is computed"));
        }
      } else {
        Check(*axis.size);
      }
    }
  }

  void CheckBody(const Body& body) {
    for (const Statement& statement : body.statements) {
      if (statement.kind != StatementKind::kLet &&
          statement.kind != StatementKind::kResult) {
        continue;
      }
      CheckEquation(statement.equation);
    }
  }

  void CheckEquation(const Equation& equation) {
    CheckBinders(equation.indices);
    Check(*equation.value);
  }

  void CheckBinders(const std::vector<Binder>& binders) {
    for (const Binder& binder : binders) {
      if (binder.bound == nullptr) continue;
      if (binder.pack && binder.bound->kind == ExprKind::kName) continue;
      Check(*binder.bound);
    }
  }

  // A static condition, or a value that is compared in one.
  void CheckCondition(const Expr& e, bool as_value = false) {
    switch (e.kind) {
      case ExprKind::kName:
        if (names_.tried.count(e.text) > 0 || e.text == "true" ||
            e.text == "false" ||
            (as_value ? library_.IsEnumWord(e.text)
                      : names_.present.count(e.text) > 0)) {
          return;
        }
        break;
      case ExprKind::kUnary:
        if (e.text == "not") return CheckCondition(*e.children[0], as_value);
        break;
      case ExprKind::kBinary:
        if (e.text == "and" || e.text == "or" || e.text == "==" ||
            e.text == "!=") {
          const bool compares = e.text == "==" || e.text == "!=";
          CheckCondition(*e.children[0], compares);
          return CheckCondition(*e.children[1], compares);
        }
        break;
      default:
        break;
    }
    Refuse(absl::StrCat("a branch rests on `", PrintExpr(e), "`"));
  }

  // `[axis]`, axis an attribute that splits packs.
  bool IsBoundAxis(const Expr& e) const {
    if (e.kind == ExprKind::kName) return names_.axes.count(e.text) > 0;
    return e.kind == ExprKind::kList && e.children.size() == 1 &&
           IsBoundAxis(*e.children[0]);
  }

  void Check(const Expr& e) {
    switch (e.kind) {
      case ExprKind::kNumber:
      case ExprKind::kString:
        return;
      case ExprKind::kName:
        if (names_.packs.count(e.text) > 0) {
          Refuse(absl::StrCat("the pack `", e.text, "` is used as a list"));
        }
        return;
      case ExprKind::kBinary:
        if (e.text == "@" || e.text == "++" || e.text == ".." ||
            e.text == "in" || e.text == "is") {
          Refuse(
              absl::StrCat("`", PrintExpr(e), "` depends on ranks or lists"));
          return;
        }
        [[fallthrough]];
      case ExprKind::kUnary:
      case ExprKind::kMember:
      case ExprKind::kTie:
        for (const ExprPtr& child : e.children) Check(*child);
        return;
      case ExprKind::kIf:
        CheckCondition(*e.children[0]);
        for (size_t i = 1; i < e.children.size(); ++i) Check(*e.children[i]);
        return;
      case ExprKind::kIndex:
        Check(*e.children[0]);
        for (size_t i = 1; i < e.children.size(); ++i)
          CheckIndex(*e.children[i]);
        return;
      case ExprKind::kRecord:
        for (const Equation& field : e.fields) CheckEquation(field);
        return;
      case ExprKind::kReduce:
        CheckBinders(e.binders);
        for (const ExprPtr& child : e.children) Check(*child);
        return;
      case ExprKind::kCall:
        CheckCall(e);
        return;
      default:
        Refuse(absl::StrCat("`", PrintExpr(e), "` is a list or a loop"));
        return;
    }
  }

  void CheckIndex(const Expr& index) {
    if (index.kind != ExprKind::kSpread) return Check(index);
    const Expr& list = *index.children[0];
    if (list.kind != ExprKind::kName) {
      Refuse(absl::StrCat("`", PrintExpr(index), "` is a list of indices"));
    }
  }

  void CheckCall(const Expr& call) {
    const std::string& callee = call.text;
    // The product of a pack is one of its wholes.
    if (callee == "size" && call.children.size() == 1 &&
        call.children[0]->kind == ExprKind::kName) {
      return;
    }
    for (const ExprPtr& child : call.children) Check(*child);
    const Item* def = library_.FindDef(callee, *names_.source);
    const Callable* op = library_.FindCallable(callee);
    const std::optional<Primitive> primitive = FindPrimitive(callee);
    const bool pointwise =
        primitive && ClassOf(*primitive) == PrimitiveClass::kPointwise;
    for (const NamedExpr& named : call.named) {
      if ((named.name == "axis" || named.name == "axes") &&
          IsBoundAxis(*named.value)) {
        continue;
      }
      // Which branches of an op are taken must not rest on a number.
      if (op != nullptr && named.value->kind == ExprKind::kBinary) {
        static const std::set<std::string> kComparisons = {
            "==", "!=", "<", "<=", ">", ">=", "and", "or"};
        if (kComparisons.count(named.value->text) > 0) {
          CheckCondition(*named.value);
        }
      }
      Check(*named.value);
    }
    if (def != nullptr) {
      if (done_.insert(def).second) CheckDef(*def);
    } else if (op != nullptr) {
      CheckCallable(*op);
    } else if (!pointwise && !absl::StartsWith(callee, "reduce_") &&
               callee != "dtype" && callee != "acc" &&
               callee != "linear_scan" && callee != "cumulative_max" &&
               callee != "cumulative_min" && callee != "sort" &&
               callee != "argmax" && callee != "argmin") {
      Refuse(absl::StrCat("`", callee, "` takes a shape or a list"));
    } else if (!pointwise && call.named.empty() && callee != "dtype" &&
               callee != "acc") {
      Refuse(absl::StrCat("`", callee, "` reduces all axes"));
    }
  }

  // Its parameters may be anything: no branch may rest on them.
  void CheckDef(const Item& def) {
    const Names outer = std::exchange(
        names_, {def.name, &library_.SourceOf(def), {}, {}, {}, {}});
    CheckBody(*def.body);
    names_ = outer;
  }

  const Library& library_;
  std::string why_;
  Names names_;
  std::set<const Item*> done_;
};

// The first equality of extents that the graph, or a body that it calls, needs;
// empty where there is none.
absl::StatusOr<std::string> EqualityOf(const Graph& graph,
                                       const RuleSet& rules) {
  for (const ShapeGuard& guard : graph.guards()) {
    if (guard.op != CompareOp::kEq) continue;
    return absl::StrCat(guard.lhs.ToString(), " and ", guard.rhs.ToString(),
                        " must be equal");
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (IsPrimitive(graph.node(Value{id}).op)) continue;
    CLEAVE_ASSIGN_OR_RETURN(const Graph* body,
                            rules.Body(RuleSet::SignatureOf(graph, Value{id})));
    CLEAVE_ASSIGN_OR_RETURN(std::string found, EqualityOf(*body, rules));
    if (!found.empty()) return found;
  }
  return std::string();
}

}  // namespace

absl::StatusOr<RankBound> FindRankBound(const RuleSet& rules,
                                        absl::string_view op) {
  const Library& library = rules.impl().library;
  const Callable* callable = library.FindCallable(op);
  if (callable == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no op `", op, "`"));
  }
  RankBound bound;
  bound.exhaustive = SymbolicCalls(*callable).exhaustive();
  PackUses uses(library);
  uses.CheckCallable(*callable);
  bound.why_not = uses.why();
  if (!bound.why_not.empty()) return bound;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Graph> calls,
                          rules.SymbolicCalls(op));
  for (const Graph& call : calls) {
    CLEAVE_ASSIGN_OR_RETURN(bound.why_not, EqualityOf(call, rules));
    if (!bound.why_not.empty()) break;
  }
  return bound;
}

}  // namespace cleave
