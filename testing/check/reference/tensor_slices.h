// Parts of tensors: slices along the leading axis, and their stack; elements;
// tensors of ones.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_TENSOR_SLICES_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_TENSOR_SLICES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ops/tensor.h"

namespace cleave {

// Slice `i` along axis 0.
Tensor SliceOf(const Tensor& tensor, int64_t i);

// `slices`, each of the type of `like`, along a new leading axis.
Tensor Stack(const Tensor& like, const std::vector<Tensor>& slices);

// Floats of the type of `like` that are all 1.
Tensor Ones(const Tensor& like);

// Makes element j of `to` element i of `from`, a tensor of that dtype.
void CopyElement(const Tensor& from, int64_t i, Tensor& to, int64_t j);

// The same of each tensor of lists of one length.
void CopyElements(absl::Span<const Tensor> from, int64_t i,
                  std::vector<Tensor>& to, int64_t j);

// The chosen elements of tensors of one shape, as tensors of shape [n].
std::vector<Tensor> SelectElements(absl::Span<const Tensor> tensors,
                                   absl::Span<const int64_t> elements);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_TENSOR_SLICES_H_
