// The JSON type, and the functions between trees and JSON, that the parts of
// json_rule.h share. Internal to engine/lang.

#ifndef CLEAVE_ENGINE_LANG_JSON_INTERNAL_H_
#define CLEAVE_ENGINE_LANG_JSON_INTERNAL_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/lang/ast.h"
#include "engine/lang/diagnostic.h"
#include "engine/lang/json_describe.h"
#include "engine/lang/parser.h"
#include "nlohmann/json.hpp"

namespace cleave::internal {

using Json = nlohmann::ordered_json;

// Brackets of JSON may nest this deep: several for one level of expressions.
inline constexpr int kMaxJsonNesting = 5 * kMaxNesting;

template <typename Kind, typename Table>
std::string KindText(const Table& table, Kind kind) {
  for (const auto& entry : table) {
    if (entry.kind == kind) return std::string(entry.name);
  }
  return "";
}

// `pointer` with one more step.
std::string PointerStep(absl::string_view pointer, absl::string_view key);

// The tree of `file` as JSON.
Json JsonOf(const RuleFile& file);

// JSON to a file; mistakes go to `diagnostics`, and what they leave is filled
// with place holders.
RuleFile FileOfJson(const Json& json, std::vector<Diagnostic>* diagnostics);

// Whether `text` is JSON within the limits; reports what is wrong.
bool CheckJsonText(absl::string_view text,
                   std::vector<Diagnostic>* diagnostics);

}  // namespace cleave::internal

#endif  // CLEAVE_ENGINE_LANG_JSON_INTERNAL_H_
