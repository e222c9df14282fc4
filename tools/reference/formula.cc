#include "tools/reference/formula.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "testing/report/html.h"
#include "tools/reference/math_box.h"
#include "tools/reference/typesetter.h"

namespace cleave {
namespace internal {
namespace {

std::string Math(const MathBox& box) {
  return Element("math", box.content, "display=\"block\"");
}

// The results of an op that has no names for them are called y.
MathBox ResultNames(const Item& item) {
  if (item.results.size() <= 1) {
    const bool named = !item.results.empty() && !item.results[0].name.empty();
    return Typesetter::Name(named ? item.results[0].name : "y");
  }
  std::vector<MathBox> names;
  for (const ResultDecl& result : item.results) {
    names.push_back(Typesetter::Name(result.name));
  }
  return Fenced(CommaRow(std::move(names)));
}

// `(a = e, b = e)` or `(e, e)` as an equation for each result, or none where
// the value is no such record.
std::vector<Equation> ResultEquations(const Item& item, const Expr& value) {
  if (value.kind != ExprKind::kRecord) return {};
  std::vector<Equation> equations = value.fields;
  for (size_t i = 0; i < equations.size(); ++i) {
    if (!equations[i].name.empty()) continue;
    if (equations.size() != item.results.size()) return {};
    equations[i].name = item.results[i].name;
  }
  return equations;
}

std::set<std::string> OptionalNames(const Item& item) {
  std::set<std::string> names;
  for (const InputDecl& input : item.inputs) {
    if (input.optional) names.insert(input.name);
  }
  for (const AttributeDecl& attribute : item.attributes) {
    if (attribute.optional) names.insert(attribute.name);
  }
  return names;
}

std::string Formulas(const Item& item) {
  const Typesetter typesetter(OptionalNames(item));
  std::string html;
  if (item.spec != nullptr) {
    for (const Statement& statement : item.spec->statements) {
      const Equation& equation = statement.equation;
      if (statement.kind != StatementKind::kResult || !equation.name.empty()) {
        absl::StrAppend(&html, Math(typesetter.OfStatement(statement)));
        continue;
      }
      const std::vector<Equation> results =
          ResultEquations(item, *equation.value);
      for (const Equation& result : results) {
        absl::StrAppend(&html, Math(typesetter.OfEquation(result)));
      }
      if (results.empty()) {
        absl::StrAppend(&html, Math(InfixBox(ResultNames(item), Operator("="),
                                             typesetter.Of(*equation.value),
                                             Binding::kDefinition)));
      }
    }
  }
  for (const Law& law : item.laws) {
    std::vector<MathBox> parts = {typesetter.Of(*law.relation)};
    if (law.condition != nullptr) {
      parts.push_back(Symbol(Words("  if ")));
      parts.push_back(typesetter.OfCondition(*law.condition));
    }
    absl::StrAppend(&html, Math(Row(std::move(parts))));
  }
  return html;
}

}  // namespace
}  // namespace internal

std::string SpecFormula(const Item& item) { return internal::Formulas(item); }

std::string ExpressionMathML(const Expr& expr) {
  return internal::Typesetter({}).Of(expr).Element();
}

}  // namespace cleave
