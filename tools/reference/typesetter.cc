#include "tools/reference/typesetter.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "testing/report/html.h"

namespace cleave::internal {
namespace {

// Names with a letter of their own.
constexpr std::pair<const char*, const char*> kLetters[] = {
    {"alpha", "\u03B1"}, {"beta", "\u03B2"},    {"gamma", "\u03B3"},
    {"delta", "\u03B4"}, {"epsilon", "\u03B5"}, {"eps", "\u03B5"},
    {"zeta", "\u03B6"},  {"eta", "\u03B7"},     {"theta", "\u03B8"},
    {"kappa", "\u03BA"}, {"lambda", "\u03BB"},  {"mu", "\u03BC"},
    {"nu", "\u03BD"},    {"xi", "\u03BE"},      {"pi", "\u03C0"},
    {"rho", "\u03C1"},   {"sigma", "\u03C3"},   {"tau", "\u03C4"},
    {"phi", "\u03C6"},   {"chi", "\u03C7"},     {"psi", "\u03C8"},
    {"omega", "\u03C9"}, {"inf", "\u221E"},     {"nan", "NaN"},
};

// Operators that compare: as they are, and denied.
struct ComparisonSign {
  const char* text;
  const char* sign;
  const char* denied;
};
constexpr ComparisonSign kComparisons[] = {
    {"==", "=", "\u2260"},      {"!=", "\u2260", "="},
    {"<", "<", "\u226E"},       {"<=", "\u2264", "\u2270"},
    {">", ">", "\u226F"},       {">=", "\u2265", "\u2271"},
    {"in", "\u2208", "\u2209"}, {"is", "is", "is not"},
};

const ComparisonSign* FindComparison(absl::string_view text) {
  for (const ComparisonSign& sign : kComparisons) {
    if (text == sign.text) return &sign;
  }
  return nullptr;
}

constexpr char kMinus[] = "\u2212";
constexpr char kApply[] = "\u2061";
constexpr char kNoSpace[] = "lspace=\"0\" rspace=\"0\"";

// The nodes of an expression that an index, an exponent of e and a side of a
// slash may have to be read with ease.
constexpr int kMostInIndex = 12;
constexpr int kMostInExponent = 9;
constexpr int kMostBySlash = 6;

// Whether an expression is small enough for an exponent, an index or one side
// of a slash. Looks at `*nodes` of it at most, so that asking on each level of
// a deep one costs little.
bool IsSlight(const Expr& expr, int* nodes) {
  if (--*nodes < 0) return false;
  switch (expr.kind) {
    case ExprKind::kNumber:
    case ExprKind::kString:
    case ExprKind::kName:
    case ExprKind::kUnary:
    case ExprKind::kBinary:
    case ExprKind::kMember:
    case ExprKind::kIndex:
    case ExprKind::kSpread:
    case ExprKind::kList:
      break;
    case ExprKind::kCall:
      if (expr.text == "select" || !expr.named.empty()) return false;
      break;
    case ExprKind::kIf:
    case ExprKind::kTransformCall:
    case ExprKind::kComprehension:
    case ExprKind::kRecord:
    case ExprKind::kReduce:
    case ExprKind::kFold:
    case ExprKind::kScan:
    case ExprKind::kMap:
    case ExprKind::kCond:
    case ExprKind::kWhile:
    case ExprKind::kTie:
      return false;
  }
  return std::all_of(
      expr.children.begin(), expr.children.end(),
      [&](const ExprPtr& child) { return IsSlight(*child, nodes); });
}

bool IsSlight(const Expr& expr, int nodes) { return IsSlight(expr, &nodes); }

bool IsSelect(const Expr& expr) {
  return expr.kind == ExprKind::kCall && expr.text == "select" &&
         expr.children.size() == 3 && expr.named.empty();
}

}  // namespace

MathBox Typesetter::Name(absl::string_view name) {
  for (const auto& [text, letter] : kLetters) {
    if (name == text) return NameBox(letter);
  }
  return NameBox(name);
}

// `1e-5` as a power of ten.
MathBox Typesetter::Number(absl::string_view text) const {
  const size_t at = text.find_first_of("eE");
  if (at == absl::string_view::npos || text[0] == '-' ||
      text.find_first_of("xX") != absl::string_view::npos) {
    return NumberBox(text);
  }
  absl::string_view exponent = text.substr(at + 1);
  const bool negative = absl::ConsumePrefix(&exponent, "-");
  absl::ConsumePrefix(&exponent, "+");
  MathBox power = NumberBox(exponent);
  if (negative) power = Row({Symbol(Operator(kMinus), 0), power});
  power = PowerBox(NumberBox("10"), power);
  if (text.substr(0, at) == "1") return power;
  return ProductBox(NumberBox(text.substr(0, at)), std::move(power));
}

MathBox Typesetter::Unary(const Expr& expr, bool small) const {
  const Expr& operand = *expr.children[0];
  if (expr.text == "-") {
    MathBox box = Row({Symbol(Operator(kMinus), 0),
                       Operand(Of(operand, small), Binding::kProduct)});
    box.binding = Binding::kMinus;
    box.first = Edge::kOther;
    return box;
  }
  if (expr.text != "not") return RuleTextBox(PrintExpr(expr));
  if (operand.kind == ExprKind::kBinary) {
    if (const ComparisonSign* sign = FindComparison(operand.text)) {
      return Comparison(operand, sign->denied, small);
    }
  }
  MathBox box = Row({Symbol(Operator("\u00AC"), 0),
                     Operand(Of(operand, small), Binding::kCall)});
  box.binding = Binding::kFactor;
  box.first = Edge::kOther;
  return box;
}

MathBox Typesetter::Comparison(const Expr& expr, absl::string_view sign,
                               bool small) const {
  const bool words = expr.text == "is";
  return InfixBox(Of(*expr.children[0], small),
                  words ? Words(absl::StrCat(" ", sign, " ")) : Operator(sign),
                  Of(*expr.children[1], small), Binding::kComparison);
}

MathBox Typesetter::Quotient(const Expr& expr, bool small) const {
  const Expr& left = *expr.children[0];
  const Expr& right = *expr.children[1];
  if (small && IsSlight(left, kMostBySlash) && IsSlight(right, kMostBySlash)) {
    return SlashBox(Of(left, small), Of(right, small));
  }
  return FractionBox(Of(left, small), Of(right, small));
}

MathBox Typesetter::Power(const Expr& base, const Expr& exponent,
                          bool small) const {
  return PowerBox(Of(base, small), Of(exponent, /*small=*/true));
}

MathBox Typesetter::Binary(const Expr& expr, bool small) const {
  const absl::string_view op = expr.text;
  if (const ComparisonSign* sign = FindComparison(op)) {
    return Comparison(expr, sign->sign, small);
  }
  if (op == "/") return Quotient(expr, small);
  if (op == "//") {
    return Fenced(Quotient(expr, small), "\u230A", "\u230B");
  }
  if (op == "^") return Power(*expr.children[0], *expr.children[1], small);
  MathBox left = Of(*expr.children[0], small);
  MathBox right = Of(*expr.children[1], small);
  if (op == "*" || op == "@") {
    return ProductBox(std::move(left), std::move(right), op == "@");
  }
  const auto infix = [&](std::string sign, Binding binding) {
    return InfixBox(std::move(left), std::move(sign), std::move(right),
                    binding);
  };
  if (op == "+") return infix(Operator("+"), Binding::kSum);
  if (op == "-") return infix(Operator(kMinus), Binding::kSum);
  if (op == "and") return infix(Operator("\u2227"), Binding::kAnd);
  if (op == "or") return infix(Operator("\u2228"), Binding::kOr);
  if (op == "++")
    return infix(Operator("++", "lspace=\"0.2em\" rspace=\"0.2em\""),
                 Binding::kConcat);
  if (op == "..") return infix(Operator("..", kNoSpace), Binding::kRange);
  if (op == "%") {
    return infix(Operator("mod", "lspace=\"0.3em\" rspace=\"0.3em\""),
                 Binding::kMod);
  }
  if (op == "??") {
    MathBox box = Row({Operand(std::move(left), Binding::kOr, Opening::kTerm),
                       Symbol(Words(", else ")), std::move(right)});
    box.binding = Binding::kLoosest;
    return box;
  }
  return RuleTextBox(PrintExpr(expr));
}

MathBox Typesetter::OfCondition(const Expr& condition) const {
  const bool denied =
      condition.kind == ExprKind::kUnary && condition.text == "not";
  const Expr& name = denied ? *condition.children[0] : condition;
  if (name.kind == ExprKind::kName && optional_.count(name.text) > 0) {
    return Row({Name(name.text),
                Symbol(Words(denied ? " is not given" : " is given"))});
  }
  return Of(condition);
}

// Cases within the last of cases are further rows.
MathBox Typesetter::Cases(const Expr& expr) const {
  std::vector<std::vector<MathBox>> rows;
  const Expr* at = &expr;
  while (at != nullptr && (at->kind == ExprKind::kIf || IsSelect(*at))) {
    const bool select = IsSelect(*at);
    const Expr& condition = *at->children[0];
    rows.push_back({Of(*at->children[1]),
                    Row({Symbol(Words("if ")),
                         select ? Of(condition) : OfCondition(condition)})});
    at = at->children.size() > 2 ? at->children[2].get() : nullptr;
  }
  if (at != nullptr) rows.push_back({Of(*at), Symbol(Words("otherwise"))});
  return TableBox(rows, /*brace=*/true);
}

MathBox Typesetter::Arguments(const std::vector<ExprPtr>& positional,
                              const std::vector<NamedExpr>& named,
                              bool small) const {
  std::vector<MathBox> boxes;
  for (const ExprPtr& argument : positional) {
    boxes.push_back(Of(*argument, small));
  }
  for (const NamedExpr& argument : named) {
    boxes.push_back(InfixBox(Name(argument.name), Operator("="),
                             Of(*argument.value, small), Binding::kDefinition));
  }
  return Fenced(CommaRow(std::move(boxes)));
}

MathBox Typesetter::Exponential(const Expr& exponent, bool small) const {
  if (!small && IsSlight(exponent, kMostInExponent)) {
    // Upright, unlike a variable e.
    return PowerBox(Symbol("<mi mathvariant=\"normal\">e</mi>"),
                    Of(exponent, /*small=*/true));
  }
  MathBox box = Row({NameBox("exp"), Symbol(Operator(kApply), 0),
                     Fenced(Of(exponent, small))});
  box.binding = Binding::kCall;
  return box;
}

std::optional<MathBox> Typesetter::SignedCall(const Expr& expr,
                                              bool small) const {
  if (!expr.named.empty() || expr.children.empty()) return std::nullopt;
  const Expr& first = *expr.children[0];
  if (IsSelect(expr)) return Cases(expr);
  if (expr.text == "pow" && expr.children.size() == 2) {
    return Power(first, *expr.children[1], small);
  }
  if (expr.children.size() != 1) return std::nullopt;
  if (expr.text == "exp") return Exponential(first, small);
  if (expr.text == "abs") return Fenced(Of(first, small), "|", "|");
  if (expr.text == "floor") {
    return Fenced(Of(first, small), "\u230A", "\u230B");
  }
  if (expr.text == "ceil") return Fenced(Of(first, small), "\u2308", "\u2309");
  if (expr.text == "sqrt") {
    const MathBox inner = Of(first, small);
    MathBox box = Symbol(Element("msqrt", inner.content), inner.size + 1);
    box.binding = Binding::kCall;
    box.tall = inner.tall;
    return box;
  }
  if (expr.text == "lgamma") {
    // The logarithm of the magnitude, where gamma is negative.
    MathBox box =
        Row({NameBox("log"), Symbol(Operator(kApply), 0),
             Fenced(Row({NameBox("\u0393"), Symbol(Operator(kApply), 0),
                         Fenced(Of(first, small))}),
                    "|", "|")});
    box.binding = Binding::kCall;
    return box;
  }
  return std::nullopt;
}

MathBox Typesetter::Call(const Expr& expr, bool small) const {
  if (std::optional<MathBox> box = SignedCall(expr, small)) return *box;
  MathBox name = NameBox(expr.text);
  if (expr.text == "log2" || expr.text == "log10") {
    name = IndexBox(NameBox("log"), NumberBox(expr.text.substr(3)));
  }
  MathBox box = Row({std::move(name), Symbol(Operator(kApply), 0),
                     Arguments(expr.children, expr.named, small)});
  box.binding = Binding::kCall;
  // A thin space parts it from a number or letter before it.
  if (box.first == Edge::kWord) box.first = Edge::kFunction;
  return box;
}

MathBox Typesetter::Index(const Expr& expr, bool small) const {
  MathBox base = Of(*expr.children[0], small);
  if (expr.children.size() == 1) return base;
  // Long indices would be hard to read as such.
  int nodes = kMostInIndex;
  const bool low = std::all_of(
      expr.children.begin() + 1, expr.children.end(),
      [&](const ExprPtr& index) { return IsSlight(*index, &nodes); });
  std::vector<MathBox> indices;
  for (size_t i = 1; i < expr.children.size(); ++i) {
    const Expr& index = *expr.children[i];
    // A pack, and a list of indices, is known by where it stands.
    const bool spread = index.kind == ExprKind::kSpread;
    indices.push_back(Of(spread ? *index.children[0] : index, small || low));
  }
  MathBox row = CommaRow(std::move(indices));
  if (low) return IndexBox(std::move(base), row);
  // A list of indices has its own brackets.
  const bool list = expr.children.size() == 2 &&
                    expr.children[1]->kind == ExprKind::kSpread &&
                    expr.children[1]->children[0]->kind != ExprKind::kName;
  base = Operand(std::move(base), Binding::kCall);
  return Row({std::move(base), list ? row : Fenced(row, "[", "]")});
}

MathBox Typesetter::Membership(absl::string_view name, const Expr& list,
                               bool small) const {
  if (list.kind == ExprKind::kBinary && list.text == "..") {
    MathBox low = InfixBox(Of(*list.children[0], small), Operator("\u2264"),
                           Name(name), Binding::kComparison);
    // A chain, which the language does not have.
    low.binding = Binding::kRange;
    return InfixBox(std::move(low), Operator("<"), Of(*list.children[1], small),
                    Binding::kComparison);
  }
  return InfixBox(Name(name), Operator("\u2208"), Of(list, small),
                  Binding::kComparison);
}

MathBox Typesetter::Comprehension(const Expr& expr, bool small) const {
  std::vector<MathBox> range = {
      Membership(expr.binders[0].name, *expr.children[1], small)};
  if (expr.children.size() > 2) {
    range.push_back(Of(*expr.children[2], small));
  }
  return Fenced(Row({Operand(Of(*expr.children[0], small), Binding::kLoosest,
                             Opening::kComma),
                     Symbol(Words(" for ")), CommaRow(std::move(range))}),
                "[", "]");
}

MathBox Typesetter::Record(const Expr& expr) const {
  std::vector<MathBox> fields;
  for (const Equation& field : expr.fields) fields.push_back(OfEquation(field));
  return Fenced(CommaRow(std::move(fields)));
}

MathBox Typesetter::Of(const Expr& expr, bool small) const {
  switch (expr.kind) {
    case ExprKind::kNumber:
      return Number(expr.text);
    case ExprKind::kString: {
      MathBox box = Symbol(Words(absl::StrCat("\"", expr.text, "\"")));
      box.first = box.last = Edge::kWord;
      return box;
    }
    case ExprKind::kName:
      return Name(expr.text);
    case ExprKind::kUnary:
      return Unary(expr, small);
    case ExprKind::kBinary:
      return Binary(expr, small);
    case ExprKind::kIf:
      return Cases(expr);
    case ExprKind::kCall:
      return Call(expr, small);
    case ExprKind::kTransformCall: {
      MathBox box = Row({Symbol(Words(absl::StrCat(expr.text, " "))),
                         NameBox(expr.callee), Symbol(Operator(kApply), 0),
                         Arguments(expr.children, expr.named, small),
                         Arguments(expr.seconds, expr.named_seconds, small)});
      box.binding = Binding::kCall;
      box.first = Edge::kWord;
      return box;
    }
    case ExprKind::kMember: {
      MathBox box =
          Row({Operand(Of(*expr.children[0], small), Binding::kCall),
               Symbol(Operator(".", kNoSpace), 0), NameBox(expr.text)});
      box.first = box.last = Edge::kWord;
      return box;
    }
    case ExprKind::kIndex:
      return Index(expr, small);
    case ExprKind::kSpread:
      return Row({Operand(Of(*expr.children[0], small), Binding::kCall),
                  Symbol(Operator("..", kNoSpace), 0)});
    case ExprKind::kList: {
      std::vector<MathBox> elements;
      for (const ExprPtr& element : expr.children) {
        elements.push_back(Of(*element, small));
      }
      return Fenced(CommaRow(std::move(elements)), "[", "]");
    }
    case ExprKind::kComprehension:
      return Comprehension(expr, small);
    case ExprKind::kRecord:
      return Record(expr);
    case ExprKind::kReduce:
      return Reduce(expr, small);
    case ExprKind::kFold:
      if (std::optional<MathBox> box = SignedFold(expr)) return *box;
      return Region(expr);
    case ExprKind::kScan:
    case ExprKind::kMap:
    case ExprKind::kCond:
    case ExprKind::kWhile:
      return Region(expr);
    case ExprKind::kTie: {
      MathBox box =
          Row({Operand(Of(*expr.children[0], small), Binding::kCall),
               Symbol(Words(absl::StrCat(" @tie(", expr.text, ")")))});
      box.binding = Binding::kCall;
      box.last = Edge::kWord;
      return box;
    }
  }
  return RuleTextBox(PrintExpr(expr));
}

}  // namespace cleave::internal
