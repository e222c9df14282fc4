#include "testing/conformance/case_suite.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/files/file.h"
#include "engine/runtime/safetensors.h"
#include "nlohmann/json.hpp"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using nlohmann::json;

// Lists in lists; the deepest that an op's signature has are 2.
constexpr int kMaxListDepth = 8;

// The members of a section besides its tolerance and its outputs.
struct SectionForm {
  const char* name;
  bool list = false;     // several such sections
  bool batched = false;  // in_axes and args
  int tangents = 0;      // how many directions
  bool cotangents = false;
  const char* grads = nullptr;  // the member with them, in place of outputs
};

constexpr SectionForm kSectionForms[] = {
    {"jvp", false, false, 1},
    {"jvp_jvp", false, false, 2},
    {"vjp", false, false, 0, true, "grads"},
    {"jvp_vjp", false, false, 1, true, "outputs"},
    {"vmap", true, true},
    {"vmap_jvp", true, true, 1},
};

absl::Status Invalid(const std::string& where, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
}

bool IsNone(const json& j) {
  return j.is_object() && j.size() == 1 && j.value("none", json()) == true;
}

// The JSON pointer of a member.
std::string At(const std::string& where, const std::string& key) {
  return absl::StrCat(where, "/",
                      absl::StrReplaceAll(key, {{"~", "~0"}, {"/", "~1"}}));
}
std::string At(const std::string& where, size_t element) {
  return absl::StrCat(where, "/", element);
}

