#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/codegen/fusion.h"

namespace cleave {
namespace {

std::string Describe(const Graph& graph, Value v) {
  std::vector<std::string> types;
  for (const TensorType& type : graph.types(v)) {
    types.push_back(type.ToString());
  }
  return absl::StrCat("%", v.id, " ", graph.context()->op_name(graph.node(v).op),
                      ": ", absl::StrJoin(types, ", "));
}

}  // namespace

std::string PrintFusionPlan(const Graph& graph, const FusionPlan& plan) {
  std::string text;
  std::map<Value, size_t> group_of;
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    for (const Value v : plan.groups[g].nodes) group_of[v] = g;
  }
  for (size_t g = 0; g < plan.groups.size(); ++g) {
    const FusionGroup& group = plan.groups[g];
    absl::StrAppend(&text, "kernel ", g, ", ", GroupKindName(group.kind));
    if (!group.why.empty()) absl::StrAppend(&text, " (", group.why, ")");
    absl::StrAppend(&text, ":\n");
    for (const Value v : group.nodes) {
      absl::StrAppend(&text, "  ", Describe(graph, v), "\n");
    }
    for (const FusionBoundary& boundary : plan.boundaries) {
      const auto reader = group_of.find(boundary.consumer);
      if (reader == group_of.end() || reader->second != g) continue;
      const auto producer = group_of.find(boundary.producer);
      if (producer == group_of.end()) continue;
      absl::StrAppend(&text, "  %", boundary.consumer.id, " reads %",
                      boundary.producer.id, " of kernel ", producer->second,
                      ": ", boundary.why, "\n");
    }
  }
  return text;
}

}  // namespace cleave
