// Complex numbers at which rules are compared.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_COMPLEX_POINTS_H_
#define CLEAVE_TESTING_CHECK_LAYERS_COMPLEX_POINTS_H_

#include <array>
#include <complex>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ops/tensor.h"

namespace cleave {

// A number whose parts are of either sign and between 1/4 and 2: away from the
// axes, where branch cuts are, and not large.
std::complex<double> ComplexPoint(std::mt19937_64& random);

// A c128 tensor of such numbers.
Tensor ComplexTensor(const std::vector<int64_t>& shape,
                     std::mt19937_64& random);

// The slope of a function along a direction by differences of four points,
// which are exact but for the fifth derivative, and by those of half the step:
// where the two are not the same, there is no slope.
struct ComplexSlope {
  std::complex<double> coarse;
  std::complex<double> fine;
};

// The points, in steps from where the slope is taken.
inline constexpr std::array<double, 6> kSlopePoints = {1, -1, 2, -2, 0.5, -0.5};

// At element `element`; `values[i]` is the function at kSlopePoints[i] * step.
ComplexSlope SlopeAt(const std::vector<Tensor>& values, int64_t element,
                     double step);

// x + step * direction, of real or complex numbers.
Tensor MovedAlong(const Tensor& x, const Tensor& direction, double step);

// "1.5-2i", digits that read back.
std::string ComplexText(std::complex<double> z);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_COMPLEX_POINTS_H_
