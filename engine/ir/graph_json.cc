#include "engine/ir/graph_json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "nlohmann/json.hpp"

namespace cleave {
namespace {

using Json = nlohmann::ordered_json;

Json Named(const Graph& graph, const std::vector<NamedValue>& values) {
  Json list = Json::array();
  for (const NamedValue& value : values) {
    list.push_back({{"name", value.name},
                    {"type", graph.types(value.value).front().ToString()},
                    {"node", value.value.id}});
  }
  return list;
}

Json JsonOf(const Graph& graph);

Json JsonOfNode(const Graph& graph, Value v) {
  const Node& node = graph.node(v);
  Json operands = Json::array();
  for (const Value operand : graph.operands(v)) operands.push_back(operand.id);
  Json types = Json::array();
  for (const TensorType& type : graph.types(v)) {
    types.push_back(type.ToString());
  }
  Json attributes = Json::object();
  for (const auto& [name, value] : graph.attributes(v).values()) {
    attributes[name] = value.kind() == StaticValue::Kind::kRegion
                           ? JsonOf(*value.AsRegion().graph)
                           : Json(PrintAttribute(value));
  }
  Json json = {{"node", v.id},
               {"op", std::string(graph.context()->op_name(node.op))},
               {"operands", std::move(operands)},
               {"types", std::move(types)},
               {"attributes", std::move(attributes)}};
  if (node.provenance != 0) {
    const Provenance& p = graph.context()->provenance(node.provenance);
    json["rule"] = p.file.empty()
                       ? p.rule
                       : absl::StrCat(p.rule, ", ", p.file, ":", p.line);
  }
  return json;
}

Json JsonOf(const Graph& graph) {
  Json nodes = Json::array();
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (graph.node(Value{id}).op == ToOpId(Primitive::kInput)) continue;
    nodes.push_back(JsonOfNode(graph, Value{id}));
  }
  std::vector<std::string> guards;
  for (const ShapeGuard& guard : graph.guards()) {
    guards.push_back(PrintGuard(guard));
  }
  std::sort(guards.begin(), guards.end());
  return {{"inputs", Named(graph, graph.inputs())},
          {"nodes", std::move(nodes)},
          {"guards", std::move(guards)},
          {"outputs", Named(graph, graph.outputs())}};
}

}  // namespace

std::string GraphToJson(const Graph& graph) {
  // Names may be any bytes.
  return JsonOf(graph).dump(1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace cleave
