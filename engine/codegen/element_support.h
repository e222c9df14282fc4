// The dtypes and pointwise operations that kernels have code for. Internal to
// engine/codegen.

#ifndef CLEAVE_ENGINE_CODEGEN_ELEMENT_SUPPORT_H_
#define CLEAVE_ENGINE_CODEGEN_ELEMENT_SUPPORT_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ops/dtype.h"
#include "ops/primitive.h"

namespace cleave {

// Whether kernels have elements of this dtype at all: complex numbers and keys
// do not.
bool HasElements(DType dtype);

// Whether a pointwise primitive on such operands has code, and if not why:
// Unimplemented("`polygamma`: no vector code"). The divisors of integers are
// checked before (index_check.h).
absl::Status CanLowerElement(Primitive primitive, DType result,
                             absl::Span<const DType> operands);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_ELEMENT_SUPPORT_H_
