// Diagnostic: a rule author's mistake, with its place, a caret and a
// suggestion.
//
//   softplus.rules:7:12: error: `bta` is not defined here [unknown-name]
//     let z = bta * x
//             ^~~
//   help: did you mean `beta`?

#ifndef CLEAVE_ENGINE_LANG_DIAGNOSTIC_H_
#define CLEAVE_ENGINE_LANG_DIAGNOSTIC_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/lang/source.h"

namespace cleave {

enum class DiagnosticKind : uint8_t {
#define DIAGNOSTIC(enumerator, text) enumerator,
#include "engine/lang/diagnostic_kind.def"
};

// "unknown-name".
absl::string_view DiagnosticKindName(DiagnosticKind kind);

struct Diagnostic {
  DiagnosticKind kind;
  std::string message;  // lower case, no full stop, code in backticks
  SourceRange range;
  std::string help;     // empty, or a suggestion
  std::string pointer;  // the JSON pointer, for rules read from JSON
};

// As shown above; with a pointer, `file.json:/items/0/body: error: ...`.
std::string Render(const Diagnostic& diagnostic, const Source& source);

// All of them, in order of place.
std::string Render(std::vector<Diagnostic> diagnostics, const Source& source);

// The name among `candidates` closest to `name`, empty if none is close.
std::string ClosestName(absl::string_view name,
                        const std::vector<std::string>& candidates);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_LANG_DIAGNOSTIC_H_
