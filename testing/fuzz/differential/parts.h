// Tensors of inexact dtypes as lists of real numbers: a complex number is two
// parts.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_PARTS_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_PARTS_H_

#include <complex>
#include <cstdint>

#include "ops/tensor.h"

namespace cleave::fuzz {

inline bool IsInexact(DType dtype) {
  return IsFloat(dtype) || IsComplex(dtype);
}

inline int PartsOf(DType dtype) { return IsComplex(dtype) ? 2 : 1; }

inline int64_t Parts(const Tensor& tensor) {
  return tensor.size() * PartsOf(tensor.dtype());
}

inline double GetPart(const Tensor& tensor, int64_t i) {
  if (!IsComplex(tensor.dtype())) return tensor.GetDouble(i);
  const std::complex<double> value = tensor.GetComplex(i / 2);
  return i % 2 == 0 ? value.real() : value.imag();
}

inline void SetPart(Tensor& tensor, int64_t i, double part) {
  if (!IsComplex(tensor.dtype())) return tensor.SetDouble(i, part);
  const std::complex<double> old = tensor.GetComplex(i / 2);
  tensor.SetComplex(i / 2, i % 2 == 0 ? std::complex<double>(part, old.imag())
                                      : std::complex<double>(old.real(), part));
}

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_PARTS_H_
