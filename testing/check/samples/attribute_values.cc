#include "testing/check/samples/attribute_values.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "ops/dtype.h"
#include "ops/exact.h"

namespace cleave {
namespace {

// A number, -inf or a string that stands in a rule; nullopt for all else.
std::optional<StaticValue> LiteralOf(const Expr& expr) {
  if (expr.kind == ExprKind::kString) return StaticValue(expr.text);
  if (expr.kind == ExprKind::kUnary && expr.text == "-") {
    const std::optional<StaticValue> value = LiteralOf(*expr.children[0]);
    if (!value || value->kind() != StaticValue::Kind::kReal) {
      return std::nullopt;
    }
    return StaticValue(-value->AsReal());
  }
  if (expr.kind == ExprKind::kNumber ||
      (expr.kind == ExprKind::kName && expr.text == "inf")) {
    const auto value = Exact::Parse(expr.text);
    if (value.ok()) return StaticValue(*value);
  }
  return std::nullopt;
}

// Each of the names that stands in such a comparison with a literal, and the
// literals.
void CollectCompared(const ExprPtr& expr, const std::set<std::string>& names,
                     const std::set<std::string>& comparisons,
                     ComparedValues& found) {
  if (expr == nullptr) return;
  if (expr->kind == ExprKind::kBinary && comparisons.count(expr->text)) {
    for (int side = 0; side < 2; ++side) {
      const Expr& name = *expr->children[side];
      const Expr& literal = *expr->children[1 - side];
      if (name.kind != ExprKind::kName || names.count(name.text) == 0) continue;
      const std::optional<StaticValue> value = LiteralOf(literal);
      if (value) found[name.text].push_back(*value);
    }
  }
  for (const ExprPtr& child : expr->children) {
    CollectCompared(child, names, comparisons, found);
  }
  for (const NamedExpr& named : expr->named) {
    CollectCompared(named.value, names, comparisons, found);
  }
  for (const Equation& field : expr->fields) {
    CollectCompared(field.value, names, comparisons, found);
  }
}

// Adds the classes by which `expr` asks for dtype variables: `M is bool`.
void CollectAsked(const ExprPtr& expr,
                  std::map<std::string, std::set<std::string>>& found) {
  if (expr == nullptr) return;
  if (expr->kind == ExprKind::kBinary && expr->text == "is" &&
      expr->children[0]->kind == ExprKind::kName) {
    found[expr->children[0]->text].insert(expr->children[1]->text);
  }
  for (const ExprPtr& child : expr->children) CollectAsked(child, found);
  for (const NamedExpr& named : expr->named) CollectAsked(named.value, found);
  for (const Equation& field : expr->fields) CollectAsked(field.value, found);
}

// Where the comparisons of an op turn over, by attribute.
class GuardFinder {
 public:
  explicit GuardFinder(const Item& item) {
    for (const AttributeDecl& attribute : item.attributes) {
      attributes_.insert(attribute.name);
    }
    for (const NamedExpr& let : item.lets) lets_[let.name] = let.value;
    for (const NamedExpr& let : item.lets) Visit(let.value);
    for (const ErrorClause& error : item.errors) Visit(error.condition);
    for (const DomainClause& domain : item.domains) Visit(domain.condition);
    for (const SpecialClause& special : item.specials) {
      Visit(special.equation.value);
      Visit(special.condition);
    }
    VisitBody(item.body);
    VisitBody(item.spec);
  }

  ComparedValues found;

 private:
  // Names that are defined by each other are followed so far.
  static constexpr int kMaxDepth = 8;

  void VisitBody(const BodyPtr& body) {
    if (body == nullptr) return;
    const auto outer = lets_;
    for (const Statement& statement : body->statements) {
      const Equation& equation = statement.equation;
      Visit(equation.value);
      if (statement.kind == StatementKind::kLet && !equation.indexed) {
        lets_[equation.name] = equation.value;
      }
    }
    lets_ = outer;
  }

  void Visit(const ExprPtr& expr) {
    if (expr == nullptr) return;
    CollectCompared(expr, attributes_, ComparisonOperators(), found);
    VisitSides(*expr);
  }

  void VisitSides(const Expr& expr) {
    const bool compares =
        IsBound(expr) || (expr.kind == ExprKind::kBinary &&
                          ComparisonOperators().count(expr.text) != 0);
    for (size_t b = 1; compares && b < expr.children.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        Compare(expr.children[a], expr.children[b]);
      }
    }
    if (IsAbs(expr)) Compare(expr.children[0], Negated(expr.children[0]));
    for (const ExprPtr& child : expr.children) {
      if (child != nullptr) VisitSides(*child);
    }
    for (const NamedExpr& named : expr.named) VisitSides(*named.value);
    for (const Equation& field : expr.fields) {
      if (field.value != nullptr) VisitSides(*field.value);
    }
  }

