// Cumulative reductions: sum[j if j <= i](e) is a scan along j, read at i.

#include <algorithm>
#include <utility>

#include "engine/index/element_lowering.h"
#include "engine/index/term_builder.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// `condition` as a comparison of the reduced index j with an outer one i.
struct Order {
  IndexPtr outer;
  bool reverse = false;    // j >= i
  bool exclusive = false;  // j < i, j > i
};

std::optional<Order> OrderOf(const Term& condition, const IndexPtr& j) {
  const std::vector<Affine> facts = FactsOf(condition);
  if (facts.size() != 1) return std::nullopt;
  const Affine& fact = facts[0];  // +-(i - j) + constant >= 0
  if (fact.terms.size() != 2) return std::nullopt;
  Order order;
  const Dim coefficient = fact.CoefficientOf(j.get());
  if (coefficient != Dim(1) && coefficient != Dim(-1)) return std::nullopt;
  for (const auto& [index, c] : fact.terms) {
    if (index == j) continue;
    if (c != -coefficient) return std::nullopt;
    order.outer = index;
  }
  if (fact.constant != Dim(0) && fact.constant != Dim(-1)) return std::nullopt;
  order.reverse = coefficient == Dim(1);
  order.exclusive = fact.constant == Dim(-1);
  if (order.outer->extent != j->extent) return std::nullopt;
  return order;
}

}  // namespace

absl::StatusOr<std::optional<Element>> ElementLowering::TryScan(
    const Term& reduce, const std::vector<TermPtr>& conditions) {
  const bool scans = reduce.reduction == Reduction::kSum ||
                     reduce.reduction == Reduction::kProd ||
                     reduce.reduction == Reduction::kMax ||
                     reduce.reduction == Reduction::kMin;
  // Running extrema share their derivative evenly.
  if (!scans || reduce.tie_first || reduce.indices.size() != 1) {
    return std::nullopt;
  }
  const IndexPtr& j = reduce.indices[0];
  std::optional<Order> order;
  std::vector<TermPtr> others;
  for (const TermPtr& condition : conditions) {
    std::optional<Order> found;
    if (!order.has_value()) found = OrderOf(*condition, j);
    if (found.has_value()) {
      order = found;
    } else {
      others.push_back(condition);
    }
  }
  if (!order.has_value()) return std::nullopt;
  // Nothing else may depend on i, which the scan makes.
  const std::vector<IndexPtr> outer = {order->outer};
  if (OccursFree(*reduce.children[0], outer)) return std::nullopt;
  for (const TermPtr& other : others) {
    if (OccursFree(*other, outer)) return std::nullopt;
  }
  // With `exclusive`, no i reaches the last j: what is read there is no error.
  const DType dtype = ResolvedDType(*reduce.children[0]);
  const Exact identity = IdentityOf(reduce.reduction, dtype);
  std::vector<TermPtr> reached = others;
  if (order->exclusive) {
    reached.push_back(
        order->reverse
            ? PointwiseTerm(Primitive::kGt, DType::kBool,
                            {IndexTerm(j), NumberTerm(Exact(0), DType::kI64)})
            : PointwiseTerm(Primitive::kLt, DType::kBool,
                            {PointwiseTerm(Primitive::kAdd, DType::kI64,
                                           {IndexTerm(j),
                                            NumberTerm(Exact(1), DType::kI64)}),
                             DimTerm(j->extent)}));
  }
  CLEAVE_ASSIGN_OR_RETURN(Element element,
                          LowerUnder(reduce.children[0], reached));
  if (!others.empty()) {
    CLEAVE_ASSIGN_OR_RETURN(const Element condition, Lower(AndTerm(others)));
    CLEAVE_ASSIGN_OR_RETURN(element, Where(condition, element, identity));
  }
  // Checks under the conditions of reductions around may bring i in.
  if (std::find(element.axes.begin(), element.axes.end(), order->outer) !=
      element.axes.end()) {
    return std::nullopt;
  }
  CLEAVE_ASSIGN_OR_RETURN(element,
                          Scan(reduce.reduction, element, j, order->reverse));
  const size_t axis = std::find(element.axes.begin(), element.axes.end(), j) -
                      element.axes.begin();
  if (order->exclusive) {
    // Shifted by one; the first (from where the scan starts) is of nothing.
    std::vector<Dim> low(element.axes.size(), 0), high = low, none = low;
    low[axis] = order->reverse ? -1 : 1;
    high[axis] = order->reverse ? 1 : -1;
    CLEAVE_ASSIGN_OR_RETURN(const Element nothing, Number(identity, dtype));
    CLEAVE_ASSIGN_OR_RETURN(
        element.value, builder_.Add(Primitive::kPad,
                                    {{"low", StaticValue::Dims(low)},
                                     {"high", StaticValue::Dims(high)},
                                     {"interior", StaticValue::Dims(none)}},
                                    {element.value, nothing.value}));
    CLEAVE_ASSIGN_OR_RETURN(element.value, Shaped(element.value, element.axes));
  }
  element.axes[axis] = order->outer;
  return element;
}

absl::StatusOr<Element> ElementLowering::Scan(Reduction reduction,
                                              const Element& element,
                                              const IndexPtr& along,
                                              bool reverse) {
  Element result = element;
  if (std::find(result.axes.begin(), result.axes.end(), along) ==
      result.axes.end()) {
    result.axes.push_back(along);
    result.axes = InScopeOrder(std::move(result.axes));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value x, Aligned(element, result.axes));
  const int64_t axis =
      std::find(result.axes.begin(), result.axes.end(), along) -
      result.axes.begin();
  const Attributes attributes = {{"axis", axis}, {"reverse", reverse}};
  if (reduction == Reduction::kMax || reduction == Reduction::kMin) {
    CLEAVE_ASSIGN_OR_RETURN(
        result.value,
        builder_.Add(reduction == Reduction::kMax ? Primitive::kCumulativeMax
                                                  : Primitive::kCumulativeMin,
                     attributes, {x}));
    return result;
  }
  // A sum is y_i = 1 y_(i-1) + x_i, a product y_i = x_i y_(i-1) + 0.
  const bool sum = reduction == Reduction::kSum;
  std::vector<IndexPtr> rest = result.axes;
  rest.erase(rest.begin() + axis);
  const DType dtype = DTypeOf(element);
  CLEAVE_ASSIGN_OR_RETURN(const Element one, Number(Exact(1), dtype));
  CLEAVE_ASSIGN_OR_RETURN(const Element zero, Number(Exact(0), dtype));
  CLEAVE_ASSIGN_OR_RETURN(const Value constant,
                          Aligned(sum ? one : zero, result.axes));
  CLEAVE_ASSIGN_OR_RETURN(const Value init, Aligned(sum ? zero : one, rest));
  CLEAVE_ASSIGN_OR_RETURN(
      result.value,
      builder_.Add(Primitive::kLinearScan, attributes,
                   {sum ? constant : x, sum ? x : constant, init}));
  return result;
}

}  // namespace cleave
