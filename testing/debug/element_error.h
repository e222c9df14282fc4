// How far an element that was computed is from its exact value.

#ifndef CLEAVE_TESTING_DEBUG_ELEMENT_ERROR_H_
#define CLEAVE_TESTING_DEBUG_ELEMENT_ERROR_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ops/dtype.h"
#include "ops/reference/real.h"
#include "ops/tensor.h"
#include "testing/debug/node_values.h"

namespace cleave {

// All are infinite where one value is NaN or infinite and the other is not, and
// where discrete values differ.
struct ElementError {
  // In units in the last place of the exact value; 0 for an infinity that the
  // exact value rounds to.
  double ulp = 0;
  // As a part of the exact value, in units of the dtype's eps. Unlike `ulp` it
  // tells a number that underflowed, and one that overflowed, from a right one.
  double relative = 0;
  double absolute = 0;

  static ElementError Infinite() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return {kInfinity, kInfinity, kInfinity};
  }
};

// |a - b| / |b| in units of eps.
double RelativeError(const Real& a, const Real& b, DType dtype);

// |a - b| in units in the last place of b; infinite where one is NaN or
// infinite and the other is not.
double UlpsBetween(const Real& a, const Real& b, DType dtype);

// Nullopt where the exact value is not known: unsettled, or of another shape.
std::optional<ElementError> ErrorOf(const NodeValue& node, int result,
                                    int64_t element);

// The same for a value of its own, which `computed` should be.
ElementError ErrorOf(const RealTensor& exact, const Tensor& computed,
                     int64_t element);

// The element with the largest error, the first of equals; nullopt where there
// is none whose error is known.
std::optional<int64_t> WorstElement(const NodeValue& node, int result);

// Element `i` alone, as a scalar.
Tensor ElementOf(const Tensor& tensor, int64_t i);

// Element `i` as text: the shortest that reads back; of reals so many digits
// that the next float of their dtype differs by 1000 units of the last one.
std::string ElementText(const Tensor& tensor, int64_t i);
std::string ElementText(const RealTensor& tensor, int64_t i);

// In ULP, `12.3`; `overflow` and `underflow` where that tells nothing.
std::string ErrorText(const ElementError& error);
// `12.3`, `1.5e+07`, `inf`.
std::string ErrorText(double error);

// The indices of element number `element`, row-major: 5 of [2, 3] is (1, 2).
std::vector<int64_t> IndexOf(const std::vector<int64_t>& shape,
                             int64_t element);

// The largest finite number and the smallest normal one.
double LargestFinite(DType dtype);
double SmallestNormal(DType dtype);

}  // namespace cleave

#endif  // CLEAVE_TESTING_DEBUG_ELEMENT_ERROR_H_
