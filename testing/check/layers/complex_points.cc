#include "testing/check/layers/complex_points.h"

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

ComplexSlope SlopeAt(const std::vector<Tensor>& values, int64_t element,
                     double step) {
  const auto at = [&](int point) { return values[point].GetComplex(element); };
  return {(8.0 * (at(0) - at(1)) - (at(2) - at(3))) / (12 * step),
          (8.0 * (at(4) - at(5)) - (at(0) - at(1))) / (6 * step)};
}

Tensor MovedAlong(const Tensor& x, const Tensor& direction, double step) {
  Tensor moved(x.dtype(), x.shape());
  for (int64_t i = 0; i < x.size(); ++i) {
    const std::complex<double> value =
        x.GetComplex(i) + step * direction.GetComplex(i);
    if (IsComplex(x.dtype())) {
      moved.SetComplex(i, value);
    } else {
      moved.SetDouble(i, value.real());
    }
  }
  return moved;
}

std::string ComplexText(std::complex<double> z) {
  return absl::StrFormat("%.17g%+.17gi", z.real(), z.imag());
}

}  // namespace cleave
