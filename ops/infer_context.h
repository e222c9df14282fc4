// InferContext: reads the attributes of a primitive and compares extents, with
// messages that name the primitive. The inference of every primitive uses it.
// Internal to ops.
//
//   InferContext context(Primitive::kReverse, attributes, operands);
//   CLEAVE_ASSIGN_OR_RETURN(auto axes, context.Axes("axes", rank));
//   return context.Finish({operands[0]});  // rejects unknown attributes

#ifndef CLEAVE_OPS_INFER_CONTEXT_H_
#define CLEAVE_OPS_INFER_CONTEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/infer_type.h"

namespace cleave {

class InferContext {
 public:
  InferContext(Primitive primitive, const Attributes& attributes,
               absl::Span<const TensorType> operands)
      : primitive_(primitive), attributes_(attributes), operands_(operands) {}

  Primitive primitive() const { return primitive_; }
  absl::Span<const TensorType> operands() const { return operands_; }
  const TensorType& operand(int i) const { return operands_[i]; }

  // InvalidArgument: "`reshape`: " and the parts.
  template <typename... Parts>
  absl::Status Fail(const Parts&... parts) const {
    return absl::InvalidArgumentError(
        absl::StrCat("`", PrimitiveName(primitive_), "`: ", parts...));
  }

  // The attribute of that name and kind.
  absl::StatusOr<const StaticValue*> Attribute(absl::string_view name,
                                               StaticValue::Kind kind);
  absl::StatusOr<Dim> DimOf(absl::string_view name);
  // Constant and >= `least`.
  absl::StatusOr<int64_t> Int(absl::string_view name, int64_t least);
  absl::StatusOr<bool> Bool(absl::string_view name);
  // A bool, or absent.
  absl::Status OptionalBool(absl::string_view name);
  // A real number, or a known integer.
  absl::StatusOr<Exact> Real(absl::string_view name);
  absl::StatusOr<DType> DTypeOf(absl::string_view name);
  // One of `choices`.
  absl::StatusOr<std::string> Choice(
      absl::string_view name, absl::Span<const absl::string_view> choices);
  // The derivative's choice among ties; absent means "even".
  absl::Status Tie(absl::Span<const absl::string_view> choices);
  // Where nothing ties.
  absl::Status RefuseTie() const;
  absl::StatusOr<std::vector<Dim>> Dims(absl::string_view name);
  // As many as `count` (any number if -1).
  absl::StatusOr<std::vector<Dim>> Dims(absl::string_view name, int count);
  absl::StatusOr<std::vector<int64_t>> Ints(absl::string_view name, int count,
                                            int64_t least);
  // Distinct axes in [0, rank), and one axis.
  absl::StatusOr<std::vector<int64_t>> Axes(absl::string_view name, int rank);
  absl::StatusOr<int64_t> Axis(absl::string_view name, int rank);

  // A shape attribute, or one computed: extents must be >= 0.
  absl::StatusOr<Shape> ShapeOf(absl::string_view name);
  absl::Status CheckExtents(const Shape& shape);

  // `a op b` must hold: an error where it provably does not, a guard where it
  // is not known. `why` names the two sides: "axis 1 of operand 0 and ...".
  absl::Status Require(const Dim& a, CompareOp op, const Dim& b,
                       absl::string_view why);
  absl::Status RequireSameShape(const Shape& a, const Shape& b,
                                absl::string_view why);
  absl::Status RequireRank(int operand, int rank) const;
  absl::Status RequireRankAtLeast(int operand, int rank) const;
  absl::Status RequireDType(int operand, DType dtype) const;
  absl::Status RequireSameDType(int a, int b) const;
  absl::Status RequireClass(int operand, DTypeClass dtype_class) const;

  // The result, unless an attribute was given that ops/primitive.def lacks.
  absl::StatusOr<InferredType> Finish(std::vector<TensorType> results);

 private:
  absl::StatusOr<const StaticValue*> Find(absl::string_view name);

  Primitive primitive_;
  const Attributes& attributes_;
  absl::Span<const TensorType> operands_;
  std::vector<ShapeGuard> guards_;
};

// One function per group of classes; the operand count was checked.
absl::StatusOr<InferredType> InferPointwise(InferContext& context);
absl::StatusOr<InferredType> InferMovement(InferContext& context);
absl::StatusOr<InferredType> InferWindow(InferContext& context);
absl::StatusOr<InferredType> InferReduction(InferContext& context);
absl::StatusOr<InferredType> InferContraction(InferContext& context);
absl::StatusOr<InferredType> InferScan(InferContext& context);
absl::StatusOr<InferredType> InferIndexing(InferContext& context);

}  // namespace cleave

#endif  // CLEAVE_OPS_INFER_CONTEXT_H_
