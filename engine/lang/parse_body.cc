// Bodies: statements, equations, overrides.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/lang/parser_internal.h"

namespace cleave::internal {

// `name =` or `name[..] =`.
bool Parser::AtEquation(int ahead) const {
  if (!AtName(ahead)) return false;
  if (At("=", ahead + 1)) return true;
  if (!At("[", ahead + 1)) return false;
  const int close = Raw(ahead + 1).match;
  return close >= 0 && At("=", close + 1 - at_);
}

// `name = e`, `name[i, s..] = e`, and, where it may be, `e` alone.
Equation Parser::ParseEquation(bool may_be_expression) {
  Equation equation;
  const uint32_t begin = Begin();
  if (may_be_expression && !AtEquation()) {
    equation.value = ParseExpr();
    equation.range = RangeFrom(begin);
    return equation;
  }
  equation.name = ExpectName("a name");
  if (At("[")) {
    equation.indexed = true;
    equation.indices = ParseBinders(nullptr);
  }
  Expect("=", "after the name");
  equation.value = ParseExpr();
  equation.range = RangeFrom(begin);
  return equation;
}

// `= e`, of which the sign is taken.
BodyPtr Parser::ParseBodyAfterEquals() {
  Body body;
  const uint32_t begin = Begin();
  Statement statement;
  statement.equation.value = ParseExpr();
  statement.equation.range = RangeFrom(begin);
  statement.range = RangeFrom(begin);
  body.range = RangeFrom(begin);
  body.statements.push_back(std::move(statement));
  return std::make_shared<const Body>(std::move(body));
}

BodyPtr Parser::ParseBlock(bool overrides) {
  const Depth depth(this);
  Body body;
  body.braces = true;
  const uint32_t begin = Begin();
  const int open = at_;
  Expect("{", "before the body");
  // A brace without its other one ends with the block around it.
  const int close = panic_ ? -1 : tokens_[open].match;
  const int outer_end = block_end_;
  if (close >= 0 && (outer_end < 0 || close < outer_end)) block_end_ = close;
  const int end = block_end_;
  int column = -1;
  bool complete = true;
  while (!panic_) {
    Statement statement;
    if (Raw().kind == TokenKind::kDoc) {
      Report(DiagnosticKind::kPlacement, "`///` documents an item", Raw().range,
             "a comment in a body begins with `//`");
      ++at_;
      continue;
    }
    statement.comments = TakeComments();
    const Token& token = Raw();
    if ((end >= 0 && at_ >= end) || token.kind == TokenKind::kEnd ||
        (close < 0 && token.first_on_line && token.column == 0)) {
      if (!statement.comments.empty()) {
        Report(DiagnosticKind::kPlacement, "a comment at the end of a body",
               tokens_[at_ - 1].range, "a comment stands above a statement");
      }
      break;
    }
    const Extent saved = EnterExtent();
    // A statement behind the brace, on its line, goes on over the lines that
    // are indented deeper than the line.
    if (token.first_on_line) {
      if (column < 0) column = token.column;
      if (token.column != column) {
        Report(DiagnosticKind::kLayout,
               absl::StrCat("a statement in column ", token.column,
                            ", the first of its body in column ", column),
               token.range,
               "a statement goes on over lines that are indented deeper than "
               "its first");
      }
    }
    std::vector<std::string> comments = std::move(statement.comments);
    statement = ParseStatement();
    statement.comments = std::move(comments);
    if (!panic_ && at_ != end && !Raw().first_on_line) {
      FailUnexpected("a new line after the statement");
    }
    if (panic_) {
      complete = false;
      Recover(indent_, end);
    }
    LeaveExtent(saved);
    if (panic_) break;
    body.statements.push_back(std::move(statement));
  }
  if (!panic_) {
    if (at_ == close) {
      ++at_;
    } else {
      Report(DiagnosticKind::kSyntax, "the body has no `}`",
             tokens_[open].range);
      panic_ = true;
    }
  }
  block_end_ = outer_end;
  body.range = RangeFrom(begin);
  if (!panic_ && complete) CheckOrder(body, overrides);
  return std::make_shared<const Body>(std::move(body));
}

// Lets, one result, overrides; where there are overrides, the result may be
// absent.
void Parser::CheckOrder(const Body& body, bool overrides) {
  const bool has_result = std::any_of(
      body.statements.begin(), body.statements.end(),
      [](const Statement& s) { return s.kind == StatementKind::kResult; });
  int results = 0;
  int replaced = 0;
  for (const Statement& statement : body.statements) {
    switch (statement.kind) {
      case StatementKind::kLet:
        if (results > 0) {
          Report(DiagnosticKind::kPlacement, "a `let` after the result",
                 statement.range,
                 "the result is the last statement, before overrides");
        } else if (replaced > 0 && !has_result) {
          Report(DiagnosticKind::kPlacement, "a `let` after an override",
                 statement.range, "overrides are the last statements");
        }
        break;
      case StatementKind::kResult:
        if (++results == 2) {
          Report(DiagnosticKind::kPlacement, "a second result", statement.range,
                 "a body has one result, its last statement; a record has "
                 "several fields");
        }
        break;
      case StatementKind::kJvp:
      case StatementKind::kVmap:
      case StatementKind::kVjp:
        if (!overrides) {
          Report(DiagnosticKind::kPlacement,
                 "an override stands in the body of an op", statement.range);
        } else if (results == 0 && has_result) {
          Report(DiagnosticKind::kPlacement, "an override before the result",
                 statement.range, "overrides are the last statements");
        }
        ++replaced;
        break;
    }
  }
  if (results == 0 && replaced == 0) {
    Report(DiagnosticKind::kSyntax, "the body has no result", body.range,
           "the result is an expression, `y[i] = e` or a record");
  }
}

// `jvp x (t) =`. Without the sign it is the expression `jvp f(x)(t)`.
bool Parser::AtNamedTangent() const {
  if (!At("jvp") || !AtName(1) || !At("(", 2)) return false;
  const int close = Raw(2).match;
  return close >= 0 && At("=", close + 1 - at_);
}

Statement Parser::ParseStatement() {
  Statement statement;
  const uint32_t begin = Begin();
  if (Take("let")) {
    statement.kind = StatementKind::kLet;
    statement.equation = ParseEquation(/*may_be_expression=*/false);
  } else if (At("jvp") && AtName(1) && At("=", 2)) {
    Next();
    statement.kind = StatementKind::kJvp;
    statement.equation = ParseEquation(/*may_be_expression=*/false);
  } else if (AtNamedTangent()) {
    Next();
    const uint32_t equation_begin = Begin();
    statement.kind = StatementKind::kJvp;
    statement.equation.name = ExpectName("the name of an input");
    Expect("(", "before the tangent's name");
    const uint32_t tangent_begin = Begin();
    std::string tangent = ExpectName("the name of the tangent");
    statement.inputs.push_back(
        {std::move(tangent), false, RangeFrom(tangent_begin)});
    Expect(")", "after the tangent's name");
    Expect("=", "after the tangent");
    statement.equation.value = ParseExpr();
    statement.equation.range = RangeFrom(equation_begin);
  } else if ((At("vmap") || At("vjp")) && At("(", 1)) {
    const bool vmap = At("vmap");
    Next();
    statement.kind = vmap ? StatementKind::kVmap : StatementKind::kVjp;
    statement.inputs = ParseOverrideInputs(vmap);
    const uint32_t value_begin = Begin();
    Expect("=", "after the override's inputs");
    statement.equation.value = ParseExpr();
    statement.equation.range = RangeFrom(value_begin);
  } else {
    statement.kind = StatementKind::kResult;
    statement.equation = ParseEquation(/*may_be_expression=*/true);
  }
  statement.range = RangeFrom(begin);
  return statement;
}

// `(x, w@_)` of vmap, `(dy)` of vjp.
std::vector<Statement::OverrideInput> Parser::ParseOverrideInputs(
    bool unbatched) {
  std::vector<Statement::OverrideInput> inputs;
  Expect("(", "before the override's inputs");
  while (!panic_ && !At(")")) {
    Statement::OverrideInput input;
    const uint32_t begin = Begin();
    input.name = ExpectName("the name of an input");
    if (unbatched && Take("@")) {
      Expect("_", "after `@`: `@_` is an input without a batch axis");
      input.unbatched = true;
    }
    input.range = RangeFrom(begin);
    inputs.push_back(std::move(input));
    if (!Take(",")) break;
  }
  Expect(")", "after the override's inputs");
  if (inputs.empty()) Fail("an override has at least one input");
  return inputs;
}

}  // namespace cleave::internal
