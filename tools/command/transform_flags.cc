#include "tools/command/transform_flags.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {

absl::StatusOr<std::vector<int>> ParseAxes(const std::string& text, int count) {
  std::vector<int> axes;
  for (absl::string_view entry : absl::StrSplit(text, ',')) {
    int axis = kNotMapped;
    if (entry == "split") {
      axis = kSplit;
    } else if (entry != "none" &&
               (!absl::SimpleAtoi(entry, &axis) || axis < 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("axes `", text, "`: `", entry,
                       "` is neither an axis nor `none` nor `split`"));
    }
    axes.push_back(axis);
  }
  if (axes.size() == 1) axes.resize(count, axes[0]);
  if (static_cast<int>(axes.size()) != count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "axes `", text, "`: ", axes.size(), " entries for ", count));
  }
  return axes;
}

absl::StatusOr<std::vector<bool>> ActiveInputs(
    const Graph& graph, const std::vector<std::string>& names) {
  std::vector<bool> active(graph.inputs().size());
  for (size_t i = 0; i < active.size(); ++i) {
    active[i] =
        names.empty() && InClass(graph.type(graph.inputs()[i].value).dtype,
                                 DTypeClass::kInexact);
  }
  for (const std::string& name : names) {
    const auto it = std::find_if(
        graph.inputs().begin(), graph.inputs().end(),
        [&](const NamedValue& input) { return input.name == name; });
    if (it == graph.inputs().end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the function has no input `", name, "`"));
    }
    if (!InClass(graph.type(it->value).dtype, DTypeClass::kInexact)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input `", name, "` is not of a floating or complex dtype"));
    }
    active[it - graph.inputs().begin()] = true;
  }
  return active;
}

void AddTransformFlags(Verb& verb, TransformFlags& flags) {
  Option jvp = verb.AddFlag("--jvp", flags.jvp, "With tangents");
  Option vjp =
      verb.AddFlag("--vjp", flags.vjp, "With cotangents, in reverse mode")
          .Excludes(jvp);
  AddRecomputeFlag(verb, flags).Needs(vjp);
  verb.Add("--wrt", flags.with_respect_to,
           "The inputs that --jvp or --vjp is taken in")
      .CommaSeparated();
  verb.Add("--vmap", flags.vmap,
           "Over a batch, at these axes: `0,none,1`; `split` keys");
}

Option AddRecomputeFlag(Verb& verb, TransformFlags& flags) {
  return verb.AddFlag(
      "--recompute-loops", flags.recompute_loops,
      "In reverse, save the carries of loops, and compute the steps again");
}

void AddApproxFlag(Verb& verb, bool& approx) {
  verb.AddFlag("--approx", approx,
               "Simplify by rewrites that are true over the reals only, too");
}

absl::StatusOr<Graph> ApplyTransforms(const Graph& graph, const RuleSet& rules,
                                      const TransformFlags& flags) {
  Graph result = graph;
  if (flags.jvp || flags.vjp) {
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<bool> active,
                            ActiveInputs(graph, flags.with_respect_to));
    if (flags.jvp) {
      CLEAVE_ASSIGN_OR_RETURN(JvpResult jvp, Jvp(graph, active, rules));
      result = std::move(jvp.graph);
    } else {
      TransformOptions options;
      options.recompute_loops = flags.recompute_loops;
      CLEAVE_ASSIGN_OR_RETURN(VjpResult vjp,
                              Vjp(graph, active, rules, options));
      result = std::move(vjp.graph);
    }
  } else if (!flags.with_respect_to.empty()) {
    return absl::InvalidArgumentError(
        "--wrt: it says what --jvp or --vjp is taken in");
  }
  if (flags.vmap.empty()) return result;
  const size_t primals = graph.inputs().size();
  CLEAVE_ASSIGN_OR_RETURN(std::vector<int> in_axes,
                          ParseAxes(flags.vmap, static_cast<int>(primals)));
  for (size_t i = primals; i < result.inputs().size(); ++i) {
    int axis = 0;  // of cotangents
    for (size_t p = 0; p < primals; ++p) {
      if (graph.inputs()[p].name + ".tangent" == result.inputs()[i].name) {
        axis = in_axes[p];
      }
    }
    in_axes.push_back(axis);
  }
  return Vmap(result, in_axes, Dim::Variable(FreshBatch(graph)),
              std::vector<int>(result.outputs().size(), 0), rules);
}

}  // namespace cleave
