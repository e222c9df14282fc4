#include "tools/command/axes.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ops/status_macros.h"
#include "transforms/vmap.h"

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

std::string FreshDim(const Graph& graph) {
  std::set<std::string> used;
  for (const NamedValue& input : graph.inputs()) {
    for (const Dim& dim : graph.type(input.value).shape) {
      for (const std::string& name : dim.Variables()) used.insert(name);
    }
  }
  std::string name = "batch";
  for (int i = 1; used.count(name) != 0; ++i) name = absl::StrCat("batch_", i);
  return name;
}

absl::StatusOr<Graph> BatchPrimals(const Graph& graph, const std::string& axes,
                                   int primals, const RuleSet& rules) {
  CLEAVE_ASSIGN_OR_RETURN(std::vector<int> in_axes, ParseAxes(axes, primals));
  for (size_t i = in_axes.size(); i < graph.inputs().size(); ++i) {
    for (int p = 0; p < primals; ++p) {
      if (graph.inputs()[p].name + ".tangent" == graph.inputs()[i].name) {
        in_axes.push_back(in_axes[p]);
      }
    }
  }
  return Vmap(graph, in_axes, Dim::Variable(FreshDim(graph)),
              std::vector<int>(graph.outputs().size(), 0), rules);
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

}  // namespace cleave
