#include "engine/codegen/contracted_axes.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace cleave {

ContractedAxes ContractedAxesOf(const Graph& graph, Value dot, int side) {
  const Attributes& attributes = graph.attributes(dot);
  const std::string suffix = side == 0 ? "a" : "b";
  const auto read = [&](const char* role) {
    std::vector<int> axes;
    for (const int64_t axis : attributes.GetInts(role + suffix)) {
      axes.push_back(static_cast<int>(axis));
    }
    return axes;
  };
  ContractedAxes axes{read("batch_"), read("contract_"), {}};
  std::vector<bool> is_own(graph.type(graph.operands(dot)[side]).rank(), true);
  for (const auto* others : {&axes.batch, &axes.contract}) {
    for (const int axis : *others) is_own[axis] = false;
  }
  for (size_t d = 0; d < is_own.size(); ++d) {
    if (is_own[d]) axes.own.push_back(static_cast<int>(d));
  }
  return axes;
}

Dim ExtentOfAxes(const Shape& shape, const std::vector<int>& axes) {
  Dim extent(1);
  for (const int axis : axes) extent = extent * shape[axis];
  return extent;
}

}  // namespace cleave
