#include "engine/ir/count_readers.h"

#include <cstdint>

namespace cleave {

std::vector<int> CountReaders(const Graph& graph) {
  std::vector<int> readers(graph.size(), 0);
  for (uint32_t id = 0; id < graph.size(); ++id) {
    for (const Value operand : graph.operands(Value{id})) ++readers[operand.id];
  }
  for (const NamedValue& output : graph.outputs()) ++readers[output.value.id];
  return readers;
}

}  // namespace cleave
