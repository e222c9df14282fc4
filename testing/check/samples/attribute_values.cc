#include "testing/check/samples/attribute_values.h"

#include <optional>
#include <set>

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

const std::set<std::string>& Comparisons() {
  static const auto* const comparisons =
      new std::set<std::string>{"==", "!=", "<", "<=", ">", ">="};
  return *comparisons;
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

void CollectCompared(const BodyPtr& body, const std::set<std::string>& names,
                     ComparedValues& found) {
  if (body == nullptr) return;
  for (const Statement& statement : body->statements) {
    CollectCompared(statement.equation.value, names, Comparisons(), found);
  }
}

// Whether the `where` clause lets the dtype variable be that.
bool IsAllowed(const Item& item, const std::string& variable, DType dtype) {
  for (const WhereClause& where : item.where) {
    if (where.variable != variable) continue;
    const auto dtype_class = ParseDTypeClass(where.dtype_class);
    return dtype_class.ok() && InClass(dtype, *dtype_class);
  }
  return true;
}

}  // namespace

ComparedValues ComparedConstants(const Item& item) {
  std::set<std::string> names;
  for (const AttributeDecl& attribute : item.attributes) {
    names.insert(attribute.name);
  }
  ComparedValues found;
  CollectCompared(item.body, names, found);
  CollectCompared(item.spec, names, found);
  for (const ErrorClause& error : item.errors) {
    CollectCompared(error.condition, names, Comparisons(), found);
  }
  return found;
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
    values = {StaticValue(Exact(2)), StaticValue(Exact(1) / Exact(2)),
              StaticValue(Exact(3)), StaticValue(Exact(171) / Exact(512))};
  } else if (type == "dtype") {
    for (DType dtype :
         {DType::kF32, DType::kF64, DType::kF16, DType::kI32, DType::kU8}) {
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
          values.push_back(StaticValue(constant.AsReal() - Exact(1)));
          values.push_back(StaticValue(constant.AsReal() + Exact(1)));
        }
      } else if (type == "int" && constant.AsReal().ToInt64()) {
        values.push_back(StaticValue(*constant.AsReal().ToInt64()));
      }
    }
  }
  return values;
}

}  // namespace cleave
