#include "testing/mutate/integer_exprs.h"

#include <algorithm>
#include <initializer_list>

#include "engine/lang/walk_expr.h"

namespace cleave {
namespace {

bool IsOneOf(const std::string& text, std::initializer_list<const char*> list) {
  return std::any_of(list.begin(), list.end(),
                     [&](const char* other) { return text == other; });
}

}  // namespace

// The names of one item: those that are integers. A name that is bound twice is
// one if it is at each of these places.
class IntegerExprs::Scope {
 public:
  // `open`: the defs whose parameters are being looked at.
  Scope(const IntegerExprs& exprs, const Item& item,
        const std::set<std::string>& open)
      : exprs_(exprs), item_(item), open_(open) {
    // A name that turns out to be none may have made others integers.
    std::map<std::string, bool> before;
    do {
      before = names_;
      BindNames();
    } while (names_ != before);
  }

  bool IsInteger(const ExprPtr& e) const {
    if (e == nullptr) return false;
    const auto& parts = e->children;
    switch (e->kind) {
      case ExprKind::kNumber:
        return e->text.find_first_not_of("0123456789") == std::string::npos;
      case ExprKind::kName: {
        const auto it = names_.find(e->text);
        return it != names_.end() && it->second;
      }
      case ExprKind::kUnary:
        return e->text == "-" && IsInteger(parts[0]);
      case ExprKind::kBinary:
        return IsOneOf(e->text, {"+", "-", "*", "//", "%", "..", "++"}) &&
               AreIntegers(parts, 0);
      case ExprKind::kIf:
        return parts.size() == 3 && AreIntegers(parts, 1);
      case ExprKind::kCall:
        // `iota(n, dtype: T)` counts in another dtype.
        if (!e->named.empty()) return false;
        if (IsOneOf(e->text, {"len", "size", "iota", "shape"})) return true;
        if (e->text == "select") return AreIntegers(parts, 1);
        return IsOneOf(e->text, {"max", "min", "abs"}) && AreIntegers(parts, 0);
      case ExprKind::kTie:
      case ExprKind::kSpread:
      case ExprKind::kIndex:
      case ExprKind::kComprehension:
        return IsInteger(parts[0]);
      case ExprKind::kList:
        return AreIntegers(parts, 0);
      case ExprKind::kReduce:
        return IsOneOf(e->text, {"argmax", "argmin"}) || IsInteger(parts[0]);
      default:
        return false;
    }
  }

 private:
  void BindNames() {
    for (const InputDecl& input : item_.inputs) {
      Bind(input.name, false);
      for (const AxisExpr& axis : input.type.axes) AddAxis(axis);
    }
    for (const AttributeDecl& attribute : item_.attributes) {
      Bind(attribute.name,
           !attribute.optional &&
               IsOneOf(attribute.type, {"int", "dim", "axis", "axes"}));
    }
    for (size_t i = 0; i < item_.parameters.size(); ++i) {
      Bind(item_.parameters[i], item_.kind == ItemKind::kDef && IsPassed(i));
    }
    for (const NamedExpr& let : item_.lets) {
      Bind(let.name, IsInteger(let.value));
    }
    if (item_.body == nullptr) return;
    // Indices first: the values of names are made of them.
    for (const Statement& statement : item_.body->statements) {
      AddIndices(statement.equation.indices);
    }
    ForEachExpr(item_.body, [this](const ExprPtr& e) { AddBinders(*e); });
    for (const Statement& statement : item_.body->statements) {
      if (statement.kind != StatementKind::kLet) continue;
      Bind(statement.equation.name, IsInteger(statement.equation.value));
    }
  }

  bool AreIntegers(const std::vector<ExprPtr>& exprs, size_t first) const {
    return std::all_of(exprs.begin() + std::min(first, exprs.size()),
                       exprs.end(),
                       [this](const ExprPtr& e) { return IsInteger(e); });
  }

  void Bind(const std::string& name, bool is_integer) {
    const auto [it, is_new] = names_.try_emplace(name, is_integer);
    if (!is_new) it->second = it->second && is_integer;
  }

  void AddAxis(const AxisExpr& axis) {
    ForEachExpr(axis.size, [this](const ExprPtr& e) {
      if (e->kind == ExprKind::kName) Bind(e->text, true);
    });
  }

  void AddIndices(const std::vector<Binder>& indices) {
    for (const Binder& index : indices) Bind(index.name, true);
  }

  void AddBinders(const Expr& e) {
    switch (e.kind) {
      case ExprKind::kReduce:
        AddIndices(e.binders);
        return;
      case ExprKind::kComprehension:
        Bind(e.binders[0].name, IsInteger(e.children[1]));
        return;
      case ExprKind::kFold:
      case ExprKind::kMap:
      case ExprKind::kScan:
        // Elements of lists and rows of tensors.
        for (size_t i = 0; i < e.binders.size(); ++i) {
          Bind(e.binders[i].name,
               i < e.children.size() && IsInteger(e.children[i]));
        }
        break;
      default:
        break;
    }
    for (const Equation& field : e.fields) {
      Bind(field.name, false);
      AddIndices(field.indices);
    }
    for (const BodyPtr& body : {e.body, e.else_body}) {
      if (body == nullptr) continue;
      for (const Statement& statement : body->statements) {
        AddIndices(statement.equation.indices);
        if (!statement.equation.name.empty()) {
          Bind(statement.equation.name, false);
        }
      }
    }
  }

  // Whether all calls of the def pass an integer for that parameter.
  bool IsPassed(size_t parameter) const {
    const auto calls = exprs_.calls_.find(item_.name);
    if (calls == exprs_.calls_.end() || open_.count(item_.name) != 0) {
      return false;
    }
    std::set<std::string> open = open_;
    open.insert(item_.name);
    return std::all_of(calls->second.begin(), calls->second.end(),
                       [&](const Call& call) {
                         return parameter < call.call->children.size() &&
                                Scope(exprs_, *call.item, open)
                                    .IsInteger(call.call->children[parameter]);
                       });
  }

  const IntegerExprs& exprs_;
  const Item& item_;
  const std::set<std::string>& open_;
  std::map<std::string, bool> names_;
};

IntegerExprs::IntegerExprs(const RuleTexts& texts) {
  for (const RuleTexts::Place& place : texts.Items()) {
    const Item& item = texts.item(place);
    const auto add = [&](const ExprPtr& e) {
      if (e->kind == ExprKind::kCall) calls_[e->text].push_back({&item, e});
    };
    ForEachExpr(item.body, add);
    ForEachExprOfMeaning(item, add);
  }
}

bool IntegerExprs::IsInteger(const Item& item, const ExprPtr& e) const {
  return Scope(*this, item, {}).IsInteger(e);
}

bool IntegerExprs::IsTensorOfPlaces(const Expr& e) {
  switch (e.kind) {
    case ExprKind::kCall:
      return e.text == "iota" && e.named.empty();
    case ExprKind::kReduce:
      return IsOneOf(e.text, {"argmax", "argmin"});
    case ExprKind::kBinary:
      return IsOneOf(e.text, {"+", "-", "*", "//", "%"}) &&
             (IsTensorOfPlaces(*e.children[0]) ||
              IsTensorOfPlaces(*e.children[1]));
    default:
      return false;
  }
}

}  // namespace cleave
