#include "testing/check/complex_points.h"

#include "absl/strings/str_format.h"

namespace cleave {

std::complex<double> ComplexPoint(std::mt19937_64& random) {
  // Thousandths, which are short to read.
  std::uniform_int_distribution<int> size(250, 2000);
  const double real = size(random) / 1000.0;
  const double imag = size(random) / 1000.0;
  const uint64_t signs = random();
  return {signs % 2 == 0 ? real : -real, signs / 2 % 2 == 0 ? imag : -imag};
}

Tensor ComplexTensor(const std::vector<int64_t>& shape,
                     std::mt19937_64& random) {
  Tensor tensor(DType::kC128, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetComplex(i, ComplexPoint(random));
  }
  return tensor;
}

std::string ComplexText(std::complex<double> z) {
  return absl::StrFormat("%.17g%+.17gi", z.real(), z.imag());
}

}  // namespace cleave
