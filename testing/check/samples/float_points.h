// The floats of a dtype as points on a line: their order, their distance in
// ULP, grids and special values.
//
//   Ordinal(1.0, DType::kF32);             // 0x3f800000
//   UlpError(Real(0.1, 256), 0.1f, DType::kF32);   // 0.4 or so

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_FLOAT_POINTS_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_FLOAT_POINTS_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ops/dtype.h"
#include "ops/reference/real.h"

namespace cleave {

// The exponent of the smallest normal number: -126 of f32.
int MinExponent(DType dtype);

// The number of a float of `dtype` in ascending order: 0 for both zeros, odd
// (Ordinal(-x) is -Ordinal(x)), MaxOrdinal + 1 for infinity. Not of NaN.
int64_t Ordinal(double value, DType dtype);
double FromOrdinal(int64_t ordinal, DType dtype);
// The ordinal of the largest finite value.
int64_t MaxOrdinal(DType dtype);

// |got - expected| in units in the last place of `expected` in `dtype` (of the
// smallest normal number where that is larger). Infinity where one is NaN and
// the other is not, or where an infinity meets a number that does not round to
// it; an infinity for a number that overflows counts as 2^(emax + 1).
double UlpError(const Real& expected, double got, DType dtype);

// The distance of 1 and the next float.
double EpsOf(DType dtype);

// |got - expected| / EpsOf(dtype); UlpError where one is not finite.
double EpsError(const Real& expected, double got, DType dtype);

// The unit near `at` as a power of two: -52 at 1 in f64. 0 for what is not
// finite.
int64_t UnitExponent(const Real& at, DType dtype);

// |difference| in the same units, those of a float near `at`. Both are finite.
double UlpsOf(const Real& difference, const Real& at, DType dtype);

// +-0, +-inf, NaN, denormals, the ends of the normal range, and small numbers.
std::vector<double> SpecialValues(DType dtype);

// `constants` and their neighbours, rounded to the dtype.
std::vector<double> GuardValues(const std::vector<double>& constants,
                                DType dtype);

// Numbers some sixteenths to either side of `constants`, and their negatives:
// what a branch gives away from its border.
std::vector<double> ValuesBeside(const std::vector<double>& constants,
                                 DType dtype);

// `count` values between the infinities whose ordinals are evenly spaced, each
// moved by a random part of a step.
std::vector<double> UlpUniformGrid(DType dtype, int64_t count,
                                   std::mt19937_64& random);

// All 65,536 values of a 16-bit dtype; one NaN stands for all.
std::vector<double> AllValues(DType dtype);

// Decimal that reads back, then hexadecimal: `0.1 (0x1.99999ap-4)`.
std::string FloatToString(double value, DType dtype);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_FLOAT_POINTS_H_
