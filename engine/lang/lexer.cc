#include "engine/lang/lexer.h"

#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/lang/utf8.h"

namespace cleave {
namespace {

// Longest first.
constexpr absl::string_view kSymbols[] = {
    "->", "=>", "==", "!=", "<=", ">=", "//", "??", "++", "..", "+",
    "-",  "*",  "/",  "%",  "^",  "@",  "<",  ">",  "=",  "(",  ")",
    "[",  "]",  "{",  "}",  ",",  ":",  ".",  "?",  "!",  "|",  "~"};

bool IsNameStart(char c) { return absl::ascii_isalpha(c) || c == '_'; }
bool IsNameCharacter(char c) { return absl::ascii_isalnum(c) || c == '_'; }

// Whether all of `text` is UTF-8 without control characters but those allowed.
bool IsCleanText(absl::string_view text, absl::string_view allowed) {
  while (!text.empty()) {
    const unsigned char c = static_cast<unsigned char>(text[0]);
    if (absl::ascii_isprint(c)) {
      text.remove_prefix(1);
      continue;
    }
    if ((c < 0x20 || c == 0x7F) && !absl::StrContains(allowed, text[0])) {
      return false;
    }
    const size_t length = Utf8At(text).length;
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// The length of the number at the start of `text`: digits, a point with digits,
// an exponent with digits. `1..n` is 1 and a range.
size_t NumberLength(absl::string_view text) {
  const auto digits = [&](size_t i) {
    while (i < text.size() && absl::ascii_isdigit(text[i])) ++i;
    return i;
  };
  size_t end = digits(0);
  if (end == 0) return 0;
  if (end + 1 < text.size() && text[end] == '.' &&
      absl::ascii_isdigit(text[end + 1])) {
    end = digits(end + 1);
  }
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    size_t exponent = end + 1;
    if (exponent < text.size() &&
        (text[exponent] == '+' || text[exponent] == '-')) {
      ++exponent;
    }
    const size_t exponent_end = digits(exponent);
    if (exponent_end > exponent) end = exponent_end;
  }
  return end;
}

bool NumberWithinLimits(absl::string_view number) {
  if (number.size() > kMaxNumberLength) return false;
  const size_t e = number.find_first_of("eE");
  if (e == absl::string_view::npos) return true;
  size_t digits = number.size() - e - 1;
  if (!absl::ascii_isdigit(number[e + 1])) --digits;
  return digits <= kMaxExponentDigits;
}

class Lexer {
 public:
  Lexer(const Source& source, std::vector<Diagnostic>* diagnostics)
      : text_(source.text()), diagnostics_(diagnostics) {
    // A token of a rule file and the space before it take four characters.
    tokens_.reserve(text_.size() / 4 + 1);
  }

  std::vector<Token> Run();

 private:
  void Report(DiagnosticKind kind, std::string message, size_t begin,
              size_t end, std::string help = "") {
    // More than this tells nobody more.
    constexpr size_t kMaxDiagnostics = 50;
    if (diagnostics_->size() >= kMaxDiagnostics) return;
    diagnostics_->push_back(
        {kind,
         std::move(message),
         {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)},
         std::move(help),
         ""});
  }

  void Add(TokenKind kind, size_t begin, size_t end) {
    Token token;
    token.kind = kind;
    token.text = text_.substr(begin, end - begin);
    token.range = {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
    token.column = static_cast<int>(begin - line_start_);
    token.first_on_line = first_on_line_;
    token.blank_before = blank_before_;
    if (first_on_line_) line_indent_ = token.column;
    token.line_indent = line_indent_;
    first_on_line_ = false;
    blank_before_ = false;
    if (kind == TokenKind::kSymbol) MatchBracket(&token);
    // A mistake in the brackets of one item leaves the next alone.
    if (token.first_on_line && token.column == 0 &&
        kind != TokenKind::kSymbol) {
      open_.clear();
      open_count_ = {};
    }
    tokens_.push_back(token);
  }

  void MatchBracket(Token* token);
  void ReadComment();
  void ReadNumber();
  void ReadString();
  void ReadSymbol();
  size_t LineEnd() const {
    const size_t end = text_.find('\n', at_);
    return end == absl::string_view::npos ? text_.size() : end;
  }

  absl::string_view text_;
  std::vector<Diagnostic>* diagnostics_;
  std::vector<Token> tokens_;
  std::vector<int> open_;               // indices of brackets
  std::array<int, 3> open_count_ = {};  // of ( [ {
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_indent_ = 0;
  bool first_on_line_ = true;
  bool blank_before_ = false;
};

void Lexer::MatchBracket(Token* token) {
  constexpr absl::string_view kOpen = "([{", kClose = ")]}";
  if (token->text.size() != 1) return;
  size_t type = kOpen.find(token->text[0]);
  if (type != absl::string_view::npos) {
    open_.push_back(static_cast<int>(tokens_.size()));
    ++open_count_[type];
    return;
  }
  type = kClose.find(token->text[0]);
  if (type == absl::string_view::npos || open_count_[type] == 0) return;
  while (!open_.empty()) {
    const int index = open_.back();
    open_.pop_back();
    const size_t open_type = kOpen.find(tokens_[index].text[0]);
    --open_count_[open_type];
    if (open_type == type) {
      tokens_[index].match = static_cast<int>(tokens_.size());
      token->match = index;
      return;
    }
  }
}

void Lexer::ReadComment() {
  const size_t begin = at_;
  const bool doc = absl::StartsWith(text_.substr(at_), "///");
  const size_t end = LineEnd();
  absl::string_view text = text_.substr(begin, end - begin);
  absl::ConsumePrefix(&text, doc ? "///" : "//");
  absl::ConsumePrefix(&text, " ");
  text = absl::StripTrailingAsciiWhitespace(text);
  if (!IsCommentText(text)) {
    Report(DiagnosticKind::kBadCharacter,
           "a comment holds a control character or is not UTF-8", begin, end);
    text = "";
  }
  Add(doc ? TokenKind::kDoc : TokenKind::kComment, begin, end);
  tokens_.back().text = text;
  at_ = end;
}

void Lexer::ReadNumber() {
  const size_t begin = at_;
  size_t end = begin + NumberLength(text_.substr(begin));
  size_t bad_end = end;
  while (bad_end < text_.size() && IsNameCharacter(text_[bad_end])) ++bad_end;
  const bool bare_point = bad_end == end && end < text_.size() &&
                          text_[end] == '.' &&
                          (end + 1 == text_.size() || text_[end + 1] != '.');
  if (bad_end > end) {
    Report(DiagnosticKind::kBadNumber,
           absl::StrCat("`", text_.substr(begin, bad_end - begin).substr(0, 40),
                        "` is neither a number nor a name"),
           begin, bad_end);
    end = bad_end;
  } else if (bare_point) {
    Report(
        DiagnosticKind::kBadNumber,
        "a number has digits on both sides of its point", begin, end + 1,
        absl::StrContains(text_.substr(begin, end - begin), '.')
            ? ""
            : absl::StrCat("write `", text_.substr(begin, end - begin), ".0`"));
    ++end;
  } else if (!NumberWithinLimits(text_.substr(begin, end - begin))) {
    Report(DiagnosticKind::kLimit,
           absl::StrCat("a number has at most ", kMaxNumberLength,
                        " characters and ", kMaxExponentDigits,
                        " digits in its exponent"),
           begin, end);
    end = begin + NumberLength(text_.substr(begin));
  }
  Add(TokenKind::kNumber, begin, end);
  // A place holder stands for what was reported.
  if (!IsNumber(tokens_.back().text)) tokens_.back().text = "0";
  at_ = end;
}

void Lexer::ReadString() {
  const size_t begin = at_;
  const char quote = text_[at_++];
  const size_t line_end = LineEnd();
  while (at_ < line_end && text_[at_] != quote) {
    if (text_[at_] == '\\' && quote == '"') {
      if (at_ + 1 >= line_end || !absl::StrContains("\\\"nt", text_[at_ + 1])) {
        Report(DiagnosticKind::kBadCharacter, "an unknown escape in a string",
               at_, at_ + 2, "the escapes are `\\\\`, `\\\"`, `\\n` and `\\t`");
      }
      ++at_;
    }
    ++at_;
  }
  if (at_ >= line_end) {
    at_ = line_end;
    Report(DiagnosticKind::kSyntax, "the string does not end on its line",
           begin, line_end);
    Add(TokenKind::kString, begin, line_end);
    tokens_.back().text = "\"\"";
    return;
  }
  ++at_;
  if (!IsCleanText(text_.substr(begin, at_ - begin), "")) {
    Report(DiagnosticKind::kBadCharacter,
           "a string holds a control character or is not UTF-8", begin, at_);
    Add(TokenKind::kString, begin, at_);
    tokens_.back().text = "\"\"";
    return;
  }
  Add(TokenKind::kString, begin, at_);
}

void Lexer::ReadSymbol() {
  const absl::string_view rest = text_.substr(at_);
  for (absl::string_view symbol : kSymbols) {
    if (symbol[0] == rest[0] && absl::StartsWith(rest, symbol)) {
      Add(TokenKind::kSymbol, at_, at_ + symbol.size());
      at_ += symbol.size();
      return;
    }
  }
  const size_t length = Utf8At(rest).length;
  const char c = rest[0];
  if (c == '\t') {
    Report(DiagnosticKind::kBadCharacter, "a tab: lines are indented by spaces",
           at_, at_ + 1);
  } else if (length == 0) {
    Report(DiagnosticKind::kBadCharacter, "the text is not UTF-8", at_,
           at_ + 1);
  } else if (absl::StartsWith(rest, "\xEF\xBB\xBF")) {
    Report(DiagnosticKind::kBadCharacter,
           "a byte order mark: rule files have none", at_, at_ + length);
  } else if (absl::ascii_iscntrl(c)) {
    Report(DiagnosticKind::kBadCharacter, "a control character", at_, at_ + 1);
  } else {
    Report(DiagnosticKind::kBadCharacter,
           absl::StrCat("`", rest.substr(0, length),
                        "` has no meaning in a rule file"),
           at_, at_ + length);
  }
  at_ += length == 0 ? 1 : length;
}

std::vector<Token> Lexer::Run() {
  bool line_is_empty = true;
  while (at_ < text_.size()) {
    if (tokens_.size() >= kMaxTokens) {
      Report(DiagnosticKind::kLimit,
             absl::StrCat("a file has at most ", kMaxTokens, " tokens"), at_,
             at_ + 1, "split the file");
      break;
    }
    const char c = text_[at_];
    if (c == '\n') {
      if (line_is_empty) blank_before_ = true;
      line_is_empty = true;
      first_on_line_ = true;
      line_start_ = ++at_;
      continue;
    }
    if (c == ' ' ||
        (c == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n')) {
      ++at_;
      continue;
    }
    line_is_empty = false;
    if (first_on_line_ && absl::StartsWith(text_.substr(at_), "//")) {
      ReadComment();
    } else if (IsNameStart(c)) {
      size_t end = at_;
      while (end < text_.size() && IsNameCharacter(text_[end])) ++end;
      Add(TokenKind::kName, at_, end);
      at_ = end;
    } else if (absl::ascii_isdigit(c)) {
      ReadNumber();
    } else if (c == '"' || c == '\'') {
      ReadString();
    } else {
      ReadSymbol();
    }
  }
  at_ = text_.size();
  first_on_line_ = true;
  line_start_ = at_;
  Add(TokenKind::kEnd, at_, at_);
  return std::move(tokens_);
}

}  // namespace

std::vector<Token> Lex(const Source& source,
                       std::vector<Diagnostic>* diagnostics) {
  return Lexer(source, diagnostics).Run();
}

bool IsName(absl::string_view text) {
  if (text.empty() || !IsNameStart(text[0])) return false;
  for (char c : text) {
    if (!IsNameCharacter(c)) return false;
  }
  return true;
}

bool IsNumber(absl::string_view text) {
  return !text.empty() && NumberLength(text) == text.size() &&
         NumberWithinLimits(text);
}

std::string Quote(absl::string_view contents) {
  std::string out = "\"";
  for (char c : contents) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        out += c;
    }
  }
  return out + "\"";
}

std::string Unquote(absl::string_view quoted) {
  std::string out;
  if (quoted.size() < 2) return out;
  quoted = quoted.substr(1, quoted.size() - 2);
  for (size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] == '\\' && i + 1 < quoted.size()) {
      ++i;
      out += quoted[i] == 'n' ? '\n' : quoted[i] == 't' ? '\t' : quoted[i];
    } else {
      out += quoted[i];
    }
  }
  return out;
}

bool IsStringContents(absl::string_view contents) {
  return IsCleanText(contents, "\n\t");
}

bool IsCommentText(absl::string_view text) {
  return IsCleanText(text, "\t") &&
         (text.empty() || !absl::ascii_isspace(text.back()));
}

}  // namespace cleave
