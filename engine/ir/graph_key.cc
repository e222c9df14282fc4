#include "engine/ir/graph_key.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace cleave {

std::string GraphKey(const Graph& graph) {
  std::string key;
  const auto append = [&key](size_t number) {
    const auto bytes = static_cast<uint32_t>(number);
    key.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
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

}  // namespace cleave
