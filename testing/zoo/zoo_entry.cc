#include "testing/zoo/zoo_entry.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "nlohmann/json.hpp"
#include "ops/status_macros.h"
#include "transforms/testing/json_array.h"

namespace cleave {
namespace {

using nlohmann::json;

const std::map<std::string, ZooTransform>& Transforms() {
  static const auto& transforms = *new std::map<std::string, ZooTransform>{
      {"value", ZooTransform::kValue},   {"slope", ZooTransform::kSlope},
      {"jvp", ZooTransform::kJvp},       {"vjp", ZooTransform::kVjp},
      {"second", ZooTransform::kSecond}, {"vmap", ZooTransform::kVmap}};
  return transforms;
}

const std::map<std::string, ZooVerdict>& Verdicts() {
  static const auto& verdicts = *new std::map<std::string, ZooVerdict>{
      {"refuted", ZooVerdict::kRefuted},
      {"refused", ZooVerdict::kRefused},
      {"accepted", ZooVerdict::kAccepted},
      {"not stated", ZooVerdict::kNotStated}};
  return verdicts;
}

absl::Status Invalid(const std::string& where, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
}

absl::StatusOr<ZooTensor> ReadTensor(const json& j, const std::string& where) {
  absl::StatusOr<JsonArray> array = ReadJsonArray(j);
  if (!array.ok()) return Invalid(where, array.status().message());
  if (array->has_bools) return Invalid(where, "bools are no numbers");
  return ZooTensor{std::move(array->shape), std::move(array->elements)};
}

absl::StatusOr<std::map<std::string, ZooTensor>> ReadTensors(
    const json& j, const std::string& where) {
  if (!j.is_object()) return Invalid(where, "not an object");
  std::map<std::string, ZooTensor> tensors;
  for (const auto& [name, value] : j.items()) {
    CLEAVE_ASSIGN_OR_RETURN(tensors[name],
                            ReadTensor(value, absl::StrCat(where, "/", name)));
  }
  return tensors;
}

absl::Status CheckMembers(const json& j, const std::set<std::string>& needed,
                          const std::set<std::string>& optional,
                          const std::string& where) {
  if (!j.is_object()) return Invalid(where, "not an object");
  for (const auto& [name, value] : j.items()) {
    if (needed.count(name) == 0 && optional.count(name) == 0) {
      return Invalid(where, absl::StrCat("unknown member `", name, "`"));
    }
  }
  for (const std::string& name : needed) {
    if (!j.contains(name)) {
      return Invalid(where, absl::StrCat("the member `", name, "` is missing"));
    }
  }
  return absl::OkStatus();
}

absl::Status ReadString(const json& j, const std::string& name,
                        const std::string& where, std::string& text) {
  if (!j.contains(name)) return absl::OkStatus();
  if (!j[name].is_string() || j[name].get<std::string>().empty()) {
    return Invalid(absl::StrCat(where, "/", name), "not a text");
  }
  text = j[name].get<std::string>();
  return absl::OkStatus();
}

// Finds the text of a member in `values`.
template <typename T>
absl::Status ReadEnum(const json& j, const std::string& name,
                      const std::map<std::string, T>& values,
                      const std::string& where, T& value) {
  std::string text;
  CLEAVE_RETURN_IF_ERROR(ReadString(j, name, where, text));
  const auto it = values.find(text);
  if (it == values.end()) {
    return Invalid(absl::StrCat(where, "/", name),
                   absl::StrCat("unknown: `", text, "`"));
  }
  value = it->second;
  return absl::OkStatus();
}

absl::StatusOr<ZooEntry> ReadEntry(const json& j, const std::string& where) {
  CLEAVE_RETURN_IF_ERROR(CheckMembers(
      j, {"id", "project", "issue", "kind", "transform", "inputs", "verdict"},
      {"along", "in_axes", "right", "right_error", "wrong", "ulp", "convention",
       "layer", "why"},
      where));
  ZooEntry entry;
  CLEAVE_RETURN_IF_ERROR(ReadString(j, "id", where, entry.id));
  CLEAVE_RETURN_IF_ERROR(ReadString(j, "project", where, entry.project));
  CLEAVE_RETURN_IF_ERROR(ReadString(j, "issue", where, entry.issue));
  CLEAVE_RETURN_IF_ERROR(ReadString(j, "kind", where, entry.kind));
  CLEAVE_RETURN_IF_ERROR(ReadString(j, "convention", where, entry.convention));
  CLEAVE_RETURN_IF_ERROR(ReadString(j, "layer", where, entry.layer));
  CLEAVE_RETURN_IF_ERROR(ReadString(j, "why", where, entry.why));
  CLEAVE_RETURN_IF_ERROR(
      ReadString(j, "right_error", where, entry.right_error));
  CLEAVE_RETURN_IF_ERROR(
      ReadEnum(j, "transform", Transforms(), where, entry.transform));
  CLEAVE_RETURN_IF_ERROR(
      ReadEnum(j, "verdict", Verdicts(), where, entry.verdict));
  CLEAVE_ASSIGN_OR_RETURN(entry.inputs,
                          ReadTensors(j["inputs"], where + "/inputs"));
  if (j.contains("along")) {
    CLEAVE_ASSIGN_OR_RETURN(entry.along,
                            ReadTensors(j["along"], where + "/along"));
  }
  if (j.contains("in_axes")) {
    CLEAVE_ASSIGN_OR_RETURN(const auto axes,
                            ReadTensors(j["in_axes"], where + "/in_axes"));
    for (const auto& [name, axis] : axes) {
      if (!axis.shape.empty())
        return Invalid(where + "/in_axes", "not a number");
      entry.in_axes[name] = static_cast<int>(axis.values[0]);
    }
  }
  if (j.contains("right") == j.contains("right_error")) {
    return Invalid(where, "one of `right` and `right_error` is expected");
  }
  if (j.contains("right")) {
    CLEAVE_ASSIGN_OR_RETURN(entry.right, ReadTensor(j["right"], where));
  }
  if (j.contains("wrong")) {
    CLEAVE_ASSIGN_OR_RETURN(ZooTensor wrong, ReadTensor(j["wrong"], where));
    entry.wrong.push_back(std::move(wrong));
  }
  if (j.contains("ulp")) {
    if (!j["ulp"].is_number()) return Invalid(where + "/ulp", "not a number");
    entry.ulp = j["ulp"].get<double>();
  }
  const bool checked = entry.verdict == ZooVerdict::kRefuted ||
                       entry.verdict == ZooVerdict::kAccepted;
  if (checked != !entry.layer.empty() || checked != !entry.wrong.empty()) {
    return Invalid(where, "`layer` and `wrong` belong to a checked rule");
  }
  const bool sampled =
      entry.verdict == ZooVerdict::kRefuted && entry.layer != "examples";
  if (entry.why.empty() != sampled) {
    return Invalid(where, "`why` belongs to a rule that samples do not refute");
  }
  return entry;
}

}  // namespace

Tensor ZooTensor::ToTensor(DType dtype) const {
  return Tensor::FromDoubles(dtype, shape, values);
}

absl::StatusOr<std::vector<ZooEntry>> ReadZoo(const std::string& path) {
  CLEAVE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const json file = json::parse(text, nullptr, false);
  if (file.is_discarded()) return Invalid(path, "not JSON");
  CLEAVE_RETURN_IF_ERROR(CheckMembers(file, {"entries"}, {}, path));
  if (!file["entries"].is_array()) return Invalid(path, "not a list");
  std::vector<ZooEntry> entries;
  std::set<std::string> ids;
  for (const json& j : file["entries"]) {
    CLEAVE_ASSIGN_OR_RETURN(
        ZooEntry entry,
        ReadEntry(j, absl::StrCat(path, ":/entries/", entries.size())));
    if (!ids.insert(entry.id).second) {
      return Invalid(path, absl::StrCat("`", entry.id, "` stands there twice"));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace cleave
