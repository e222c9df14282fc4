#include "testing/check/samples/attribute_values.h"

#include <set>

#include "ops/dtype.h"
#include "ops/exact.h"

namespace cleave {
namespace {

// Each attribute that stands in a comparison with a literal, and the literals.
void CollectCompared(const ExprPtr& expr, const std::set<std::string>& names,
                     ComparedValues& found) {
  if (expr == nullptr) return;
  static const std::set<std::string> kComparisons = {"==", "!=", "<",
                                                     "<=", ">",  ">="};
  if (expr->kind == ExprKind::kBinary && kComparisons.count(expr->text)) {
    for (int side = 0; side < 2; ++side) {
      const Expr& name = *expr->children[side];
      const Expr& literal = *expr->children[1 - side];
      if (name.kind != ExprKind::kName || names.count(name.text) == 0) continue;
      if (literal.kind == ExprKind::kNumber ||
          (literal.kind == ExprKind::kName && literal.text == "inf")) {
        const auto value = Exact::Parse(literal.text);
        if (value.ok()) found[name.text].push_back(StaticValue(*value));
      }
    }
  }
  for (const ExprPtr& child : expr->children) {
    CollectCompared(child, names, found);
  }
  for (const NamedExpr& named : expr->named) {
    CollectCompared(named.value, names, found);
  }
  for (const Equation& field : expr->fields) {
    CollectCompared(field.value, names, found);
  }
}

void CollectCompared(const BodyPtr& body, const std::set<std::string>& names,
                     ComparedValues& found) {
  if (body == nullptr) return;
  for (const Statement& statement : body->statements) {
    CollectCompared(statement.equation.value, names, found);
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
    CollectCompared(error.condition, names, found);
  }
  return found;
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
    values = {StaticValue(1), StaticValue(2), StaticValue(3)};
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
      if (type == "real" || type == "scalar") {
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
