#include "engine/embed/json_text.h"

#include "nlohmann/json.hpp"

namespace cleave::embed {

std::string DumpJson(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace cleave::embed
