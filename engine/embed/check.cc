// Check: whether each rule means what its op means.

#include "testing/check/check.h"

#include <chrono>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/embed/handles.h"
#include "engine/embed/json_text.h"
#include "nlohmann/json.hpp"
#include "ops/status_macros.h"
#include "testing/check/layers/check_kernels.h"

namespace cleave::embed {
namespace {

std::vector<std::string> Split(const char* text, char by) {
  return absl::StrSplit(text == nullptr ? "" : text, by, absl::SkipEmpty());
}

absl::StatusOr<Layer> ParseLayer(absl::string_view name) {
  if (const auto layer = FindLayer(name)) return *layer;
  return absl::InvalidArgumentError(
      absl::StrCat("there is no layer `", name, "`"));
}

absl::StatusOr<CheckOptions> ReadOptions(const cleave_check_options& given) {
  CheckOptions options;
  if (given.ops != nullptr) options.ops = given.ops;
  if (given.seed != 0) options.seed = given.seed;
  for (const std::string& name : Split(given.layers, ',')) {
    CLEAVE_ASSIGN_OR_RETURN(const Layer layer, ParseLayer(name));
    options.layers.insert(layer);
  }
  for (const std::string& name : Split(given.dtypes, ',')) {
    CLEAVE_ASSIGN_OR_RETURN(const DType dtype, ParseDType(name));
    options.dtypes.insert(dtype);
  }
  for (const std::string& name : Split(given.sources, '\n')) {
    options.sources.insert(name);
  }
  if (given.host_kernels != nullptr) {
    options.host_kernels = given.host_kernels->kernels;
  }
  if (given.kernels != 0 || options.layers.count(Layer::kKernels) != 0) {
    options.kernels = CheckKernels;
  }
  if (given.threads < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the check has ", given.threads, " threads"));
  }
  options.threads = given.threads;
  for (const auto& [name, ulp, tolerance] :
       {std::tuple("host_ulp", given.host_ulp, &options.host_tolerance.ulp),
        std::tuple("host_input_ulp", given.host_input_ulp,
                   &options.host_tolerance.input_ulp)}) {
    if (!(ulp >= 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is ", ulp, ", which is no bound"));
    }
    if (ulp > 0) *tolerance = ulp;
  }
  options.host_survey = given.host_survey != 0;
  if (!(given.seconds_per_op >= 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "seconds_per_op is ", given.seconds_per_op, ", which is no time"));
  }
  if (given.seconds_per_op > 0) options.seconds_per_op = given.seconds_per_op;
  return options;
}

}  // namespace
}  // namespace cleave::embed

cleave_status* cleave_rules_check(const cleave_rules* rules,
                                  const cleave_check_options* check,
                                  const cleave_call_options* options,
                                  cleave_text** out) {
  return cleave::embed::Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(
        cleave::embed::CheckGiven({{"rules", rules}, {"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(const cleave_check_options given,
                            cleave::embed::ReadStruct(check, "check"));
    CLEAVE_ASSIGN_OR_RETURN(cleave::CheckOptions read,
                            cleave::embed::ReadOptions(given));
    CLEAVE_ASSIGN_OR_RETURN(const auto scope,
                            cleave::embed::CallScope::Open(options));
    // The threads of the check have no scope of their own.
    const cleave::Limits limits = cleave::CurrentLimits();
    const auto ended = [&]() -> absl::Status {
      if (limits.cancelled != nullptr && limits.cancelled->load()) {
        return absl::CancelledError("the check was cancelled");
      }
      if (limits.deadline.has_value() &&
          std::chrono::steady_clock::now() > *limits.deadline) {
        return absl::DeadlineExceededError("the check took too long");
      }
      return absl::OkStatus();
    };
    read.stop = [&] { return !ended().ok(); };
    read.progress = [&](const cleave::OpReport& op, int done, int total) {
      scope->Progress(op.op.c_str(), done, total);
    };
    CLEAVE_ASSIGN_OR_RETURN(const cleave::CheckReport report,
                            cleave::CheckRules(rules->rules, read));
    // Not all was checked then: there is no verdict.
    CLEAVE_RETURN_IF_ERROR(ended());
    nlohmann::ordered_json json = {
        {"agrees", report.ExitStatus() == 0},
        {"text", report.ToString()},
        {"report", nlohmann::ordered_json::parse(report.ToJson())}};
    *out = cleave::embed::NewText(cleave::embed::DumpJson(json));
    return absl::OkStatus();
  });
}
