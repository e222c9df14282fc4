// Complex numbers at which rules are compared.

#ifndef CLEAVE_TESTING_CHECK_COMPLEX_POINTS_H_
#define CLEAVE_TESTING_CHECK_COMPLEX_POINTS_H_

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

// "1.5-2i", digits that read back.
std::string ComplexText(std::complex<double> z);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_COMPLEX_POINTS_H_
