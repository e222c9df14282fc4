#include "engine/codegen/pick_elements.h"

#include <algorithm>
#include <set>

#include "absl/types/span.h"
#include "engine/codegen/axes_inside.h"
#include "engine/ir/constants.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/element_cost.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

bool HasPlace(const PickElements::Places& places) {
  return std::any_of(places.begin(), places.end(),
                     [](int64_t place) { return place >= 0; });
}

// The places on the axes of the operand of the reshape `v`, where it only adds
// or drops axes of extent 1; nullopt for another one.
std::optional<PickElements::Places> PlacesOfReshaped(
    const Graph& graph, Value v, const PickElements::Places& places) {
  return AxesBehindUnitReshape(graph.type(graph.operands(v)[0]).shape,
                               graph.type(v).shape, places, int64_t{-1});
}

Shape WithPlaces(Shape shape, const PickElements::Places& places) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (places[d] >= 0) shape[d] = Dim(1);
  }
  return shape;
}

}  // namespace

PickElements::PickElements(GraphCopy& copy)
    : graph_(copy.graph()), copy_(copy) {}

bool PickElements::IsOfIndex(Value v, const Places& places) const {
  const size_t leading = graph_.type(graph_.operands(v)[1]).rank() - 1;
  const size_t batch = graph_.attributes(v).GetInt("batch");
  for (size_t d = 0; d < places.size(); ++d) {
    if (places[d] >= 0 && (d < batch || d >= leading)) return false;
  }
  return true;
}

bool PickElements::IsPassed(Value v, const Places& places) const {
  if (!HasPlace(places) || !IsPrimitive(graph_.node(v).op)) return false;
  const Primitive primitive = ToPrimitive(graph_.node(v).op);
  switch (primitive) {
    case Primitive::kBroadcastInDim:
    case Primitive::kTranspose:
      return true;
    case Primitive::kIota:
      return true;
    case Primitive::kReshape:
      return PlacesOfReshaped(graph_, v, places).has_value();
    case Primitive::kConcatenate:
      return places[graph_.attributes(v).GetInt("axis")] < 0;
    case Primitive::kGather:
      return IsOfIndex(v, places);
    default:
      return ClassOf(primitive) == PrimitiveClass::kPointwise;
  }
}

PickElements::Places PickElements::PlacesInside(Value v,
                                                const Places& places) const {
  return graph_.node(v).op == ToOpId(Primitive::kReshape)
             ? *PlacesOfReshaped(graph_, v, places)
             : AxesInside(graph_, v, places);
}

TensorType PickElements::TypeAt(Value v, const Places& places) const {
  return {graph_.type(v).dtype, WithPlaces(graph_.type(v).shape, places)};
}

std::optional<Value> PickElements::Known(Value v, const Places& places) {
  const Primitive primitive = ToPrimitive(graph_.node(v).op);
  GraphBuilder& builder = copy_.builder();
  const absl::Span<const Value> given = graph_.operands(v);
  if (primitive == Primitive::kIota) {
    return builder.Constant(Exact(places[0]), TypeAt(v, places));
  }
  if (primitive == Primitive::kSelect) {
    const Value condition = At(given[0], places);
    const auto chosen = BoolConstant(builder.graph(), condition);
    if (!chosen.has_value()) return std::nullopt;
    return At(given[*chosen ? 1 : 2], places);
  }
  if (given.size() != 2 || !IsBool(graph_.type(v).dtype)) return std::nullopt;
  return FoldComparison(builder, primitive,
                        {At(given[0], places), At(given[1], places)});
}

Value PickElements::At(Value v, const Places& places) {
  if (!HasPlace(places)) return copy_.of(v);
  const auto key = std::make_pair(v, places);
  if (const auto known = picked_.find(key); known != picked_.end()) {
    return known->second;
  }
  Value result;
  if (!IsPassed(v, places)) {
    result = Sliced(v, places);
  } else if (graph_.node(v).op == ToOpId(Primitive::kGather)) {
    result = Gathered(v, places);
  } else if (const auto known = Known(v, places)) {
    result = *known;
  } else {
    result = Passed(v, places);
  }
  return picked_[key] = result;
}

Value PickElements::Passed(Value v, const Places& places) {
  GraphBuilder& builder = copy_.builder();
  std::vector<Value> operands;
  for (const Value operand : graph_.operands(v)) {
    operands.push_back(At(operand, PlacesInside(v, places)));
  }
  const TensorType type = TypeAt(v, places);
  Attributes attributes = graph_.attributes(v);
  if (attributes.Find("shape") != nullptr) {
    attributes.Set("shape", StaticValue::Dims(type.shape));
  }
  return builder.AddTyped(
      graph_.node(v).op, builder.context()->Intern(attributes),
      builder.context()->Intern(type), operands, graph_.node(v).provenance);
}

Value PickElements::Gathered(Value v, const Places& places) {
  GraphBuilder& builder = copy_.builder();
  const absl::Span<const Value> given = graph_.operands(v);
  Places of_index(graph_.type(given[1]).rank(), -1);
  std::copy(places.begin(), places.begin() + of_index.size() - 1,
            of_index.begin());
  const std::vector<Value> operands = {
      copy_.of(given[0]), At(given[1], of_index), copy_.of(given[2])};
  return builder.Apply(Primitive::kGather, operands, graph_.attributes(v));
}

Value PickElements::Sliced(Value v, const Places& places) {
  const Shape& shape = graph_.type(v).shape;
  std::vector<Dim> start(shape.size(), Dim(0));
  for (size_t d = 0; d < shape.size(); ++d) {
    if (places[d] >= 0) start[d] = Dim(places[d]);
  }
  Attributes slice;
  slice.Set("start", StaticValue::Dims(start));
  slice.Set("size", StaticValue::Dims(WithPlaces(shape, places)));
  slice.Set("stride", StaticValue::Ints(std::vector<int>(shape.size(), 1)));
  return copy_.builder().Apply(Primitive::kSlice, {copy_.of(v)}, slice);
}

int PickElements::Cost(Value v, const Places& places, int most, bool* gathers) {
  std::set<std::pair<Value, Places>> seen;
  std::vector<std::pair<Value, Places>> stack = {{v, places}};
  int cost = 0;
  while (!stack.empty() && cost <= most) {
    const auto [at, inside] = stack.back();
    stack.pop_back();
    if (!seen.insert({at, inside}).second || !IsPassed(at, inside)) continue;
    const Primitive primitive = ToPrimitive(graph_.node(at).op);
    if (primitive == Primitive::kGather) {
      *gathers = true;
      continue;
    }
    if (ClassOf(primitive) == PrimitiveClass::kPointwise) {
      cost += CostOf(primitive);
    }
    for (const Value operand : graph_.operands(at)) {
      stack.push_back({operand, PlacesInside(at, inside)});
    }
  }
  return cost;
}

}  // namespace cleave
