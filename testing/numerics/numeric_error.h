// NumericError: the distance of a numeric from the function that it stands for,
// in ULP.
//
//   NumericError worst;
//   MeasureError(Primitive::kExp, points, results, &worst);
//   worst.ToString();   // 0.89 ulp at -5.84864 (..): got .., expected ..

#ifndef CLEAVE_TESTING_NUMERICS_NUMERIC_ERROR_H_
#define CLEAVE_TESTING_NUMERICS_NUMERIC_ERROR_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ops/primitive.h"
#include "ops/tensor.h"

namespace cleave {

// The largest error seen, and where.
struct NumericError {
  double ulp = -1;  // infinity for a wrong special value or sign of zero
  std::vector<double> at;
  double got = 0;
  double expected = 0;  // to double
  std::string ToString() const;
};

// Raises `worst` to the error of `results` as the values of a pointwise
// primitive at `operands`: against MPFR, in ULP of the results' dtype. A zero
// has the sign that the reference gives it.
absl::Status MeasureError(Primitive primitive,
                          absl::Span<const Tensor> operands,
                          const Tensor& results, NumericError* worst);

}  // namespace cleave

#endif  // CLEAVE_TESTING_NUMERICS_NUMERIC_ERROR_H_
