// Slices along the leading axis of a tensor, and their stack.

#ifndef CLEAVE_TESTING_CHECK_TENSOR_SLICES_H_
#define CLEAVE_TESTING_CHECK_TENSOR_SLICES_H_

#include <vector>

#include "ops/tensor.h"

namespace cleave {

// Slice `i` along axis 0.
Tensor SliceOf(const Tensor& tensor, int64_t i);

// `slices`, each of the type of `like`, along a new leading axis.
Tensor Stack(const Tensor& like, const std::vector<Tensor>& slices);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_TENSOR_SLICES_H_
