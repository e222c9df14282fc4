#include "testing/conformance/case_suite.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/runtime/safetensors.h"
#include "nlohmann/json.hpp"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using nlohmann::json;

// Reads one file's cases; `where` is the JSON pointer of what is being read.
class CaseReader {
 public:
  explicit CaseReader(const TensorMap& tensors) : tensors_(tensors) {}

  absl::StatusOr<CaseValue> Value(const json& j, const std::string& where) {
    if (!j.is_object() || j.size() != 1) {
      return Invalid(where, "a value is an object with one member");
    }
    const std::string kind = j.begin().key();
    const json& v = j.begin().value();
    if (kind == "none") return CaseValue{CaseValue::None{}};
    if (kind == "tensor") {
      CLEAVE_ASSIGN_OR_RETURN(CaseValue::TensorRef ref, Tensor(j, where));
      return CaseValue{std::move(ref)};
    }
    if (kind == "int" && v.is_number_integer()) {
      return CaseValue{v.get<int64_t>()};
    }
    if (kind == "float") return Float(v, where);
    if (kind == "bool" && v.is_boolean()) return CaseValue{v.get<bool>()};
    if (kind == "str" && v.is_string()) {
      return CaseValue{v.get<std::string>()};
    }
    if (kind == "dtype" && v.is_string()) {
      CLEAVE_ASSIGN_OR_RETURN(DType dtype, ParseDType(v.get<std::string>()));
      return CaseValue{dtype};
    }
    if (kind == "list" && v.is_array()) {
      CaseValue::List list;
      for (size_t i = 0; i < v.size(); ++i) {
        CLEAVE_ASSIGN_OR_RETURN(CaseValue element,
                                Value(v[i], absl::StrCat(where, "/list/", i)));
        list.push_back(std::move(element));
      }
      return CaseValue{std::move(list)};
    }
    return Invalid(where, absl::StrCat("malformed value of kind `", kind, "`"));
  }

  absl::StatusOr<CaseArguments> Arguments(const json& j,
                                          const std::string& where) {
    if (!j.is_object()) return Invalid(where, "arguments are an object");
    CaseArguments arguments;
    for (const auto& member : j.items()) {
      CLEAVE_ASSIGN_OR_RETURN(
          CaseValue value,
          Value(member.value(), absl::StrCat(where, "/", member.key())));
      arguments.emplace_back(member.key(), std::move(value));
    }
    return arguments;
  }

  absl::StatusOr<ExpectedOutputs> Outputs(const json& j,
                                          const std::string& where) {
    if (!j.is_array()) return Invalid(where, "outputs are a list");
    ExpectedOutputs outputs;
    for (size_t i = 0; i < j.size(); ++i) {
      if (j[i].is_null()) {
        outputs.push_back(std::nullopt);
        continue;
      }
      CLEAVE_ASSIGN_OR_RETURN(CaseValue::TensorRef ref,
                              Tensor(j[i], absl::StrCat(where, "/", i)));
      outputs.push_back(std::move(ref));
    }
    return outputs;
  }

  absl::StatusOr<CaseSection> Section(const json& j, const std::string& name,
                                      int number, Tolerance tolerance,
                                      const std::string& where) {
    if (!j.is_object()) return Invalid(where, "a section is an object");
    CaseSection section;
    section.name = name;
    section.number = number;
    section.tolerance = ReadTolerance(j, tolerance);
    if (j.contains("args")) {
      CLEAVE_ASSIGN_OR_RETURN(section.arguments,
                              Arguments(j["args"], where + "/args"));
    }
    if (j.contains("in_axes")) {
      for (const auto& member : j["in_axes"].items()) {
        if (member.value().is_null()) {
          section.in_axes[member.key()] = std::nullopt;
        } else if (member.value().is_number_integer()) {
          section.in_axes[member.key()] = member.value().get<int>();
        } else {
          return Invalid(where + "/in_axes", "an axis is an integer or null");
        }
      }
    }
    if (j.contains("tangents")) {
      const json& t = j["tangents"];
      const std::string at = where + "/tangents";
      if (t.is_array()) {
        for (size_t i = 0; i < t.size(); ++i) {
          CLEAVE_ASSIGN_OR_RETURN(CaseArguments tangents,
                                  Arguments(t[i], absl::StrCat(at, "/", i)));
          section.tangents.push_back(std::move(tangents));
        }
      } else {
        CLEAVE_ASSIGN_OR_RETURN(CaseArguments tangents, Arguments(t, at));
        section.tangents.push_back(std::move(tangents));
      }
    }
    if (j.contains("cotangents")) {
      CLEAVE_ASSIGN_OR_RETURN(section.cotangents,
                              Outputs(j["cotangents"], where + "/cotangents"));
    }
    const char* grads = name == "vjp" ? "grads" : "outputs";
    if (name == "vjp" || name == "jvp_vjp") {
      if (!j.contains(grads)) return Invalid(where, "grads are missing");
      CLEAVE_ASSIGN_OR_RETURN(
          section.grads, Arguments(j[grads], absl::StrCat(where, "/", grads)));
      return section;
    }
    if (!j.contains("outputs")) return Invalid(where, "outputs are missing");
    CLEAVE_ASSIGN_OR_RETURN(section.outputs,
                            Outputs(j["outputs"], where + "/outputs"));
    return section;
  }