  static bool IsBound(const Expr& expr) {
    return expr.kind == ExprKind::kCall &&
           (expr.text == "max" || expr.text == "min");
  }
  static bool IsAbs(const Expr& expr) {
    return expr.kind == ExprKind::kCall && expr.text == "abs" &&
           expr.children.size() == 1;
  }
  static ExprPtr Negated(const ExprPtr& expr) {
    Expr negated;
    negated.kind = ExprKind::kUnary;
    negated.text = "-";
    negated.children = {expr};
    return std::make_shared<const Expr>(std::move(negated));
  }

  // The expressions of which `expr` is one: the operands of a `max`.
  std::vector<ExprPtr> Choices(const ExprPtr& expr, int depth = 0) const {
    if (expr->kind == ExprKind::kName && depth < kMaxDepth) {
      const auto let = lets_.find(expr->text);
      if (let != lets_.end()) return Choices(let->second, depth + 1);
    }
    if (IsAbs(*expr)) return {expr->children[0], Negated(expr->children[0])};
    if (!IsBound(*expr)) return {expr};
    std::vector<ExprPtr> choices;
    for (const ExprPtr& child : expr->children) {
      for (ExprPtr& choice : Choices(child, depth + 1)) {
        choices.push_back(std::move(choice));
      }
    }
    return choices;
  }

  void Compare(const ExprPtr& a, const ExprPtr& b) {
    for (const ExprPtr& left : Choices(a)) {
      for (const ExprPtr& right : Choices(b)) CompareLines(*left, *right);
    }
  }

  void CompareLines(const Expr& a, const Expr& b) {
    std::set<std::string> names;
    if (!CollectAttributes(a, names, 0) || !CollectAttributes(b, names, 0) ||
        names.size() != 1) {
      return;
    }
    std::vector<Exact> differences;
    for (int x : {0, 1, 2}) {
      const auto p = ValueAt(a, x), q = ValueAt(b, x);
      if (!p || !q) return;
      differences.push_back(*p - *q);
      if (!differences.back().IsFinite()) return;
    }
    const Exact slope = differences[1] - differences[0];
    if (slope == Exact(0) || differences[2] - differences[1] != slope) return;
    found[*names.begin()].push_back(StaticValue(-differences[0] / slope));
  }

  // The attributes on which `expr` depends; false where it is more than
  // arithmetic of these.
  bool CollectAttributes(const Expr& expr, std::set<std::string>& names,
                         int depth) const {
    if (depth > kMaxDepth) return false;
    switch (expr.kind) {
      case ExprKind::kNumber:
        return true;
      case ExprKind::kName: {
        if (attributes_.count(expr.text) != 0) {
          names.insert(expr.text);
          return true;
        }
        const auto let = lets_.find(expr.text);
        if (let == lets_.end()) return expr.text == "pi";
        return CollectAttributes(*let->second, names, depth + 1);
      }
      case ExprKind::kUnary:
      case ExprKind::kBinary:
        return std::all_of(expr.children.begin(), expr.children.end(),
                           [&](const ExprPtr& child) {
                             return CollectAttributes(*child, names, depth + 1);
                           });
      default:
        return false;
    }
  }

  // The value of what CollectAttributes takes, where its attribute is x.
  std::optional<Exact> ValueAt(const Expr& expr, const Exact& x) const {
    if (expr.kind == ExprKind::kNumber) {
      const auto value = Exact::Parse(expr.text);
      return value.ok() ? std::make_optional(*value) : std::nullopt;
    }
    if (expr.kind == ExprKind::kName) {
      if (attributes_.count(expr.text) != 0) return x;
      const auto let = lets_.find(expr.text);
      return let == lets_.end() ? Exact::Pi() : ValueAt(*let->second, x);
    }
    const auto a = ValueAt(*expr.children[0], x);
    if (!a) return std::nullopt;
    if (expr.kind == ExprKind::kUnary) {
      return expr.text == "-" ? std::make_optional(-*a) : std::nullopt;
    }
    const auto b = ValueAt(*expr.children[1], x);
    if (!b) return std::nullopt;
    if (expr.text == "+") return *a + *b;
    if (expr.text == "-") return *a - *b;
    if (expr.text == "*") return *a * *b;
    if (expr.text == "/") return *a / *b;
    return std::nullopt;
  }

  std::set<std::string> attributes_;
  std::map<std::string, ExprPtr> lets_;  // those in scope
};

// Whether the `where` clause lets the dtype variable be that.
bool IsAllowed(const Item& item, const std::string& variable, DType dtype) {
  for (const WhereClause& where : item.where) {
    if (where.variable != variable) continue;
    const auto dtype_class = ParseDTypeClass(where.dtype_class);
    return dtype_class.ok() && InClass(dtype, *dtype_class);
  }
  return true;
}

// How far from a constant an attribute is tried: bf16 tells the two apart.
Exact StepBeside(const Exact& constant) {
  const Exact size = constant < Exact(0) ? -constant : constant;
  const Exact part = Exact::FloorDiv(size, 8);
  return part < Exact(1) ? Exact(1) : part;
}

}  // namespace

