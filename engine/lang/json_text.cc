#include "engine/lang/json_text.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "engine/lang/lexer.h"
#include "engine/lang/precedence.h"

namespace cleave::internal {
namespace {

constexpr absl::string_view kWordPattern = "[A-Za-z_][A-Za-z0-9_]*";

bool IsNames(absl::string_view text, size_t at_most) {
  const std::vector<absl::string_view> names = absl::StrSplit(text, '.');
  if (names.size() > at_most) return false;
  for (absl::string_view name : names) {
    if (!IsName(name)) return false;
  }
  return true;
}

// The characters that a type or default of PyTorch may have. Whether it is well
// formed shows when the text is read back.
bool IsSchemaText(absl::string_view text) {
  if (text.empty()) return false;
  for (char c : text) {
    if (!absl::ascii_isprint(c)) return false;
  }
  return true;
}

}  // namespace

bool IsTextOfKind(absl::string_view text, TextKind kind) {
  switch (kind) {
    case TextKind::kName:
      return IsName(text) && !IsReservedWord(text);
    case TextKind::kCallee:
      return IsNames(text, 2) && !IsReservedWord(text);
    case TextKind::kWord:
      return IsName(text);
    case TextKind::kWords:
      return IsNames(text, text.size() + 1);
    case TextKind::kNumber:
      return IsNumber(text);
    case TextKind::kContents:
      return IsStringContents(text);
    case TextKind::kComment:
      return IsCommentText(text);
    case TextKind::kAtenType:
    case TextKind::kAtenDefault:
      return IsSchemaText(text);
  }
  return false;
}

absl::string_view DescribeTextKind(TextKind kind) {
  switch (kind) {
    case TextKind::kName:
      return "a name";
    case TextKind::kCallee:
      return "the name of what is called";
    case TextKind::kWord:
      return "a word";
    case TextKind::kWords:
      return "words with points between them";
    case TextKind::kNumber:
      return "a number as rule text has it";
    case TextKind::kContents:
      return "text without control characters";
    case TextKind::kComment:
      return "one line of a comment, without a space at its end";
    case TextKind::kAtenType:
      return "a type of PyTorch";
    case TextKind::kAtenDefault:
      return "a default of PyTorch";
  }
  return "";
}

std::string TextPattern(TextKind kind) {
  const std::string word(kWordPattern);
  const std::string name =
      "(?!(if|then|else|and|or|not|in|is|for|let)$)" + word;
  switch (kind) {
    case TextKind::kName:
      return "^" + name + "$";
    case TextKind::kCallee:
      return "^" + name + "(\\." + word + ")?$";
    case TextKind::kWord:
      return "^" + word + "$";
    case TextKind::kWords:
      return "^" + word + "(\\." + word + ")*$";
    case TextKind::kNumber:
      return "^(?=.{1,200}$)[0-9]+(\\.[0-9]+)?([eE][+-]?[0-9]{1,4})?$";
    case TextKind::kContents:
      return "^[^\\u0000-\\u0008\\u000b-\\u001f\\u007f]*$";
    case TextKind::kComment:
      return "^([^\\u0000-\\u0008\\u000a-\\u001f\\u007f]*"
             "[^\\u0000-\\u0020\\u007f])?$";
    case TextKind::kAtenType:
    case TextKind::kAtenDefault:
      return "^[ -~]+$";
  }
  return "";
}

}  // namespace cleave::internal
