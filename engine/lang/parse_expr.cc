// Expressions.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/lang/parser_internal.h"

namespace cleave::internal {

int Parser::TakeHeightOf(const void* node) {
  const auto found = heights_.find(node);
  if (found == heights_.end()) return 0;
  const int height = found->second;
  heights_.erase(found);
  return height;
}

int Parser::TakeHeightOf(const Body* body) {
  int height = 0;
  if (body == nullptr) return 0;
  for (const Statement& statement : body->statements) {
    height = std::max(height, TakeHeightOf(statement.equation.value.get()));
    for (const Binder& binder : statement.equation.indices) {
      height = std::max(height, TakeHeightOf(binder.bound.get()));
    }
  }
  return height;
}

// Every walk over a tree recurs, so that its height is limited, also where the
// parser itself goes round a loop: `a + b + c`, `x[i][j]`.
ExprPtr Parser::Make(Expr expr, uint32_t begin) {
  expr.range = RangeFrom(begin);
  int height = 0;
  const auto visit = [&](const ExprPtr& child) {
    height = std::max(height, TakeHeightOf(child.get()));
  };
  for (const ExprPtr& child : expr.children) visit(child);
  for (const NamedExpr& child : expr.named) visit(child.value);
  for (const ExprPtr& child : expr.seconds) visit(child);
  for (const NamedExpr& child : expr.named_seconds) visit(child.value);
  for (const Equation& field : expr.fields) {
    visit(field.value);
    for (const Binder& binder : field.indices) visit(binder.bound);
  }
  for (const Binder& binder : expr.binders) visit(binder.bound);
  height = std::max(height, TakeHeightOf(expr.body.get()));
  height = std::max(height, TakeHeightOf(expr.else_body.get()));
  if (height + 1 > kMaxNesting) {
    FailNesting();
    return Placeholder();
  }
  auto made = std::make_shared<const Expr>(std::move(expr));
  if (height > 0 || !made->children.empty()) heights_[made.get()] = height + 1;
  return made;
}

ExprPtr Parser::Placeholder() {
  Expr expr;
  expr.text = "_";
  expr.range = RangeFrom(Begin());
  return std::make_shared<const Expr>(std::move(expr));
}

ExprPtr Parser::ParseExpr() {
  const Depth depth(this);
  if (panic_) return Placeholder();
  if (At("if")) return ParseIf();
  return ParseBinary(kPrecedenceCoalesce);
}

ExprPtr Parser::ParseIf() {
  const uint32_t begin = Begin();
  Expr expr;
  expr.kind = ExprKind::kIf;
  Expect("if", "here");
  expr.children.push_back(ParseExpr());
  Expect("then", "after the condition");
  expr.children.push_back(ParseExpr());
  if (Take("else")) expr.children.push_back(ParseExpr());
  return Make(std::move(expr), begin);
}

ExprPtr Parser::ParseBinary(int min_precedence) {
  const Depth depth(this);
  const uint32_t begin = Begin();
  ExprPtr left;
  if (At("not") && min_precedence <= kPrecedenceNot) {
    Next();
    Expr expr;
    expr.kind = ExprKind::kUnary;
    expr.text = "not";
    expr.children.push_back(ParseBinary(kPrecedenceNot));
    left = Make(std::move(expr), begin);
  } else {
    left = ParseUnary();
  }
  while (!panic_) {
    const Token& token = Peek();
    if (token.kind != TokenKind::kSymbol && token.kind != TokenKind::kName) {
      break;
    }
    const int precedence = BinaryPrecedence(token.text);
    if (precedence < min_precedence || precedence < 0) break;
    if (token.text == "@" && !matmul_) break;
    // `s..` is a spread where nothing follows that a range could end with.
    if (token.text == ".." && (At(",", 1) || At("]", 1) || At("<", 1) ||
                               At("if", 1) || At(")", 1) || At("=", 1))) {
      break;
    }
    Expr expr;
    expr.kind = ExprKind::kBinary;
    expr.text = std::string(token.text);
    Next();
    const bool to_the_right =
        precedence == kPrecedenceCoalesce || precedence == kPrecedencePower;
    // x^-1: the exponent may have a sign.
    const int right = precedence == kPrecedencePower
                          ? static_cast<int>(kPrecedencePower)
                          : precedence + (to_the_right ? 0 : 1);
    expr.children.push_back(std::move(left));
    expr.children.push_back(ParseBinary(right));
    left = Make(std::move(expr), begin);
    if (precedence == kPrecedenceComparison || precedence == kPrecedenceRange) {
      const Token& next = Peek();
      if ((next.kind == TokenKind::kSymbol || next.kind == TokenKind::kName) &&
          BinaryPrecedence(next.text) == precedence &&
          !(next.text == ".." && (At("]", 1) || At(",", 1)))) {
        Fail(absl::StrCat("`", next.text, "` after a comparison or range"),
             "comparisons and ranges are not chained: write parentheses or "
             "`and`");
      }
    }
  }
  return left;
}

ExprPtr Parser::ParseUnary() {
  if (!At("-")) return ParsePostfix();
  const Depth depth(this);
  const uint32_t begin = Begin();
  Next();
  Expr expr;
  expr.kind = ExprKind::kUnary;
  expr.text = "-";
  // -x^2 is -(x^2).
  expr.children.push_back(ParseBinary(kPrecedencePower));
  return Make(std::move(expr), begin);
}

ExprPtr Parser::ParsePostfix() {
  const uint32_t begin = Begin();
  ExprPtr value = ParsePrimary();
  while (!panic_) {
    if (At("[")) {
      Next();
      Expr expr;
      expr.kind = ExprKind::kIndex;
      expr.children.push_back(std::move(value));
      const bool saved = std::exchange(matmul_, true);
      while (!panic_ && !At("]")) {
        expr.children.push_back(ParseIndexElement());
        if (!Take(",")) break;
      }
      matmul_ = saved;
      Expect("]", "after the indices");
      value = Make(std::move(expr), begin);
    } else if (At(".") && Peek(1).kind == TokenKind::kName) {
      Next();
      Expr expr;
      expr.kind = ExprKind::kMember;
      expr.text = std::string(Peek().text);
      Next();
      expr.children.push_back(std::move(value));
      value = Make(std::move(expr), begin);
    } else if (At("@") && At("tie", 1) && At("(", 2) &&
               Peek().range.end == Peek(1).range.begin) {
      Next();
      Next();
      Next();
      Expr expr;
      expr.kind = ExprKind::kTie;
      if (value->kind != ExprKind::kCall && value->kind != ExprKind::kReduce) {
        Fail("`@tie` stands on a call or reduction");
      }
      if (!At("first") && !At("second")) {
        FailUnexpected("`first` or `second`");
      }
      expr.text = std::string(Peek().text);
      Next();
      Expect(")", "after the choice");
      expr.children.push_back(std::move(value));
      value = Make(std::move(expr), begin);
    } else {
      break;
    }
  }
  return value;
}

// An index where a value is read: `i + 1`, `s..`, `0..n`.
ExprPtr Parser::ParseIndexElement() {
  const uint32_t begin = Begin();
  ExprPtr value = ParseExpr();
  if (!Take("..")) return value;
  Expr expr;
  expr.kind = ExprKind::kSpread;
  expr.children.push_back(std::move(value));
  return Make(std::move(expr), begin);
}

ExprPtr Parser::ParsePrimary() {
  const Token& token = Peek();
  const uint32_t begin = Begin();
  switch (token.kind) {
    case TokenKind::kNumber: {
      Expr expr;
      expr.kind = ExprKind::kNumber;
      expr.text = std::string(token.text);
      Next();
      return Make(std::move(expr), begin);
    }
    case TokenKind::kString: {
      if (token.text[0] == '\'') {
        Fail("a string stands in double quotes",
             "single quotes belong to PyTorch's schemas");
        return Placeholder();
      }
      Expr expr;
      expr.kind = ExprKind::kString;
      expr.text = Unquote(token.text);
      Next();
      return Make(std::move(expr), begin);
    }
    case TokenKind::kName:
      return ParseNameOrCall();
    case TokenKind::kSymbol:
      if (token.text == "(") return ParseParenthesised();
      if (token.text == "[") return ParseListOrComprehension();
      break;
    default:
      break;
  }
  FailUnexpected("an expression");
  return Placeholder();
}

ExprPtr Parser::ParseNameOrCall() {
  const Token& token = Peek();
  const uint32_t begin = Begin();
  if (IsReservedWord(token.text)) {
    FailUnexpected("an expression");
    return Placeholder();
  }
  if (At("(", 1)) {
    if (token.text == "fold") return ParseFold();
    if (token.text == "scan") return ParseScan();
    if (token.text == "map") return ParseMap();
    if (token.text == "cond") return ParseCond();
    if (token.text == "while") return ParseWhile();
  }
  if ((token.text == "jvp" || token.text == "vjp") &&
      Peek(1).kind == TokenKind::kName) {
    return ParseTransformCall();
  }
  if (IsReduction(token.text) && At("[", 1)) {
    // `max[i](e)`, not element i of a value called max.
    const int close = Raw(1).match;
    if (close >= 0 && close + 1 < static_cast<int>(tokens_.size()) &&
        At("(", close + 1 - at_)) {
      return ParseReduce();
    }
  }
  Expr expr;
  expr.kind = ExprKind::kName;
  expr.text = std::string(token.text);
  Next();
  // A name with a point may be called: promote.aten(a, b).
  if (At(".") && Peek(1).kind == TokenKind::kName && At("(", 2)) {
    Next();
    absl::StrAppend(&expr.text, ".", Peek().text);
    Next();
  }
  if (At("(")) {
    expr.kind = ExprKind::kCall;
    ParseArguments(&expr.children, &expr.named);
  }
  return Make(std::move(expr), begin);
}

void Parser::ParseArguments(std::vector<ExprPtr>* positional,
                            std::vector<NamedExpr>* named) {
  Expect("(", "before the arguments");
  const bool saved = std::exchange(matmul_, true);
  while (!panic_ && !At(")")) {
    const uint32_t begin = Begin();
    if (Peek().kind == TokenKind::kName && At(":", 1)) {
      NamedExpr argument;
      argument.name = std::string(Peek().text);
      Next();
      Next();
      argument.value = ParseExpr();
      argument.range = RangeFrom(begin);
      named->push_back(std::move(argument));
    } else {
      if (!named->empty()) {
        Fail("a tensor after the attributes",
             "tensors stand first, by position; attributes follow as `name: "
             "value`");
      }
      positional->push_back(ParseExpr());
    }
    if (!Take(",")) break;
  }
  matmul_ = saved;
  Expect(")", "after the arguments");
}

// `(e)`, a record `(y = e, at[i] = e)`, or a record without names `(a, b)`.
ExprPtr Parser::ParseParenthesised() {
  const uint32_t begin = Begin();
  Expect("(", "here");
  const bool saved = std::exchange(matmul_, true);
  Expr record;
  record.kind = ExprKind::kRecord;
  bool comma = false;
  while (!panic_ && !At(")")) {
    record.fields.push_back(ParseEquation(/*may_be_expression=*/true));
    if (!record.fields.front().name.empty() &&
        record.fields.back().name.empty()) {
      Fail("a field of a record without a name");
    }
    if (record.fields.front().name.empty() &&
        !record.fields.back().name.empty()) {
      Fail("a field of a record with a name among fields without");
    }
    if (!Take(",")) break;
    comma = true;
  }
  matmul_ = saved;
  Expect(")", "after the expression");
  if (record.fields.size() == 1 && record.fields[0].name.empty()) {
    if (comma) Fail("a record without names has at least two fields");
    return record.fields[0].value;
  }
  return Make(std::move(record), begin);
}

ExprPtr Parser::ParseListOrComprehension() {
  const uint32_t begin = Begin();
  Expect("[", "here");
  const bool saved = std::exchange(matmul_, true);
  Expr expr;
  expr.kind = ExprKind::kList;
  while (!panic_ && !At("]")) {
    expr.children.push_back(ParseExpr());
    if (expr.children.size() == 1 && Take("for")) {
      expr.kind = ExprKind::kComprehension;
      ParseElement(&expr);
      if (Take("if")) expr.children.push_back(ParseExpr());
      break;
    }
    if (!Take(",")) break;
  }
  matmul_ = saved;
  Expect("]", "after the list");
  return Make(std::move(expr), begin);
}

Binder Parser::ParseBinder() {
  Binder binder;
  const uint32_t begin = Begin();
  binder.name = ExpectName("an index");
  if (Take("..")) binder.pack = true;
  if (Take("<")) binder.bound = ParseBinary(kPrecedenceConcat);
  binder.range = RangeFrom(begin);
  return binder;
}

// `[i, s.. < P if COND]`; the condition only where `condition` is not null.
std::vector<Binder> Parser::ParseBinders(ExprPtr* condition) {
  std::vector<Binder> binders;
  Expect("[", "before the indices");
  const bool saved = std::exchange(matmul_, true);
  while (!panic_ && !At("]")) {
    binders.push_back(ParseBinder());
    if (!Take(",")) break;
  }
  if (condition != nullptr && Take("if")) *condition = ParseExpr();
  matmul_ = saved;
  if (!At("]") && !panic_) {
    FailUnexpected(condition != nullptr ? "`,`, `if` or `]` after an index"
                                        : "`,` or `]` after an index");
  }
  Next();
  return binders;
}

ExprPtr Parser::ParseReduce() {
  const uint32_t begin = Begin();
  Expr expr;
  expr.kind = ExprKind::kReduce;
  expr.text = std::string(Peek().text);
  Next();
  ExprPtr condition;
  expr.binders = ParseBinders(&condition);
  if (expr.binders.empty()) Fail("a reduction has at least one index");
  Expect("(", "before what is reduced");
  const bool saved = std::exchange(matmul_, true);
  expr.children.push_back(ParseExpr());
  matmul_ = saved;
  Expect(")", "after what is reduced");
  if (condition != nullptr) expr.children.push_back(std::move(condition));
  return Make(std::move(expr), begin);
}

// `jvp f(primals)(tangents)`, `vjp f(primals)(cotangents)`.
ExprPtr Parser::ParseTransformCall() {
  const uint32_t begin = Begin();
  Expr expr;
  expr.kind = ExprKind::kTransformCall;
  expr.text = std::string(Peek().text);
  Next();
  expr.callee = ExpectName("the name of an op or fn");
  ParseArguments(&expr.children, &expr.named);
  if (!At("(") && !panic_) {
    FailUnexpected(expr.text == "jvp" ? "the tangents in parentheses"
                                      : "the cotangents in parentheses");
  }
  ParseArguments(&expr.seconds, &expr.named_seconds);
  return Make(std::move(expr), begin);
}

// `(h = h, c = c)`: what a region carries. The bracket is open.
std::vector<Equation> Parser::ParseCarries() {
  std::vector<Equation> carries;
  while (!panic_ && !At(")")) {
    Equation carry;
    const uint32_t begin = Begin();
    carry.name = ExpectName("the name of what is carried");
    Expect("=", "before its first value");
    carry.value = ParseExpr();
    carry.range = RangeFrom(begin);
    carries.push_back(std::move(carry));
    if (!Take(",")) break;
  }
  Expect(")", "after what is carried");
  if (carries.empty()) Fail("nothing is carried");
  return carries;
}

// `x in xs`: a binder of `expr`, and the child that it runs over.
void Parser::ParseElement(Expr* expr) {
  Binder binder;
  const uint32_t begin = Begin();
  binder.name = ExpectName("a name");
  binder.range = RangeFrom(begin);
  expr->binders.push_back(std::move(binder));
  Expect("in", "after the name");
  expr->children.push_back(ParseExpr());
}

ExprPtr Parser::ParseFold() {
  const uint32_t begin = Begin();
  Expr expr;
  expr.kind = ExprKind::kFold;
  Next();
  Next();
  const bool saved = std::exchange(matmul_, true);
  Equation carry;
  carry.name = ExpectName("the name of what is carried");
  carry.range = RangeFrom(begin);
  Expect("=", "before its first value");
  carry.value = ParseExpr();
  expr.fields.push_back(std::move(carry));
  Expect(",", "after the first value");
  ParseElement(&expr);
  Expect(")", "after the list");
  expr.body = ParseBlock(/*overrides=*/false);
  matmul_ = saved;
  return Make(std::move(expr), begin);
}

ExprPtr Parser::ParseScan() {
  const uint32_t begin = Begin();
  Expr expr;
  expr.kind = ExprKind::kScan;
  Next();
  Next();
  const bool saved = std::exchange(matmul_, true);
  expr.fields = ParseCarries();
  Expect("over", "after what is carried");
  while (!panic_) {
    ParseElement(&expr);
    if (!Take(",")) break;
  }
  expr.body = ParseBlock(/*overrides=*/false);
  matmul_ = saved;
  return Make(std::move(expr), begin);
}

ExprPtr Parser::ParseMap() {
  const uint32_t begin = Begin();
  Expr expr;
  expr.kind = ExprKind::kMap;
  Next();
  Next();
  const bool saved = std::exchange(matmul_, true);
  while (!panic_) {
    ParseElement(&expr);
    if (!Take(",")) break;
  }
  Expect(")", "after the arrays");
  expr.body = ParseBlock(/*overrides=*/false);
  matmul_ = saved;
  return Make(std::move(expr), begin);
}

ExprPtr Parser::ParseCond() {
  const uint32_t begin = Begin();
  Expr expr;
  expr.kind = ExprKind::kCond;
  Next();
  Next();
  const bool saved = std::exchange(matmul_, true);
  expr.children.push_back(ParseExpr());
  Expect(")", "after the condition");
  expr.body = ParseBlock(/*overrides=*/false);
  Expect("else", "after the first branch");
  expr.else_body = ParseBlock(/*overrides=*/false);
  matmul_ = saved;
  return Make(std::move(expr), begin);
}

ExprPtr Parser::ParseWhile() {
  const uint32_t begin = Begin();
  Expr expr;
  expr.kind = ExprKind::kWhile;
  Next();
  Next();
  const bool saved = std::exchange(matmul_, true);
  expr.fields = ParseCarries();
  expr.children.push_back(ParseExpr());
  if (Take("max")) expr.children.push_back(ParseExpr());
  expr.body = ParseBlock(/*overrides=*/false);
  matmul_ = saved;
  return Make(std::move(expr), begin);
}

}  // namespace cleave::internal
