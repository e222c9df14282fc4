// Expressions and specs as MathML, as goldens; and those of all shipped rules.

#include "tools/reference/formula.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/lang/diagnostic.h"
#include "engine/lang/parser.h"
#include "engine/rules/rule_files.h"
#include "gtest/gtest.h"
#include "testing/golden_file.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

// The first fault of elements that XML would refuse, or "". The text of
// formulas has no comments and no declarations.
std::string XmlFault(absl::string_view xml) {
  std::vector<std::string> open;
  while (!xml.empty()) {
    const size_t at = xml.find_first_of("<>&");
    if (at == absl::string_view::npos) break;
    xml.remove_prefix(at);
    if (xml[0] == '>') return "a `>` in text";
    if (xml[0] == '&') {
      bool known = false;
      for (const char* entity : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
        known = known || absl::StartsWith(xml, entity);
      }
      if (!known) return absl::StrCat("an entity: ", xml.substr(0, 9));
      xml.remove_prefix(1);
      continue;
    }
    const size_t end = xml.find('>');
    if (end == absl::string_view::npos) return "a tag without an end";
    absl::string_view tag = xml.substr(1, end - 1);
    xml.remove_prefix(end + 1);
    if (absl::ConsumePrefix(&tag, "/")) {
      if (open.empty() || open.back() != tag) {
        return absl::StrCat("</", tag, "> closes nothing");
      }
      open.pop_back();
    } else if (!absl::EndsWith(tag, "/")) {
      open.emplace_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty() ? "" : absl::StrCat("<", open.back(), "> stays open");
}

// Rows on lines of their own, and characters that cannot be seen by number.
std::string Lines(const std::string& html) {
  return absl::StrReplaceAll(html, {{"\u2061", "&#x2061;"},
                                    {"\u2062", "&#x2062;"},
                                    {"\u00A0", "&#xA0;"},
                                    {"</math>", "</math>\n"},
                                    {"<mtr>", "\n  <mtr>"},
                                    {"</mtable>", "\n</mtable>"}});
}

// The formulas of items, or of an expression.
std::string Formulas(absl::string_view input) {
  const bool items =
      absl::StartsWith(input, "op ") || absl::StartsWith(input, "def ");
  const std::string text =
      absl::StrCat("language 1\n\n", items ? "" : "def it() = ", input, "\n");
  const ParseResult parsed = ParseRules(Source("test.rules", text));
  std::string html;
  for (const Diagnostic& diagnostic : parsed.diagnostics) {
    absl::StrAppend(&html, diagnostic.message, "\n");
  }
  if (!parsed.ok()) return html;
  for (const RuleFile::Entry& entry : parsed.file.entries) {
    if (!entry.item.has_value()) continue;
    if (items) {
      absl::StrAppend(&html, SpecFormula(*entry.item));
      continue;
    }
    const Expr& expr = *entry.item->body->statements[0].equation.value;
    absl::StrAppend(&html, ExpressionMathML(expr), "\n");
  }
  EXPECT_EQ(XmlFault(html), "") << html;
  return Lines(html);
}

TEST(Formula, Golden) {
  TestGoldenFile("tools/reference/testdata/formulas.golden", Formulas);
}

TEST(Formula, OfEveryShippedSpecIsWellFormed) {
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedSource> files,
                       ReadRuleFiles({"rules"}));
  int specs = 0;
  for (const NamedSource& file : files) {
    const ParseResult parsed = ParseRules(Source(file.name, file.text));
    ASSERT_TRUE(parsed.ok()) << file.name;
    for (const RuleFile::Entry& entry : parsed.file.entries) {
      if (!entry.item.has_value()) continue;
      const Item& item = *entry.item;
      const std::string html = SpecFormula(item);
      EXPECT_EQ(XmlFault(html), "") << item.name << ": " << html;
      EXPECT_EQ(html.empty(), item.spec == nullptr && item.laws.empty())
          << item.name;
      EXPECT_FALSE(absl::StrContains(html, "class=\"mono\""))
          << item.name << " is not typeset: " << html;
      specs += html.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(specs, 150);
}

// Looking ahead on each level would take exponential time.
TEST(Formula, OfDeepExpressionsTakesLittleTime) {
  for (const char* step :
       {"x[$]", "exp($)", "1 / ($)", "x^($)", "-($)", "select(x, 0, $)",
        "sum[i]($)", "fold(t = 0, i in x) { t + ($) }"}) {
    std::string text = "x";
    for (int i = 0; i < kMaxNesting / 3; ++i) {
      text = absl::StrReplaceAll(step, {{"$", text}});
    }
    EXPECT_GT(Formulas(text).size(), text.size() / 2) << step;
  }
}

// An operator that the typesetter does not know yet.
TEST(Formula, ShowsRuleTextWhereItHasNoForm) {
  Expr name;
  name.text = "x";
  Expr expr;
  expr.kind = ExprKind::kBinary;
  expr.text = "<=>";
  expr.children = {std::make_shared<const Expr>(name),
                   std::make_shared<const Expr>(name)};
  EXPECT_EQ(ExpressionMathML(expr),
            "<mtext class=\"mono\">(x\u00A0&lt;=&gt;\u00A0x)</mtext>");
}

TEST(Formula, EscapesStrings) {
  const std::string html = Formulas("f(\"<b> & 'x'\")\n");
  EXPECT_TRUE(absl::StrContains(html, "&lt;b&gt;")) << html;
}

}  // namespace
}  // namespace cleave
