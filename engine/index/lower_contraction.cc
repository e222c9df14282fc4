// Sums of products: dot_general, and conv where one factor reads windows.

#include <algorithm>
#include <utility>

#include "engine/index/element_lowering.h"
#include "engine/index/term_builder.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = AxisPlan::Kind;
using Indices = std::vector<IndexPtr>;

bool Contains(const Indices& indices, const IndexPtr& index) {
  return std::find(indices.begin(), indices.end(), index) != indices.end();
}

bool IsNumber(const Term& term, int64_t value) {
  return term.kind == TermKind::kNumber && IsSame(term.number, Exact(value));
}

bool IsProduct(const Term& term) {
  return term.kind == TermKind::kPointwise && term.primitive == Primitive::kMul;
}

// Without factors 1, which change no bit.
TermPtr WithoutOnes(TermPtr term) {
  while (IsProduct(*term)) {
    const TermPtr& a = term->children[0];
    const TermPtr& b = term->children[1];
    if (!IsNumber(*a, 1) && !IsNumber(*b, 1)) break;
    term = IsNumber(*a, 1) ? b : a;
  }
  return term;
}

// The two factors of a product; null where the term is none.
std::pair<TermPtr, TermPtr> FactorsOf(const TermPtr& term) {
  const TermPtr product = WithoutOnes(term);
  if (!IsProduct(*product)) return {nullptr, nullptr};
  return {WithoutOnes(product->children[0]), WithoutOnes(product->children[1])};
}

Indices AxesWhere(const Indices& axes, bool in_other, const Indices& other,
                  bool reduced, const Indices& over) {
  Indices result;
  for (const IndexPtr& index : axes) {
    if (Contains(other, index) == in_other &&
        Contains(over, index) == reduced) {
      result.push_back(index);
    }
  }
  return result;
}

std::vector<int> PlacesOf(const Indices& wanted, const Indices& axes) {
  std::vector<int> places;
  for (const IndexPtr& index : wanted) {
    places.push_back(static_cast<int>(
        std::find(axes.begin(), axes.end(), index) - axes.begin()));
  }
  return places;
}

