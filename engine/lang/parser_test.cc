#include "engine/lang/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/lang/lang_testing.h"
#include "testing/golden_file.h"

namespace cleave {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

std::string Format(absl::string_view text) {
  const Source source("in.rules", std::string(text));
  const ParseResult result = ParseRules(source);
  EXPECT_EQ(Render(result.diagnostics, source), "");
  return PrintRuleFile(result.file);
}

DiagnosticKind OnlyKind(const std::string& text) {
  const ParseResult result = ParseRules(Source("in.rules", text));
  EXPECT_EQ(result.diagnostics.size(), 1);
  return result.diagnostics.empty() ? DiagnosticKind::kUnused
                                    : result.diagnostics[0].kind;
}

std::string Repeat(const std::string& text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

TEST(Parser, Format) {
  TestGoldenFile("engine/lang/testdata/format.golden",
                 [](absl::string_view input) {
                   const std::string once = Format(input);
                   EXPECT_EQ(Format(once), once);
                   return once;
                 });
}

TEST(Parser, Diagnostics) {
  std::set<DiagnosticKind> kinds;
  TestGoldenFile("engine/lang/testdata/fail_parse.golden",
                 [&](absl::string_view input) {
                   const Source source("in.rules", std::string(input));
                   const ParseResult result = ParseRules(source);
                   EXPECT_FALSE(result.ok());
                   for (const Diagnostic& d : result.diagnostics) {
                     kinds.insert(d.kind);
                   }
                   return Render(result.diagnostics, source);
                 });
  EXPECT_THAT(
      kinds,
      IsSupersetOf({DiagnosticKind::kBadCharacter, DiagnosticKind::kSyntax,
                    DiagnosticKind::kLayout, DiagnosticKind::kBadNumber,
                    DiagnosticKind::kLimit, DiagnosticKind::kDuplicate,
                    DiagnosticKind::kPlacement}));
}

TEST(Parser, PrintsTheLitmusAsItStands) {
  const std::string text = ReadFile("engine/lang/testdata/litmus.rules");
  EXPECT_EQ(Format(text), text);
}

TEST(Parser, ShippedRulesAreFormatted) {
  const std::vector<std::string> files = ShippedRuleFiles();
  EXPECT_GT(files.size(), 20);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const std::string text = ReadFile(file);
    EXPECT_EQ(Format(text), text);
  }
}

TEST(Parser, ReadsWindowsLineEnds) {
  EXPECT_EQ(Format("language 1\r\n\r\n// a\r\ndef f(x) = x\r\n"),
            "language 1\n\n// a\ndef f(x) = x\n");
}

TEST(Parser, KeepsRanges) {
  const std::string text = "language 1\n\ndef f(x) = x + g(x)\n";
  const ParseResult result = ParseRules(Source("in.rules", text));
  const Item& item = *result.file.entries[0].item;
  const auto of = [&](SourceRange range) {
    return text.substr(range.begin, range.end - range.begin);
  };
  EXPECT_EQ(of(item.range), "def f(x) = x + g(x)");
  const Expr& sum = *item.body->statements[0].equation.value;
  EXPECT_EQ(of(sum.range), "x + g(x)");
  EXPECT_EQ(of(sum.children[1]->range), "g(x)");
}

TEST(Parser, KeepsTheClausesOfLet) {
  const ParseResult result =
      ParseRules(Source("in.rules",
                        "language 1\n\nop f(x: T[n]) -> T[n]\n"
                        "  let a = 1, b = 2\n  let c = 3\n  = x\n"));
  const Item& item = *result.file.entries[0].item;
  EXPECT_EQ(item.lets.size(), 3);
  EXPECT_THAT(item.let_clauses, ::testing::ElementsAre(2, 1));
}

TEST(Parser, LimitsNesting) {
  const auto def = [](const std::string& e) {
    return absl::StrCat("language 1\n\ndef f(x) = ", e, "\n");
  };
  const int most = kMaxNesting - 2;
  EXPECT_TRUE(
      ParseRules(Source("", def(Repeat("f(", most) + "x" + Repeat(")", most))))
          .ok());
  EXPECT_TRUE(ParseRules(Source("", def("x" + Repeat(" + x", most)))).ok());
  const int many = 50000;
  for (const std::string& deep :
       {Repeat("(", many), Repeat("f(", many), Repeat("[", many),
        Repeat("-", many) + "x", Repeat("not ", many) + "x",
        "x" + Repeat(" + x", many), "x" + Repeat("^x", many),
        "x" + Repeat("[0]", many), "x" + Repeat(".a", many),
        Repeat("if x then x else ", many) + "x", Repeat("sum[i](", many),
        Repeat("fold(a = 0, b in c) { ", many), "x" + Repeat(" ?? x", many)}) {
    SCOPED_TRACE(deep.substr(0, 20));
    EXPECT_EQ(OnlyKind(def(deep)), DiagnosticKind::kLimit);
  }
}

TEST(Parser, LimitsSize) {
  EXPECT_EQ(OnlyKind(std::string(kMaxSourceBytes + 1, ' ')),
            DiagnosticKind::kLimit);
  std::string many = "language 1\n\ndef f(x) = [1";
  while (many.size() < (3 << 20)) many += ",1";
  many += "]\n";
  const ParseResult result = ParseRules(Source("in.rules", many));
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(
      result.diagnostics,
      Contains(::testing::Field(&Diagnostic::kind, DiagnosticKind::kLimit)));
}

TEST(Parser, ReportsOnlySoMany) {
  const ParseResult result =
      ParseRules(Source("in.rules", "language 1\n" + Repeat("\n?\n", 100000)));
  EXPECT_LE(result.diagnostics.size(), 200);
}

TEST(Parser, LaysOutWideAndDeepTextInTime) {
  // Each level could be broken in several ways.
  std::string deep = "language 1\n\ndef f(x) = ";
  for (int i = 0; i < 90; ++i) deep += "function_with_a_name(argument, ";
  deep += "x" + Repeat(" + argument)", 90) + "\n";
  const std::string once = Format(deep);
  EXPECT_EQ(Format(once), once);
  std::string wide = "language 1\n\ndef f(x) = [0";
  for (int i = 0; i < 100000; ++i) absl::StrAppend(&wide, ", ", i);
  wide += "]\n";
  EXPECT_THAT(Format(wide), HasSubstr("99999"));
}

TEST(Diagnostic, MarksCharactersAndNamesKinds) {
  const Source source("a.rules", "x\nµµ bad µ\n");
  const std::string text = Render(
      Diagnostic{DiagnosticKind::kType, "no", {7, 10}, "try this", ""}, source);
  EXPECT_EQ(text,
            "a.rules:2:4: error: no [type]\n  µµ bad µ\n     ^~~\n"
            "help: try this\n");
}

TEST(Diagnostic, SuggestsOnlyCloseNames) {
  EXPECT_EQ(ClosestName("bta", {"alpha", "beta"}), "beta");
  EXPECT_EQ(ClosestName("redcution", {"reduction", "mean"}), "reduction");
  EXPECT_EQ(ClosestName("zzz", {"alpha", "beta"}), "");
  EXPECT_EQ(ClosestName("beta", {"beta"}), "");
}

}  // namespace
}  // namespace cleave
