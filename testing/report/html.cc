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
