// Elements of every kind but reads and reductions, and how values of different
// indices meet.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/index/element_lowering.h"
#include "engine/index/term_builder.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

Shape ExtentsOf(const std::vector<IndexPtr>& axes) {
  Shape shape;
  for (const IndexPtr& index : axes) shape.push_back(index->extent);
  return shape;
}

// Nodes added while it lives come from this place of the rule.
class ScopedProvenance {
 public:
  ScopedProvenance(GraphBuilder& builder, ProvenanceId provenance)
      : builder_(builder), before_(builder.provenance()) {
    if (provenance != 0) builder.SetProvenance(provenance);
  }
  ~ScopedProvenance() { builder_.SetProvenance(before_); }
  ScopedProvenance(const ScopedProvenance&) = delete;
  ScopedProvenance& operator=(const ScopedProvenance&) = delete;

 private:
  GraphBuilder& builder_;
  ProvenanceId before_;
};

}  // namespace

absl::Status ElementLowering::ScopedConditions::Add(
    const std::vector<TermPtr>& conditions) {
  std::vector<Element> elements;
  if (mask_.has_value()) elements.push_back(*mask_);
  for (const TermPtr& condition : conditions) {
    CLEAVE_ASSIGN_OR_RETURN(Element element, lowering_.Lower(condition));
    elements.push_back(std::move(element));
  }
  if (conditions.empty()) return absl::OkStatus();
  Element all = elements[0];
  for (size_t i = 1; i < elements.size(); ++i) {
    CLEAVE_ASSIGN_OR_RETURN(
        all, lowering_.Pointwise(Primitive::kAnd, {all, elements[i]}));
  }
  lowering_.mask_ = std::move(all);
  for (const TermPtr& condition : conditions) {
    for (Affine& fact : FactsOf(*condition)) {
      lowering_.facts_.push_back(std::move(fact));
    }
  }
  lowering_.mask_id_ = ++lowering_.last_mask_id_;
  return absl::OkStatus();
}

absl::StatusOr<Value> ElementLowering::LowerArray(
    const TermPtr& element, const std::vector<IndexPtr>& indices) {
  ScopedIndices scoped(*this, indices);
  array_indices_ = indices.size();
  CLEAVE_ASSIGN_OR_RETURN(const Element lowered, Lower(element));
  return Aligned(lowered, indices);
}

absl::StatusOr<Element> ElementLowering::Lower(const TermPtr& term) {
  const auto key = std::make_pair(term.get(), mask_id_);
  const auto it = done_.find(key);
  if (it != done_.end()) return it->second.element;
  const ScopedProvenance scoped(builder_, term->provenance);
  CLEAVE_ASSIGN_OR_RETURN(Element element,
                          Deeper([&]() -> absl::StatusOr<Element> {
                            CLEAVE_RETURN_IF_ERROR(PollBudget());
                            return LowerNew(term);
                          }));
  done_[key] = {term, element};
  return element;
}

absl::StatusOr<Element> ElementLowering::LowerNew(const TermPtr& term) {
  switch (term->kind) {
    case TermKind::kIndex:
      return LowerIndex(*term);
    case TermKind::kNumber:
      return Number(term->number, ResolvedDType(*term));
    case TermKind::kDim: {
      const std::optional<int64_t> extent = term->dim.Value();
      if (extent.has_value()) {
        return Number(Exact(*extent), ResolvedDType(*term));
      }
      CLEAVE_ASSIGN_OR_RETURN(
          const Value value,
          builder_.Add(Primitive::kExtent, {{"value", term->dim}}, {}));
      return Converted({value, {}}, ResolvedDType(*term));
    }
    case TermKind::kZero:
      return Number(Exact(0), ResolvedDType(*term));
    case TermKind::kPointwise:
      return LowerPointwise(*term);
    case TermKind::kRead:
      return LowerRead(*term);
    case TermKind::kReduce:
      return LowerReduce(*term);
    case TermKind::kCallElement:
      return LowerCall(*term);
    case TermKind::kValue:
    case TermKind::kParameter:
    case TermKind::kComprehension:
    case TermKind::kCall:
    case TermKind::kResult: {
      CLEAVE_CHECK(term->shape.empty()) << "an array stands as an element";
      CLEAVE_ASSIGN_OR_RETURN(const Value value, terms_.Lower(term));
      return Element{value, {}};
    }
  }
  CLEAVE_CHECK(false) << "term kind " << static_cast<int>(term->kind);
  return absl::InternalError("unreachable");
}

absl::StatusOr<Element> ElementLowering::LowerIndex(const Term& term) {
  const IndexPtr& index = term.indices[0];
  CLEAVE_ASSIGN_OR_RETURN(
      const Value value,
      builder_.Add(Primitive::kIota, {{"size", index->extent}}, {}));
  return Converted({value, {index}}, ResolvedDType(term));
}

absl::StatusOr<Element> ElementLowering::LowerPointwise(const Term& term) {
  std::vector<Element> operands;
  for (const TermPtr& child : term.children) {
    CLEAVE_ASSIGN_OR_RETURN(Element operand, Lower(child));
    operands.push_back(std::move(operand));
  }
  if (term.primitive == Primitive::kConvert) {
    return Converted(operands[0], ResolvedDType(term));
  }
  return Pointwise(term.primitive, operands, term.attributes);
}

