#include "testing/report/html.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "engine/lang/utf8.h"

namespace cleave {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

// The length of the character at the start of `text`, 0 where HTML has none.
size_t CharacterLength(absl::string_view text) {
  const auto [length, code] = Utf8At(text);
  return (code & 0xFFFE) == 0xFFFE ? 0 : length;
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  std::string html;
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterLength(text.substr(i));
    const char c = text[i];
    if (length > 1) {
      absl::StrAppend(&html, text.substr(i, length));
    } else if (c == '&') {
      html += "&amp;";
    } else if (c == '<') {
      html += "&lt;";
    } else if (c == '>') {
      html += "&gt;";
    } else if (c == '"') {
      html += "&quot;";
    } else if (c == '\'') {
      html += "&#39;";
    } else if (length == 0 || c == '\x7F' ||
               (static_cast<unsigned char>(c) < ' ' && c != '\n' &&
                c != '\t')) {
      html += kReplacement;
    } else {
      html += c;
    }
    i += length == 0 ? 1 : length;
  }
  return html;
}

std::string Element(absl::string_view tag, absl::string_view html,
                    absl::string_view attributes) {
  return absl::StrCat("<", tag, attributes.empty() ? "" : " ", attributes, ">",
                      html, "</", tag, ">");
}

std::string TextElement(absl::string_view tag, absl::string_view text,
                        absl::string_view attributes) {
  return Element(tag, EscapeHtml(text), attributes);
}

std::string HtmlPage(absl::string_view title, absl::string_view style,
                     absl::string_view body) {
  const std::string head =
      absl::StrCat("<meta charset=\"utf-8\"/>",
                   "<meta name=\"viewport\" content=\"width=device-width, "
                   "initial-scale=1\"/>",
                   "<meta name=\"color-scheme\" content=\"light dark\"/>",
                   TextElement("title", title), Element("style", style));
  return absl::StrCat(
      "<!DOCTYPE html>\n",
      Element("html",
              absl::StrCat(Element("head", head), Element("body", body)),
              "lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\""),
      "\n");
}

std::string CodeBlock(absl::string_view text) {
  return Element("pre", TextElement("code", text));
}

std::string ScrollingTable(absl::string_view head, absl::string_view rows,
                           absl::string_view attributes,
                           absl::string_view caption) {
  const std::string table = absl::StrCat(
      caption.empty() ? "" : TextElement("caption", caption),
      Element("thead", Element("tr", head)), Element("tbody", rows));
  return Element("div", Element("table", table, attributes),
                 "class=\"scroll\" tabindex=\"0\"");
}

std::string GroupedDigits(int64_t count) {
  std::string digits = absl::StrCat(count);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(at, ",");
  }
  return digits;
}

std::string AnchorId(absl::string_view kind, absl::string_view name) {
  std::string id = absl::StrCat(kind, "-");
  for (const char c : name) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
        c == '.') {
      id += c;
    } else {
      absl::StrAppendFormat(&id, "-%02x", static_cast<unsigned char>(c));
    }
  }
  return id;
}

}  // namespace cleave
