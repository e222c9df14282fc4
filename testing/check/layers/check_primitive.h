// The derivatives of primitives (`jvp` items) against differences over the
// reals.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_CHECK_PRIMITIVE_H_
#define CLEAVE_TESTING_CHECK_LAYERS_CHECK_PRIMITIVE_H_

#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// In f64 and f32, by each operand, at a ULP-uniform grid: within
// kDerivativeUlp plus kDerivativeCondition times the derivative's own
// condition. Then the laws of L5 over the reals, of second order, too.
// `context.item` is the jvp item.
Verdict CheckPrimitiveJvp(const OpContext& context);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_CHECK_PRIMITIVE_H_
