// Signs with a range below them, loops, and the equations of their bodies.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tools/reference/typesetter.h"

namespace cleave::internal {
namespace {

// Folds that a sign says: `fold(t = init, i in list) { t op e }`.
struct FoldSign {
  const char* op;
  const char* init;
  const char* sign;
};
constexpr FoldSign kFoldSigns[] = {
    {"+", "0", "\u2211"},
    {"*", "1", "\u220F"},
    {"and", "true", "\u22C0"},
    {"or", "false", "\u22C1"},
};

bool IsName(const Expr& expr, absl::string_view name) {
  return expr.kind == ExprKind::kName && expr.text == name;
}

bool Mentions(const Expr& expr, absl::string_view name);

bool Mentions(const std::vector<ExprPtr>& exprs, absl::string_view name) {
  for (const ExprPtr& expr : exprs) {
    if (Mentions(*expr, name)) return true;
  }
  return false;
}

bool Mentions(const std::vector<NamedExpr>& exprs, absl::string_view name) {
  for (const NamedExpr& expr : exprs) {
    if (Mentions(*expr.value, name)) return true;
  }
  return false;
}

bool Mentions(const std::vector<Binder>& binders, absl::string_view name) {
  for (const Binder& binder : binders) {
    if (binder.bound != nullptr && Mentions(*binder.bound, name)) return true;
  }
  return false;
}

bool Mentions(const Equation& equation, absl::string_view name) {
  return Mentions(equation.indices, name) || Mentions(*equation.value, name);
}

bool Mentions(const BodyPtr& body, absl::string_view name) {
  if (body == nullptr) return false;
  for (const Statement& statement : body->statements) {
    if (Mentions(statement.equation, name)) return true;
  }
  return false;
}

// Whether the name stands anywhere in the expression, bound there or not.
bool Mentions(const Expr& expr, absl::string_view name) {
  if (IsName(expr, name) || Mentions(expr.children, name) ||
      Mentions(expr.named, name) || Mentions(expr.seconds, name) ||
      Mentions(expr.named_seconds, name) || Mentions(expr.binders, name) ||
      Mentions(expr.body, name) || Mentions(expr.else_body, name)) {
    return true;
  }
  for (const Equation& field : expr.fields) {
    if (Mentions(field, name)) return true;
  }
  return false;
}

// The terms of `a and b and c`.
void Conjuncts(const Expr& expr, std::vector<const Expr*>* terms) {
  if (expr.kind == ExprKind::kBinary && expr.text == "and") {
    Conjuncts(*expr.children[0], terms);
    Conjuncts(*expr.children[1], terms);
  } else {
    terms->push_back(&expr);
  }
}

// Whether the condition is one on the size of the index.
bool Bounds(const Expr& condition, absl::string_view index) {
  return condition.kind == ExprKind::kBinary &&
         (condition.text == "<" || condition.text == "<=" ||
          condition.text == ">" || condition.text == ">=") &&
         IsName(*condition.children[0], index) &&
         !Mentions(*condition.children[1], index);
}

// `i, 0 <= j < n : c, d`, on a line.
MathBox SuchThat(std::vector<MathBox> binders,
                 std::vector<MathBox> conditions) {
  MathBox row = CommaRow(std::move(binders));
  if (conditions.empty()) return row;
  return Row({std::move(row), Symbol(Operator(":"), 0),
              CommaRow(std::move(conditions))});
}

constexpr char kNoSpace[] = "lspace=\"0\" rspace=\"0\"";

// More symbols than these stand in rows below a sign.
constexpr int kMostOnOneLine = 9;

}  // namespace

MathBox Typesetter::BinderBox(const Binder& binder, bool small) const {
  if (binder.bound == nullptr) return Name(binder.name);
  MathBox low = InfixBox(NumberBox("0"), Operator("\u2264"), Name(binder.name),
                         Binding::kComparison);
  low.binding = Binding::kRange;  // `0 <= i < n`
  return InfixBox(std::move(low), Operator("<"), Of(*binder.bound, small),
                  Binding::kComparison);
}

Typesetter::Range Typesetter::RangeOf(const Expr& reduce, bool small) const {
  Range range;
  std::vector<MathBox> free;
  for (const Binder& binder : reduce.binders) {
    (binder.bound == nullptr ? free : range.binders)
        .push_back(BinderBox(binder, small));
  }
  if (!free.empty()) {
    range.binders.insert(range.binders.begin(), CommaRow(std::move(free)));
  }
  std::vector<const Expr*> terms;
  if (reduce.children.size() > 1) Conjuncts(*reduce.children[1], &terms);
  for (const Expr* term : terms) range.conditions.push_back(Of(*term, small));
  return range;
}

MathBox Typesetter::Reduce(const Expr& expr, bool small) const {
  const Expr& body = *expr.children[0];
  const bool counts = expr.text == "sum" && expr.children.size() > 1 &&
                      body.kind == ExprKind::kNumber && body.text == "1";
  if (counts) {
    // How many there are: #{i : x_i = 0}.
    Range range = RangeOf(expr, small);
    MathBox box = Row(
        {Symbol(Operator("#", kNoSpace)),
         Fenced(SuchThat(std::move(range.binders), std::move(range.conditions)),
                "{", "}")});
    box.binding = Binding::kCall;
    return box;
  }
  const std::string sign = expr.text == "sum"    ? Operator("\u2211")
                           : expr.text == "prod" ? Operator("\u220F")
                                                 : NameBox(expr.text).content;
  // `j if j <= i` is j <= i.
  if (expr.children.size() > 1 && expr.binders.size() == 1 &&
      expr.binders[0].bound == nullptr &&
      Bounds(*expr.children[1], expr.binders[0].name)) {
    return BigBox(sign, Of(*expr.children[1], /*small=*/true), Of(body, small));
  }
  Range range = RangeOf(expr, /*small=*/true);
  std::vector<MathBox> rows = range.binders;
  rows.insert(rows.end(), range.conditions.begin(), range.conditions.end());
  int size = 0;
  for (const MathBox& row : rows) size += row.size;
  const MathBox under =
      size > kMostOnOneLine
          ? StackBox(rows)
          : SuchThat(std::move(range.binders), std::move(range.conditions));
  return BigBox(sign, under, Of(body, small));
}

std::optional<MathBox> Typesetter::SignedFold(const Expr& expr) const {
  const Equation& carry = expr.fields[0];
  const std::vector<Statement>& body = expr.body->statements;
  if (body.size() != 1 || body[0].kind != StatementKind::kResult ||
      !body[0].equation.name.empty()) {
    return std::nullopt;
  }
  const Expr& step = *body[0].equation.value;
  if (step.kind != ExprKind::kBinary) return std::nullopt;
  for (const FoldSign& sign : kFoldSigns) {
    const ExprKind kind =
        sign.init[0] <= '9' ? ExprKind::kNumber : ExprKind::kName;
    if (step.text != sign.op || carry.value->kind != kind ||
        carry.value->text != sign.init) {
      continue;
    }
    const bool first = IsName(*step.children[0], carry.name);
    const Expr& term = *step.children[first ? 1 : 0];
    if (!first && !IsName(*step.children[1], carry.name)) continue;
    if (Mentions(term, carry.name)) continue;
    return BigBox(
        Operator(sign.sign),
        Membership(expr.binders[0].name, *expr.children[0], /*small=*/true),
        Of(term));
  }
  return std::nullopt;
}

MathBox Typesetter::Assignment(const Equation& equation) const {
  MathBox value = Of(*equation.value);
  if (equation.name.empty()) return value;
  MathBox left = Name(equation.name);
  if (!equation.indices.empty()) {
    std::vector<MathBox> indices;
    for (const Binder& binder : equation.indices) {
      indices.push_back(Name(binder.name));
    }
    left = IndexBox(std::move(left), CommaRow(std::move(indices)));
  }
  return InfixBox(std::move(left), Operator("="), std::move(value),
                  Binding::kDefinition);
}

MathBox Typesetter::OfEquation(const Equation& equation) const {
  std::vector<MathBox> bounds;
  for (const Binder& binder : equation.indices) {
    if (binder.bound != nullptr) {
      bounds.push_back(BinderBox(binder, /*small=*/false));
    }
  }
  MathBox box = Assignment(equation);
  if (bounds.empty()) return box;
  return Row(
      {std::move(box), Symbol(Words("  for ")), CommaRow(std::move(bounds))});
}

MathBox Typesetter::OfStatement(const Statement& statement) const {
  std::string inputs;
  for (const Statement::OverrideInput& input : statement.inputs) {
    absl::StrAppend(&inputs, inputs.empty() ? "" : ", ", input.name,
                    input.unbatched ? "@_" : "");
  }
  switch (statement.kind) {
    case StatementKind::kLet:
    case StatementKind::kResult:
      return OfEquation(statement.equation);
    case StatementKind::kJvp:
      if (inputs.empty()) {
        return Row({Symbol(Words("jvp ")), OfEquation(statement.equation)});
      }
      return Row({Symbol(Words(absl::StrCat("jvp ", statement.equation.name,
                                            " (", inputs, ") = "))),
                  Of(*statement.equation.value)});
    case StatementKind::kVmap:
    case StatementKind::kVjp: {
      const bool vmap = statement.kind == StatementKind::kVmap;
      return Row({Symbol(Words(
                      absl::StrCat(vmap ? "vmap (" : "vjp (", inputs, ") = "))),
                  Of(*statement.equation.value)});
    }
  }
  return {};
}

MathBox Typesetter::Region(const Expr& expr) const {
  std::vector<MathBox> head;
  for (const Equation& field : expr.fields) head.push_back(OfEquation(field));
  std::string name;
  std::string otherwise;
  size_t lists = 0;
  switch (expr.kind) {
    case ExprKind::kFold:
      name = "fold ";
      lists = 1;
      break;
    case ExprKind::kScan:
    case ExprKind::kMap:
      name = expr.kind == ExprKind::kScan ? "scan " : "map ";
      lists = expr.children.size();
      break;
    case ExprKind::kCond:
      name = "if ";
      head.push_back(Of(*expr.children[0]));
      otherwise = "otherwise";
      break;
    case ExprKind::kWhile:
      name = "from ";
      break;
    default:
      return RuleTextBox(PrintExpr(expr));
  }
  for (size_t i = 0; i < lists; ++i) {
    head.push_back(Membership(expr.binders[i].name, *expr.children[i],
                              /*small=*/false));
  }
  std::vector<MathBox> line = {Symbol(Words(name)), CommaRow(std::move(head))};
  if (expr.kind == ExprKind::kWhile) {
    line.push_back(Symbol(Words(" while ")));
    line.push_back(Of(*expr.children[0]));
    if (expr.children.size() > 1) {
      line.push_back(Symbol(Words(", at most ")));
      line.push_back(Of(*expr.children[1]));
      line.push_back(Symbol(Words(" times")));
    }
  }
  line.push_back(Symbol(Words(":")));
  std::vector<std::vector<MathBox>> rows = {{Row(std::move(line))}};
  const auto add = [&](const BodyPtr& body) {
    if (body == nullptr) return;
    for (const Statement& statement : body->statements) {
      rows.push_back({Row(
          {Symbol("<mspace width=\"1.5em\"/>", 0), OfStatement(statement)})});
    }
  };
  add(expr.body);
  if (!otherwise.empty()) {
    rows.push_back({Symbol(Words(absl::StrCat(otherwise, ":")))});
    add(expr.else_body);
  }
  return TableBox(rows, /*brace=*/false);
}

}  // namespace cleave::internal
