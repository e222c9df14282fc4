// How much the checker samples at least. Every verdict says how many samples it
// rests on; one with fewer than these is inconclusive.

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_SAMPLE_COUNTS_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_SAMPLE_COUNTS_H_

#include <cstdint>

namespace cleave {

// L3 of a pointwise op of one float input at its default attributes: points of
// the ULP-uniform grid in f32 and in f64. f16 and bf16 take all 65,536 values.
inline constexpr int64_t kMinGridPoints = 20000;
// The same in f32 among the numbers from 2^-6 to 2^10, where zeros and extrema
// are that a grid over all exponents hardly meets.
inline constexpr int64_t kMinOrdinaryPoints = 8000;
// The same at other attributes, and for 16-bit dtypes there.
inline constexpr int64_t kMinVariantPoints = 2000;
// L3 of a pointwise op of several float inputs: stratified tuples per dtype.
inline constexpr int64_t kMinTuplePoints = 8000;
inline constexpr int64_t kMinVariantTuplePoints = 1000;
// L2: random points in each cell between guard constants.
inline constexpr int64_t kMinPointsPerCell = 64;
// L1, L2, L3 and L5 of other ops: signatures that the op accepts.
inline constexpr int kMinSignatures = 6;
// Ranks and axes vary from one to the next, which six hardly meet.
inline constexpr int kWantedSignatures = 14;
// Combinations of attributes and of inputs that may be absent: each two values
// meet in one of them, as far as the op takes them and these suffice.
inline constexpr int kMaxCombinations = 96;
// Random signatures that are tried for that: all of an op, those that it
// refuses too.
inline constexpr int kMaxSignatureTrials = 800;
// Typed alone in L1.
inline constexpr int kTypedSignatures = 160;
// The same in each complex dtype.
inline constexpr int kTypedComplexSignatures = 16;
// L2, L3 and L5 of an op with a `domain` clause: elements within it.
inline constexpr int kMinWithinDomain = 20;
// Elements of one sampled tensor, unless its sizes are declared as numbers.
inline constexpr int64_t kMaxSampleElements = 60;

// The precision of the reference, where it begins and where it gives up.
inline constexpr int kFirstReferenceBits = 256;
inline constexpr int kLastReferenceBits = 8192;

// The accuracy that an op is held to if it declares none: K ulp and K cond. A
// pointwise op must then be rounded correctly.
inline constexpr double kUndeclaredUlp = 4;
inline constexpr double kUndeclaredCondition = 4;

// A claim is loose where the measured maximum is below this part of the bound.
inline constexpr double kTightClaim = 0.25;

// Errors allowed to derivatives, which no clause declares: K ulp plus K times
// their own condition number |x f''(x) / f'(x)|.
inline constexpr double kDerivativeUlp = 16;
inline constexpr double kDerivativeCondition = 16;

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_SAMPLE_COUNTS_H_
