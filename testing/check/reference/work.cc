#include "testing/check/reference/work.h"

#include <algorithm>
#include <cmath>

#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// The cost of one element of the reference as a multiple of one that is added.
double Weight(Primitive primitive) {
  switch (primitive) {
    case Primitive::kErfinv:
    case Primitive::kLgamma:
    case Primitive::kPolygamma:
      return 40;
    default:
      return 1;
  }
}

double Elements(const TensorType& type) {
  double elements = 1;
  for (const Dim& dim : type.shape) {
    elements *= static_cast<double>(dim.Value().value_or(1));
  }
  return elements;
}

// How often a loop whose end depends on its values is taken to run.
constexpr double kUnknownTrips = 16;

// How often the regions of a node run.
double TripsOf(const Attributes& attributes, Primitive primitive) {
  const StaticValue* const length =
      primitive == Primitive::kScan    ? attributes.Find("length")
      : primitive == Primitive::kWhile ? attributes.Find("max")
                                       : nullptr;
  const double trips =
      length == nullptr || length->kind() != StaticValue::Kind::kInt
          ? kUnknownTrips
          : static_cast<double>(length->AsDim().Value().value_or(1));
  return primitive == Primitive::kCond ? 1 : trips;
}

}  // namespace

double WorkOf(const Graph& graph) {
  double work = 0;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value value{id};
    double results = 0;
    for (const TensorType& type : graph.types(value)) {
      results += Elements(type);
    }
    double operands = 0;
    double product = results;
    for (Value operand : graph.operands(value)) {
      const double elements = Elements(graph.types(operand).front());
      operands += elements;
      product *= std::max(elements, 1.0);
    }
    double cost = std::max(results, operands);
    const Node& node = graph.node(value);
    if (IsPrimitive(node.op)) {
      const Primitive primitive = ToPrimitive(node.op);
      cost *= Weight(primitive);
      if (primitive == Primitive::kDotGeneral) {
        cost = std::max(cost, std::sqrt(product));
      }
    }
    const Attributes& attributes = graph.attributes(value);
    for (const auto& [name, attribute] : attributes.values()) {
      if (attribute.kind() != StaticValue::Kind::kRegion) continue;
      cost += TripsOf(attributes, ToPrimitive(node.op)) *
              WorkOf(*attribute.AsRegion().graph);
    }
    work += cost;
  }
  return work;
}

double WorkOf(const CallGraphs& graphs) {
  return WorkOf(graphs.body) + (graphs.spec ? WorkOf(*graphs.spec) : 0);
}

}  // namespace cleave
