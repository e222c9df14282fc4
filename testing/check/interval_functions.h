// The primitives on intervals, for IntervalGraph. Internal to interval.h.

#ifndef CLEAVE_TESTING_CHECK_INTERVAL_FUNCTIONS_H_
#define CLEAVE_TESTING_CHECK_INTERVAL_FUNCTIONS_H_

#include "ops/primitive.h"
#include "testing/check/interval.h"

namespace cleave {

using IntervalUnary = Interval (*)(const Interval& x);
using IntervalBinary = Interval (*)(const Interval& a, const Interval& b);

// The same numbers, and more, with the scale 0.
Interval Plain(const Interval& x);

// Whether its function takes operands with scales; else they are to be Plain.
bool TakesScales(Primitive primitive);

// Null for a primitive that is not enclosed, or has another number of operands.
IntervalUnary IntervalUnaryOf(Primitive primitive);
IntervalBinary IntervalBinaryOf(Primitive primitive);
Interval IntervalSelect(const Interval& c, const Interval& a,
                        const Interval& b);
Interval IntervalFma(const Interval& a, const Interval& b, const Interval& c);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_INTERVAL_FUNCTIONS_H_
