#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "nlohmann/json.hpp"
#include "ops/dtype.h"
#include "ops/status_macros.h"
#include "testing/certificate/certificate.h"
#include "testing/certificate/certificate_json.h"

namespace cleave {
namespace {

using nlohmann::json;

// A value and the JSON pointer by which messages name it.
struct Placed {
  const json& value;
  std::string where;

  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", what));
  }
  // It is there.
  Placed operator[](const std::string& key) const {
    const std::string escaped =
        absl::StrReplaceAll(key, {{"~", "~0"}, {"/", "~1"}});
    return {value.at(key), absl::StrCat(where, "/", escaped)};
  }
};

// An object with these members, all of them and no others.
absl::Status CheckMembers(const Placed& node,
                          const std::set<std::string>& members) {
  if (!node.value.is_object()) return node.Wrong("not an object");
  for (const auto& member : node.value.items()) {
    if (members.count(member.key()) == 0) {
      return node.Wrong(absl::StrCat("unknown member `", member.key(), "`"));
    }
  }
  for (const std::string& name : members) {
    if (!node.value.contains(name)) {
      return node.Wrong(absl::StrCat("the member `", name, "` is missing"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> String(const Placed& node) {
  if (!node.value.is_string()) return node.Wrong("not a string");
  return node.value.get<std::string>();
}

absl::StatusOr<bool> Bool(const Placed& node) {
  if (!node.value.is_boolean()) return node.Wrong("not true or false");
  return node.value.get<bool>();
}

absl::StatusOr<int64_t> Count(const Placed& node) {
  if (!node.value.is_number_unsigned() ||
      node.value.get<uint64_t>() > uint64_t{INT64_MAX}) {
    return node.Wrong("not an integer >= 0");
  }
  return node.value.get<int64_t>();
}

// A number, or "inf".
absl::StatusOr<double> Number(const Placed& node) {
  if (node.value == "inf") return std::numeric_limits<double>::infinity();
  if (!node.value.is_number() || !(node.value.get<double>() >= 0)) {
    return node.Wrong("not a number >= 0 or `inf`");
  }
  return node.value.get<double>();
}

absl::StatusOr<std::vector<std::string>> Strings(const Placed& node) {
  if (!node.value.is_array()) return node.Wrong("not a list");
  std::vector<std::string> strings;
  for (size_t i = 0; i < node.value.size(); ++i) {
    CLEAVE_ASSIGN_OR_RETURN(
        std::string text,
        String({node.value[i], absl::StrCat(node.where, "/", i)}));
    strings.push_back(std::move(text));
  }
  return strings;
}

absl::StatusOr<std::map<std::string, int64_t>> Counts(const Placed& node) {
  if (!node.value.is_object()) return node.Wrong("not an object");
  std::map<std::string, int64_t> counts;
  for (const auto& member : node.value.items()) {
    CLEAVE_ASSIGN_OR_RETURN(counts[member.key()], Count(node[member.key()]));
  }
  return counts;
}

// `digits` hexadecimal digits.
absl::StatusOr<std::string> Hash(const Placed& node, size_t digits) {
  CLEAVE_ASSIGN_OR_RETURN(std::string text, String(node));
  bool all = text.size() == digits;
  for (const char c : text) {
    all = all && (absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'));
  }
  if (!all) {
    return node.Wrong(absl::StrCat("not ", digits, " hexadecimal digits"));
  }
  return text;
}

absl::StatusOr<Layer> ParseLayer(absl::string_view name, const Placed& node) {
  const std::optional<Layer> layer = FindLayer(name);
  // A host's kernel is in no certificate.
  if (layer && *layer != Layer::kHostKernel) return *layer;
  return node.Wrong(absl::StrCat("there is no layer `", name, "`"));
}

absl::StatusOr<Conditions> ReadConditions(const Placed& node) {
  CLEAVE_RETURN_IF_ERROR(CheckMembers(
      node, {"seed", "layers", "kernels", "dtypes", "sizes", "limits"}));
  Conditions conditions;
  if (!node.value["seed"].is_number_unsigned()) {
    return node["seed"].Wrong("not an integer >= 0");
  }
  conditions.seed = node.value["seed"].get<uint64_t>();
  CLEAVE_ASSIGN_OR_RETURN(conditions.layers, Strings(node["layers"]));
  for (const std::string& name : conditions.layers) {
    CLEAVE_RETURN_IF_ERROR(ParseLayer(name, node["layers"]).status());
  }
  CLEAVE_ASSIGN_OR_RETURN(conditions.kernels, Bool(node["kernels"]));
  CLEAVE_ASSIGN_OR_RETURN(conditions.dtypes, Strings(node["dtypes"]));
  for (const std::string& name : conditions.dtypes) {
    if (!ParseDType(name).ok()) {
      return node["dtypes"].Wrong(
          absl::StrCat("there is no dtype `", name, "`"));
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(conditions.sizes, Counts(node["sizes"]));
  CLEAVE_ASSIGN_OR_RETURN(conditions.limits, Counts(node["limits"]));
  return conditions;
}

absl::StatusOr<Environment> ReadEnvironment(const Placed& node) {
  CLEAVE_RETURN_IF_ERROR(CheckMembers(
      node, {"engine", "compiler", "libm", "mpfr", "cpu", "kernels"}));
  Environment environment;
  CLEAVE_ASSIGN_OR_RETURN(environment.engine, Hash(node["engine"], 64));
  CLEAVE_ASSIGN_OR_RETURN(environment.compiler, String(node["compiler"]));
  CLEAVE_ASSIGN_OR_RETURN(environment.libm, String(node["libm"]));
  CLEAVE_ASSIGN_OR_RETURN(environment.mpfr, String(node["mpfr"]));
  CLEAVE_ASSIGN_OR_RETURN(environment.cpu, String(node["cpu"]));
  CLEAVE_ASSIGN_OR_RETURN(environment.kernels, String(node["kernels"]));
  return environment;
}

absl::StatusOr<Verdict> ReadVerdict(const Placed& node) {
  CLEAVE_RETURN_IF_ERROR(
      CheckMembers(node, {"verdict", "strength", "samples", "worst_ulp",
                          "worst_part_of_bound", "worst_at", "why", "notes"}));
  Verdict verdict;
  CLEAVE_ASSIGN_OR_RETURN(const std::string kind, String(node["verdict"]));
  bool found = false;
  for (const VerdictKind known :
       {VerdictKind::kAgrees, VerdictKind::kNotIndependent,
        VerdictKind::kNotChecked}) {
    if (VerdictKindName(known) != kind) continue;
    verdict.kind = known;
    found = true;
  }
  if (!found) {
    return node["verdict"].Wrong(
        absl::StrCat("`", kind, "` is no certificate's verdict"));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::string strength, String(node["strength"]));
  found = false;
  for (const Strength known :
       {Strength::kSampled, Strength::kExhaustive, Strength::kProved}) {
    if (StrengthName(known) != strength) continue;
    verdict.strength = known;
    found = true;
  }
  if (!found) {
    return node["strength"].Wrong(
        absl::StrCat("there is no strength `", strength, "`"));
  }
  CLEAVE_ASSIGN_OR_RETURN(verdict.samples, Count(node["samples"]));
  CLEAVE_ASSIGN_OR_RETURN(verdict.worst_ulp, Number(node["worst_ulp"]));
  CLEAVE_ASSIGN_OR_RETURN(verdict.worst_part,
                          Number(node["worst_part_of_bound"]));
  CLEAVE_ASSIGN_OR_RETURN(verdict.worst_at, String(node["worst_at"]));
  CLEAVE_ASSIGN_OR_RETURN(verdict.why, String(node["why"]));
  CLEAVE_ASSIGN_OR_RETURN(verdict.notes, Strings(node["notes"]));
  return verdict;
}

absl::StatusOr<Certificate> ReadCertificate(const std::string& op,
                                            const Placed& node) {
  CLEAVE_RETURN_IF_ERROR(
      CheckMembers(node, {"rule", "environment", "date", "place", "seconds",
                          "loose_claim", "layers"}));
  Certificate certificate;
  OpReport& report = certificate.report;
  report.op = op;
  CLEAVE_ASSIGN_OR_RETURN(certificate.rule, Hash(node["rule"], 64));
  CLEAVE_ASSIGN_OR_RETURN(certificate.environment,
                          Hash(node["environment"], 12));
  CLEAVE_ASSIGN_OR_RETURN(certificate.date, String(node["date"]));
  CLEAVE_ASSIGN_OR_RETURN(report.place, String(node["place"]));
  CLEAVE_ASSIGN_OR_RETURN(report.seconds, Number(node["seconds"]));
  CLEAVE_ASSIGN_OR_RETURN(report.loose_claim, Bool(node["loose_claim"]));
  const Placed layers = node["layers"];
  if (!layers.value.is_object() || layers.value.empty()) {
    return layers.Wrong("not an object with a verdict for each layer");
  }
  for (const auto& member : layers.value.items()) {
    CLEAVE_ASSIGN_OR_RETURN(const Layer layer,
                            ParseLayer(member.key(), layers));
    CLEAVE_ASSIGN_OR_RETURN(report.layers[layer],
                            ReadVerdict(layers[member.key()]));
  }
  // A report reads the largest error of L3 of a loose claim.
  if (report.loose_claim && report.layers.count(Layer::kRounding) == 0) {
    return node["loose_claim"].Wrong("a loose claim without L3");
  }
  return certificate;
}

}  // namespace

absl::StatusOr<CertificateFile> ParseCertificates(absl::string_view text,
                                                  const std::string& name) {
  json parsed;
  try {
    parsed = json::parse(text.begin(), text.end());
  } catch (const json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 1: ..".
    const std::string what = error.what();
    const size_t end = what.find("] ");
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": ", end == std::string::npos ? what : what.substr(end + 2)));
  }
  const Placed root{parsed, absl::StrCat(name, ": ")};
  if (!parsed.is_object()) return root.Wrong("not an object");
  if (!parsed.contains("format") || parsed["format"] != kCertificateFormat) {
    return root.Wrong(
        absl::StrCat("the format is not `", kCertificateFormat, "`"));
  }
  CLEAVE_RETURN_IF_ERROR(CheckMembers(
      root, {"format", "conditions", "environments", "certificates"}));
  CertificateFile file;
  CLEAVE_ASSIGN_OR_RETURN(file.conditions, ReadConditions(root["conditions"]));
  const Placed environments = root["environments"];
  if (!environments.value.is_object()) {
    return environments.Wrong("not an object");
  }
  for (const auto& member : environments.value.items()) {
    const Placed node = environments[member.key()];
    CLEAVE_ASSIGN_OR_RETURN(Environment environment, ReadEnvironment(node));
    if (environment.Id() != member.key()) {
      return node.Wrong("its name is not the hash of what it says");
    }
    file.environments[member.key()] = std::move(environment);
  }
  const Placed certificates = root["certificates"];
  if (!certificates.value.is_object()) {
    return certificates.Wrong("not an object");
  }
  for (const auto& member : certificates.value.items()) {
    const Placed node = certificates[member.key()];
    CLEAVE_ASSIGN_OR_RETURN(Certificate certificate,
                            ReadCertificate(member.key(), node));
    if (file.environments.count(certificate.environment) == 0) {
      return node["environment"].Wrong("no such environment");
    }
    file.certificates[member.key()] = std::move(certificate);
  }
  return file;
}

}  // namespace cleave
