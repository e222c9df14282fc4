#include "engine/lang/parser.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/lang/parser_internal.h"
#include "ops/budget.h"

namespace cleave {
namespace internal {
namespace {

// More diagnostics than this tell nobody more.
constexpr size_t kMaxDiagnostics = 100;

const std::vector<std::string>& ItemKeywords() {
  static const auto* keywords = new std::vector<std::string>{
      "op",      "def",     "aten",    "onnx", "jvp",
      "numeric", "rewrite", "example", "fn",   "override"};
  return *keywords;
}

bool IsCloser(const Token& token) {
  return token.kind == TokenKind::kSymbol &&
         (token.text == ")" || token.text == "]" || token.text == "}");
}

bool IsComment(const Token& token) {
  return token.kind == TokenKind::kComment || token.kind == TokenKind::kDoc;
}

}  // namespace

Parser::Parser(const Source& source, std::vector<Token> tokens,
               std::vector<Diagnostic> diagnostics)
    : source_(source), tokens_(std::move(tokens)) {
  result_.diagnostics = std::move(diagnostics);
}

const Token& Parser::Raw(int ahead) const {
  const size_t index =
      std::min(tokens_.size() - 1, static_cast<size_t>(at_ + ahead));
  return tokens_[index];
}

const Token& Parser::Peek(int ahead) const {
  if (panic_) return end_;
  for (int i = 0; i <= ahead; ++i) {
    const Token& token = Raw(i);
    if (token.first_on_line && at_ + i != start_ && token.column <= indent_ &&
        !IsCloser(token) && token.text != "else") {
      return end_;
    }
  }
  return Raw(ahead);
}

bool Parser::At(absl::string_view text, int ahead) const {
  const Token& token = Peek(ahead);
  return (token.kind == TokenKind::kSymbol || token.kind == TokenKind::kName) &&
         token.text == text;
}

bool Parser::AtName(int ahead) const {
  return Peek(ahead).kind == TokenKind::kName &&
         !IsReservedWord(Peek(ahead).text);
}

void Parser::Next() {
  if (!panic_ && at_ + 1 < static_cast<int>(tokens_.size())) ++at_;
}

bool Parser::Take(absl::string_view text) {
  if (!At(text)) return false;
  Next();
  return true;
}

bool Parser::Expect(absl::string_view text, absl::string_view context) {
  if (Take(text)) return true;
  FailUnexpected(absl::StrCat("`", text, "` ", context));
  return false;
}

std::string Parser::ExpectName(absl::string_view what) {
  if (AtName()) {
    std::string name(Peek().text);
    Next();
    return name;
  }
  FailUnexpected(what);
  return "_";
}

std::string Parser::Describe(const Token& token) const {
  if (IsComment(token)) return "a comment";
  if (&token == &end_) return "the end of the line";
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the file";
    case TokenKind::kString:
      return "a string";
    default:
      return absl::StrCat("`", token.text.substr(0, 40), "`");
  }
}

void Parser::Fail(std::string message, std::string help) {
  if (panic_) return;
  SourceRange range = Raw().range;
  if (&Peek() == &end_ && at_ > 0) {
    // At the end of a statement the place is behind its last token.
    const uint32_t end = tokens_[at_ - 1].range.end;
    range = {end, end + 1};
  }
  panic_ = true;
  // If the lexer left out a character here, its diagnostic says so already.
  const uint32_t before = at_ > 0 ? tokens_[at_ - 1].range.end : 0;
  for (const Diagnostic& diagnostic : result_.diagnostics) {
    if (diagnostic.range.begin >= before && diagnostic.range.end <= range.end) {
      return;
    }
  }
  Report(DiagnosticKind::kSyntax, std::move(message), range, std::move(help));
}

void Parser::FailUnexpected(absl::string_view expected) {
  if (panic_) return;
  const Token& token = Peek();
  std::string help;
  if (IsComment(token)) {
    help = "a comment stands between items or above a statement";
  } else if (token.kind == TokenKind::kName && IsReservedWord(token.text)) {
    help = absl::StrCat("`", token.text, "` is a word of the language");
  }
  Fail(absl::StrCat("expected ", expected, ", found ", Describe(token)),
       std::move(help));
}

void Parser::FailNesting() {
  if (panic_) return;
  Report(DiagnosticKind::kLimit,
         absl::StrCat("an expression nests at most ", kMaxNesting, " deep"),
         Raw().range, "name its parts with `let`");
  panic_ = true;
  abandoned_ = true;
}

void Parser::Report(DiagnosticKind kind, std::string message, SourceRange range,
                    std::string help) {
  if (result_.diagnostics.size() >= kMaxDiagnostics) return;
  result_.diagnostics.push_back(
      {kind, std::move(message), range, std::move(help), ""});
}

SourceRange Parser::RangeFrom(uint32_t begin) const {
  const uint32_t end = at_ > 0 ? tokens_[at_ - 1].range.end : begin;
  return {begin, std::max(begin, end)};
}

Parser::Extent Parser::EnterExtent() {
  const Extent saved = {indent_, start_};
  indent_ = Raw().line_indent;
  start_ = at_;
  return saved;
}

void Parser::LeaveExtent(Extent saved) {
  indent_ = saved.indent;
  start_ = saved.start;
}

void Parser::Recover(int indent, int limit) {
  if (abandoned_) return;
  panic_ = false;
  const int last = static_cast<int>(tokens_.size()) - 1;
  limit = limit < 0 ? last : std::min(limit, last);
  while (at_ < limit) {
    const Token& token = tokens_[at_];
    if (token.first_on_line && at_ != start_ && token.column <= indent &&
        !IsCloser(token) && token.text != "else") {
      return;
    }
    ++at_;
  }
}

std::vector<std::string> Parser::TakeComments() {
  std::vector<std::string> comments;
  while (Raw().kind == TokenKind::kComment) {
    comments.emplace_back(Raw().text);
    ++at_;
  }
  return comments;
}

void Parser::ParseLanguage() {
  while (Raw().kind == TokenKind::kComment) {
    Report(DiagnosticKind::kPlacement, "a comment stands before `language 1`",
           Raw().range, "`language 1` is the first line of a file");
    ++at_;
  }
  const Extent saved = EnterExtent();
  if (!At("language")) {
    Report(DiagnosticKind::kSyntax, "a file begins with `language 1`",
           Raw().range);
    LeaveExtent(saved);
    return;
  }
  Next();
  int version = 0;
  if (Peek().kind != TokenKind::kNumber) {
    FailUnexpected("the number of the language");
  } else if (!absl::SimpleAtoi(Peek().text, &version) || version != 1) {
    Report(DiagnosticKind::kSyntax,
           absl::StrCat("language ", Peek().text,
                        " is not supported: this engine reads language 1"),
           Peek().range);
  }
  Next();
  if (!panic_ && !Raw().first_on_line) FailUnexpected("a new line");
  if (panic_) Recover(0, -1);
  LeaveExtent(saved);
}

void Parser::ParseEntries() {
  while (Raw().kind != TokenKind::kEnd) {
    RuleFile::Entry entry;
    entry.blank_before = Raw().blank_before;
    if (Raw().kind == TokenKind::kComment) {
      entry.comments.emplace_back(Raw().text);
      ++at_;
      while (Raw().kind == TokenKind::kComment && !Raw().blank_before) {
        entry.comments.emplace_back(Raw().text);
        ++at_;
      }
      result_.file.entries.push_back(std::move(entry));
      continue;
    }
    Item item;
    const SourceRange docs = Raw().range;
    while (Raw().kind == TokenKind::kDoc) {
      item.docs.emplace_back(Raw().text);
      ++at_;
    }
    if (!item.docs.empty() &&
        (Raw().kind == TokenKind::kEnd || Raw().kind == TokenKind::kComment)) {
      Report(DiagnosticKind::kPlacement,
             "this documents nothing: no item follows", docs,
             "a comment that documents nothing begins with `//`");
      continue;
    }
    const int start = at_;
    const Extent saved = EnterExtent();
    indent_ = 0;
    ParseItem(&item);
    item.range = RangeFrom(tokens_[start].range.begin);
    if (!panic_ && (Raw().column != 0 || !Raw().first_on_line)) {
      const Token& token = Raw();
      if (token.first_on_line && token.kind == TokenKind::kName) {
        Report(
            DiagnosticKind::kLayout,
            absl::StrCat("`", token.text.substr(0, 40), "` belongs to no item"),
            token.range,
            "an item starts in column 0; its clauses stand before its "
            "body");
        panic_ = true;
      } else {
        FailUnexpected("the end of the item");
      }
    }
    if (panic_) {
      abandoned_ = false;
      Recover(0, -1);
    } else {
      entry.item = std::move(item);
      result_.file.entries.push_back(std::move(entry));
    }
    LeaveExtent(saved);
    abandoned_ = false;
    // Whatever the mistake was, the parser goes on.
    if (at_ == start) ++at_;
    heights_.clear();
  }
}

void Parser::ParseItem(Item* item) {
  const Token& token = Raw();
  if (token.column != 0) {
    Report(DiagnosticKind::kLayout, "an item starts in column 0", token.range);
  }
  static const auto* kinds = new absl::flat_hash_map<std::string, ItemKind>{
      {"op", ItemKind::kOp},           {"def", ItemKind::kDef},
      {"aten", ItemKind::kAten},       {"onnx", ItemKind::kOnnx},
      {"jvp", ItemKind::kJvp},         {"numeric", ItemKind::kNumeric},
      {"rewrite", ItemKind::kRewrite}, {"example", ItemKind::kExample},
      {"fn", ItemKind::kFn},           {"override", ItemKind::kOverride}};
  const auto kind = kinds->find(std::string(token.text.substr(0, 40)));
  if (token.kind != TokenKind::kName || kind == kinds->end()) {
    std::string help;
    if (token.kind == TokenKind::kName) {
      const std::string close =
          ClosestName(token.text.substr(0, 80), ItemKeywords());
      if (!close.empty()) help = absl::StrCat("did you mean `", close, "`?");
    }
    Fail(absl::StrCat("expected an item, found ", Describe(token)),
         std::move(help));
    return;
  }
  Next();
  item->kind = kind->second;
  switch (item->kind) {
    case ItemKind::kOp:
    case ItemKind::kOnnx:
    case ItemKind::kFn:
    case ItemKind::kNumeric:
      ParseSignature(item);
      ParseClausesAndBody(item);
      break;
    case ItemKind::kDef:
    case ItemKind::kJvp:
      item->name = ExpectName("a name");
      item->parameters = ParseParameters();
      ParseClausesAndBody(item);
      break;
    case ItemKind::kOverride:
      item->name = ExpectName("the name of an op");
      if (At(".")) {
        Fail("an op of a host is not overridden",
             "override the op that its declaration calls");
      }
      ParseClausesAndBody(item);
      break;
    case ItemKind::kAten:
      ParseAten(item);
      ParseClausesAndBody(item);
      break;
    case ItemKind::kRewrite:
      ParseRewrite(item);
      break;
    case ItemKind::kExample:
      ParseExample(item);
      break;
  }
}

ParseResult Parser::Run() {
  ParseLanguage();
  ParseEntries();
  std::stable_sort(result_.diagnostics.begin(), result_.diagnostics.end(),
                   [](const Diagnostic& a, const Diagnostic& b) {
                     return a.range.begin < b.range.begin;
                   });
  return std::move(result_);
}

}  // namespace internal

ParseResult ParseRules(const Source& source) {
  ParseResult result;
  if (source.text().size() > kMaxSourceBytes) {
    result.diagnostics.push_back(
        {DiagnosticKind::kLimit,
         absl::StrCat("a file has at most ", kMaxSourceBytes, " bytes"),
         {0, 0},
         "split the file",
         ""});
    return result;
  }
  std::vector<Diagnostic> diagnostics;
  std::vector<Token> tokens = Lex(source, &diagnostics);
  const absl::Status status = OnAmpleStack([&] {
    result = internal::Parser(source, std::move(tokens), std::move(diagnostics))
                 .Run();
  });
  if (!status.ok()) {
    result.diagnostics.push_back({DiagnosticKind::kLimit,
                                  std::string(status.message()),
                                  {0, 0},
                                  "",
                                  ""});
  }
  return result;
}

}  // namespace cleave
