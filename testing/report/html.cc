#include "testing/report/html.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace cleave {
namespace {

constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

// The length of the character that begins at `at`, 0 where none does.
size_t CharacterLength(absl::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(text[at + i]);
  };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0   ? 4
                        : first >= 0xE0 ? 3
                        : first >= 0xC0 ? 2
                                        : 0;
  if (length == 0 || first > 0xF4 || at + length > text.size()) return 0;
  uint32_t code = first & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  const bool none = (code & 0xFFFE) == 0xFFFE || code > 0x10FFFF;
  return code < kLeast[length] || surrogate || none ? 0 : length;
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  std::string html;
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterLength(text, i);
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
