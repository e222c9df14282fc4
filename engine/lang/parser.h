// Parse: rule text to syntax tree. Reports several mistakes at once.
//
//   Source source("softplus.rules", text);
//   ParseResult result = ParseRules(source);
//   if (!result.diagnostics.empty()) std::cerr << Render(...);

#ifndef CLEAVE_ENGINE_LANG_PARSER_H_
#define CLEAVE_ENGINE_LANG_PARSER_H_

#include <vector>

#include "engine/lang/ast.h"
#include "engine/lang/diagnostic.h"
#include "engine/lang/source.h"

namespace cleave {

// Limits that keep a hostile file from hanging or exhausting the parser.
inline constexpr int kMaxNesting = 200;
inline constexpr int kMaxSourceBytes = 16 << 20;

struct ParseResult {
  RuleFile file;  // what could be read, also in the presence of mistakes
  std::vector<Diagnostic> diagnostics;
  bool ok() const { return diagnostics.empty(); }
};

ParseResult ParseRules(const Source& source);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_LANG_PARSER_H_
