// Reductions under `f[j] == b`, b an outer index: each element goes to the
// place that f names.

#include <algorithm>
#include <utility>

#include "engine/index/element_lowering.h"
#include "engine/index/term_builder.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// `f == b` or `b == f`, with f an integer element of the reduced indices.
struct Route {
  IndexPtr target;
  TermPtr place;
};

std::optional<Route> RouteOf(const Term& condition,
                             const std::vector<IndexPtr>& reduced) {
  if (condition.kind != TermKind::kPointwise ||
      condition.primitive != Primitive::kEq) {
    return std::nullopt;
  }
  for (const int side : {0, 1}) {
    const TermPtr& target = condition.children[side];
    const TermPtr& place = condition.children[1 - side];
    if (target->kind != TermKind::kIndex || !IsInt(ResolvedDType(*place))) {
      continue;
    }
    const IndexPtr& index = target->indices[0];
    if (std::find(reduced.begin(), reduced.end(), index) != reduced.end() ||
        OccursFree(*place, index.get()) || !OccursFree(*place, reduced)) {
      continue;
    }
    return Route{index, place};
  }
  return std::nullopt;
}

std::optional<std::string> ModeOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "add";
    case Reduction::kProd:
      return "mul";
    case Reduction::kMax:
      return "max";
    case Reduction::kMin:
      return "min";
    default:
      return std::nullopt;
  }
}

bool Contains(const std::vector<IndexPtr>& indices, const IndexPtr& index) {
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

}  // namespace

absl::StatusOr<std::optional<Element>> ElementLowering::TryScatter(
    const Term& reduce, const std::vector<TermPtr>& conditions) {
  const std::optional<std::string> mode = ModeOf(reduce.reduction);
  if (!mode.has_value()) return std::nullopt;
  std::vector<IndexPtr> targets;
  std::vector<TermPtr> places;
  std::vector<TermPtr> others;
  for (const TermPtr& condition : conditions) {
    const std::optional<Route> route = RouteOf(*condition, reduce.indices);
    if (route.has_value() && !Contains(targets, route->target)) {
      targets.push_back(route->target);
      places.push_back(ConvertTerm(route->place, DType::kI64));
    } else {
      others.push_back(condition);
    }
  }
  if (targets.empty() || OccursFree(*reduce.children[0], targets)) {
    return std::nullopt;
  }
  for (const std::vector<TermPtr>* terms : {&others, &places}) {
    for (const TermPtr& term : *terms) {
      if (OccursFree(*term, targets)) return std::nullopt;
    }
  }

  // The element counts where the other conditions hold and the place exists.
  std::vector<TermPtr> counted = others;
  for (size_t i = 0; i < targets.size(); ++i) {
    counted.push_back(
        PointwiseTerm(Primitive::kGe, DType::kBool,
                      {places[i], NumberTerm(Exact(0), DType::kI64)}));
    counted.push_back(PointwiseTerm(Primitive::kLt, DType::kBool,
                                    {places[i], DimTerm(targets[i]->extent)}));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Element element,
                          LowerUnder(reduce.children[0], counted));
  std::vector<Element> indices;
  for (const TermPtr& place : places) {
    CLEAVE_ASSIGN_OR_RETURN(Element index, Lower(place));
    indices.push_back(std::move(index));
  }
  if (!others.empty()) {
    // An element whose condition does not hold goes to the place -1, which is
    // none.
    CLEAVE_ASSIGN_OR_RETURN(const Element condition, Lower(AndTerm(others)));
    CLEAVE_ASSIGN_OR_RETURN(indices[0],
                            Where(condition, indices[0], Exact(-1)));
  }

  // Checks under the conditions of reductions around may bring targets in.
  for (const IndexPtr& target : targets) {
    if (Contains(element.axes, target)) return std::nullopt;
    for (const Element& index : indices) {
      if (Contains(index.axes, target)) return std::nullopt;
    }
  }

  // Axes: outer indices that the places depend on (batch), the reduced ones,
  // and outer ones of the element alone.
  std::vector<IndexPtr> batch;
  for (const IndexPtr& index : InScopeOrder(JoinedAxes(indices))) {
    if (!Contains(reduce.indices, index)) batch.push_back(index);
  }
  std::vector<IndexPtr> rest;
  for (const IndexPtr& index : InScopeOrder(element.axes)) {
    if (!Contains(reduce.indices, index) && !Contains(batch, index)) {
      rest.push_back(index);
    }
  }
  std::vector<IndexPtr> index_axes = batch;
  index_axes.insert(index_axes.end(), reduce.indices.begin(),
                    reduce.indices.end());
  std::vector<IndexPtr> update_axes = index_axes;
  update_axes.insert(update_axes.end(), rest.begin(), rest.end());
  CLEAVE_ASSIGN_OR_RETURN(const Value index, IndexArray(indices, index_axes));
  CLEAVE_ASSIGN_OR_RETURN(const Value updates, Aligned(element, update_axes));

  Element result;
  result.axes = batch;
  result.axes.insert(result.axes.end(), targets.begin(), targets.end());
  result.axes.insert(result.axes.end(), rest.begin(), rest.end());
  const DType dtype = DTypeOf(element);
  CLEAVE_ASSIGN_OR_RETURN(const Element identity,
                          Number(IdentityOf(reduce.reduction, dtype), dtype));
  CLEAVE_ASSIGN_OR_RETURN(const Value nothing, Aligned(identity, result.axes));
  std::vector<int> axes;
  for (size_t i = 0; i < targets.size(); ++i) {
    axes.push_back(static_cast<int>(batch.size() + i));
  }
  Attributes attributes = {{"axes", StaticValue::Ints(axes)},
                           {"batch", static_cast<int64_t>(batch.size())},
                           {"mode", *mode}};
  if (reduce.tie_first) attributes.Set("tie", "first");
  CLEAVE_ASSIGN_OR_RETURN(
      result.value,
      builder_.Add(Primitive::kScatter, attributes, {nothing, index, updates}));
  return result;
}

}  // namespace cleave
