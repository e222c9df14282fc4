#include "testing/mutate/mutation.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/lang/build_expr.h"
#include "ops/check.h"
#include "ops/dtype.h"
#include "testing/mutate/expr_mutations.h"

namespace cleave {
namespace {

using build_expr::Binary;
using build_expr::Call;
using build_expr::If;
using build_expr::Minus;
using build_expr::Name;
using build_expr::Number;
using Operator = MutationOperator;

constexpr absl::string_view kOperatorNames[] = {
#define MUTATION_OPERATOR(enumerator, name, doc) name,
#include "testing/mutate/mutation_operator.def"
};

// `e` with `target` replaced; `e` itself where it does not have it.
class Replacer {
 public:
  Replacer(const Expr* target, ExprPtr replacement)
      : target_(target), replacement_(std::move(replacement)) {}

  ExprPtr In(const ExprPtr& e) {
    if (e == nullptr) return e;
    if (e.get() == target_) {
      found_ = true;
      return replacement_;
    }
    Expr copy = *e;
    bool changed = false;
    const auto replace = [&](ExprPtr& child) {
      ExprPtr other = In(child);
      changed = changed || other != child;
      child = std::move(other);
    };
    for (ExprPtr& child : copy.children) replace(child);
    for (NamedExpr& named : copy.named) replace(named.value);
    for (ExprPtr& second : copy.seconds) replace(second);
    for (NamedExpr& named : copy.named_seconds) replace(named.value);
    for (Equation& field : copy.fields) {
      for (Binder& index : field.indices) replace(index.bound);
      replace(field.value);
    }
    for (Binder& binder : copy.binders) replace(binder.bound);
    for (BodyPtr* body : {&copy.body, &copy.else_body}) {
      BodyPtr other = In(*body);
      changed = changed || other != *body;
      *body = std::move(other);
    }
    return changed ? std::make_shared<Expr>(std::move(copy)) : e;
  }

  BodyPtr In(const BodyPtr& body) {
    if (body == nullptr) return body;
    Body copy = *body;
    bool changed = false;
    const auto replace = [&](ExprPtr& e) {
      ExprPtr other = In(e);
      changed = changed || other != e;
      e = std::move(other);
    };
    for (Statement& statement : copy.statements) {
      for (Binder& index : statement.equation.indices) replace(index.bound);
      replace(statement.equation.value);
    }
    return changed ? std::make_shared<Body>(std::move(copy)) : body;
  }

  bool found() const { return found_; }

 private:
  const Expr* target_;
  ExprPtr replacement_;
  bool found_ = false;
};

// The names of tangents in a line of jvp, or of cotangents in one of vjp.
std::set<std::string> TangentsOf(const Statement& statement) {
  std::set<std::string> names;
  for (const Statement::OverrideInput& input : statement.inputs) {
    names.insert(input.name);
  }
  if (statement.kind == StatementKind::kJvp && names.empty()) {
    names.insert(absl::StrCat("d", statement.equation.name));
  }
  return names;
}

MutatedPart PartOf(const Item& item, StatementKind kind) {
  switch (kind) {
    case StatementKind::kJvp:
      return MutatedPart::kJvp;
    case StatementKind::kVjp:
      return MutatedPart::kVjp;
    case StatementKind::kVmap:
      return MutatedPart::kVmap;
    default:
      return item.kind == ItemKind::kJvp ? MutatedPart::kJvp
                                         : MutatedPart::kValue;
  }
}

// Whether a class has dtypes that another has not.
bool HasOthers(const std::string& dtype_class, const std::string& other) {
  const auto one = ParseDTypeClass(dtype_class);
  const auto two = ParseDTypeClass(other);
  if (!one.ok() || !two.ok()) return false;
  for (const DType dtype : AllDTypes()) {
    if (InClass(dtype, *one) && !InClass(dtype, *two)) return true;
  }
  return false;
}

// `abs(x)` and `x^2`.
bool LosesSign(const Expr& e) {
  if (e.kind == ExprKind::kCall) return e.text == "abs";
  return e.kind == ExprKind::kBinary && e.text == "^" &&
         e.children[1]->kind == ExprKind::kNumber && e.children[1]->text == "2";
}

// A comparison, a connective or a literal: what is bool in every rule.
bool IsBool(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kName:
      return e.text == "true" || e.text == "false";
    case ExprKind::kUnary:
      return e.text == "not";
    case ExprKind::kBinary:
      return e.text == "and" || e.text == "or" || e.text == "==" ||
             e.text == "!=" || e.text == "<" || e.text == "<=" ||
             e.text == ">" || e.text == ">=";
    case ExprKind::kIf:
      return e.children.size() == 3 && IsBool(*e.children[1]) &&
             IsBool(*e.children[2]);
    default:
      return false;
  }
}

class ItemMutator {
 public:
  explicit ItemMutator(const Item& item) : item_(item), names_(item) {}