absl::StatusOr<Element> ElementLowering::LowerCall(const Term& term) {
  std::vector<Element> operands;
  for (const TermPtr& child : term.children) {
    CLEAVE_ASSIGN_OR_RETURN(Element operand, Lower(child));
    operands.push_back(std::move(operand));
  }
  const std::vector<IndexPtr> axes = JoinedAxes(operands);
  std::vector<Value> values;
  for (const Element& operand : operands) {
    CLEAVE_ASSIGN_OR_RETURN(const Value value, Aligned(operand, axes));
    values.push_back(value);
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value value,
                          terms_.CallElementwise(term, values));
  return Element{value, axes};
}

std::vector<IndexPtr> ElementLowering::InScopeOrder(
    std::vector<IndexPtr> axes) const {
  const auto place = [this](const IndexPtr& index) {
    return std::find(scope_.begin(), scope_.end(), index);
  };
  std::stable_sort(axes.begin(), axes.end(),
                   [&place](const IndexPtr& a, const IndexPtr& b) {
                     return place(a) < place(b);
                   });
  return axes;
}

std::vector<IndexPtr> ElementLowering::JoinedAxes(
    absl::Span<const Element> elements) const {
  std::vector<IndexPtr> joined;
  for (const Element& element : elements) {
    for (const IndexPtr& index : element.axes) {
      if (std::find(joined.begin(), joined.end(), index) == joined.end()) {
        joined.push_back(index);
      }
    }
  }
  for (const Element& element : elements) {
    if (element.axes.size() == joined.size()) return element.axes;
  }
  return InScopeOrder(std::move(joined));
}

absl::StatusOr<Value> ElementLowering::Aligned(
    const Element& element, const std::vector<IndexPtr>& axes) {
  std::vector<int> targets;  // the place of each of the element's axes
  for (const IndexPtr& index : element.axes) {
    const auto it = std::find(axes.begin(), axes.end(), index);
    CLEAVE_CHECK(it != axes.end())
        << "the index `" << index->name << "` has no axis";
    targets.push_back(static_cast<int>(it - axes.begin()));
  }
  std::vector<int> order(targets.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int>(d);
  std::sort(order.begin(), order.end(),
            [&targets](int a, int b) { return targets[a] < targets[b]; });
  std::sort(targets.begin(), targets.end());
  const Value value = builder_.Transpose(element.value, order);
  return builder_.Add(Primitive::kBroadcastInDim,
                      {{"shape", StaticValue::Dims(ExtentsOf(axes))},
                       {"axes", StaticValue::Ints(targets)}},
                      {value});
}

absl::StatusOr<Element> ElementLowering::Pointwise(
    Primitive primitive, absl::Span<const Element> operands,
    const Attributes& attributes) {
  const std::vector<IndexPtr> axes = JoinedAxes(operands);
  std::vector<Value> values;
  for (const Element& operand : operands) {
    CLEAVE_ASSIGN_OR_RETURN(const Value value, Aligned(operand, axes));
    values.push_back(value);
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value value,
                          builder_.Add(primitive, attributes, values));
  return Element{value, axes};
}

absl::StatusOr<Element> ElementLowering::Number(const Exact& number,
                                                DType dtype) {
  // Not every number is one of the dtype: that is the rule's mistake.
  CLEAVE_ASSIGN_OR_RETURN(const Value constant,
                          builder_.Add(Primitive::kConstant,
                                       ConstantAttributes(number, dtype), {}));
  return Element{constant, {}};
}

absl::StatusOr<Element> ElementLowering::Where(const Element& condition,
                                               const Element& element,
                                               const Exact& otherwise) {
  CLEAVE_ASSIGN_OR_RETURN(const Element other,
                          Number(otherwise, DTypeOf(element)));
  return Pointwise(Primitive::kSelect, {condition, element, other});
}

absl::StatusOr<Element> ElementLowering::Converted(const Element& element,
                                                   DType dtype) {
  if (DTypeOf(element) == dtype) return element;
  CLEAVE_ASSIGN_OR_RETURN(
      const Value value,
      builder_.Add(Primitive::kConvert, {{"dtype", dtype}}, {element.value}));
  return Element{value, element.axes};
}

DType ElementLowering::DTypeOf(const Element& element) const {
  return builder_.type(element.value).dtype;
}

absl::StatusOr<Value> ElementLowering::Shaped(
    Value value, const std::vector<IndexPtr>& axes) {
  const Shape shape = ExtentsOf(axes);
  if (builder_.type(value).shape == shape) return value;
  return builder_.Add(Primitive::kReshape,
                      {{"shape", StaticValue::Dims(shape)}}, {value});
}

absl::StatusOr<Dim> ElementLowering::HaveElements(
    absl::Span<const IndexPtr> indices) {
  Dim have = 1;
  for (const IndexPtr& index : indices) {
    if (Compare(index->extent, CompareOp::kGe, 1) == Truth::kTrue) continue;
    CLEAVE_ASSIGN_OR_RETURN(const Dim one, Dim::CheckedMin({index->extent, 1}));
    CLEAVE_ASSIGN_OR_RETURN(have, Dim::CheckedMul(have, one));
  }
  return have;
}

}  // namespace cleave
