// The names that graph text writes without quotes, and the words that it
// reserves: for its printer and its parser. Internal to engine/ir.

#ifndef CLEAVE_ENGINE_IR_TEXT_SYNTAX_H_
#define CLEAVE_ENGINE_IR_TEXT_SYNTAX_H_

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"

namespace cleave::internal_text {

inline bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' ||
         c == '.' || c == '@';
}

// Whether `text` stands without quotes as the name of an input, an output, an
// op or an attribute: [A-Za-z_][A-Za-z0-9_.@]*.
bool IsName(absl::string_view text);

// Whether `text` as an attribute's value is a keyword or a dtype, not a dim.
bool IsReserved(absl::string_view text);

}  // namespace cleave::internal_text

#endif  // CLEAVE_ENGINE_IR_TEXT_SYNTAX_H_
