#include "testing/certificate/certificate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/dtype.h"
#include "testing/certificate/certificate_json.h"

namespace cleave {
namespace {

using nlohmann::json;

json ConditionsJson(const Conditions& conditions) {
  return {
      {"seed", conditions.seed},         {"layers", conditions.layers},
      {"kernels", conditions.kernels},   {"dtypes", conditions.dtypes},
      {"sizes", json(conditions.sizes)}, {"limits", json(conditions.limits)}};
}

json EnvironmentJson(const Environment& environment) {
  return {{"engine", environment.engine}, {"compiler", environment.compiler},
          {"libm", environment.libm},     {"mpfr", environment.mpfr},
          {"cpu", environment.cpu},       {"kernels", environment.kernels}};
}

// JSON has no infinity.
json NumberJson(double number) {
  return std::isfinite(number) ? json(number) : json("inf");
}

json VerdictJson(const Verdict& verdict) {
  return {{"verdict", std::string(VerdictKindName(verdict.kind))},
          {"strength", std::string(StrengthName(verdict.strength))},
          {"samples", verdict.samples},
          {"worst_ulp", NumberJson(verdict.worst_ulp)},
          {"worst_part_of_bound", NumberJson(verdict.worst_part)},
          {"worst_at", verdict.worst_at},
          {"why", verdict.why},
          {"notes", verdict.notes}};
}

std::string Quoted(const std::string& text) { return Dump(json(text)); }

// Items on lines of their own.
std::string Object(const std::vector<std::string>& items) {
  return items.empty()
             ? "{}"
             : absl::StrCat("{\n", absl::StrJoin(items, ",\n"), "\n}");
}

std::string CertificateText(const std::string& op,
                            const Certificate& certificate) {
  const OpReport& report = certificate.report;
  std::vector<std::string> layers;
  for (const auto& [layer, verdict] : report.layers) {
    layers.push_back(absl::StrCat(Quoted(std::string(LayerName(layer))), ": ",
                                  Dump(VerdictJson(verdict))));
  }
  // Milliseconds, as more would only make lines differ.
  const double seconds = std::round(report.seconds * 1000) / 1000;
  return absl::StrCat(
      Quoted(op), ": {\"rule\": ", Quoted(certificate.rule),
      ", \"environment\": ", Quoted(certificate.environment),
      ", \"date\": ", Quoted(certificate.date),
      ", \"place\": ", Quoted(report.place),
      ", \"seconds\": ", Dump(json(seconds)),
      ", \"loose_claim\": ", report.loose_claim ? "true" : "false",
      ", \"layers\": ", Object(layers), "}");
}

}  // namespace

std::string Dump(const json& value) {
  // Rule names and messages are UTF-8 as the lexer takes them.
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Conditions Conditions::Of(const CheckOptions& options) {
  CLEAVE_CHECK(options.host_kernels.Ops().empty())
      << "a certificate of a host's own kernel";
  CLEAVE_CHECK(!options.stop_at_refutation) << "a check that is cut short";
  Conditions conditions;
  conditions.seed = options.seed;
  for (const Layer layer : options.layers) {
    conditions.layers.emplace_back(LayerName(layer));
  }
  conditions.kernels = options.kernels != nullptr;
  for (const DType dtype : options.dtypes) {
    conditions.dtypes.emplace_back(DTypeName(dtype));
  }
  conditions.sizes = options.sizes;
  const Limits given = CurrentLimits();
  const Limits defaults;
  const auto add = [&](const char* name, int64_t value, int64_t usual) {
    if (value != usual) conditions.limits[name] = value;
  };
  add("tensor_bytes", given.tensor_bytes, defaults.tensor_bytes);
  add("loop_steps", given.loop_steps, defaults.loop_steps);
  add("expressions", given.expressions, defaults.expressions);
  add("bodies", given.bodies, defaults.bodies);
  add("nodes", given.nodes, defaults.nodes);
  add("depth", given.depth, defaults.depth);
  return conditions;
}

void Conditions::Set(CheckOptions& options) const {
  options.seed = seed;
  options.layers.clear();
  for (const std::string& name : layers) {
    const std::optional<Layer> layer = FindLayer(name);
    CLEAVE_CHECK(layer.has_value()) << name;
    options.layers.insert(*layer);
  }
  options.dtypes.clear();
  for (const std::string& name : dtypes) {
    const absl::StatusOr<DType> dtype = ParseDType(name);
    CLEAVE_CHECK(dtype.ok()) << name;
    options.dtypes.insert(*dtype);
  }
  options.sizes = sizes;
}

std::string Conditions::ToString() const { return Dump(ConditionsJson(*this)); }

std::string Today() {
  return absl::FormatTime("%Y-%m-%d", absl::Now(), absl::UTCTimeZone());
}

bool IsCertifiable(const OpReport& report) {
  return !report.layers.empty() && !report.Has(VerdictKind::kDisagrees) &&
         !report.Has(VerdictKind::kInconclusive);
}

void CertificateFile::Add(Certificate certificate,
                          const Environment& environment) {
  CLEAVE_CHECK(IsCertifiable(certificate.report)) << certificate.report.op;
  certificate.environment = environment.Id();
  environments[certificate.environment] = environment;
  const std::string op = certificate.report.op;
  certificates[op] = std::move(certificate);
}

const Environment& CertificateFile::EnvironmentOf(
    const Certificate& certificate) const {
  return environments.at(certificate.environment);
}

std::string CertificateFile::ToJson() const {
  std::vector<std::string> environment_texts;
  for (const auto& [id, environment] : environments) {
    environment_texts.push_back(
        absl::StrCat(Quoted(id), ": ", Dump(EnvironmentJson(environment))));
  }
  std::vector<std::string> certificate_texts;
  for (const auto& [op, certificate] : certificates) {
    certificate_texts.push_back(CertificateText(op, certificate));
  }
  return absl::StrCat("{\"format\": ", Quoted(kCertificateFormat),
                      ",\n\"conditions\": ", conditions.ToString(),
                      ",\n\"environments\": ", Object(environment_texts),
                      ",\n\"certificates\": ", Object(certificate_texts),
                      "}\n");
}

std::optional<std::string> Difference(const OpReport& certified,
                                      const OpReport& now, bool exactly) {
  const auto differ = [](Layer layer, absl::string_view what,
                         const std::string& was, const std::string& is) {
    return absl::StrCat(LayerName(layer), ": ", what, " ", was, " certified, ",
                        is, " now");
  };
  for (int i = 0; i < kNumLayers; ++i) {
    const Layer layer = static_cast<Layer>(i);
    const auto a = certified.layers.find(layer);
    const auto b = now.layers.find(layer);
    const bool was = a != certified.layers.end();
    const bool is = b != now.layers.end();
    if (was != is) {
      return differ(layer, "the layer is", was ? "there" : "absent",
                    is ? "there" : "absent");
    }
    if (!was) continue;
    const Verdict& x = a->second;
    const Verdict& y = b->second;
    if (x.kind != y.kind) {
      return differ(layer, "the verdict is",
                    absl::StrCat("`", VerdictKindName(x.kind), "`"),
                    absl::StrCat("`", VerdictKindName(y.kind), "`"));
    }
    if (!exactly) continue;
    const auto number = [](double n) { return absl::StrFormat("%.17g", n); };
    if (x.samples != y.samples) {
      return differ(layer, "samples", absl::StrCat(x.samples),
                    absl::StrCat(y.samples));
    }
    if (x.strength != y.strength) {
      return differ(layer, "strength", std::string(StrengthName(x.strength)),
                    std::string(StrengthName(y.strength)));
    }
    if (x.worst_ulp != y.worst_ulp) {
      return differ(layer, "the largest error in ulp", number(x.worst_ulp),
                    number(y.worst_ulp));
    }
    if (x.worst_part != y.worst_part) {
      return differ(layer, "the largest part of the bound",
                    number(x.worst_part), number(y.worst_part));
    }
    if (x.worst_at != y.worst_at) {
      return differ(layer, "the largest error is at",
                    absl::StrCat("`", x.worst_at, "`"),
                    absl::StrCat("`", y.worst_at, "`"));
    }
  }
  return std::nullopt;
}

}  // namespace cleave
