#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "testing/mutate/expr_mutations.h"

namespace cleave {
namespace {

// The text of a type, to find those that are alike.
std::string TextOf(const TypeExpr& type) {
  std::string text = type.dtype == nullptr ? "" : PrintExpr(*type.dtype);
  for (const AxisExpr& axis : type.axes) {
    absl::StrAppend(&text, " ",
                    axis.size == nullptr ? "" : PrintExpr(*axis.size));
  }
  return text;
}

}  // namespace

ItemNames::ItemNames(const Item& item) {
  std::map<std::string, std::vector<std::string>> by_type;
  for (const InputDecl& input : item.inputs) {
    by_type[absl::StrCat("input ", input.optional, input.is_static,
                         input.variadic_index, TextOf(input.type))]
        .push_back(input.name);
  }
  for (const AttributeDecl& attribute : item.attributes) {
    if (attribute.default_value != nullptr) {
      defaults[attribute.name] = attribute.default_value;
    }
    std::string type = absl::StrCat("attribute ", attribute.type,
                                    attribute.list, attribute.optional);
    for (const std::string& value : attribute.enum_values) {
      absl::StrAppend(&type, " ", value);
    }
    by_type[type].push_back(attribute.name);
  }
  for (const AttributeDecl& attribute : item.attributes) {
    statics.insert(attribute.name);
  }
  for (const NamedExpr& let : item.lets) statics.insert(let.name);
  for (const InputDecl& input : item.inputs) {
    for (const AxisExpr& axis : input.type.axes) {
      if (axis.size != nullptr && axis.size->kind == ExprKind::kName) {
        statics.insert(axis.size->text);
      }
    }
  }
  // A jvp item or a def has parameters of one kind.
  for (const std::string& parameter : item.parameters) {
    by_type["parameter"].push_back(parameter);
  }
  for (const auto& [type, same] : by_type) {
    for (const std::string& name : same) {
      for (const std::string& other : same) {
        if (other != name) alike[name].push_back(other);
      }
    }
  }
}

bool Mentions(const Expr& expr, const std::set<std::string>& names) {
  if (expr.kind == ExprKind::kName && names.count(expr.text) != 0) return true;
  const auto mentions = [&](const ExprPtr& e) {
    return e != nullptr && Mentions(*e, names);
  };
  const auto any = [&](const auto& list, const auto& value) {
    return std::any_of(list.begin(), list.end(), [&](const auto& element) {
      return mentions(value(element));
    });
  };
  const auto itself = [](const ExprPtr& e) -> const ExprPtr& { return e; };
  const auto value = [](const auto& n) -> const ExprPtr& { return n.value; };
  return any(expr.children, itself) || any(expr.named, value) ||
         any(expr.seconds, itself) || any(expr.named_seconds, value) ||
         any(expr.fields, value);
}

}  // namespace cleave
