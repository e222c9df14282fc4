// Utf8At: the character at the start of a text.
//
//   Utf8At("\xC3\xA9t").length;  // 2: U+00E9

#ifndef CLEAVE_ENGINE_LANG_UTF8_H_
#define CLEAVE_ENGINE_LANG_UTF8_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace cleave {

struct Utf8Character {
  size_t length = 0;  // in bytes; 0: these are no character
  uint32_t code = 0;
};

// `text` is not empty. Neither surrogates nor forms that are longer than they
// need to be are characters (RFC 3629).
Utf8Character Utf8At(absl::string_view text);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_LANG_UTF8_H_
