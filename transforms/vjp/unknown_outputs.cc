#include "transforms/vjp/unknown_outputs.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

// Which results of a loop or branch depend on an unknown operand, as it is cut.
std::vector<bool> UnknownResults(const Graph& graph, Value v,
                                 std::vector<bool> unknown) {
  const Attributes& attributes = graph.attributes(v);
  const auto region = [&](const char* name) -> const Graph& {
    return *attributes.Get(name).AsRegion().graph;
  };
  const std::vector<bool> all(graph.types(v).size(), true);
  switch (ToPrimitive(graph.node(v).op)) {
    case Primitive::kScan:
      return UnknownOfLoop(region("body"),
                           LoopOperands::Of(attributes, unknown.size()),
                           unknown);
    case Primitive::kWhile: {
      const std::vector<bool> results =
          UnknownOfLoop(region("body"),
                        LoopOperands::Of(attributes, unknown.size()), unknown);
      return UnknownOutputs(region("cond"), unknown)[0] ? all : results;
    }
    case Primitive::kCond: {
      if (unknown[0]) return all;
      unknown.erase(unknown.begin());
      std::vector<bool> results = UnknownOutputs(region("then"), unknown);
      const std::vector<bool> others = UnknownOutputs(region("else"), unknown);
      for (size_t i = 0; i < results.size(); ++i) {
        results[i] = results[i] || others[i];
      }
      return results;
    }
    default:
      return all;
  }
}

}  // namespace

std::vector<bool> UnknownOutputs(const Graph& graph,
                                 const std::vector<bool>& unknown) {
  std::vector<bool> depends(graph.size(), false);
  absl::flat_hash_map<uint32_t, std::vector<bool>> results;
  for (size_t i = 0; i < unknown.size(); ++i) {
    depends[graph.inputs()[i].value.id] = unknown[i];
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    const absl::Span<const Value> operands = graph.operands(v);
    if (graph.node(v).op == ToOpId(Primitive::kResult)) {
      const auto it = results.find(operands[0].id);
      if (it != results.end()) {
        depends[id] = it->second[graph.attributes(v).GetInt("index")];
        continue;
      }
    }
    std::vector<bool> of_operands;
    for (Value operand : operands) {
      of_operands.push_back(depends[operand.id]);
      if (depends[operand.id]) depends[id] = true;
    }
    const OpId op = graph.node(v).op;
    if (depends[id] && IsPrimitive(op) &&
        ClassOf(ToPrimitive(op)) == PrimitiveClass::kControl) {
      std::vector<bool> of_results =
          UnknownResults(graph, v, std::move(of_operands));
      if (of_results.size() == 1) {
        depends[id] = of_results[0];
      } else {
        results.emplace(id, std::move(of_results));
      }
    }
  }
  std::vector<bool> outputs;
  for (const NamedValue& output : graph.outputs()) {
    outputs.push_back(depends[output.value.id]);
  }
  return outputs;
}

std::vector<bool> UnknownOfLoop(const Graph& body, const LoopOperands& loop,
                                std::vector<bool>& unknown) {
  for (;;) {
    std::vector<bool> outputs = UnknownOutputs(body, unknown);
    bool changed = false;
    for (int i = 0; i < loop.carries; ++i) {
      if (outputs[i] && !unknown[loop.consts + i]) {
        unknown[loop.consts + i] = changed = true;
      }
      outputs[i] = outputs[i] || unknown[loop.consts + i];
    }
    if (!changed) return outputs;
  }
}

}  // namespace cleave