const std::set<std::string>& ComparisonOperators() {
  static const auto* const comparisons =
      new std::set<std::string>{"==", "!=", "<", "<=", ">", ">="};
  return *comparisons;
}

ComparedValues ComparedConstants(const Item& item) {
  return GuardFinder(item).found;
}

std::map<std::string, std::vector<int64_t>> RequiredSizes(const Item& item) {
  std::set<std::string> names;
  for (const InputDecl& input : item.inputs) {
    for (const AxisExpr& axis : input.type.axes) {
      if (axis.size != nullptr && axis.size->kind == ExprKind::kName) {
        names.insert(axis.size->text);
      }
    }
  }
  ComparedValues found;
  for (const ErrorClause& error : item.errors) {
    CollectCompared(error.condition, names, {"!="}, found);
  }
  std::map<std::string, std::vector<int64_t>> sizes;
  for (const auto& [name, values] : found) {
    for (const StaticValue& value : values) {
      constexpr int64_t kMost = 64;
      if (value.kind() != StaticValue::Kind::kReal) continue;
      const std::optional<int64_t> size = value.AsReal().ToInt64();
      if (size && *size >= 0 && *size <= kMost) sizes[name].push_back(*size);
    }
  }
  return sizes;
}

std::map<std::string, std::vector<DTypeClass>> AskedClasses(const Item& item) {
  std::map<std::string, std::set<std::string>> names;
  for (const BodyPtr& body : {item.body, item.spec}) {
    if (body == nullptr) continue;
    for (const Statement& statement : body->statements) {
      CollectAsked(statement.equation.value, names);
    }
  }
  std::map<std::string, std::vector<DTypeClass>> asked;
  for (size_t w = 1; w < item.where.size(); ++w) {
    for (const std::string& name : names[item.where[w].variable]) {
      const auto dtype_class = ParseDTypeClass(name);
      if (dtype_class.ok()) {
        asked[item.where[w].variable].push_back(*dtype_class);
      }
    }
  }
  return asked;
}

std::vector<StaticValue> AttributeValues(const Item& item,
                                         const AttributeDecl& attribute,
                                         const ComparedValues& compared) {
  std::vector<StaticValue> values;
  const std::string& type = attribute.type;
  if (type == "enum") {
    for (const std::string& value : attribute.enum_values) {
      values.push_back(StaticValue(value));
    }
  } else if (type == "bool") {
    values = {StaticValue(false), StaticValue(true)};
  } else if (type == "int") {
    for (int value : {1, 2, -1, 0, 3, -2}) values.push_back(StaticValue(value));
  } else if (type == "dim") {
    values = {StaticValue(1), StaticValue(2), StaticValue(3), StaticValue(5)};
  } else if (type == "real" || type == "scalar") {
    // All of them are exact in every float dtype; not so their reciprocals.
    // An op that means nothing below 0, or for large numbers, refuses them.
    values = {StaticValue(Exact(2)),  StaticValue(Exact(1) / Exact(2)),
              StaticValue(Exact(3)),  StaticValue(Exact(171) / Exact(512)),
              StaticValue(Exact(-3)), StaticValue(Exact(200))};
  } else if (type == "dtype") {
    for (DType dtype : kSampledDTypes) {
      if (IsAllowed(item, attribute.name, dtype)) {
        values.push_back(StaticValue(dtype));
      }
    }
  }
  const auto constants = compared.find(attribute.name);
  if (constants != compared.end() && !attribute.list) {
    for (const StaticValue& constant : constants->second) {
      const bool is_text = constant.kind() == StaticValue::Kind::kString;
      if (is_text != (type == "str")) continue;
      if (is_text) {
        // One that it is not, too.
        if (values.empty()) values.push_back(StaticValue("sampled"));
        values.push_back(constant);
      } else if (type == "real" || type == "scalar") {
        // On both sides of it, too.
        values.push_back(constant);
        if (constant.AsReal().IsFinite()) {
          const Exact step = StepBeside(constant.AsReal());
          values.push_back(StaticValue(constant.AsReal() - step));
          values.push_back(StaticValue(constant.AsReal() + step));
        }
      } else if (type == "int") {
        const auto below = Exact::FloorDiv(constant.AsReal(), 1).ToInt64();
        if (!below) continue;
        for (int64_t beside : {int64_t{0}, int64_t{-1}, int64_t{1}}) {
          values.push_back(StaticValue(*below + beside));
        }
      }
    }
  }
  return values;
}

}  // namespace cleave
