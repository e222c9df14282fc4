#include "engine/lang/json_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/lang/lang_testing.h"
#include "testing/golden_file.h"

namespace cleave {
namespace {

using ::testing::IsSupersetOf;

RuleFile ParseText(const std::string& text) {
  const Source source("in.rules", text);
  ParseResult result = ParseRules(source);
  EXPECT_EQ(Render(result.diagnostics, source), "");
  return result.file;
}

RuleFile ParseJson(const std::string& text) {
  const Source source("in.json", text);
  ParseResult result = ParseJsonRules(source);
  EXPECT_EQ(Render(result.diagnostics, source), "");
  return result.file;
}

std::vector<std::string> AllRuleFiles() {
  std::vector<std::string> files = ShippedRuleFiles();
  EXPECT_GT(files.size(), 20);
  files.push_back("engine/lang/testdata/litmus.rules");
  return files;
}

TEST(JsonRule, TextToJsonToTextIsIdentical) {
  for (const std::string& path : AllRuleFiles()) {
    SCOPED_TRACE(path);
    const std::string text = ReadFile(path);
    const std::string json = RulesToJson(ParseText(text));
    const RuleFile file = ParseJson(json);
    EXPECT_EQ(PrintRuleFile(file), text);
    EXPECT_EQ(RulesToJson(file), json);
  }
}

TEST(JsonRule, OrderOfMembersMeansNothing) {
  const RuleFile file = ParseJson(
      R"({"entries": [{"right": {"text": "x", "kind": "name"}, "name": "r",
          "left": {"kind": "name", "text": "y"}, "kind": "rewrite"}],
          "language": 1})");
  EXPECT_EQ(PrintRuleFile(file), "language 1\n\nrewrite r: y => x\n");
}

TEST(JsonRule, Diagnostics) {
  std::set<DiagnosticKind> kinds;
  TestGoldenFile("engine/lang/testdata/fail_json.golden",
                 [&](absl::string_view input) {
                   const Source source("in.json", std::string(input));
                   const ParseResult result = ParseJsonRules(source);
                   EXPECT_FALSE(result.ok());
                   for (const Diagnostic& d : result.diagnostics) {
                     kinds.insert(d.kind);
                   }
                   return Render(result.diagnostics, source);
                 });
  EXPECT_THAT(kinds,
              IsSupersetOf({DiagnosticKind::kJson, DiagnosticKind::kDuplicate,
                            DiagnosticKind::kSyntax}));
}

// With --update, writes it.
TEST(JsonRule, SchemaIsThatOfTheRepository) {
  const std::vector<std::string> arguments = testing::internal::GetArgvs();
  if (std::find(arguments.begin(), arguments.end(), "--update") !=
      arguments.end()) {
    const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
    std::ofstream stream(absl::StrCat(workspace == nullptr ? "." : workspace,
                                      "/rules/rule.schema.json"));
    stream << RuleSchema();
    ASSERT_TRUE(stream.good());
    return;
  }
  EXPECT_EQ(RuleSchema(), ReadFile("rules/rule.schema.json"))
      << "run with --update to accept";
}

TEST(JsonRule, LimitsNestingAndSize) {
  for (const std::string& text :
       {std::string(1 << 20, '['), std::string(kMaxSourceBytes + 1, ' ')}) {
    const ParseResult result = ParseJsonRules(Source("in.json", text));
    ASSERT_EQ(result.diagnostics.size(), 1);
    EXPECT_EQ(result.diagnostics[0].kind, DiagnosticKind::kLimit);
  }
  std::string open, close;
  for (int i = 0; i < kMaxNesting + 10; ++i) {
    open += R"({"kind":"unary","operator":"-","operand":)";
    close += "}";
  }
  const ParseResult result = ParseJsonRules(Source(
      "in.json",
      absl::StrCat(R"({"language":1,"entries":[{"kind":"rewrite","name":"r",)",
                   R"("left":)", open, R"({"kind":"name","text":"x"})", close,
                   R"(,"right":{"kind":"name","text":"x"}}]})")));
  ASSERT_EQ(result.diagnostics.size(), 1);
  EXPECT_EQ(result.diagnostics[0].kind, DiagnosticKind::kLimit);
}

TEST(JsonRule, PointersNameTheNode) {
  const std::string text =
      "language 1\n\n"
      "op f(x: T[S..], *, a: int = 1) -> T[S..]\n"
      "  where T: float\n"
      "  = x * (a + g(x))\n";
  const RuleFile file = ParseJson(RulesToJson(ParseText(text)));
  const auto pointer = [&](const std::string& code) {
    const uint32_t begin = static_cast<uint32_t>(text.find(code));
    return JsonPointerOf(file,
                         {begin, static_cast<uint32_t>(begin + code.size())});
  };
  EXPECT_EQ(pointer("g(x)"), "/entries/0/body/0/value/right/right");
  EXPECT_EQ(pointer("a: int = 1"), "/entries/0/attributes/0");
  EXPECT_EQ(pointer("S..]"), "/entries/0/inputs/0/type");
  EXPECT_EQ(pointer("language 1"), "");
}

}  // namespace
}  // namespace cleave
