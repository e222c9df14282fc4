// TermMaker: well-formed terms. It broadcasts, unifies dtypes, tells arrays
// from elements, and propagates symbolic zeros.

#ifndef CLEAVE_ENGINE_ELABORATE_TERM_MAKER_H_
#define CLEAVE_ENGINE_ELABORATE_TERM_MAKER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/elaborate/rule_value.h"
#include "engine/index/term.h"
#include "ops/infer_type.h"

namespace cleave {

// Whether the term stands for one value of index variables around it.
inline bool IsElement(const Term& term) { return !term.free.empty(); }
inline bool IsZero(const TermPtr& term) {
  return term->kind == TermKind::kZero;
}

class TermMaker {
 public:
  // The provenance of the terms made from here on.
  void SetProvenance(ProvenanceId id) { provenance_ = id; }
  ProvenanceId provenance() const { return provenance_; }

  TermPtr Number(const Exact& value) const;
  TermPtr Bool(bool value) const;
  TermPtr DimNumber(const Dim& dim) const;
  TermPtr Index(const IndexPtr& index) const;
  TermPtr InGraph(Value value, const TensorType& type,
                  std::vector<AxisGroup> groups = {}) const;
  TermPtr Zero(DTypePtr dtype, Shape shape) const;
  TermPtr Parameter(DTypePtr dtype, Shape shape) const;

  // Errors of these say what is wrong with shapes or dtypes; the caller knows
  // the place. Shapes broadcast; undecided extents go to `guards`.
  absl::StatusOr<TermPtr> Pointwise(Primitive primitive,
                                    std::vector<TermPtr> operands,
                                    const Attributes& attributes = {});
  absl::StatusOr<TermPtr> Convert(const TermPtr& x, const DTypePtr& dtype);
  absl::StatusOr<TermPtr> Read(const TermPtr& array,
                               std::vector<TermPtr> indices);
  // `read ?? fill`; null if the term is no read.
  absl::StatusOr<TermPtr> ReadOr(const TermPtr& read, const TermPtr& fill);
  absl::StatusOr<TermPtr> Reduce(Reduction reduction,
                                 std::vector<IndexPtr> indices, TermPtr element,
                                 TermPtr condition, bool tie_first);
  absl::StatusOr<TermPtr> Comprehension(std::vector<IndexPtr> indices,
                                        TermPtr element,
                                        std::vector<AxisGroup> groups);
  // A structured primitive; its result types are those of inference, with
  // `result_dtypes` (by default the first operand's).
  absl::StatusOr<TermPtr> Structured(Primitive primitive,
                                     const Attributes& attributes,
                                     std::vector<TermPtr> operands,
                                     std::vector<DTypePtr> result_dtypes = {});
  TermPtr Call(std::shared_ptr<const CallTerm> call,
               std::vector<TermPtr> children) const;
  TermPtr Result(const TermPtr& call, int index) const;
  // Right-aligned, to `shape`.
  absl::StatusOr<TermPtr> BroadcastTo(const TermPtr& x, const Shape& shape);
  absl::StatusOr<TermPtr> Reshape(const TermPtr& x, const Shape& shape,
                                  std::vector<AxisGroup> groups = {});
  absl::StatusOr<TermPtr> BitcastConvert(const TermPtr& x, DType dtype);
  // The same array, with axes said to be grouped so.
  absl::StatusOr<TermPtr> WithGroups(absl::StatusOr<TermPtr> x,
                                     std::vector<AxisGroup> groups) const;
  TermPtr WithGroups(const TermPtr& x, std::vector<AxisGroup> groups) const;

  // As BroadcastShapes, but extents that may be equal become guards.
  absl::StatusOr<Shape> Broadcast(const std::vector<Shape>& shapes);
  // False where they differ for certain; a guard where that is open.
  bool RequireEqual(const Dim& a, const Dim& b, absl::string_view why);

  std::vector<ShapeGuard>& guards() { return guards_; }
  // The order of the next term.
  uint32_t next_order() const { return order_; }

 private:
  TermPtr Finish(Term term) const;
  // A scalar array inside an element: a read of it without indices.
  TermPtr AsElement(const TermPtr& term) const;

  ProvenanceId provenance_ = 0;
  mutable uint32_t order_ = 0;
  std::vector<ShapeGuard> guards_;
};

// Unifies the dtypes of `terms`; the message names both where they differ.
absl::Status UnifyDTypes(const std::vector<TermPtr>& terms);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_ELABORATE_TERM_MAKER_H_
