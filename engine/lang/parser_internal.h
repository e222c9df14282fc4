// The parser's state, shared by its parts: parser.cc (cursor, recovery, items),
// parse_expr.cc, parse_body.cc, parse_item.cc, parse_aten.cc.
//
// A mistake is reported once; from then on Peek() is the end, so that every
// loop comes to its end, until Recover() goes on at the next statement, clause
// or item. No function returns a null expression for what must be there.

#ifndef CLEAVE_ENGINE_LANG_PARSER_INTERNAL_H_
#define CLEAVE_ENGINE_LANG_PARSER_INTERNAL_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "engine/lang/ast.h"
#include "engine/lang/diagnostic.h"
#include "engine/lang/lexer.h"
#include "engine/lang/parser.h"
#include "engine/lang/precedence.h"
#include "engine/lang/source.h"

namespace cleave::internal {

// The parser recurs several times for one level of nesting.
inline constexpr int kMaxRecursion = 4 * kMaxNesting;

class Parser {
 public:
  Parser(const Source& source, std::vector<Token> tokens,
         std::vector<Diagnostic> diagnostics);
  ParseResult Run();

 private:
  // --- the cursor (parser.cc)

  // The token `ahead` of here, the end where the statement or clause ends.
  const Token& Peek(int ahead = 0) const;
  // The same, across the ends of statements.
  const Token& Raw(int ahead = 0) const;
  bool At(absl::string_view text, int ahead = 0) const;
  bool AtName(int ahead = 0) const;
  bool Take(absl::string_view text);
  void Next();
  bool Expect(absl::string_view text, absl::string_view context);
  std::string ExpectName(absl::string_view what);
  // Reports at the token here, and panics.
  void Fail(std::string message, std::string help = "");
  void FailUnexpected(absl::string_view expected);
  void FailNesting();
  // Reports, and goes on.
  void Report(DiagnosticKind kind, std::string message, SourceRange range,
              std::string help = "");
  uint32_t Begin() const { return Raw().range.begin; }
  SourceRange RangeFrom(uint32_t begin) const;
  std::string Describe(const Token& token) const;

  // The lines of a statement or clause: those deeper than its first.
  struct Extent {
    int indent;
    int start;
  };
  Extent EnterExtent();
  void LeaveExtent(Extent saved);
  // After a mistake: on to the next line at `indent` or less, at most to the
  // token `limit`.
  void Recover(int indent, int limit);
  std::vector<std::string> TakeComments();

  // Limits the recursion of the parser.
  class Depth;

  // --- expressions (parse_expr.cc)
  ExprPtr ParseExpr();
  ExprPtr ParseIf();
  ExprPtr ParseBinary(int min_precedence);
  ExprPtr ParseUnary();
  ExprPtr ParsePostfix();
  ExprPtr ParsePrimary();
  ExprPtr ParseNameOrCall();
  ExprPtr ParseParenthesised();
  ExprPtr ParseListOrComprehension();
  ExprPtr ParseReduce();
  ExprPtr ParseTransformCall();
  ExprPtr ParseFold();
  ExprPtr ParseScan();
  ExprPtr ParseMap();
  ExprPtr ParseCond();
  ExprPtr ParseWhile();
  void ParseArguments(std::vector<ExprPtr>* positional,
                      std::vector<NamedExpr>* named);
  ExprPtr ParseIndexElement();
  Binder ParseBinder();
  std::vector<Binder> ParseBinders(ExprPtr* condition);
  std::vector<Equation> ParseCarries();
  void ParseElement(Expr* expr);
  ExprPtr Make(Expr expr, uint32_t begin);
  ExprPtr Placeholder();
  int TakeHeightOf(const void* node);
  int TakeHeightOf(const Body* body);

  // --- bodies (parse_body.cc)
  bool AtEquation(int ahead = 0) const;
  Equation ParseEquation(bool may_be_expression);
  BodyPtr ParseBlock(bool overrides);
  BodyPtr ParseBodyAfterEquals();
  bool AtNamedTangent() const;
  Statement ParseStatement();
  std::vector<Statement::OverrideInput> ParseOverrideInputs(bool unbatched);
  void CheckOrder(const Body& body, bool overrides);

  // --- items (parser.cc, parse_item.cc, parse_clause.cc)
  void ParseLanguage();
  void ParseEntries();
  void ParseItem(Item* item);
  void ParseSignature(Item* item);
  InputDecl ParseInput();
  AttributeDecl ParseAttribute();
  void ParseAttributeType(AttributeDecl* attribute);
  TypeExpr ParseType();
  AxisExpr ParseAxis();
  std::vector<ResultDecl> ParseResults();
  std::vector<std::string> ParseParameters();
  void ParseClausesAndBody(Item* item);
  void ParseClause(absl::string_view keyword, Item* item);
  // `what`: the name before the colon.
  void ParseWhere(Item* item, const char* what);
  void ParseLets(Item* item);
  void ParseMutates(Item* item);
  void ParseError(Item* item);
  void ParseSpec(Item* item);
  void ParseDomain(Item* item);
  void ParseSpecial(Item* item);
  std::vector<InputRange> ParseInputRanges();
  void ParseApproximation(Item* item);
  void ParseAccuracy(Item* item);
  void ParseRewrite(Item* item);
  void ParseExample(Item* item);

  // --- schemas of PyTorch (parse_aten.cc)
  void ParseAten(Item* item);
  std::string ParseAtenName();
  AtenArgument ParseAtenArgument(bool keyword_only);
  AtenArgument ParseAtenResult();
  std::string ParseAtenType();
  std::string ParseAtenDefault();

  const Source& source_;
  std::vector<Token> tokens_;
  Token end_;
  ParseResult result_;
  int at_ = 0;
  int depth_ = 0;
  bool panic_ = false;
  bool abandoned_ = false;  // the rest of the item is not read
  // Lines at this column or before it, other than that of token start_, belong
  // to what follows.
  int indent_ = -1;
  int start_ = 0;
  int block_end_ = -1;  // the brace that closes the innermost block
  bool matmul_ = true;  // whether `@` is the operator: not in an axis
  // Heights of the trees that have no parent yet.
  absl::flat_hash_map<const void*, int> heights_;
};

class Parser::Depth {
 public:
  explicit Depth(Parser* parser) : parser_(parser) {
    if (++parser_->depth_ > kMaxRecursion) parser_->FailNesting();
  }
  ~Depth() { --parser_->depth_; }

 private:
  Parser* parser_;
};

}  // namespace cleave::internal

#endif  // CLEAVE_ENGINE_LANG_PARSER_INTERNAL_H_
