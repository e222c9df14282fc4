// ElementLowering: element terms to values, vectorised over their indices.
// Internal to the lowering of index notation; see lower_index.h.
//
// An element that depends on the indices i and k becomes a value with one axis
// for i and one for k. A value that does not depend on k has no axis for k, so
// that nothing is broadcast before it must be.

#ifndef CLEAVE_ENGINE_INDEX_ELEMENT_LOWERING_H_
#define CLEAVE_ENGINE_INDEX_ELEMENT_LOWERING_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/index/affine.h"
#include "engine/index/lower_index.h"
#include "engine/index/read_plan.h"
#include "engine/index/term.h"
#include "engine/ir/graph.h"

namespace cleave {

// Axis d of the value stands for axes[d], and has its extent.
struct Element {
  Value value;
  std::vector<IndexPtr> axes;
};

class ElementLowering {
 public:
  explicit ElementLowering(TermLowering& terms)
      : terms_(terms), builder_(terms.builder()) {}

  // `element` at every value of `indices`, as an array with these axes.
  absl::StatusOr<Value> LowerArray(const TermPtr& element,
                                   const std::vector<IndexPtr>& indices);

 private:
  class ScopedIndices;
  class ScopedConditions;

  // lower_element.cc
  absl::StatusOr<Element> Lower(const TermPtr& term);
  absl::StatusOr<Element> LowerNew(const TermPtr& term);
  absl::StatusOr<Element> LowerPointwise(const Term& term);
  absl::StatusOr<Element> LowerCall(const Term& term);
  absl::StatusOr<Element> LowerIndex(const Term& term);
  // The axes of all elements: those of one that has all, else in scope order.
  std::vector<IndexPtr> JoinedAxes(absl::Span<const Element> elements) const;
  std::vector<IndexPtr> InScopeOrder(std::vector<IndexPtr> axes) const;
  // The value with exactly these axes, which hold the element's.
  absl::StatusOr<Value> Aligned(const Element& element,
                                const std::vector<IndexPtr>& axes);
  absl::StatusOr<Element> Pointwise(Primitive primitive,
                                    absl::Span<const Element> operands,
                                    const Attributes& attributes = {});
  absl::StatusOr<Element> Number(const Exact& number, DType dtype);
  // `element` where the condition holds, else the number.
  absl::StatusOr<Element> Where(const Element& condition,
                                const Element& element, const Exact& otherwise);
  absl::StatusOr<Element> Converted(const Element& element, DType dtype);
  DType DTypeOf(const Element& element) const;
  // `value` with the extents of `axes`: a reshape where they differ in form.
  absl::StatusOr<Value> Shaped(Value value, const std::vector<IndexPtr>& axes);
  // 1 where all indices have values, else 0.
  static absl::StatusOr<Dim> HaveElements(absl::Span<const IndexPtr> indices);

  // lower_read.cc
  absl::StatusOr<Element> LowerRead(const Term& read);
  // Where the read's indices are in range, as far as it is not proved.
  TermPtr InRange(const Term& read, const Shape& shape,
                  const ReadPlan& plan) const;
  absl::Status CheckUnmasked(const Term& read, const Shape& shape,
                             ReadPlan& plan);
  // `element`, but an error of the evaluation where `bad` holds.
  absl::StatusOr<Element> Checked(const Element& element, const Element& bad);
  // Pads, slices, reverses and reshapes: the axes afterwards.
  struct Moved {
    Value value;
    std::vector<AxisLabel> labels;
  };
  // `fill` is what is read out of range; a zero if it is not given.
  using Fill = std::optional<Value>;
  absl::StatusOr<Value> FillValue(const Fill& fill, DType dtype);
  absl::StatusOr<Moved> Move(Value x, const ReadPlan& plan, const Fill& fill,
                             bool padded);
  absl::StatusOr<Moved> TakeWindows(Moved moved, const ReadPlan& plan,
                                    const Fill& fill);
  absl::StatusOr<Element> Gather(const Moved& moved, const Term& read,
                                 const ReadPlan& plan, const Fill& fill,
                                 bool is_error);
  // Indices as the last axis of an i64 array whose other axes are `axes`.
  absl::StatusOr<Value> IndexArray(absl::Span<const Element> indices,
                                   const std::vector<IndexPtr>& axes);

