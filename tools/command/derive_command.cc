// derive: the rule that a transform derives from an op, as rule text.

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "tools/command/command.h"
#include "tools/command/load.h"
#include "tools/command/transform_flags.h"
#include "transforms/report/derive_rule.h"
#include "transforms/report/transform.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

struct DeriveOptions {
  std::string op;
  std::string transform;
  std::vector<std::string> paths;
  std::vector<std::string> with_respect_to;
  std::string in_axes;
};

// The inputs that are active, or batched.
absl::StatusOr<std::vector<bool>> ChosenInputs(const Graph& graph,
                                               Transform transform,
                                               const DeriveOptions& options) {
  if (transform != Transform::kVmap) {
    if (!options.in_axes.empty()) {
      return absl::InvalidArgumentError("--in-axes is for vmap");
    }
    return ActiveInputs(graph, options.with_respect_to);
  }
  if (!options.with_respect_to.empty()) {
    return absl::InvalidArgumentError("--wrt is for jvp and vjp");
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<int> axes,
      ParseAxes(options.in_axes.empty() ? "0" : options.in_axes,
                static_cast<int>(graph.inputs().size())));
  std::vector<bool> batched;
  for (int axis : axes) {
    if (axis != 0 && axis != kNotMapped) {
      return absl::InvalidArgumentError(
          "a rule has its batch in front: `0` or `none` for each input");
    }
    batched.push_back(axis == 0);
  }
  return batched;
}

// The derived rule of a fn at its types, or of an op at the first call that has
// the rule.
absl::StatusOr<std::string> DerivedOf(const RuleSet& rules, Transform transform,
                                      const DeriveOptions& options) {
  const auto choose = [&](const Graph& graph) {
    return ChosenInputs(graph, transform, options);
  };
  const absl::StatusOr<Graph> graph = rules.Function(options.op);
  if (absl::IsNotFound(graph.status())) {
    return DeriveOpRule(options.op, transform, choose, rules);
  }
  CLEAVE_RETURN_IF_ERROR(graph.status());
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<bool> inputs, choose(*graph));
  return DeriveRule(*graph, options.op, transform, inputs, rules);
}

int RunDerive(const DeriveOptions& options) {
  const auto loaded = LoadRulePaths(options.paths);
  if (!loaded) return kExitUsage;
  if (loaded->rules->Find(options.op) == nullptr) {
    std::vector<std::string> names;
    for (ItemKind kind :
         {ItemKind::kOp, ItemKind::kAten, ItemKind::kOnnx, ItemKind::kFn}) {
      for (std::string& name : loaded->rules->Names(kind)) {
        names.push_back(std::move(name));
      }
    }
    return Complain(absl::StrCat("there is no op or fn `", options.op, "`",
                                 DidYouMean(options.op, names)));
  }
  const auto* transform = std::find_if(
      std::begin(kTransforms), std::end(kTransforms),
      [&](Transform t) { return TransformName(t) == options.transform; });
  const absl::StatusOr<std::string> text =
      DerivedOf(*loaded->rules, *transform, options);
  if (!text.ok()) return Complain(text.status());
  std::cout << *text;
  return kExitOk;
}

}  // namespace

void AddDerive(CommandLine& line) {
  auto options = std::make_shared<DeriveOptions>();
  Verb verb = line.AddVerb(
      "derive",
      "Print what a transform derives from an op, as rule text that loads and "
      "checks.");
  verb.Add("OP", options->op,
           "An op, or a fn for one choice of types and attributes")
      .Required();
  std::vector<std::string> transforms;
  for (Transform transform : kTransforms) {
    transforms.emplace_back(TransformName(transform));
  }
  verb.Add("TRANSFORM", options->transform, "jvp, vjp or vmap")
      .Required()
      .OneOf(transforms);
  verb.Add("FILE", options->paths, "Rule files beside the shipped ones");
  verb.Add("--wrt", options->with_respect_to,
           "jvp, vjp: the inputs differentiated (all inexact ones)")
      .CommaSeparated();
  verb.Add("--in-axes", options->in_axes,
           "vmap: `0` for each batched input, else `none` (all 0)");
  verb.Runs([options] { return RunDerive(*options); });
}

}  // namespace cleave
