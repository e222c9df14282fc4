// The examples of rules/README.md: all are read, and stand there as `cleave
// fmt` lays them out.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/lang/json_rule.h"
#include "engine/lang/lang_testing.h"
#include "engine/lang/parser.h"

namespace cleave {
namespace {

constexpr char kReadme[] = "rules/README.md";

struct Block {
  int line;
  std::string text;
};

// The fenced blocks of one language.
std::vector<Block> BlocksOf(const std::string& language) {
  std::vector<Block> blocks;
  bool inside = false;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(ReadFile(kReadme), '\n')) {
    ++number;
    if (inside && line == "```") {
      inside = false;
    } else if (inside) {
      absl::StrAppend(&blocks.back().text, line, "\n");
    } else if (line == absl::StrCat("```", language)) {
      inside = true;
      blocks.push_back({number + 1, ""});
    }
  }
  return blocks;
}

// An example is a file, whose first line may be left out.
std::string FileOf(const Block& block) {
  constexpr absl::string_view kHeading = "language 1\n";
  return absl::StartsWith(block.text, kHeading)
             ? block.text
             : absl::StrCat(kHeading, "\n", block.text);
}

TEST(Readme, ExamplesAreReadAndFormatted) {
  const std::vector<Block> blocks = BlocksOf("rules");
  EXPECT_GT(blocks.size(), 15);
  for (const Block& block : blocks) {
    SCOPED_TRACE(absl::StrCat(kReadme, ":", block.line));
    const Source source(kReadme, FileOf(block));
    const ParseResult result = ParseRules(source);
    EXPECT_EQ(Render(result.diagnostics, source), "");
    EXPECT_EQ(PrintRuleFile(result.file), source.text());
    const ParseResult twin =
        ParseJsonRules(Source("README.json", RulesToJson(result.file)));
    EXPECT_TRUE(twin.ok());
    EXPECT_EQ(PrintRuleFile(twin.file), source.text());
  }
}

// The kinds of expressions, statements and items, the types of attributes and
// the operators that occur.
class Constructs {
 public:
  std::set<ExprKind> expressions;
  std::set<StatementKind> statements;
  std::set<ItemKind> items;
  std::set<std::string> words;  // operators, reductions, attribute types, ..

  void Add(const ExprPtr& e) {
    if (e == nullptr) return;
    expressions.insert(e->kind);
    switch (e->kind) {
      case ExprKind::kUnary:
      case ExprKind::kBinary:
      case ExprKind::kReduce:
      case ExprKind::kTransformCall:
      case ExprKind::kTie:
        words.insert(e->text);
        break;
      default:
        break;
    }
    for (const ExprPtr& child : e->children) Add(child);
    for (const ExprPtr& second : e->seconds) Add(second);
    for (const NamedExpr& named : e->named) Add(named.value);
    for (const NamedExpr& named : e->named_seconds) {
      words.insert("named tangent");
      Add(named.value);
    }
    for (const Equation& field : e->fields) Add(field.value);
    Add(e->body);
    Add(e->else_body);
  }

  void Add(const BodyPtr& body) {
    if (body == nullptr) return;
    for (const Statement& statement : body->statements) {
      statements.insert(statement.kind);
      if (!statement.comments.empty()) words.insert("comment");
      if (statement.equation.indexed) words.insert("equation");
      for (const Statement::OverrideInput& input : statement.inputs) {
        if (input.unbatched) words.insert("@_");
        if (statement.kind == StatementKind::kJvp) words.insert("tangent");
      }
      Add(statement.equation.value);
    }
  }

  void Add(const TypeExpr& type) {
    Add(type.dtype);
    for (const AxisExpr& axis : type.axes) {
      if (axis.is_new) words.insert("new");
      if (!axis.at.empty()) words.insert("n@axis");
      Add(axis.size);
    }
  }