  // lower_reduce.cc
  absl::StatusOr<Element> LowerReduce(const Term& reduce);
  // The reduced element under the conditions, with the identity elsewhere.
  absl::StatusOr<Element> MaskedElement(const Term& reduce,
                                        const std::vector<TermPtr>& conditions,
                                        const Exact& otherwise);
  // The term's values where the conditions hold, anything elsewhere.
  absl::StatusOr<Element> LowerUnder(const TermPtr& term,
                                     const std::vector<TermPtr>& conditions);
  absl::StatusOr<Element> LowerArgReduce(
      const Term& reduce, const std::vector<TermPtr>& conditions);
  absl::StatusOr<Element> ReduceAxes(Primitive primitive,
                                     const Element& element,
                                     const std::vector<IndexPtr>& over,
                                     const Attributes& attributes = {});
  absl::Status CheckArgReduceOfSomething(const Term& reduce);

  // lower_scan.cc, lower_scatter.cc, lower_contraction.cc: the element, or
  // nullopt where the reduction is not of that kind.
  using MaybeElement = absl::StatusOr<std::optional<Element>>;
  MaybeElement TryScan(const Term& reduce,
                       const std::vector<TermPtr>& conditions);
  absl::StatusOr<Element> Scan(Reduction reduction, const Element& element,
                               const IndexPtr& along, bool reverse);
  MaybeElement TryScatter(const Term& reduce,
                          const std::vector<TermPtr>& conditions);
  MaybeElement TryContraction(const Term& reduce);
  MaybeElement TryConv(const Term& reduce, const TermPtr& x, const TermPtr& w);
  absl::StatusOr<Element> DotGeneral(const Element& a, const Element& b,
                                     const std::vector<IndexPtr>& over);

  TermLowering& terms_;
  GraphBuilder& builder_;
  // The indices of the binders around, outermost first: those of the array,
  // then those of reductions.
  std::vector<IndexPtr> scope_;
  size_t array_indices_ = 0;
  // The conditions under which the element is evaluated, those of the
  // reductions around it: as one bool element, and as facts about indices.
  std::optional<Element> mask_;
  std::vector<Affine> facts_;
  // Numbers the sets of conditions: elements are lowered once under each.
  int mask_id_ = 0;
  int last_mask_id_ = 0;
  struct Done {
    TermPtr term;  // keeps the key's address from being used again
    Element element;
  };
  std::map<std::pair<const Term*, int>, Done> done_;
};

// Binds indices for as long as it lives.
class ElementLowering::ScopedIndices {
 public:
  ScopedIndices(ElementLowering& lowering, const std::vector<IndexPtr>& indices)
      : lowering_(lowering), size_(lowering.scope_.size()) {
    lowering.scope_.insert(lowering.scope_.end(), indices.begin(),
                           indices.end());
  }
  ~ScopedIndices() { lowering_.scope_.resize(size_); }
  ScopedIndices(const ScopedIndices&) = delete;
  ScopedIndices& operator=(const ScopedIndices&) = delete;

 private:
  ElementLowering& lowering_;
  size_t size_;
};

// Adds conditions for as long as it lives.
class ElementLowering::ScopedConditions {
 public:
  explicit ScopedConditions(ElementLowering& lowering)
      : lowering_(lowering),
        mask_(lowering.mask_),
        facts_(lowering.facts_.size()),
        mask_id_(lowering.mask_id_) {}
  ~ScopedConditions() {
    lowering_.mask_ = mask_;
    lowering_.facts_.resize(facts_);
    lowering_.mask_id_ = mask_id_;
  }
  ScopedConditions(const ScopedConditions&) = delete;
  ScopedConditions& operator=(const ScopedConditions&) = delete;

  // Lowers the conditions, under those that hold before.
  absl::Status Add(const std::vector<TermPtr>& conditions);

 private:
  ElementLowering& lowering_;
  std::optional<Element> mask_;
  size_t facts_;
  int mask_id_;
};

// The result of reducing nothing: 0 for a sum, the lowest value of `dtype`
// (-inf of a float) for a max.
Exact IdentityOf(Reduction reduction, DType dtype);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_INDEX_ELEMENT_LOWERING_H_
