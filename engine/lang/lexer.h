// Lexer: rule text to tokens. Comments are tokens, since they belong to the
// syntax tree; blank lines are counted on the token after them.
//
//   std::vector<Diagnostic> diagnostics;
//   std::vector<Token> tokens = Lex(source, &diagnostics);

#ifndef CLEAVE_ENGINE_LANG_LEXER_H_
#define CLEAVE_ENGINE_LANG_LEXER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/lang/diagnostic.h"
#include "engine/lang/source.h"

namespace cleave {

// A file with more tokens than this is refused.
inline constexpr int kMaxTokens = 1 << 20;
// A number with more characters, or more digits in its exponent, is refused.
inline constexpr int kMaxNumberLength = 200;
inline constexpr int kMaxExponentDigits = 4;

enum class TokenKind : uint8_t {
  kEnd,
  kName,    // letters, digits and _
  kNumber,  // 12, 0.5, 1e-5
  kString,  // with its quotes: "none", in schemas of hosts also 'none'
  kSymbol,  // + -> .. and so on
  kDoc,     // text after `///`
  kComment  // text after `//`, at the start of a line
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  bool first_on_line = false;
  bool blank_before = false;  // an empty line stands between it and the last
  int column = 0;             // 0-based
  int line_indent = 0;        // column of the first token on its line
  int match = -1;             // index of the other bracket, -1 if none
  absl::string_view text;     // of the source; of comments without the marks
  SourceRange range;
};

// The last token is kEnd. Tokens are views into `source`, which must outlive
// them. A character that begins no token is reported and left out.
std::vector<Token> Lex(const Source& source,
                       std::vector<Diagnostic>* diagnostics);

// Whether `text` is a name, a number or a string as the lexer reads them.
bool IsName(absl::string_view text);
bool IsNumber(absl::string_view text);

// `contents` between double quotes, with escapes; and back. A string may
// contain any text without control characters other than newline and tab.
std::string Quote(absl::string_view contents);
std::string Unquote(absl::string_view quoted);
bool IsStringContents(absl::string_view contents);
// Whether `text` may stand behind the marks of a comment: it is one line,
// without a space at its end.
bool IsCommentText(absl::string_view text);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_LANG_LEXER_H_
