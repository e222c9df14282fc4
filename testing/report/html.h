// Html: text of a page that is HTML and XML at once, so that what is not well
// formed is found by any parser of XML.

#ifndef CLEAVE_TESTING_REPORT_HTML_H_
#define CLEAVE_TESTING_REPORT_HTML_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace cleave {

// `text` as the text of an element or the value of an attribute: markup is
// written in entities. Control characters, which XML lacks, and bytes that are
// no UTF-8 become U+FFFD.
std::string EscapeHtml(absl::string_view text);

// `<tag attributes>text</tag>`, with the text escaped: `TextElement("td",
// "a < b")`. The attributes are written as they are.
std::string TextElement(absl::string_view tag, absl::string_view text,
                        absl::string_view attributes = "");
// The same around what is HTML already.
std::string Element(absl::string_view tag, absl::string_view html,
                    absl::string_view attributes = "");

// A whole page: `style` is CSS, `body` HTML.
std::string HtmlPage(absl::string_view title, absl::string_view style,
                     absl::string_view body);

// `<pre><code>text</code></pre>`, with the text escaped.
std::string CodeBlock(absl::string_view text);

// A table that scrolls by itself where it is too wide: the cells of its head,
// and its rows. No caption where it is empty.
std::string ScrollingTable(absl::string_view head, absl::string_view rows,
                           absl::string_view attributes = "",
                           absl::string_view caption = "");

// 17000 as "17,000".
std::string GroupedDigits(int64_t count);

// The `id` of an anchor for a name of any characters: letters, digits, `_` and
// `.` stay, each other byte is `-` and its two hexadecimal digits. Different
// names have different ids.
std::string AnchorId(absl::string_view kind, absl::string_view name);

}  // namespace cleave

#endif  // CLEAVE_TESTING_REPORT_HTML_H_