  void Add(const Item& item) {
    items.insert(item.kind);
    if (!item.docs.empty()) words.insert("doc");
    for (const InputDecl& input : item.inputs) {
      if (!input.variadic_index.empty()) words.insert("variadic");
      if (input.is_static) words.insert("static");
      if (input.optional) words.insert("optional input");
      Add(input.type);
    }
    for (const AttributeDecl& attribute : item.attributes) {
      words.insert(attribute.type);
      if (attribute.list) words.insert(attribute.type + "[]");
      if (attribute.list_length != nullptr) {
        words.insert(attribute.list_length->kind == ExprKind::kNumber
                         ? "int[2]"
                         : "int[len(S)]");
      }
      if (attribute.optional) words.insert("optional attribute");
      Add(attribute.default_value);
    }
    for (const ResultDecl& result : item.results) {
      if (result.condition != nullptr) words.insert("result if");
      Add(result.type);
    }
    for (const WhereClause& where : item.where) {
      words.insert(where.dtype_class);
    }
    if (!item.lets.empty()) words.insert("let clause");
    if (!item.mutates.empty()) words.insert("mutates");
    if (item.compute_acc) words.insert("compute acc");
    for (const ErrorClause& error : item.errors) {
      words.insert("error " + error.kind);
      Add(error.condition);
    }
    if (item.spec != nullptr) words.insert("spec");
    if (!item.laws.empty()) words.insert("laws");
    if (!item.specials.empty()) words.insert("special");
    if (!item.domains.empty()) words.insert("domain");
    for (const ApproximationClause& approximation : item.approximations) {
      words.insert("approximates");
      if (approximation.condition != nullptr) words.insert("approximates cond");
      if (!approximation.on.empty()) words.insert("approximates on");
    }
    for (const AccuracyClause& accuracy : item.accuracies) {
      if (!accuracy.on.empty()) words.insert("accuracy on");
      words.insert(accuracy.eps_of != nullptr ? "eps" : "ulp");
      if (accuracy.condition != nullptr) words.insert("cond");
    }
    if (item.real) words.insert("real rewrite");
    if (item.approximate) words.insert("~");
    for (const NamedExpr& let : item.lets) Add(let.value);
    if (item.kind == ItemKind::kOp && item.body == nullptr) {
      words.insert("op without a body");
    }
    Add(item.spec);
    Add(item.body);
    Add(item.left);
    Add(item.right);
  }
};

TEST(Readme, ExamplesUseEveryConstruct) {
  Constructs used;
  for (const Block& block : BlocksOf("rules")) {
    const ParseResult result = ParseRules(Source(kReadme, FileOf(block)));
    for (const RuleFile::Entry& entry : result.file.entries) {
      if (entry.item) used.Add(*entry.item);
      if (!entry.comments.empty()) used.words.insert("free comment");
    }
  }
  for (int kind = 0; kind <= static_cast<int>(ExprKind::kTie); ++kind) {
    EXPECT_EQ(used.expressions.count(static_cast<ExprKind>(kind)), 1u) << kind;
  }
  for (int kind = 0; kind <= static_cast<int>(StatementKind::kVjp); ++kind) {
    EXPECT_EQ(used.statements.count(static_cast<StatementKind>(kind)), 1u)
        << kind;
  }
  for (int kind = 0; kind <= static_cast<int>(ItemKind::kOverride); ++kind) {
    EXPECT_EQ(used.items.count(static_cast<ItemKind>(kind)), 1u) << kind;
  }
  for (const char* word : {"-",
                           "not",
                           "+",
                           "*",
                           "/",
                           "//",
                           "%",
                           "^",
                           "@",
                           "==",
                           "!=",
                           "<",
                           "<=",
                           ">",
                           ">=",
                           "and",
                           "or",
                           "??",
                           "++",
                           "..",
                           "in",
                           "is",
                           "sum",
                           "prod",
                           "max",
                           "min",
                           "argmax",
                           "argmin",
                           "jvp",
                           "vjp",
                           "first",
                           "second",
                           "named tangent",
                           "tangent",
                           "op without a body",
                           "comment",
                           "free comment",
                           "doc",
                           "equation",
                           "@_",
                           "new",
                           "n@axis",
                           "variadic",
                           "static",
                           "optional input",
                           "int",
                           "real",
                           "bool",
                           "str",
                           "dim",
                           "dtype",
                           "scalar",
                           "enum",
                           "axis",
                           "axes",
                           "int[]",
                           "real[]",
                           "dim[]",
                           "int[2]",
                           "int[len(S)]",
                           "optional attribute",
                           "result if",
                           "float",
                           "inexact",
                           "number",
                           "any",
                           "let clause",
                           "mutates",
                           "compute acc",
                           "error shape",
                           "error type",
                           "error value",
                           "spec",
                           "laws",
                           "special",
                           "domain",
                           "approximates",
                           "approximates cond",
                           "approximates on",
                           "accuracy on",
                           "eps",
                           "ulp",
                           "cond",
                           "real rewrite",
                           "~"}) {
    EXPECT_EQ(used.words.count(word), 1u) << word;
  }
}

TEST(Readme, JsonIsThatOfTheExampleAboveIt) {
  const std::vector<Block> json = BlocksOf("json");
  ASSERT_EQ(json.size(), 1);
  const Block* above = nullptr;
  const std::vector<Block> blocks = BlocksOf("rules");
  for (const Block& block : blocks) {
    if (block.line < json[0].line) above = &block;
  }
  ASSERT_NE(above, nullptr);
  EXPECT_EQ(RulesToJson(ParseRules(Source("", FileOf(*above))).file),
            json[0].text);
}

}  // namespace
}  // namespace cleave
