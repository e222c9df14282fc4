// The clauses of a declaration, in their order, and its body.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/lang/parser_internal.h"

namespace cleave::internal {
namespace {

struct ClauseKind {
  absl::string_view keyword;
  bool repeats;
};

// In the order in which they stand.
constexpr ClauseKind kClauses[] = {{"where", false},       {"let", true},
                                   {"mutates", false},     {"compute", false},
                                   {"error", true},        {"domain", true},
                                   {"spec", true},         {"special", true},
                                   {"approximates", true}, {"accuracy", true}};

int ClauseIndex(absl::string_view keyword) {
  int index = 0;
  for (const ClauseKind& clause : kClauses) {
    if (clause.keyword == keyword) return index;
    ++index;
  }
  return -1;
}

bool HasClauses(ItemKind kind) {
  return kind == ItemKind::kOp || kind == ItemKind::kAten ||
         kind == ItemKind::kOnnx;
}

}  // namespace

void Parser::ParseClausesAndBody(Item* item) {
  if (panic_) return;
  int last = -1;
  // Clauses are lines of the item; each has lines of its own.
  while (Raw().first_on_line && Raw().column > 0 &&
         Raw().kind == TokenKind::kName) {
    const Token& token = Raw();
    const std::string keyword(token.text);
    const int index = ClauseIndex(keyword);
    if (index < 0) {
      std::vector<std::string> keywords;
      for (const ClauseKind& clause : kClauses) {
        keywords.emplace_back(clause.keyword);
      }
      const std::string close = ClosestName(token.text.substr(0, 80), keywords);
      Fail(absl::StrCat("expected a clause or the body, found ",
                        Describe(token)),
           close.empty() ? "" : absl::StrCat("did you mean `", close, "`?"));
      return;
    }
    if (!HasClauses(item->kind)) {
      Report(DiagnosticKind::kPlacement,
             absl::StrCat("a `", keyword,
                          "` clause in an item that has no clauses"),
             token.range, "ops and declarations of hosts have clauses");
    } else if (keyword == "mutates" && item->kind != ItemKind::kAten &&
               item->kind != ItemKind::kOnnx) {
      Report(DiagnosticKind::kPlacement, "`mutates` in an op", token.range,
             "only declarations of hosts mutate their arguments");
    } else if (index < last) {
      Report(
          DiagnosticKind::kPlacement,
          absl::StrCat("`", keyword, "` after `", kClauses[last].keyword, "`"),
          token.range,
          "the clauses stand in this order: where, let, mutates, compute "
          "acc, error, domain, spec, special, approximates, accuracy");
    } else if (index == last && !kClauses[index].repeats) {
      Report(DiagnosticKind::kDuplicate,
             absl::StrCat("a second `", keyword, "` clause"), token.range);
    }
    last = std::max(last, index);
    const Extent saved = EnterExtent();
    Next();
    ParseClause(keyword, item);
    if (!panic_ && !Raw().first_on_line) {
      FailUnexpected("a new line after the clause");
    }
    if (panic_) Recover(indent_, -1);
    LeaveExtent(saved);
    if (panic_) return;
  }
  // The rest of a clause that could not be read is no body.
  const Token& token = Raw();
  if (token.kind == TokenKind::kSymbol && token.text == "{") {
    if (token.first_on_line && token.column != 0) {
      Report(DiagnosticKind::kLayout,
             "the brace of an item's body stands in column 0", token.range);
    }
    const Extent saved = EnterExtent();
    const int close = token.match;
    item->body = ParseBlock(/*overrides=*/item->kind == ItemKind::kOp ||
                            item->kind == ItemKind::kOverride);
    LeaveExtent(saved);
    if (close >= 0 && tokens_[close].first_on_line &&
        tokens_[close].column != 0) {
      Report(DiagnosticKind::kLayout,
             "the brace of an item's body stands in column 0",
             tokens_[close].range);
    }
    return;
  }
  if (token.kind == TokenKind::kSymbol && token.text == "=" &&
      (token.column > 0 || !token.first_on_line)) {
    const Extent saved = EnterExtent();
    // Behind a signature of several lines the body's line may be less deep.
    if (!token.first_on_line) indent_ = 0;
    ++at_;
    item->body = ParseBodyAfterEquals();
    LeaveExtent(saved);
    return;
  }
  if (token.first_on_line && token.column > 0) {
    FailUnexpected(HasClauses(item->kind) ? "a clause or the body"
                                          : "`=` or `{` and the body");
    return;
  }
  // An op without a body is computed by the host.
  if (item->kind == ItemKind::kOp) return;
  Report(DiagnosticKind::kSyntax,
         absl::StrCat("`", item->name, "` has no body"),
         tokens_[std::max(0, at_ - 1)].range,
         "a body is `= e`, or statements in braces");
}

void Parser::ParseClause(absl::string_view keyword, Item* item) {
  if (keyword == "where") {
    ParseWhere(item, "a dtype variable");
  } else if (keyword == "let") {
    ParseLets(item);
  } else if (keyword == "mutates") {
    ParseMutates(item);
  } else if (keyword == "compute") {
    Expect("acc", "after `compute`");
    item->compute_acc = true;
  } else if (keyword == "error") {
    ParseError(item);
  } else if (keyword == "domain") {
    ParseDomain(item);
  } else if (keyword == "spec") {
    ParseSpec(item);
  } else if (keyword == "special") {
    ParseSpecial(item);
  } else if (keyword == "approximates") {
    ParseApproximation(item);
  } else {
    ParseAccuracy(item);
  }
}

void Parser::ParseWhere(Item* item, const char* what) {
  while (!panic_) {
    WhereClause where;
    const uint32_t begin = Begin();
    where.variable = ExpectName(what);
    Expect(":", "after the variable");
    where.dtype_class = ExpectName("a class of dtypes");
    where.range = RangeFrom(begin);
    item->where.push_back(std::move(where));
    if (!Take(",")) break;
  }
}

void Parser::ParseLets(Item* item) {
  int count = 0;
  while (!panic_) {
    NamedExpr let;
    const uint32_t begin = Begin();
    let.name = ExpectName("a name");
    Expect("=", "after the name");
    let.value = ParseExpr();
    let.range = RangeFrom(begin);
    item->lets.push_back(std::move(let));
    ++count;
    if (!Take(",")) break;
  }
  item->let_clauses.push_back(count);
}

void Parser::ParseMutates(Item* item) {
  while (!panic_) {
    Equation mutation;
    const uint32_t begin = Begin();
    mutation.name = ExpectName("an argument");
    Expect("=", "after the argument");
    mutation.value = ParseExpr();
    mutation.range = RangeFrom(begin);
    item->mutates.push_back(std::move(mutation));
    if (!Take(",")) break;
  }
}

void Parser::ParseError(Item* item) {
  ErrorClause error;
  const uint32_t begin = Begin();
  if (!At("shape") && !At("type") && !At("value")) {
    FailUnexpected("`shape`, `type` or `value`");
  }
  error.kind = std::string(Peek().text);
  Next();
  if (Peek().kind != TokenKind::kString || Peek().text[0] != '"') {
    FailUnexpected("the message in double quotes");
  }
  error.message = Unquote(Peek().text);
  Next();
  Expect("if", "and the condition");
  error.condition = ParseExpr();
  error.range = RangeFrom(begin);
  item->errors.push_back(std::move(error));
}

void Parser::ParseSpec(Item* item) {
  const uint32_t begin = Begin();
  const bool is_meaning = At("{") || AtEquation();
  const std::string order =
      "an equation or a body comes first, then all laws in one clause";
  if (is_meaning && item->spec != nullptr) {
    Report(DiagnosticKind::kDuplicate, "a second meaning", RangeFrom(begin),
           order);
  } else if (is_meaning && !item->laws.empty()) {
    Report(DiagnosticKind::kPlacement, "a meaning after laws", RangeFrom(begin),
           order);
  } else if (!is_meaning && !item->laws.empty()) {
    Report(DiagnosticKind::kDuplicate, "a second clause of laws",
           RangeFrom(begin), order);
  }
  if (At("{")) {
    item->spec = ParseBlock(/*overrides=*/false);
    return;
  }
  if (AtEquation()) {
    Body body;
    Statement statement;
    statement.equation = ParseEquation(/*may_be_expression=*/false);
    statement.range = RangeFrom(begin);
    body.range = RangeFrom(begin);
    body.statements.push_back(std::move(statement));
    item->spec = std::make_shared<const Body>(std::move(body));
    return;
  }
  while (!panic_) {
    Law law;
    const uint32_t law_begin = Begin();
    law.relation = ParseExpr();
    if (Take("if")) law.condition = ParseExpr();
    law.range = RangeFrom(law_begin);
    item->laws.push_back(std::move(law));
    if (!Take(",")) break;
  }
}

void Parser::ParseDomain(Item* item) {
  DomainClause domain;
  const uint32_t begin = Begin();
  domain.condition = ParseExpr();
  domain.range = RangeFrom(begin);
  item->domains.push_back(std::move(domain));
}

void Parser::ParseSpecial(Item* item) {
  SpecialClause special;
  const uint32_t begin = Begin();
  special.equation = ParseEquation(/*may_be_expression=*/false);
  Expect("if", "and the condition");
  special.condition = ParseExpr();
  special.range = RangeFrom(begin);
  item->specials.push_back(std::move(special));
}

// `on x in [0, 1], k in [2, inf]`, if it is there.
std::vector<InputRange> Parser::ParseInputRanges() {
  std::vector<InputRange> ranges;
  if (!Take("on")) return ranges;
  while (!panic_) {
    InputRange on;
    const uint32_t begin = Begin();
    on.input = ExpectName("an input");
    Expect("in", "and the range");
    Expect("[", "and the least value");
    on.low = ParseExpr();
    Expect(",", "and the greatest value");
    on.high = ParseExpr();
    Expect("]", "after the greatest value");
    on.range = RangeFrom(begin);
    ranges.push_back(std::move(on));
    if (!Take(",")) break;
  }
  return ranges;
}

// `approximates within 2^-70 + 2^-70 cond on x in [8, inf]`.
void Parser::ParseApproximation(Item* item) {
  ApproximationClause approximation;
  const uint32_t begin = Begin();
  Expect("within", "and the bound");
  approximation.bound = ParseBinary(kPrecedenceProduct);
  if (Take("+")) {
    approximation.condition = ParseBinary(kPrecedenceProduct);
    Expect("cond", "after the factor");
  }
  approximation.on = ParseInputRanges();
  approximation.range = RangeFrom(begin);
  item->approximations.push_back(std::move(approximation));
}

// `accuracy T within 2 ulp + 2 cond`, `accuracy D within n eps * e`.
void Parser::ParseAccuracy(Item* item) {
  AccuracyClause accuracy;
  const uint32_t begin = Begin();
  accuracy.dtype = ExpectName("a dtype");
  Expect("within", "and the bound");
  accuracy.bound = ParseBinary(kPrecedenceProduct);
  if (Take("ulp")) {
    accuracy.unit = "ulp";
    if (Take("+")) {
      accuracy.condition = ParseBinary(kPrecedenceProduct);
      Expect("cond", "after the factor");
    }
  } else if (Take("eps")) {
    accuracy.unit = "eps";
    Expect("*", "and what the bound is a multiple of");
    accuracy.eps_of = ParseBinary(kPrecedenceProduct);
  } else {
    FailUnexpected("`ulp` or `eps`");
  }
  accuracy.on = ParseInputRanges();
  accuracy.range = RangeFrom(begin);
  item->accuracies.push_back(std::move(accuracy));
}

}  // namespace cleave::internal
