// InferType: the result types of a primitive on operand types. Extents may be
// symbolic: (f32[m, k], f32[k, n]) of a dot_general give f32[m, n].

#ifndef CLEAVE_OPS_INFER_TYPE_H_
#define CLEAVE_OPS_INFER_TYPE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave {

// A condition on extents that inference could not decide; it becomes a guard of
// the graph: `lhs op rhs` must hold when extents are known.
struct ShapeGuard {
  Dim lhs;
  CompareOp op = CompareOp::kEq;
  Dim rhs;
  std::string why;
};

struct InferredType {
  std::vector<TensorType> results;  // one entry per result
  std::vector<ShapeGuard> guards;
};

// InvalidArgument where the operands or attributes do not fit the primitive
// (wrong count, dtype, rank, a missing, unknown or malformed attribute), with a
// message that names the primitive and the operand. Regions of scan,
// cond and while are typed by engine/ir, not here.
absl::StatusOr<InferredType> InferType(Primitive primitive,
                                       const Attributes& attributes,
                                       absl::Span<const TensorType> operands);

}  // namespace cleave

#endif  // CLEAVE_OPS_INFER_TYPE_H_