  std::vector<Mutation> Run() && {
    switch (item_.kind) {
      case ItemKind::kOp:
      case ItemKind::kDef:
      case ItemKind::kJvp:
      case ItemKind::kOverride:
        if (item_.body != nullptr) MutateStatements(*item_.body);
        break;
      case ItemKind::kRewrite:
        MutateRewrite();
        break;
      default:
        break;
    }
    return std::move(mutations_);
  }

 private:
  void Add(Operator op, const ExprPtr& target, ExprPtr replacement) {
    // The numbers in a rule of vmap are axes.
    if (place_.part == MutatedPart::kVmap && op == Operator::kConstantStep) {
      op = Operator::kBatchAxis;
    }
    Mutation mutation;
    mutation.op = op;
    mutation.part = place_.part;
    mutation.range = target->range;
    mutation.before = PrintExpr(*target);
    mutation.after = PrintExpr(*replacement);
    mutation.target = target;
    mutation.replacement = std::move(replacement);
    // Two operators may come to the same.
    if (mutation.before == mutation.after ||
        !seen_.insert({target.get(), mutation.after}).second) {
      return;
    }
    mutations_.push_back(std::move(mutation));
  }

  void AddWhole(Operator op, std::string before, std::string after, Item item) {
    Mutation mutation;
    mutation.op = op;
    mutation.part = place_.part;
    mutation.range = item_.range;
    mutation.before = std::move(before);
    mutation.after = std::move(after);
    mutation.whole = std::make_shared<Item>(std::move(item));
    mutations_.push_back(std::move(mutation));
  }

  void MutateStatements(const Body& body) {
    for (const Statement& statement : body.statements) {
      place_ = ExprPlace();
      place_.part = PartOf(item_, statement.kind);
      place_.tangents = TangentsOf(statement);
      if (item_.kind == ItemKind::kJvp) {
        for (const std::string& parameter : item_.parameters) {
          place_.tangents.insert(absl::StrCat("d", parameter));
        }
      }
      MutateEquation(statement.equation);
      if (statement.equation.value != nullptr) {
        MutateRoots(statement.equation);
      }
    }
  }

  // The bounds of its indices, and its value.
  void MutateEquation(const Equation& equation) {
    for (const Binder& index : equation.indices) {
      if (index.bound == nullptr || index.pack) continue;
      for (const char* op : {"+", "-"}) {
        Add(Operator::kIndexOffset, index.bound,
            Binary(index.bound, op, Number("1")));
      }
    }
    Walk(equation.value);
  }

  void WalkIndex(const ExprPtr& e) {
    const bool outside = std::exchange(place_.in_index, true);
    Walk(e);
    place_.in_index = outside;
  }

