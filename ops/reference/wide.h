// Wide: a float of at least 113 bits and 15 exponent bits, in which a product
// of two f64 is exact and no sum of f64 overflows. Internal to ops.

#ifndef CLEAVE_OPS_REFERENCE_WIDE_H_
#define CLEAVE_OPS_REFERENCE_WIDE_H_

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "ops/dtype.h"
#include "ops/tensor.h"

namespace cleave {

#if LDBL_MANT_DIG >= 113
using Wide = long double;
#else
__extension__ typedef __float128 Wide;
#endif

// `value` rounded once to `dtype`, as the double that holds it. A narrow dtype
// is reached through the double rounded to odd, which leaves the second
// rounding as if it were the only one.
template <typename Float>
double RoundOnce(Float value, DType dtype) {
  double rounded = static_cast<double>(value);
  if (dtype == DType::kF64) return rounded;
  if (std::isfinite(rounded)) {
    const Float error = value - static_cast<Float>(rounded);
    uint64_t bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    if (error != 0 && (bits & 1) == 0) {
      rounded = std::nextafter(
          rounded, error > 0 ? std::numeric_limits<double>::infinity()
                             : -std::numeric_limits<double>::infinity());
    }
  }
  return RoundToDType(rounded, dtype);
}

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_WIDE_H_
