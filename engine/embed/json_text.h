// DumpJson: JSON for a caller of the C ABI, on one line.
//
//   *out = NewText(DumpJson({{"saved", saved}}));

#ifndef CLEAVE_ENGINE_EMBED_JSON_TEXT_H_
#define CLEAVE_ENGINE_EMBED_JSON_TEXT_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace cleave::embed {

// Texts of callers, which need not be UTF-8, are shown as far as they are.
std::string DumpJson(const nlohmann::ordered_json& json);

}  // namespace cleave::embed

#endif  // CLEAVE_ENGINE_EMBED_JSON_TEXT_H_
