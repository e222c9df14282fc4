// Index maps: where each element of a result comes from. Movement, windows and
// gather are nothing else, so that they serve tensors and RealTensors alike.
// Internal to ops.

#ifndef CLEAVE_OPS_REFERENCE_INDEX_MAP_H_
#define CLEAVE_OPS_REFERENCE_INDEX_MAP_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/primitive.h"
#include "ops/reference/arithmetic.h"
#include "ops/static_value.h"
#include "ops/tensor.h"

namespace cleave {

// Row-major strides, the number of elements.
Extents StridesOf(const Extents& shape);
int64_t CountOf(const Extents& shape);

// Steps `index` to the next one in row-major order, false after the last.
bool NextIndex(const Extents& shape, Extents& index);

// Calls `function(index)` for each index of `shape` in row-major order, until
// it is false.
template <typename Function>
void ForEachIndex(const Extents& shape, Function&& function) {
  if (CountOf(shape) == 0) return;
  Extents index(shape.size(), 0);
  while (function(index) && NextIndex(shape, index)) {
  }
}

// The offsets in a tensor of `shape` that `axes` run through, row-major in the
// order of `axes`; and the axes of a rank that are not among `axes`.
Extents OffsetsOf(const Extents& shape, const std::vector<int64_t>& axes);
std::vector<int64_t> OtherAxes(size_t rank, const std::vector<int64_t>& axes);

// For each element of the result its source: a number that counts through the
// elements of all operands, one operand after the other (so an element of a
// scalar fill comes after those of x).
using IndexMap = std::vector<int64_t>;

// The map of a movement or of windows; `result` is the shape that InferType
// gives.
IndexMap MapOfMovement(Primitive primitive, const Attributes& attributes,
                       absl::Span<const Extents> operands,
                       const Extents& result);

// Where each read of a gather falls in x, row-major over its result; -1 where
// it is out of range. Also where a scatter writes.
IndexMap MapOfIndexing(const Extents& x, const Extents& index,
                       const std::vector<int64_t>& index_values,
                       const std::vector<int64_t>& axes, int64_t batch);

// Where each window element reads x (windows, and windows_add's writes): -1 if
// out of range.
IndexMap MapOfWindows(const Attributes& attributes, const Extents& x);

// The elements that `map` names. `operands` have one dtype.
Tensor Pick(const IndexMap& map, const Extents& shape,
            absl::Span<const Tensor> operands);

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_INDEX_MAP_H_
