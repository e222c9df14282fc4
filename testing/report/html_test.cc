// Text as HTML, also where it is hostile or no text.

#include "testing/report/html.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace cleave {
namespace {

TEST(EscapeHtml, WritesMarkupInEntities) {
  EXPECT_EQ(
      EscapeHtml("<a href='x' title=\"y\">&amp;</a>"),
      "&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;amp;&lt;/a&gt;");
}

TEST(EscapeHtml, KeepsText) {
  EXPECT_EQ(EscapeHtml("y[s..] = 2 x\n\tn"), "y[s..] = 2 x\n\tn");
  EXPECT_EQ(EscapeHtml("\u03b1 \u2264 \U0001f600"), "\u03b1 \u2264 \U0001f600");
}

TEST(EscapeHtml, ReplacesWhatXmlLacks) {
  const std::string none = "\uFFFD";
  EXPECT_EQ(EscapeHtml(std::string("a\0b", 3)), "a" + none + "b");
  EXPECT_EQ(EscapeHtml("\x01\x1b\x7f\r"), none + none + none + none);
  EXPECT_EQ(EscapeHtml("\xef\xbf\xbf"), none + none + none);  // U+FFFF
}

TEST(EscapeHtml, ReplacesBytesThatAreNoUtf8) {
  const std::string none = "\uFFFD";
  EXPECT_EQ(EscapeHtml("a\xff"), "a" + none);
  EXPECT_EQ(EscapeHtml("\x80"), none);
  EXPECT_EQ(EscapeHtml("\xc3"), none);             // cut off
  EXPECT_EQ(EscapeHtml("\xc3<"), none + "&lt;");   // and markup behind it
  EXPECT_EQ(EscapeHtml("\xc0\xbc"), none + none);  // `<`, too long
  EXPECT_EQ(EscapeHtml("\xed\xa0\x80"), none + none + none);  // a surrogate
}

TEST(Element, EscapesTextAlone) {
  EXPECT_EQ(TextElement("td", "a < b", "class=\"x\""),
            "<td class=\"x\">a &lt; b</td>");
  EXPECT_EQ(Element("tr", TextElement("td", "a")), "<tr><td>a</td></tr>");
}

TEST(GroupedDigits, SeparatesThousands) {
  EXPECT_EQ(GroupedDigits(0), "0");
  EXPECT_EQ(GroupedDigits(999), "999");
  EXPECT_EQ(GroupedDigits(17000), "17,000");
  EXPECT_EQ(GroupedDigits(1234567), "1,234,567");
}

TEST(AnchorId, TellsNamesApart) {
  EXPECT_EQ(AnchorId("op", "aten.add.Tensor"), "op-aten.add.Tensor");
  EXPECT_EQ(AnchorId("op", "jvp exp"), "op-jvp-20exp");
  std::set<std::string> ids;
  for (const char* name : {"a b", "a-b", "a-20b", "a_b", "a\"b"}) {
    ids.insert(AnchorId("op", name));
  }
  EXPECT_EQ(ids.size(), 5u);
  EXPECT_EQ(AnchorId("op", "\"><x>"), "op--22-3e-3cx-3e");
}

}  // namespace
}  // namespace cleave
