// AllFinite: whether an array holds no infinity and no NaN.

#ifndef CLEAVE_ENGINE_RUNTIME_ALL_FINITE_H_
#define CLEAVE_ENGINE_RUNTIME_ALL_FINITE_H_

#include <cstdint>

#include "ops/dtype.h"

namespace cleave::internal_kernel {

// The bits of an element that are all ones in infinities and NaN alone; 0 for
// dtypes that are no floats.
uint64_t ExponentBits(DType dtype);

// True of dtypes that are no floats. O(bytes).
bool AllFinite(DType dtype, const void* x, int64_t bytes);

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_ALL_FINITE_H_