absl::Status CheckMembers(const json& j, const std::set<std::string>& known,
                          const std::set<std::string>& needed,
                          const std::string& where) {
  if (!j.is_object()) return Invalid(where, "not an object");
  for (const auto& member : j.items()) {
    if (known.count(member.key()) == 0 && needed.count(member.key()) == 0) {
      return Invalid(where,
                     absl::StrCat("unknown member `", member.key(), "`"));
    }
  }
  for (const std::string& name : needed) {
    if (!j.contains(name)) {
      return Invalid(where, absl::StrCat("the member `", name, "` is missing"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> String(const json& j, const std::string& where) {
  if (!j.is_string()) return Invalid(where, "not a string");
  return j.get<std::string>();
}

// An integer that int64 holds.
std::optional<int64_t> Integer(const json& j) {
  if (j.is_number_unsigned() && j.get<uint64_t>() > INT64_MAX) {
    return std::nullopt;
  }
  if (!j.is_number_integer()) return std::nullopt;
  return j.get<int64_t>();
}

absl::StatusOr<double> Bound(const json& j, const std::string& where) {
  if (!j.is_number() || !(j.get<double>() >= 0)) {
    return Invalid(where, "not a number >= 0");
  }
  return j.get<double>();
}

absl::StatusOr<Tolerance> ReadTolerance(const json& j, Tolerance tolerance,
                                        const std::string& where) {
  if (j.contains("rtol")) {
    CLEAVE_ASSIGN_OR_RETURN(tolerance.relative,
                            Bound(j["rtol"], At(where, "rtol")));
  }
  if (j.contains("atol")) {
    CLEAVE_ASSIGN_OR_RETURN(tolerance.absolute,
                            Bound(j["atol"], At(where, "atol")));
  }
  return tolerance;
}

absl::StatusOr<CaseValue> Float(const json& v, const std::string& where) {
  if (v.is_number()) return CaseValue{v.get<double>()};
  const std::string text = v.is_string() ? v.get<std::string>() : "";
  const double inf = std::numeric_limits<double>::infinity();
  if (text == "inf") return CaseValue{inf};
  if (text == "-inf") return CaseValue{-inf};
  if (text == "nan") return CaseValue{std::nan("")};
  return Invalid(where, "not a number, `inf`, `-inf` or `nan`");
}

// Reads one file's cases; `where` is the JSON pointer of what is being read.
class CaseReader {
 public:
  explicit CaseReader(const TensorMap& tensors) : tensors_(tensors) {}

  absl::StatusOr<Case> ReadCase(const json& j, const std::string& where) {
    std::set<std::string> sections = {"rtol", "atol"};
    for (const SectionForm& form : kSectionForms) sections.insert(form.name);
    CLEAVE_RETURN_IF_ERROR(
        CheckMembers(j, sections, {"id", "args", "outputs"}, where));
    Case result;
    CLEAVE_ASSIGN_OR_RETURN(result.id, String(j["id"], At(where, "id")));
    CLEAVE_ASSIGN_OR_RETURN(result.arguments,
                            Arguments(j["args"], At(where, "args")));
    names_.clear();
    for (const auto& [name, value] : result.arguments) names_.insert(name);
    CLEAVE_ASSIGN_OR_RETURN(const Tolerance tolerance,
                            ReadTolerance(j, Tolerance(), where));
    CaseSection outputs;
    outputs.name = "outputs";
    outputs.tolerance = tolerance;
    CLEAVE_ASSIGN_OR_RETURN(outputs.outputs,
                            Outputs(j["outputs"], At(where, "outputs")));
    result.sections.push_back(std::move(outputs));
    for (const SectionForm& form : kSectionForms) {
      if (!j.contains(form.name)) continue;
      const json& sections_of = j[form.name];
      const std::string at = At(where, form.name);
      if (!form.list) {
        CLEAVE_ASSIGN_OR_RETURN(CaseSection section,
                                Section(sections_of, form, tolerance, at));
        result.sections.push_back(std::move(section));
        continue;
      }
      if (!sections_of.is_array()) return Invalid(at, "not a list");
      for (size_t i = 0; i < sections_of.size(); ++i) {
        CLEAVE_ASSIGN_OR_RETURN(
            CaseSection section,
            Section(sections_of[i], form, tolerance, At(at, i)));
        section.number = static_cast<int>(i);
        result.sections.push_back(std::move(section));
      }
    }
    return result;
  }

 private:
  absl::StatusOr<CaseSection> Section(const json& j, const SectionForm& form,
                                      Tolerance tolerance,
                                      const std::string& where) {
    const char* outputs = form.grads == nullptr ? "outputs" : form.grads;
    std::set<std::string> needed = {outputs};
    if (form.batched) needed.insert({"in_axes", "args"});
    if (form.tangents > 0) needed.insert("tangents");
    if (form.cotangents) needed.insert("cotangents");
    CLEAVE_RETURN_IF_ERROR(CheckMembers(j, {"rtol", "atol"}, needed, where));
    CaseSection section;
    section.name = form.name;
    CLEAVE_ASSIGN_OR_RETURN(section.tolerance,
                            ReadTolerance(j, tolerance, where));
    if (form.batched) {
      CLEAVE_ASSIGN_OR_RETURN(section.arguments,
                              Replacements(j["args"], At(where, "args")));
      CLEAVE_ASSIGN_OR_RETURN(section.in_axes,
                              InAxes(j["in_axes"], At(where, "in_axes")));
    }
    if (form.tangents > 0) {
      CLEAVE_ASSIGN_OR_RETURN(
          section.tangents,
          Tangents(j["tangents"], form.tangents, At(where, "tangents")));
    }
    if (form.cotangents) {
      CLEAVE_ASSIGN_OR_RETURN(
          section.cotangents,
          Outputs(j["cotangents"], At(where, "cotangents")));
    }
    if (form.grads != nullptr) {
      CLEAVE_ASSIGN_OR_RETURN(section.grads,
                              Replacements(j[outputs], At(where, outputs)));
    } else {
      CLEAVE_ASSIGN_OR_RETURN(section.outputs,
                              Outputs(j[outputs], At(where, outputs)));
    }
    return section;
  }

  absl::StatusOr<CaseValue> Value(const json& j, const std::string& where,
                                  int depth = 0) {
    if (!j.is_object() || j.size() != 1) {
      return Invalid(where, "a value is an object with one member");
    }
    const std::string kind = j.begin().key();
    const json& v = j.begin().value();
    const std::string at = At(where, kind);
    if (IsNone(j)) return CaseValue{CaseValue::None{}};
    if (kind == "tensor") {
      CLEAVE_ASSIGN_OR_RETURN(CaseValue::TensorRef ref, TensorOf(j, where));
      return CaseValue{std::move(ref)};
    }
    if (kind == "int") {
      const std::optional<int64_t> number = Integer(v);
      if (!number) return Invalid(at, "not an integer of 64 bits");
      return CaseValue{*number};
    }
    if (kind == "float") return Float(v, at);
    if (kind == "bool" && v.is_boolean()) return CaseValue{v.get<bool>()};
    if (kind == "str") {
      CLEAVE_ASSIGN_OR_RETURN(std::string text, String(v, at));
      return CaseValue{std::move(text)};
    }
    if (kind == "dtype") {
      CLEAVE_ASSIGN_OR_RETURN(const std::string text, String(v, at));
      const absl::StatusOr<DType> dtype = ParseDType(text);
      if (!dtype.ok()) return Invalid(at, dtype.status().message());
      return CaseValue{*dtype};
    }
    if (kind == "list" && v.is_array()) {
      if (depth == kMaxListDepth) return Invalid(at, "lists nest too deep");
      CaseValue::List list;
      for (size_t i = 0; i < v.size(); ++i) {
        CLEAVE_ASSIGN_OR_RETURN(CaseValue element,
                                Value(v[i], At(at, i), depth + 1));
        list.push_back(std::move(element));
      }
      return CaseValue{std::move(list)};
    }
    return Invalid(where, absl::StrCat("malformed value of kind `", kind, "`"));
  }

  absl::StatusOr<CaseArguments> Arguments(const json& j,
                                          const std::string& where) {
    if (!j.is_object()) return Invalid(where, "not an object");
    CaseArguments arguments;
    for (const auto& member : j.items()) {
      CLEAVE_ASSIGN_OR_RETURN(CaseValue value,
                              Value(member.value(), At(where, member.key())));
      arguments.emplace_back(member.key(), std::move(value));
    }
    return arguments;
  }

  // Arguments by names that the case's call has.
  absl::StatusOr<CaseArguments> Replacements(const json& j,
                                             const std::string& where) {
    CLEAVE_ASSIGN_OR_RETURN(CaseArguments arguments, Arguments(j, where));
    for (const auto& [name, value] : arguments) {
      CLEAVE_RETURN_IF_ERROR(CheckName(name, where));
    }
    return arguments;
  }

  absl::Status CheckName(const std::string& name, const std::string& where) {
    if (names_.count(name) != 0) return absl::OkStatus();
    return Invalid(where,
                   absl::StrCat("the case has no argument `", name, "`"));
  }

  absl::StatusOr<std::map<std::string, std::optional<int>>> InAxes(
      const json& j, const std::string& where) {
    if (!j.is_object()) return Invalid(where, "not an object");
    std::map<std::string, std::optional<int>> in_axes;
    for (const auto& member : j.items()) {
      CLEAVE_RETURN_IF_ERROR(CheckName(member.key(), where));
      const std::optional<int64_t> axis = Integer(member.value());
      if (member.value().is_null()) {
        in_axes[member.key()] = std::nullopt;
      } else if (axis && *axis >= 0 &&
                 *axis <= std::numeric_limits<int>::max()) {
        in_axes[member.key()] = static_cast<int>(*axis);
      } else {
        return Invalid(At(where, member.key()), "neither an axis nor null");
      }
    }
    return in_axes;
  }

  // One object, or a list of `count` where there are several.
  absl::StatusOr<std::vector<CaseArguments>> Tangents(
      const json& j, int count, const std::string& where) {
    std::vector<CaseArguments> tangents;
    if (count == 1) {
      CLEAVE_ASSIGN_OR_RETURN(CaseArguments one, Replacements(j, where));
      tangents.push_back(std::move(one));
      return tangents;
    }
    if (!j.is_array() || static_cast<int>(j.size()) != count) {
      return Invalid(where, absl::StrCat("not a list of ", count));
    }
    for (size_t i = 0; i < j.size(); ++i) {
      CLEAVE_ASSIGN_OR_RETURN(CaseArguments one,
                              Replacements(j[i], At(where, i)));
      tangents.push_back(std::move(one));
    }
    return tangents;
  }

  absl::StatusOr<ExpectedOutputs> Outputs(const json& j,
                                          const std::string& where) {
    if (!j.is_array()) return Invalid(where, "not a list");
    ExpectedOutputs outputs;
    for (size_t i = 0; i < j.size(); ++i) {
      if (j[i].is_null() || IsNone(j[i])) {
        outputs.push_back(std::nullopt);
        continue;
      }
      CLEAVE_ASSIGN_OR_RETURN(CaseValue::TensorRef ref,
                              TensorOf(j[i], At(where, i)));
      outputs.push_back(std::move(ref));
    }
    return outputs;
  }

  absl::StatusOr<CaseValue::TensorRef> TensorOf(const json& j,
                                                const std::string& where) {
    if (!j.is_object() || j.size() != 1 || !j.contains("tensor") ||
        !j["tensor"].is_string()) {
      return Invalid(where, "a tensor is named by its key");
    }
    const std::string key = j["tensor"].get<std::string>();
    const auto it = tensors_.find(key);
    if (it == tensors_.end()) {
      return Invalid(where, absl::StrCat("there is no tensor `", key, "`"));
    }
    return CaseValue::TensorRef{key, it->second};
  }

  const TensorMap& tensors_;
  std::set<std::string> names_;  // the arguments of the case being read
};

}  // namespace

absl::StatusOr<CaseFile> ReadCaseFile(const std::string& json_path) {
  CLEAVE_ASSIGN_OR_RETURN(const std::string text, ReadFile(json_path));
  const json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (j.is_discarded()) return Invalid(json_path, "not JSON");
  CLEAVE_RETURN_IF_ERROR(CheckMembers(j, {"source", "opset", "domain"},
                                      {"format", "op", "cases"}, json_path));
  if (j["format"] != "cleave-cases/1") {
    return Invalid(json_path, "the format is not `cleave-cases/1`");
  }
  if (!j["cases"].is_array()) return Invalid(json_path, "cases: not a list");
  CaseFile result;
  CLEAVE_ASSIGN_OR_RETURN(result.op, String(j["op"], json_path + ": /op"));
  const std::string stem = json_path.substr(0, json_path.rfind('.'));
  CLEAVE_ASSIGN_OR_RETURN(const TensorMap tensors,
                          ReadSafetensors(stem + ".safetensors"));
  CaseReader reader(tensors);
  for (size_t i = 0; i < j["cases"].size(); ++i) {
    CLEAVE_ASSIGN_OR_RETURN(
        Case read, reader.ReadCase(j["cases"][i],
                                   absl::StrCat(json_path, ": /cases/", i)));
    result.cases.push_back(std::move(read));
  }
  return result;
}

absl::StatusOr<std::vector<std::string>> ListCaseFiles(
    const std::string& folder) {
  std::error_code error;
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator it(folder, error), end;
       !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".json") files.push_back(it->path().string());
  }
  if (error || files.empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder, ": no folder with a suite of cases"));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace cleave
