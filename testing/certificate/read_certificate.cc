#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "ops/dtype.h"
#include "ops/status_macros.h"
#include "testing/certificate/certificate.h"
#include "testing/certificate/certificate_json.h"
#include "testing/json_node.h"

namespace cleave {
namespace {

// `digits` hexadecimal digits.
absl::StatusOr<std::string> Hash(const JsonNode& node, size_t digits) {
  CLEAVE_ASSIGN_OR_RETURN(std::string text, node.String());
  bool all = text.size() == digits;
  for (const char c : text) {
    all = all && (absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'));
  }
  if (!all) {
    return node.Wrong(absl::StrCat("not ", digits, " hexadecimal digits"));
  }
  return text;
}

absl::StatusOr<Layer> ParseLayer(absl::string_view name, const JsonNode& node) {
  const std::optional<Layer> layer = FindLayer(name);
  // A host's kernel is in no certificate.
  if (layer && *layer != Layer::kHostKernel) return *layer;
  return node.Wrong(absl::StrCat("there is no layer `", name, "`"));
}

absl::StatusOr<Conditions> ReadConditions(const JsonNode& node) {
  CLEAVE_RETURN_IF_ERROR(node.CheckMembers(
      {"seed", "layers", "kernels", "dtypes", "sizes", "limits"}));
  Conditions conditions;
  CLEAVE_ASSIGN_OR_RETURN(conditions.seed, node["seed"].Unsigned());
  CLEAVE_ASSIGN_OR_RETURN(conditions.layers, node["layers"].Strings());
  for (const std::string& name : conditions.layers) {
    CLEAVE_RETURN_IF_ERROR(ParseLayer(name, node["layers"]).status());
  }
  CLEAVE_ASSIGN_OR_RETURN(conditions.kernels, node["kernels"].Bool());
  CLEAVE_ASSIGN_OR_RETURN(conditions.dtypes, node["dtypes"].Strings());
  for (const std::string& name : conditions.dtypes) {
    if (!ParseDType(name).ok()) {
      return node["dtypes"].Wrong(
          absl::StrCat("there is no dtype `", name, "`"));
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(conditions.sizes, node["sizes"].Counts());
  CLEAVE_ASSIGN_OR_RETURN(conditions.limits, node["limits"].Counts());
  return conditions;
}

absl::StatusOr<Environment> ReadEnvironment(const JsonNode& node) {
  CLEAVE_RETURN_IF_ERROR(node.CheckMembers(
      {"engine", "compiler", "libm", "mpfr", "cpu", "kernels"}));
  Environment environment;
  CLEAVE_ASSIGN_OR_RETURN(environment.engine, Hash(node["engine"], 64));
  CLEAVE_ASSIGN_OR_RETURN(environment.compiler, node["compiler"].String());
  CLEAVE_ASSIGN_OR_RETURN(environment.libm, node["libm"].String());
  CLEAVE_ASSIGN_OR_RETURN(environment.mpfr, node["mpfr"].String());
  CLEAVE_ASSIGN_OR_RETURN(environment.cpu, node["cpu"].String());
  CLEAVE_ASSIGN_OR_RETURN(environment.kernels, node["kernels"].String());
  return environment;
}

absl::StatusOr<Verdict> ReadVerdict(const JsonNode& node) {
  CLEAVE_RETURN_IF_ERROR(
      node.CheckMembers({"verdict", "strength", "samples", "worst_ulp",
                         "worst_part_of_bound", "worst_at", "why", "notes"}));
  Verdict verdict;
  CLEAVE_ASSIGN_OR_RETURN(const std::string kind, node["verdict"].String());
  const std::optional<VerdictKind> known = FindVerdictKind(kind);
  if (!known || *known == VerdictKind::kDisagrees ||
      *known == VerdictKind::kInconclusive) {
    return node["verdict"].Wrong(
        absl::StrCat("`", kind, "` is no certificate's verdict"));
  }
  verdict.kind = *known;
  CLEAVE_ASSIGN_OR_RETURN(const std::string strength,
                          node["strength"].String());
  const std::optional<Strength> known_strength = FindStrength(strength);
  if (!known_strength) {
    return node["strength"].Wrong(
        absl::StrCat("there is no strength `", strength, "`"));
  }
  verdict.strength = *known_strength;
  CLEAVE_ASSIGN_OR_RETURN(verdict.samples, node["samples"].Count());
  CLEAVE_ASSIGN_OR_RETURN(verdict.worst_ulp, node["worst_ulp"].Number());
  CLEAVE_ASSIGN_OR_RETURN(verdict.worst_part,
                          node["worst_part_of_bound"].Number());
  CLEAVE_ASSIGN_OR_RETURN(verdict.worst_at, node["worst_at"].String());
  CLEAVE_ASSIGN_OR_RETURN(verdict.why, node["why"].String());
  CLEAVE_ASSIGN_OR_RETURN(verdict.notes, node["notes"].Strings());
  return verdict;
}

absl::StatusOr<Certificate> ReadCertificate(const std::string& op,
                                            const JsonNode& node) {
  CLEAVE_RETURN_IF_ERROR(
      node.CheckMembers({"rule", "environment", "date", "place", "seconds",
                         "loose_claim", "layers"}));
  Certificate certificate;
  OpReport& report = certificate.report;
  report.op = op;
  CLEAVE_ASSIGN_OR_RETURN(certificate.rule, Hash(node["rule"], 64));
  CLEAVE_ASSIGN_OR_RETURN(certificate.environment,
                          Hash(node["environment"], 12));
  CLEAVE_ASSIGN_OR_RETURN(certificate.date, node["date"].String());
  CLEAVE_ASSIGN_OR_RETURN(report.place, node["place"].String());
  CLEAVE_ASSIGN_OR_RETURN(report.seconds, node["seconds"].Number());
  CLEAVE_ASSIGN_OR_RETURN(report.loose_claim, node["loose_claim"].Bool());
  const JsonNode layers = node["layers"];
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
  CLEAVE_ASSIGN_OR_RETURN(const nlohmann::json parsed, ParseJson(text, name));
  const JsonNode root{parsed, absl::StrCat(name, ": ")};
  if (!parsed.is_object()) return root.Wrong("not an object");
  if (!parsed.contains("format") || parsed["format"] != kCertificateFormat) {
    return root.Wrong(
        absl::StrCat("the format is not `", kCertificateFormat, "`"));
  }
  CLEAVE_RETURN_IF_ERROR(root.CheckMembers(
      {"format", "conditions", "environments", "certificates"}));
  CertificateFile file;
  CLEAVE_ASSIGN_OR_RETURN(file.conditions, ReadConditions(root["conditions"]));
  const JsonNode environments = root["environments"];
  if (!environments.value.is_object()) {
    return environments.Wrong("not an object");
  }
  for (const auto& member : environments.value.items()) {
    const JsonNode node = environments[member.key()];
    CLEAVE_ASSIGN_OR_RETURN(Environment environment, ReadEnvironment(node));
    if (environment.Id() != member.key()) {
      return node.Wrong("its name is not the hash of what it says");
    }
    file.environments[member.key()] = std::move(environment);
  }
  const JsonNode certificates = root["certificates"];
  if (!certificates.value.is_object()) {
    return certificates.Wrong("not an object");
  }
  for (const auto& member : certificates.value.items()) {
    const JsonNode node = certificates[member.key()];
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
