// Pointwise functions of one float in long double, so that rounding the result
// to f64 is nearly correct rounding. Internal to ops.

#ifndef CLEAVE_OPS_REFERENCE_FLOAT_FUNCTIONS_H_
#define CLEAVE_OPS_REFERENCE_FLOAT_FUNCTIONS_H_

#include "ops/primitive.h"

namespace cleave {

// A unary floating-point primitive of a double; `primitive` must be one that
// RealUnary (ops/reference/real_functions.h) knows, apart from abs, neg,
// convert and nograd, which round nothing.
using FloatFunction = long double (*)(long double);
// Null if there is none.
FloatFunction FindFloatFunction(Primitive primitive);

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_FLOAT_FUNCTIONS_H_
