#include "engine/lang/utf8.h"

namespace cleave {

Utf8Character Utf8At(absl::string_view text) {
  const auto byte = [&](size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, first};
  size_t length = 0;
  uint32_t code = 0;
  if (first >= 0xC2 && first < 0xE0) {
    length = 2;
    code = first & 0x1F;
  } else if (first >= 0xE0 && first < 0xF0) {
    length = 3;
    code = first & 0x0F;
  } else if (first >= 0xF0 && first < 0xF5) {
    length = 4;
    code = first & 0x07;
  } else {
    return {};
  }
  if (text.size() < length) return {};
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3F);
  }
  if (length == 3 && (code < 0x800 || (code >= 0xD800 && code < 0xE000))) {
    return {};
  }
  if (length == 4 && (code < 0x10000 || code > 0x10FFFF)) return {};
  return {length, code};
}

}  // namespace cleave