  absl::StatusOr<Case> ReadCase(const json& j, const std::string& where) {
    if (!j.is_object() || !j.contains("id") || !j["id"].is_string() ||
        !j.contains("args")) {
      return Invalid(where, "a case has an id and args");
    }
    Case result;
    result.id = j["id"].get<std::string>();
    CLEAVE_ASSIGN_OR_RETURN(result.arguments,
                            Arguments(j["args"], where + "/args"));
    const Tolerance tolerance = ReadTolerance(j, Tolerance());
    CLEAVE_ASSIGN_OR_RETURN(CaseSection outputs,
                            Section(j, "outputs", 0, tolerance, where));
    outputs.arguments.clear();
    result.sections.push_back(std::move(outputs));
    for (const char* name :
         {"jvp", "jvp_jvp", "vjp", "jvp_vjp", "vmap", "vmap_jvp"}) {
      if (!j.contains(name)) continue;
      const std::string at = absl::StrCat(where, "/", name);
      if (!j[name].is_array()) {
        CLEAVE_ASSIGN_OR_RETURN(CaseSection section,
                                Section(j[name], name, 0, tolerance, at));
        result.sections.push_back(std::move(section));
        continue;
      }
      for (size_t i = 0; i < j[name].size(); ++i) {
        CLEAVE_ASSIGN_OR_RETURN(CaseSection section,
                                Section(j[name][i], name, static_cast<int>(i),
                                        tolerance, absl::StrCat(at, "/", i)));
        result.sections.push_back(std::move(section));
      }
    }
    return result;
  }

 private:
  static absl::Status Invalid(const std::string& where,
                              absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
  }

  static Tolerance ReadTolerance(const json& j, Tolerance otherwise) {
    if (j.contains("rtol") && j["rtol"].is_number()) {
      otherwise.relative = j["rtol"].get<double>();
    }
    if (j.contains("atol") && j["atol"].is_number()) {
      otherwise.absolute = j["atol"].get<double>();
    }
    return otherwise;
  }

  absl::StatusOr<CaseValue> Float(const json& v, const std::string& where) {
    if (v.is_number()) return CaseValue{v.get<double>()};
    const std::string text = v.is_string() ? v.get<std::string>() : "";
    const double inf = std::numeric_limits<double>::infinity();
    if (text == "inf") return CaseValue{inf};
    if (text == "-inf") return CaseValue{-inf};
    if (text == "nan") return CaseValue{std::nan("")};
    return Invalid(where, "malformed float");
  }

  absl::StatusOr<CaseValue::TensorRef> Tensor(const json& j,
                                              const std::string& where) {
    if (!j.is_object() || !j.contains("tensor") || !j["tensor"].is_string()) {
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
};

}  // namespace

absl::StatusOr<CaseFile> ReadCaseFile(const std::string& json_path) {
  std::ifstream file(json_path);
  if (!file)
    return absl::NotFoundError(absl::StrCat("cannot open ", json_path));
  const std::string text((std::istreambuf_iterator<char>(file)),
                         std::istreambuf_iterator<char>());
  const json j = json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto invalid = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(json_path, ": ", what));
  };
  if (!j.is_object() || j.value("format", json()) != "cleave-cases/1") {
    return invalid("not a suite of format cleave-cases/1");
  }
  if (!j.contains("op") || !j["op"].is_string() || !j.contains("cases") ||
      !j["cases"].is_array()) {
    return invalid("an op and a list of cases are needed");
  }
  const std::string stem = json_path.substr(0, json_path.rfind('.'));
  CLEAVE_ASSIGN_OR_RETURN(const TensorMap tensors,
                          ReadSafetensors(stem + ".safetensors"));
  CaseReader reader(tensors);
  CaseFile result;
  result.op = j["op"].get<std::string>();
  for (size_t i = 0; i < j["cases"].size(); ++i) {
    absl::StatusOr<Case> read =
        reader.ReadCase(j["cases"][i], absl::StrCat("/cases/", i));
    if (!read.ok()) return invalid(read.status().message());
    result.cases.push_back(*std::move(read));
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
