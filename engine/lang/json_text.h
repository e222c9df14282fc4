// The kinds of text that a member of the JSON form may hold, a name or a number
// say: as code for the reader, as a pattern for the schema.

#ifndef CLEAVE_ENGINE_LANG_JSON_TEXT_H_
#define CLEAVE_ENGINE_LANG_JSON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"
#include "engine/lang/json_describe.h"

namespace cleave::internal {

bool IsTextOfKind(absl::string_view text, TextKind kind);
// "a name", for messages.
absl::string_view DescribeTextKind(TextKind kind);
// A regular expression (ECMA 262) that says the same.
std::string TextPattern(TextKind kind);

}  // namespace cleave::internal

#endif  // CLEAVE_ENGINE_LANG_JSON_TEXT_H_
