// The JSON twin of a rule file: one node per construct, lossless both ways, and
// strict (rules/rule.schema.json): an unknown or missing member is a mistake
// with its JSON pointer.

#ifndef CLEAVE_ENGINE_LANG_JSON_RULE_H_
#define CLEAVE_ENGINE_LANG_JSON_RULE_H_

#include <string>

#include "engine/lang/ast.h"
#include "engine/lang/parser.h"

namespace cleave {

// Indented by two spaces, ends in a newline.
std::string RulesToJson(const RuleFile& file);

// Diagnostics carry pointers; the text is limited as rule text is. The ranges
// in the file are those of its canonical text, PrintRuleFile(result.file).
ParseResult ParseJsonRules(const Source& source);

// The pointer of the innermost node of RulesToJson(file) that contains `range`,
// which is one of the canonical text: for diagnostics of rules that were read
// from JSON.
std::string JsonPointerOf(const RuleFile& file, SourceRange range);

// rules/rule.schema.json: JSON Schema, draft 2020-12.
std::string RuleSchema();

}  // namespace cleave

#endif  // CLEAVE_ENGINE_LANG_JSON_RULE_H_