  void Walk(const ExprPtr& e) {
    if (e == nullptr) return;
    ExprMutations(e, place_, names_, [&](Operator op, ExprPtr replacement) {
      Add(op, e, std::move(replacement));
    });
    const bool is_tie = e->kind == ExprKind::kTie;
    for (size_t i = 0; i < e->children.size(); ++i) {
      if (e->kind == ExprKind::kIndex && i > 0) {
        WalkIndex(e->children[i]);
        continue;
      }
      const ExprPlace outside = place_;
      place_.tied = is_tie;
      place_.even = LosesSign(*e);
      Walk(e->children[i]);
      place_ = outside;
    }
    for (const NamedExpr& named : e->named) Walk(named.value);
    for (const ExprPtr& second : e->seconds) Walk(second);
    for (const NamedExpr& named : e->named_seconds) Walk(named.value);
    for (const Equation& field : e->fields) MutateEquation(field);
    for (const Binder& binder : e->binders) WalkIndex(binder.bound);
    for (const BodyPtr& body : {e->body, e->else_body}) {
      if (body == nullptr) continue;
      for (const Statement& statement : body->statements) {
        MutateEquation(statement.equation);
      }
    }
  }

  // Mutations of whole values: of a `let`, a result, a tangent, or the fields
  // of a record of them.
  void MutateRoots(const Equation& equation) {
    if (equation.value->kind == ExprKind::kRecord) {
      for (const Equation& field : equation.value->fields) {
        MutateRoot(field.value, field.indices);
      }
    } else {
      MutateRoot(equation.value, equation.indices);
    }
  }

  void MutateRoot(const ExprPtr& e, const std::vector<Binder>& indices) {
    const bool is_linear =
        place_.part == MutatedPart::kJvp || place_.part == MutatedPart::kVjp;
    // A `let` of a jvp item is no derivative.
    if (is_linear && Mentions(*e, place_.tangents)) {
      Add(Operator::kJvpFactor, e, Binary(Number("2"), "*", e));
      Add(Operator::kJvpFactor, e, Binary(Number("1.00001"), "*", e));
      Add(Operator::kJvpSign, e, Minus(e));
    } else {
      Add(Operator::kSign, e, Minus(e));
    }
    const ExprPtr wrong = is_linear && Mentions(*e, place_.tangents)
                              ? Binary(Number("2"), "*", e)
                              : Binary(e, "+", Number("1"));
    MutateDTypes(e, wrong);
    if (item_.kind == ItemKind::kOp || item_.kind == ItemKind::kOverride) {
      MutateExtents(e, wrong, indices);
    }
  }

  void MutateDTypes(const ExprPtr& e, const ExprPtr& wrong) {
    for (const WhereClause& where : item_.where) {
      const auto dtype_class = ParseDTypeClass(where.dtype_class);
      if (!dtype_class.ok()) continue;
      for (const DType dtype : AllDTypes()) {
        // There are no samples of the others.
        if (!InClass(dtype, *dtype_class) || IsComplex(dtype) ||
            dtype == DType::kKey) {
          continue;
        }
        // There the variable is the dtype of accumulation, which is neither.
        if (item_.compute_acc &&
            (dtype == DType::kF16 || dtype == DType::kBF16)) {
          continue;
        }
        Add(Operator::kDTypeCondition, e,
            If(Binary(Name(where.variable),
                      "==", Name(std::string(DTypeName(dtype)))),
               wrong, e));
      }
      // Every dtype holds a bool.
      if (place_.part != MutatedPart::kValue || IsBool(*e)) continue;
      const char* narrow = where.dtype_class == "float" ? "f32" : "u8";
      Add(Operator::kNarrowed, e,
          Call("convert", {Call("convert", {e}, {{"dtype", Name(narrow), {}}})},
               {{"dtype", Call("dtype", {e}), {}}}));
    }
    if (item_.kind == ItemKind::kJvp) {
      for (const char* dtype : {"f16", "f32", "f64"}) {
        Add(Operator::kDTypeCondition, e,
            If(Binary(Call("dtype", {Name(item_.parameters[0])}),
                      "==", Name(dtype)),
               wrong, e));
      }
    }
  }

