// The primitives on intervals, for DoubleIntervalGraph. Internal to
// double_interval.h.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_DOUBLE_INTERVAL_FUNCTIONS_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_DOUBLE_INTERVAL_FUNCTIONS_H_

#include "ops/primitive.h"
#include "testing/check/reference/double_interval.h"

namespace cleave {

using IntervalUnary = DoubleInterval (*)(const DoubleInterval& x);
using IntervalBinary = DoubleInterval (*)(const DoubleInterval& a,
                                          const DoubleInterval& b);

// The same numbers, and more, with the scale 0.
DoubleInterval Plain(const DoubleInterval& x);

// Whether its function takes operands with scales; else they are to be Plain.
bool TakesScales(Primitive primitive);

// Null for a primitive that is not enclosed, or has another number of operands.
IntervalUnary IntervalUnaryOf(Primitive primitive);
IntervalBinary IntervalBinaryOf(Primitive primitive);
DoubleInterval IntervalSelect(const DoubleInterval& c, const DoubleInterval& a,
                              const DoubleInterval& b);
DoubleInterval IntervalFma(const DoubleInterval& a, const DoubleInterval& b,
                           const DoubleInterval& c);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_DOUBLE_INTERVAL_FUNCTIONS_H_