Indices Joined(std::initializer_list<Indices> parts) {
  Indices all;
  for (const Indices& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

absl::StatusOr<Dim> SizeOf(const Indices& indices) {
  Dim size = 1;
  for (const IndexPtr& index : indices) {
    CLEAVE_ASSIGN_OR_RETURN(size, Dim::CheckedMul(size, index->extent));
  }
  return size;
}

}  // namespace

absl::StatusOr<std::optional<Element>> ElementLowering::TryContraction(
    const Term& reduce) {
  if (reduce.reduction != Reduction::kSum || reduce.indices.empty()) {
    return std::nullopt;
  }
  const auto [first, second] = FactorsOf(reduce.children[0]);
  // A square has no second factor.
  if (first == nullptr || first == second) return std::nullopt;
  for (const auto& [x, w] :
       {std::pair(first, second), std::pair(second, first)}) {
    CLEAVE_ASSIGN_OR_RETURN(std::optional<Element> conv, TryConv(reduce, x, w));
    if (conv.has_value()) return conv;
  }
  CLEAVE_ASSIGN_OR_RETURN(Element a, Lower(first));
  CLEAVE_ASSIGN_OR_RETURN(Element b, Lower(second));
  const bool shares = std::any_of(
      reduce.indices.begin(), reduce.indices.end(), [&](const IndexPtr& v) {
        return Contains(a.axes, v) && Contains(b.axes, v);
      });
  if (!shares) return std::nullopt;
  // A factor that lacks a summed index is the same for each of its values.
  for (Element* factor : {&a, &b}) {
    Indices axes = factor->axes;
    for (const IndexPtr& index : reduce.indices) {
      if (!Contains(axes, index)) axes.push_back(index);
    }
    CLEAVE_ASSIGN_OR_RETURN(factor->value, Aligned(*factor, axes));
    factor->axes = axes;
  }
  CLEAVE_ASSIGN_OR_RETURN(Element result, DotGeneral(a, b, reduce.indices));
  return result;
}

absl::StatusOr<Element> ElementLowering::DotGeneral(const Element& a,
                                                    const Element& b,
                                                    const Indices& over) {
  const Indices batch = AxesWhere(a.axes, true, b.axes, false, over);
  Element result;
  result.axes = Joined({batch, AxesWhere(a.axes, false, b.axes, false, over),
                        AxesWhere(b.axes, false, a.axes, false, over)});
  CLEAVE_ASSIGN_OR_RETURN(
      result.value,
      builder_.Add(Primitive::kDotGeneral,
                   {{"batch_a", StaticValue::Ints(PlacesOf(batch, a.axes))},
                    {"batch_b", StaticValue::Ints(PlacesOf(batch, b.axes))},
                    {"contract_a", StaticValue::Ints(PlacesOf(over, a.axes))},
                    {"contract_b", StaticValue::Ints(PlacesOf(over, b.axes))}},
                   {a.value, b.value}));
  return result;
}

// x[n.., g.., i.., p * s + k * d - q] w[g.., o.., i.., k..], summed over i and
// k, is conv of x[n, g i, S..] and w[g o, i, K..].
absl::StatusOr<std::optional<Element>> ElementLowering::TryConv(
    const Term& reduce, const TermPtr& x, const TermPtr& w) {
  if (x->kind != TermKind::kRead || mask_.has_value()) return std::nullopt;
  CLEAVE_ASSIGN_OR_RETURN(const Value array, terms_.Lower(x->children[0]));
  const auto is_window = [&](const IndexPtr& p, const IndexPtr& k, bool) {
    return !Contains(reduce.indices, p) && Contains(reduce.indices, k) &&
           !OccursFree(*w, p.get()) && OccursFree(*w, k.get());
  };
  const ReadPlan plan =
      PlanRead(*x, builder_.type(array).shape, facts_, scope_, is_window);
  if (plan.HasComputed() || !plan.HasWindow()) return std::nullopt;
  if (!plan.InRange() && (x->fill == nullptr || !IsNumber(*x->fill, 0))) {
    return std::nullopt;
  }
  Indices x_plain, positions, kernel;
  std::vector<int64_t> stride, dilation;
  std::vector<Dim> low, high;
  for (size_t d = 0; d < plan.axes.size(); ++d) {
    const AxisPlan& axis = plan.axes[d];
    if (axis.kind != Kind::kWindow) {
      x_plain.insert(x_plain.end(), axis.indices.begin(), axis.indices.end());
      continue;
    }
    const IndexPtr& p = axis.indices[0];
    const IndexPtr& k = axis.indices[1];
    if (axis.reversed[0] || axis.reversed[1] || Contains(reduce.indices, p) ||
        !Contains(reduce.indices, k) ||
        Compare(k->extent, CompareOp::kGe, 1) != Truth::kTrue) {
      return std::nullopt;
    }
    positions.push_back(p);
    kernel.push_back(k);
    stride.push_back(axis.stride);
    dilation.push_back(axis.dilation);
    low.push_back(-axis.start);
    // As much as the last window needs.
    const std::optional<Dim> last =
        GreatestValue(*ToAffine(*x->children[d + 1]));
    if (!last.has_value()) return std::nullopt;
    CLEAVE_ASSIGN_OR_RETURN(
        Dim beyond, Dim::CheckedSub(*last, builder_.type(array).shape[d]));
    CLEAVE_ASSIGN_OR_RETURN(beyond, Dim::CheckedAdd(beyond, 1));
    high.push_back(std::move(beyond));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Element weight, Lower(w));
  const Indices batch =
      AxesWhere(x_plain, false, weight.axes, false, reduce.indices);
  const Indices groups =
      AxesWhere(x_plain, true, weight.axes, false, reduce.indices);
  const Indices channels =
      AxesWhere(x_plain, true, weight.axes, true, reduce.indices);
  const Indices outputs =
      AxesWhere(weight.axes, false, x_plain, false, reduce.indices);
  CLEAVE_ASSIGN_OR_RETURN(const Dim group_size, SizeOf(groups));
  const std::optional<int64_t> group_count = group_size.Value();
  // Each summed index is a channel or a kernel's, and each factor has it.
  const bool fits =
      batch.size() + groups.size() + channels.size() == x_plain.size() &&
      channels.size() + kernel.size() == reduce.indices.size() &&
      groups.size() + outputs.size() + reduce.indices.size() ==
          weight.axes.size() &&
      std::none_of(
          positions.begin(), positions.end(),
          [&](const IndexPtr& p) { return Contains(weight.axes, p); }) &&
      group_count.value_or(0) >= 1;
  if (!fits) return std::nullopt;

  CLEAVE_ASSIGN_OR_RETURN(Moved moved,
                          Move(array, plan, std::nullopt, /*padded=*/true));
  std::vector<int> order;
  for (const IndexPtr& index : Joined({batch, groups, channels})) {
    for (size_t d = 0; d < moved.labels.size(); ++d) {
      if (moved.labels[d].index == index) order.push_back(static_cast<int>(d));
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const Dim batch_size, SizeOf(batch));
  CLEAVE_ASSIGN_OR_RETURN(const Dim channel_count, SizeOf(channels));
  CLEAVE_ASSIGN_OR_RETURN(const Dim input_channels,
                          SizeOf(Joined({groups, channels})));
  CLEAVE_ASSIGN_OR_RETURN(const Dim output_channels,
                          SizeOf(Joined({groups, outputs})));
  Shape shape = {batch_size, input_channels};
  for (size_t d = 0; d < moved.labels.size(); ++d) {
    if (moved.labels[d].index != nullptr) continue;
    order.push_back(static_cast<int>(d));
    shape.push_back(builder_.type(moved.value).shape[d]);
  }
  const Value input =
      builder_.Reshape(builder_.Transpose(moved.value, order), shape);
  CLEAVE_ASSIGN_OR_RETURN(
      const Value aligned,
      Aligned(weight, Joined({groups, outputs, channels, kernel})));
  Shape weight_shape = {output_channels, channel_count};
  for (const IndexPtr& k : kernel) weight_shape.push_back(k->extent);
  const std::vector<int64_t> ones(kernel.size(), 1);
  CLEAVE_ASSIGN_OR_RETURN(
      const Value conv,
      builder_.Add(Primitive::kConv,
                   {{"stride", StaticValue::Ints(stride)},
                    {"low", StaticValue::Dims(low)},
                    {"high", StaticValue::Dims(high)},
                    {"lhs_dilation", StaticValue::Ints(ones)},
                    {"rhs_dilation", StaticValue::Ints(dilation)},
                    {"groups", *group_count},
                    {"batch_groups", 1}},
                   {input, builder_.Reshape(aligned, weight_shape)}));
  Element result;
  result.axes = Joined({batch, groups, outputs, positions});
  CLEAVE_ASSIGN_OR_RETURN(result.value, Shaped(conv, result.axes));
  return result;
}

}  // namespace cleave
