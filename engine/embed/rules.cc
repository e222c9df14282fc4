// Rule sets: loaded, extended, described.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/embed/describe.h"
#include "engine/embed/handles.h"
#include "engine/lang/diagnostic.h"
#include "engine/rules/rule_files.h"
#include "ops/status_macros.h"
#include "transforms/derived_rules.h"
#include "transforms/report/derive_rule.h"
#include "transforms/shipped_rules/shipped_rules.h"

namespace cleave::embed {
namespace {

absl::Status Extend(const cleave_rules* base,
                    const std::vector<NamedSource>& sources,
                    cleave_rules** out) {
  const LoadResult loaded =
      base != nullptr
          ? ExtendRules(base->rules, absl::MakeConstSpan(sources))
          : LoadRules(sources, std::make_shared<Context>(), WithTransforms());
  if (loaded.rules == nullptr) return RulesHaveMistakes(loaded);
  *out = NewRules(loaded.rules);
  return absl::OkStatus();
}

absl::StatusOr<Transform> ParseTransform(absl::string_view name) {
  for (const Transform transform : kTransforms) {
    if (TransformName(transform) == name) return transform;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("`", name, "` is no transform: vmap, jvp or vjp is"));
}

// All inputs that the transform can take: the inexact ones are active, all are
// batched.
absl::StatusOr<std::vector<bool>> AllInputs(const Graph& call,
                                            Transform transform) {
  std::vector<bool> inputs;
  for (const NamedValue& input : call.inputs()) {
    inputs.push_back(
        transform == Transform::kVmap ||
        InClass(call.type(input.value).dtype, DTypeClass::kInexact));
  }
  return inputs;
}

}  // namespace
}  // namespace cleave::embed

using cleave::embed::CallScope;
using cleave::embed::CheckGiven;
using cleave::embed::Guarded;
using cleave::embed::NewText;

void cleave_rules_retain(cleave_rules* rules) { cleave::embed::Retain(rules); }
void cleave_rules_release(cleave_rules* rules) {
  cleave::embed::Release(rules);
}

cleave_status* cleave_rules_shipped(const cleave_call_options* options,
                                    cleave_rules** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(const auto scope, CallScope::Open(options));
    CLEAVE_ASSIGN_OR_RETURN(auto rules, cleave::SharedShippedRules());
    *out = cleave::embed::NewRules(std::move(rules));
    return absl::OkStatus();
  });
}

cleave_status* cleave_rules_extend(const cleave_rules* base,
                                   const cleave_source* sources, size_t count,
                                   const cleave_call_options* options,
                                   cleave_rules** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(const auto scope, CallScope::Open(options));
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<cleave_source> given,
        cleave::embed::ReadStructs(sources, count, "sources"));
    std::vector<cleave::NamedSource> named;
    for (const cleave_source& source : given) {
      CLEAVE_RETURN_IF_ERROR(
          CheckGiven({{"name", source.name}, {"text", source.text}}));
      named.push_back(
          {source.name, source.text, absl::EndsWith(source.name, ".json")});
    }
    return cleave::embed::Extend(base, named, out);
  });
}

cleave_status* cleave_rules_extend_files(const cleave_rules* base,
                                         const char* const* paths, size_t count,
                                         const cleave_call_options* options,
                                         cleave_rules** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(const auto scope, CallScope::Open(options));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::string> read,
                            cleave::embed::ReadTexts(paths, count, "paths"));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<cleave::NamedSource> sources,
                            cleave::ReadRuleFiles(read));
    return cleave::embed::Extend(base, sources, out);
  });
}

cleave_status* cleave_rules_names(const cleave_rules* rules,
                                  cleave_text** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"rules", rules}, {"out", out}}));
    *out = NewText(cleave::embed::NamesJson(*rules->rules));
    return absl::OkStatus();
  });
}

cleave_status* cleave_rules_describe(const cleave_rules* rules,
                                     const char* name, cleave_text** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(
        CheckGiven({{"rules", rules}, {"name", name}, {"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(std::string json,
                            cleave::embed::DescribeJson(*rules->rules, name));
    *out = NewText(std::move(json));
    return absl::OkStatus();
  });
}

cleave_status* cleave_rules_coverage(const cleave_rules* rules, const char* op,
                                     const cleave_call_options* options,
                                     cleave_text** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(
        CheckGiven({{"rules", rules}, {"op", op}, {"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(const auto scope, CallScope::Open(options));
    CLEAVE_ASSIGN_OR_RETURN(std::string json,
                            cleave::embed::CoverageJson(*rules->rules, op));
    *out = NewText(std::move(json));
    return absl::OkStatus();
  });
}

cleave_status* cleave_rules_derive(const cleave_rules* rules, const char* op,
                                   const char* transform,
                                   const cleave_call_options* options,
                                   cleave_text** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"rules", rules},
                                       {"op", op},
                                       {"transform", transform},
                                       {"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(const auto scope, CallScope::Open(options));
    CLEAVE_ASSIGN_OR_RETURN(const cleave::Transform which,
                            cleave::embed::ParseTransform(transform));
    CLEAVE_ASSIGN_OR_RETURN(std::string text,
                            cleave::DeriveOpRule(
                                op, which,
                                [which](const cleave::Graph& call) {
                                  return cleave::embed::AllInputs(call, which);
                                },
                                *rules->rules));
    *out = NewText(std::move(text));
    return absl::OkStatus();
  });
}
