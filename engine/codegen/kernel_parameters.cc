#include "engine/codegen/kernel_parameters.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>

#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave {
namespace {

// Calls `visit` with each dim among the types and attributes that is no number.
template <typename Visit>
void VisitDims(const StaticValue& value, Visit&& visit) {
  if (value.kind() == StaticValue::Kind::kInt) {
    visit(value.AsDim());
  } else if (value.kind() == StaticValue::Kind::kList) {
    for (const StaticValue& element : value.AsList()) {
      VisitDims(element, visit);
    }
  }
}

}  // namespace

std::vector<Dim> KernelDims(const Graph& graph) {
  std::vector<Dim> dims;
  std::set<std::string> seen;
  const auto add = [&](const Dim& dim) {
    if (dim.IsConstant()) return;
    if (seen.insert(dim.ToString()).second) dims.push_back(dim);
  };
  for (uint32_t id = 0; id < graph.size(); ++id) {
    for (const TensorType& type : graph.types(Value{id})) {
      for (const Dim& dim : type.shape) add(dim);
    }
    for (const auto& [name, value] : graph.attributes(Value{id}).values()) {
      VisitDims(value, add);
    }
  }
  return dims;
}

std::vector<int> OutputOrder(const Graph& graph) {
  std::vector<int> order(graph.outputs().size());
  std::iota(order.begin(), order.end(), 0);
  const auto first = [&](int i) {
    const Shape& shape = graph.type(graph.outputs()[i].value).shape;
    int j = 0;
    while (graph.type(graph.outputs()[j].value).shape != shape) ++j;
    return j;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return first(a) < first(b); });
  return order;
}

}  // namespace cleave
