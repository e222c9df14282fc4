// JsonArray: numbers without a dtype, as test data has them in JSON.
//
//   ReadJsonArray(nlohmann::json::parse("[[1, \"inf\"], [2.5, \"nan\"]]"))
//   // shape {2, 2}, elements {1, inf, 2.5, nan}

#ifndef CLEAVE_TRANSFORMS_TESTING_JSON_ARRAY_H_
#define CLEAVE_TRANSFORMS_TESTING_JSON_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"

namespace cleave {

struct JsonArray {
  std::vector<int64_t> shape;
  std::vector<double> elements;  // row by row
  bool has_bools = false;        // which are 0 and 1
};

namespace internal_json_array {

// The first element of each depth tells its extent, and the others must have
// the same.
template <typename Json>
absl::Status AppendElements(const Json& json, size_t depth, JsonArray& array) {
  if (json.is_array()) {
    const auto extent = static_cast<int64_t>(json.size());
    if (depth == array.shape.size() && array.elements.empty()) {
      array.shape.push_back(extent);
    }
    if (depth >= array.shape.size() || array.shape[depth] != extent) {
      return absl::InvalidArgumentError("lists of different lengths");
    }
    for (const Json& element : json) {
      CLEAVE_RETURN_IF_ERROR(AppendElements(element, depth + 1, array));
    }
    return absl::OkStatus();
  }
  if (depth != array.shape.size()) {
    return absl::InvalidArgumentError("a list is expected");
  }
  using Limits = std::numeric_limits<double>;
  if (json.is_number()) {
    array.elements.push_back(json.template get<double>());
  } else if (json.is_boolean()) {
    array.elements.push_back(json.template get<bool>() ? 1 : 0);
    array.has_bools = true;
  } else if (json == "inf") {
    array.elements.push_back(Limits::infinity());
  } else if (json == "-inf") {
    array.elements.push_back(-Limits::infinity());
  } else if (json == "nan") {
    array.elements.push_back(Limits::quiet_NaN());
  } else {
    return absl::InvalidArgumentError(absl::StrCat("no number: ", json.dump()));
  }
  return absl::OkStatus();
}

}  // namespace internal_json_array

// A number, a bool, "inf", "-inf" or "nan", or nested lists of them, which must
// not be ragged. `Json` is nlohmann::json or ordered_json.
template <typename Json>
absl::StatusOr<JsonArray> ReadJsonArray(const Json& json) {
  JsonArray array;
  CLEAVE_RETURN_IF_ERROR(internal_json_array::AppendElements(json, 0, array));
  return array;
}

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_TESTING_JSON_ARRAY_H_
