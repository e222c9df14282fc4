#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "engine/codegen/fusion.h"

namespace cleave {
namespace {

class PlanPrinter {
 public:
  PlanPrinter(const Graph& graph, const FusionPlan& plan)
      : graph_(graph), plan_(plan) {
    for (const NamedValue& input : graph.inputs()) {
      input_names_[input.value] = input.name;
    }
    for (size_t g = 0; g < plan.groups.size(); ++g) {
      for (const Value v : plan.groups[g].nodes) group_of_[v] = g;
    }
  }

  std::string Print() const {
    std::string text;
    for (size_t g = 0; g < plan_.groups.size(); ++g) PrintGroup(g, &text);
    return text;
  }

 private:
  std::string NameOf(Value v) const {
    const auto input = input_names_.find(v);
    return input == input_names_.end() ? absl::StrCat("%", v.id)
                                       : absl::StrCat("%", input->second);
  }

  std::string NamesOf(absl::Span<const Value> values) const {
    return absl::StrJoin(values, ", ", [&](std::string* out, Value v) {
      absl::StrAppend(out, NameOf(v));
    });
  }

  // The group's nodes, with the movement that it repeats for itself; and what
  // it reads, in the graph's order.
  void Gather(const FusionGroup& group, std::set<Value>* inside,
              std::set<Value>* reads) const {
    inside->insert(group.nodes.begin(), group.nodes.end());
    std::vector<Value> stack(group.nodes.begin(), group.nodes.end());
    while (!stack.empty()) {
      const Value at = stack.back();
      stack.pop_back();
      for (const Value operand : graph_.operands(at)) {
        if (inside->count(operand) > 0) continue;
        if (!IsMovement(graph_, operand)) {
          reads->insert(operand);
        } else if (inside->insert(operand).second) {
          stack.push_back(operand);
        }
      }
    }
  }

  void PrintGroup(size_t g, std::string* text) const {
    const FusionGroup& group = plan_.groups[g];
    std::set<Value> inside;
    std::set<Value> reads;
    Gather(group, &inside, &reads);
    const std::vector<Value> sources(reads.begin(), reads.end());
    absl::StrAppend(text, "kernel ", g, ", ", GroupKindName(group.kind), ": (",
                    NamesOf(sources), ") -> (", NamesOf(group.outputs), ")\n");
    if (!group.why.empty()) absl::StrAppend(text, "  // ", group.why, "\n");
    for (const Value v : inside) {
      const std::string types = absl::StrJoin(
          graph_.types(v), ", ", [](std::string* out, const TensorType& type) {
            absl::StrAppend(out, type.ToString());
          });
      absl::StrAppend(text, "  ", NameOf(v), ": ", types, " = ",
                      graph_.context()->op_name(graph_.node(v).op), "(",
                      NamesOf(graph_.operands(v)), ")\n");
    }
    for (const FusionBoundary& boundary : plan_.boundaries) {
      const auto reader = group_of_.find(boundary.consumer);
      const auto producer = group_of_.find(boundary.producer);
      if (reader == group_of_.end() || reader->second != g) continue;
      if (producer == group_of_.end()) continue;
      absl::StrAppend(text, "  // ", NameOf(boundary.consumer), " reads ",
                      NameOf(boundary.producer), " of kernel ",
                      producer->second, ": ", boundary.why, "\n");
    }
  }

  const Graph& graph_;
  const FusionPlan& plan_;
  std::map<Value, std::string> input_names_;
  std::map<Value, size_t> group_of_;
};

}  // namespace

absl::string_view GroupKindName(GroupKind kind) {
  switch (kind) {
    case GroupKind::kPointwise:
      return "pointwise";
    case GroupKind::kReduction:
      return "reduction";
    case GroupKind::kContraction:
      return "contraction";
    case GroupKind::kStructured:
      return "structured";
    case GroupKind::kTable:
      return "table";
    case GroupKind::kRuntime:
      return "runtime";
    case GroupKind::kLoop:
      return "loop";
    case GroupKind::kReference:
      return "reference";
    case GroupKind::kHost:
      return "host";
  }
  return "";
}

std::string PrintFusionPlan(const Graph& graph, const FusionPlan& plan) {
  return PlanPrinter(graph, plan).Print();
}

}  // namespace cleave
