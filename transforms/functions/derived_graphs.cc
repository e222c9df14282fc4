#include "transforms/functions/derived_graphs.h"

#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"

namespace cleave::functional {
namespace {

// All that a transform of the graph depends on. Ids are those of the rule set's
// context.
std::string StructureOf(const Graph& graph, const std::string& transform) {
  std::string key = transform;
  const auto append = [&key](uint32_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  append(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(Value{id});
    append(node.op);
    append(node.attributes);
    append(node.type);
    append(node.operand_count);
    for (const Value operand : graph.operands(Value{id})) append(operand.id);
  }
  append(graph.inputs().size());
  for (const NamedValue& input : graph.inputs()) append(input.value.id);
  append(graph.outputs().size());
  for (const NamedValue& output : graph.outputs()) append(output.value.id);
  for (const ShapeGuard& guard : graph.guards()) {
    absl::StrAppend(&key, guard.lhs.ToString(), " ", static_cast<int>(guard.op),
                    " ", guard.rhs.ToString(), ";");
  }
  return key;
}

}  // namespace

DerivedGraphs::DerivedGraphs(const std::shared_ptr<const RuleSet>& rules)
    : rules_(rules) {}

DerivedGraphs& DerivedGraphs::Of(const std::shared_ptr<const RuleSet>& rules) {
  thread_local std::list<DerivedGraphs> of_rules;
  of_rules.remove_if(
      [](const DerivedGraphs& one) { return one.rules_.expired(); });
  for (DerivedGraphs& one : of_rules) {
    if (one.rules_.lock() == rules) return one;
  }
  of_rules.push_front(DerivedGraphs(rules));
  return of_rules.front();
}

absl::StatusOr<std::shared_ptr<const DerivedGraph>> DerivedGraphs::Get(
    const Graph& graph, const std::string& transform,
    absl::FunctionRef<absl::StatusOr<DerivedGraph>()> make) {
  std::string key = StructureOf(graph, transform);
  const auto found = entry_of_.find(key);
  if (found != entry_of_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->derived;
  }
  ++made_;
  CLEAVE_ASSIGN_OR_RETURN(DerivedGraph derived, make());
  entries_.push_front({std::move(key), std::make_shared<const DerivedGraph>(
                                           std::move(derived))});
  entry_of_.emplace(entries_.front().key, entries_.begin());
  if (size() > kMaxGraphs) {
    entry_of_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return entries_.front().derived;
}

}  // namespace cleave::functional
