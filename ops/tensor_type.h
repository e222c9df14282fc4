// TensorType: a dtype and a symbolic shape, printed `f32[B, 2*n]`.

#ifndef CLEAVE_OPS_TENSOR_TYPE_H_
#define CLEAVE_OPS_TENSOR_TYPE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/dim.h"
#include "ops/dtype.h"

namespace cleave {

using Shape = std::vector<Dim>;

struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;

  int rank() const { return static_cast<int>(shape.size()); }
  std::string ToString() const;
  friend bool operator==(const TensorType& a, const TensorType& b) {
    return a.dtype == b.dtype && a.shape == b.shape;
  }
  friend bool operator!=(const TensorType& a, const TensorType& b) {
    return !(a == b);
  }
  template <typename H>
  friend H AbslHashValue(H h, const TensorType& t) {
    return H::combine(std::move(h), t.dtype, t.shape);
  }
};

// Reads `f32[2, n + 1]`; `f32` and `f32[]` are scalars.
absl::StatusOr<TensorType> ParseTensorType(absl::string_view text);

// The status of the first extent that is an invalid Dim.
absl::Status CheckDims(const Shape& shape);

std::string ShapeToString(const Shape& shape);

// The product of the extents; 1 for a scalar. ResourceExhausted beyond the
// limits of Dim: shapes come from rules, graphs and calls.
absl::StatusOr<Dim> NumElements(const Shape& shape);

// Right-aligned broadcasting of several shapes: only a literal 1 stretches; two
// other extents must be provably equal. InvalidArgument names the pair (and the
// constraint that would decide it where they are symbolic).
absl::StatusOr<Shape> BroadcastShapes(const std::vector<Shape>& shapes);

}  // namespace cleave

#endif  // CLEAVE_OPS_TENSOR_TYPE_H_