  void MutateExtents(const ExprPtr& e, const ExprPtr& wrong,
                     const std::vector<Binder>& indices) {
    const auto add = [&](ExprPtr condition) {
      Add(Operator::kExtentCondition, e,
          Call("select", {std::move(condition), wrong, e}));
    };
    for (const Binder& index : indices) {
      if (index.pack) continue;
      add(Binary(Name(index.name), "==", Number("4")));
      add(Binary(Name(index.name), ">", Number("64")));
    }
    std::set<std::string> seen;
    for (const InputDecl& input : item_.inputs) {
      for (const AxisExpr& axis : input.type.axes) {
        if (axis.size == nullptr) continue;
        const bool pack = axis.size->kind == ExprKind::kSpread;
        const Expr& size = pack ? *axis.size->children[0] : *axis.size;
        if (size.kind != ExprKind::kName || !seen.insert(size.text).second) {
          continue;
        }
        const ExprPtr name = Name(size.text);
        if (pack) {
          Add(Operator::kExtentCondition, e,
              If(Binary(Call("len", {name}), "==", Number("2")), wrong, e));
        }
        const ExprPtr extent = pack ? Call("size", {name}) : name;
        add(Binary(extent, "==", Number("5")));
        add(Binary(extent, ">", Number("64")));
      }
    }
  }

  void MutateRewrite() {
    place_ = ExprPlace();
    place_.part = MutatedPart::kRewrite;
    Walk(item_.right);
    for (size_t i = 0; i < item_.where.size(); ++i) {
      Item other = item_;
      other.where.erase(other.where.begin() + static_cast<int>(i));
      const std::string clause = absl::StrCat("where ", item_.where[i].variable,
                                              ": ", item_.where[i].dtype_class);
      AddWhole(Operator::kGuardDropped, clause, "", std::move(other));
      for (const char* dtype_class : {"float", "real", "int", "number"}) {
        // A rewrite of fewer dtypes is right where this one is.
        if (!HasOthers(dtype_class, item_.where[i].dtype_class)) continue;
        Item wider = item_;
        wider.where[i].dtype_class = dtype_class;
        AddWhole(
            Operator::kDType, clause,
            absl::StrCat("where ", item_.where[i].variable, ": ", dtype_class),
            std::move(wider));
      }
    }
    if (item_.real) {
      Item other = item_;
      other.real = false;
      AddWhole(Operator::kGuardDropped, "real", "", std::move(other));
    }
  }

  const Item& item_;
  const ItemNames names_;
  ExprPlace place_;
  std::set<std::pair<const Expr*, std::string>> seen_;
  std::vector<Mutation> mutations_;
};

}  // namespace

absl::string_view MutationOperatorName(MutationOperator op) {
  return kOperatorNames[static_cast<int>(op)];
}

std::optional<MutationOperator> FindMutationOperator(absl::string_view name) {
  for (int i = 0; i < kNumMutationOperators; ++i) {
    const auto op = static_cast<MutationOperator>(i);
    if (MutationOperatorName(op) == name) return op;
  }
  return std::nullopt;
}

absl::string_view MutatedPartName(MutatedPart part) {
  switch (part) {
    case MutatedPart::kValue:
      return "value";
    case MutatedPart::kJvp:
      return "jvp";
    case MutatedPart::kVjp:
      return "vjp";
    case MutatedPart::kVmap:
      return "vmap";
    case MutatedPart::kRewrite:
      return "rewrite";
  }
  return "";
}

std::optional<MutatedPart> FindMutatedPart(absl::string_view name) {
  for (const MutatedPart part :
       {MutatedPart::kValue, MutatedPart::kJvp, MutatedPart::kVjp,
        MutatedPart::kVmap, MutatedPart::kRewrite}) {
    if (MutatedPartName(part) == name) return part;
  }
  return std::nullopt;
}

std::vector<Mutation> MutationsOf(const Item& item) {
  std::vector<Mutation> mutations = ItemMutator(item).Run();
  std::stable_sort(mutations.begin(), mutations.end(),
                   [](const Mutation& a, const Mutation& b) {
                     return a.range.begin < b.range.begin;
                   });
  return mutations;
}

Item Mutated(const Item& item, const Mutation& mutation) {
  if (mutation.whole != nullptr) return *mutation.whole;
  Replacer replacer(mutation.target.get(), mutation.replacement);
  Item mutant = item;
  mutant.body = replacer.In(item.body);
  mutant.right = replacer.In(item.right);
  CLEAVE_CHECK(replacer.found()) << item.name << ": " << mutation.before;
  return mutant;
}

}  // namespace cleave
