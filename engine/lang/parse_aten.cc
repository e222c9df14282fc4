// PyTorch's schemas, as its own files write them.

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/lang/parser_internal.h"

namespace cleave::internal {

// `add.Tensor`: any words, also those of the rule language.
std::string Parser::ParseAtenName() {
  std::string name;
  while (!panic_) {
    if (Peek().kind != TokenKind::kName) FailUnexpected("the name of an op");
    absl::StrAppend(&name, panic_ ? "" : Peek().text);
    Next();
    if (!Take(".")) break;
    name += ".";
  }
  return name;
}

// `aten add.Tensor(Tensor self, *, Scalar alpha=1) -> Tensor`.
void Parser::ParseAten(Item* item) {
  item->name = ParseAtenName();
  Expect("(", "before the arguments");
  bool keyword_only = false;
  while (!panic_ && !At(")")) {
    if (At("*")) {
      if (keyword_only) Fail("a second `*`");
      keyword_only = true;
      Next();
    } else {
      item->aten_arguments.push_back(ParseAtenArgument(keyword_only));
    }
    if (!Take(",")) break;
  }
  Expect(")", "after the arguments");
  if (keyword_only && (item->aten_arguments.empty() ||
                       !item->aten_arguments.back().keyword_only)) {
    Fail("no arguments after `*`");
  }
  Expect("->", "and the result's type");
  if (!At("(")) {
    item->aten_results.push_back(ParseAtenResult());
    return;
  }
  Next();
  while (!panic_ && !At(")")) {
    item->aten_results.push_back(ParseAtenResult());
    if (!Take(",")) break;
  }
  Expect(")", "after the results");
}

AtenArgument Parser::ParseAtenArgument(bool keyword_only) {
  AtenArgument argument;
  const uint32_t begin = Begin();
  argument.keyword_only = keyword_only;
  argument.type = ParseAtenType();
  if (Peek().kind != TokenKind::kName) {
    FailUnexpected("the name of an argument");
  }
  argument.name = std::string(Peek().text);
  Next();
  if (Take("=")) argument.default_text = ParseAtenDefault();
  argument.range = RangeFrom(begin);
  return argument;
}

AtenArgument Parser::ParseAtenResult() {
  AtenArgument result;
  const uint32_t begin = Begin();
  result.type = ParseAtenType();
  if (Peek().kind == TokenKind::kName && (At(",", 1) || At(")", 1))) {
    result.name = std::string(Peek().text);
    Next();
  }
  result.range = RangeFrom(begin);
  return result;
}

// `Tensor`, `Tensor(a!)?`, `Tensor(a -> *)[]`, `SymInt[2]`, `Tensor?[]`.
std::string Parser::ParseAtenType() {
  if (Peek().kind != TokenKind::kName) {
    FailUnexpected("a type of PyTorch");
    return "";
  }
  std::string type(Peek().text);
  Next();
  if (At("(")) {
    // The alias annotation: sets `a` or `a|b`, `!`, `-> *`.
    type += "(";
    Next();
    while (!panic_ && !At(")")) {
      const bool arrow = At("->");
      if (!arrow && !At("!") && !At("|") && !At("*") &&
          Peek().kind != TokenKind::kName) {
        FailUnexpected("an alias annotation");
        break;
      }
      absl::StrAppend(&type, arrow ? " " : "", Peek().text, arrow ? " " : "");
      Next();
    }
    Expect(")", "after the alias annotation");
    type += ")";
  }
  while (!panic_) {
    if (Take("?")) {
      type += "?";
    } else if (Take("[")) {
      type += "[";
      if (Peek().kind == TokenKind::kNumber) {
        absl::StrAppend(&type, Peek().text);
        Next();
      }
      Expect("]", "after the length");
      type += "]";
    } else {
      break;
    }
  }
  return type;
}

// A default as it is written: `1`, `-1`, `None`, `'none'`, `[0,1]`.
std::string Parser::ParseAtenDefault() {
  std::string text;
  int open = 0;
  while (!panic_) {
    const Token& token = Peek();
    const bool value = token.kind == TokenKind::kName ||
                       token.kind == TokenKind::kNumber ||
                       token.kind == TokenKind::kString;
    if (At("[")) {
      ++open;
    } else if (At("]") && open > 0) {
      --open;
    } else if (!value && !At("-") && !(At(",") && open > 0) && !At(".")) {
      break;
    }
    absl::StrAppend(&text, token.text);
    Next();
    if (open == 0 && !At(".") && text != "-" && text.back() != '.') break;
  }
  if (text.empty() || text == "-" || open > 0) {
    FailUnexpected("the argument's default");
  }
  return text;
}

}  // namespace cleave::internal
