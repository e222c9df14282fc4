#include "testing/json_node.h"

#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ops/status_macros.h"

namespace cleave {

using nlohmann::json;

absl::Status JsonNode::Wrong(absl::string_view what) const {
  // The pointer to the whole text is empty.
  return absl::InvalidArgumentError(
      absl::StrCat(where, absl::EndsWith(where, ": ") ? "" : ": ", what));
}

JsonNode JsonNode::operator[](const std::string& key) const {
  const std::string escaped =
      absl::StrReplaceAll(key, {{"~", "~0"}, {"/", "~1"}});
  return {value.at(key), absl::StrCat(where, "/", escaped)};
}

JsonNode JsonNode::operator[](size_t element) const {
  return {value.at(element), absl::StrCat(where, "/", element)};
}

absl::Status JsonNode::CheckObject() const {
  return value.is_object() ? absl::OkStatus() : Wrong("not an object");
}

absl::Status JsonNode::CheckMembers(
    const std::set<std::string>& members,
    const std::set<std::string>& optional) const {
  CLEAVE_RETURN_IF_ERROR(CheckObject());
  for (const auto& member : value.items()) {
    if (members.count(member.key()) == 0 && optional.count(member.key()) == 0) {
      return Wrong(absl::StrCat("unknown member `", member.key(), "`"));
    }
  }
  for (const std::string& name : members) {
    if (!value.contains(name)) {
      return Wrong(absl::StrCat("the member `", name, "` is missing"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> JsonNode::String() const {
  if (!value.is_string()) return Wrong("not a string");
  return value.get<std::string>();
}

absl::StatusOr<bool> JsonNode::Bool() const {
  if (!value.is_boolean()) return Wrong("not true or false");
  return value.get<bool>();
}

absl::StatusOr<uint64_t> JsonNode::Unsigned() const {
  if (!value.is_number_unsigned() &&
      !(value.is_number_integer() && value.get<int64_t>() >= 0)) {
    return Wrong("not an integer >= 0");
  }
  return value.get<uint64_t>();
}

absl::StatusOr<int64_t> JsonNode::Count() const {
  CLEAVE_ASSIGN_OR_RETURN(const uint64_t count, Unsigned());
  if (count > uint64_t{INT64_MAX}) return Wrong("not an integer >= 0");
  return static_cast<int64_t>(count);
}

absl::StatusOr<double> JsonNode::Number() const {
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (!value.is_number() || !(value.get<double>() >= 0)) {
    return Wrong("not a number >= 0 or `inf`");
  }
  return value.get<double>();
}

absl::Status JsonNode::ForEach(
    const std::function<absl::Status(const JsonNode& element)>& read) const {
  if (!value.is_array()) return Wrong("not a list");
  for (size_t i = 0; i < value.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(read((*this)[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> JsonNode::Strings() const {
  std::vector<std::string> strings;
  CLEAVE_RETURN_IF_ERROR(ForEach([&](const JsonNode& element) -> absl::Status {
    CLEAVE_ASSIGN_OR_RETURN(std::string text, element.String());
    strings.push_back(std::move(text));
    return absl::OkStatus();
  }));
  return strings;
}

absl::StatusOr<std::map<std::string, int64_t>> JsonNode::Counts() const {
  CLEAVE_RETURN_IF_ERROR(CheckObject());
  std::map<std::string, int64_t> counts;
  for (const auto& member : value.items()) {
    CLEAVE_ASSIGN_OR_RETURN(counts[member.key()],
                            (*this)[member.key()].Count());
  }
  return counts;
}

absl::StatusOr<std::map<std::string, std::string>> JsonNode::StringMap() const {
  CLEAVE_RETURN_IF_ERROR(CheckObject());
  std::map<std::string, std::string> strings;
  for (const auto& member : value.items()) {
    CLEAVE_ASSIGN_OR_RETURN(strings[member.key()],
                            (*this)[member.key()].String());
  }
  return strings;
}

absl::StatusOr<json> ParseJson(absl::string_view text,
                               const std::string& name) {
  try {
    return json::parse(text.begin(), text.end());
  } catch (const json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 1: ..".
    const std::string what = error.what();
    const size_t end = what.find("] ");
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": ", end == std::string::npos ? what : what.substr(end + 2)));
  }
}

}  // namespace cleave
