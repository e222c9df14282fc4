// The dtypes and pointwise operations that kernels have code for. Internal to
// engine/codegen.

#ifndef CLEAVE_ENGINE_CODEGEN_ELEMENT_SUPPORT_H_
#define CLEAVE_ENGINE_CODEGEN_ELEMENT_SUPPORT_H_

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/dtype.h"
#include "ops/primitive.h"

namespace cleave {

// Whether kernels have elements of this dtype at all: complex numbers do not. A
// key is its 64 bits.
bool HasElements(DType dtype);

// Whether the primitive computes each element from a key and the element's
// number.
inline bool IsDraw(Primitive primitive) {
  return primitive == Primitive::kRandomBits ||
         primitive == Primitive::kRandomUniform;
}

// Whether an element of its result is computed where it is read or stored.
inline bool IsComputed(Primitive primitive) {
  return ClassOf(primitive) == PrimitiveClass::kPointwise || IsDraw(primitive);
}

// Whether a pointwise primitive on such operands has code, and if not why:
// Unimplemented("`polygamma`: no vector code"). The divisors of integers are
// checked before (index_check.h).
absl::Status CanLowerElement(Primitive primitive, DType result,
                             absl::Span<const DType> operands);

// Whether the node is the digamma or the trigamma function of f32, f16 or bf16:
// the only polygamma functions that have code, by a `numeric` of the rules.
bool IsOfLowOrder(const Graph& graph, Value node);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_ELEMENT_SUPPORT_H_
