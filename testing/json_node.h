// JsonNode: a value of a JSON text, and the pointer to it that messages name.
//
//   CLEAVE_ASSIGN_OR_RETURN(const json text, ParseJson(bytes, "a.json"));
//   const JsonNode root{text, "a.json: "};
//   CLEAVE_RETURN_IF_ERROR(root.CheckMembers({"seed", "names"}, {"why"}));
//   CLEAVE_ASSIGN_OR_RETURN(const int64_t seed, root["seed"].Count());
//       a.json: /seed: not an integer >= 0
//
// All readers are strict: InvalidArgument, with the place, for a value of
// another type.

#ifndef CLEAVE_TESTING_JSON_NODE_H_
#define CLEAVE_TESTING_JSON_NODE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace cleave {

struct JsonNode {
  const nlohmann::json& value;
  std::string where;

  // InvalidArgument: the place, and what is wrong there.
  absl::Status Wrong(absl::string_view what) const;

  bool Has(const std::string& key) const {
    return value.is_object() && value.contains(key);
  }
  // A member or an element that is there.
  JsonNode operator[](const std::string& key) const;
  JsonNode operator[](size_t element) const;

  // An object that has all of `members`, perhaps some of `optional`, and no
  // others.
  absl::Status CheckMembers(const std::set<std::string>& members,
                            const std::set<std::string>& optional = {}) const;
  absl::Status CheckObject() const;

  absl::StatusOr<std::string> String() const;
  absl::StatusOr<bool> Bool() const;
  // Up to the largest int64_t.
  absl::StatusOr<int64_t> Count() const;
  absl::StatusOr<uint64_t> Unsigned() const;
  // 0 or above, or "inf".
  absl::StatusOr<double> Number() const;
  absl::StatusOr<std::vector<std::string>> Strings() const;
  absl::StatusOr<std::map<std::string, int64_t>> Counts() const;
  absl::StatusOr<std::map<std::string, std::string>> StringMap() const;
  // Calls `read` for each element of a list, up to the first error.
  absl::Status ForEach(
      const std::function<absl::Status(const JsonNode& element)>& read) const;
};

// InvalidArgument, with the line, for what is no JSON. `name` is that of the
// file.
absl::StatusOr<nlohmann::json> ParseJson(absl::string_view text,
                                         const std::string& name);

}  // namespace cleave

#endif  // CLEAVE_TESTING_JSON_NODE_H_
