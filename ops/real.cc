#include "ops/real.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "ops/check.h"

namespace cleave {

Real::Real(int bits) {
  mpfr_init2(value_, bits);
  mpfr_set_zero(value_, 1);
}

Real::Real(double value, int bits) {
  mpfr_init2(value_, bits);
  mpfr_set_d(value_, value, MPFR_RNDN);
}

Real::Real(const Exact& value, int bits) {
  mpfr_init2(value_, bits);
  value.ToMpfr(value_);
}

Real::Real(const Real& other) {
  mpfr_init2(value_, mpfr_get_prec(other.value_));
  mpfr_set(value_, other.value_, MPFR_RNDN);
}

// A moved-from Real keeps a value of the least precision.
Real::Real(Real&& other) noexcept {
  mpfr_init2(value_, MPFR_PREC_MIN);
  mpfr_swap(value_, other.value_);
}

Real& Real::operator=(const Real& other) {
  if (this == &other) return *this;
  mpfr_set_prec(value_, mpfr_get_prec(other.value_));
  mpfr_set(value_, other.value_, MPFR_RNDN);
  return *this;
}

Real& Real::operator=(Real&& other) noexcept {
  mpfr_swap(value_, other.value_);
  return *this;
}

Real::~Real() { mpfr_clear(value_); }

double Real::ToDouble() const { return mpfr_get_d(value_, MPFR_RNDN); }

double Real::RoundTo(DType dtype) const {
  CLEAVE_CHECK(IsFloat(dtype)) << DTypeName(dtype);
  if (dtype == DType::kF64 || !mpfr_number_p(value_)) return ToDouble();
  // By way of the double rounded to odd: the second rounding is the only one.
  double rounded = mpfr_get_d(value_, MPFR_RNDZ);
  uint64_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  if ((bits & 1) == 0 && mpfr_cmp_d(value_, rounded) != 0) {
    rounded = std::nextafter(rounded, std::copysign(HUGE_VAL, rounded));
  }
  return RoundToDType(rounded, dtype);
}

std::string Real::ToString(int digits) const {
  char* text = nullptr;
  const int length = mpfr_asprintf(&text, "%.*Rg", digits, value_);
  CLEAVE_CHECK(length >= 0) << "mpfr_asprintf";
  std::string result(text, length);
  mpfr_free_str(text);
  return result;
}

RealTensor RealTensor::FromTensor(const Tensor& tensor, int bits) {
  RealTensor result;
  result.dtype = tensor.dtype();
  result.shape = tensor.shape();
  if (!IsFloat(tensor.dtype())) {
    result.discrete = tensor;
    return result;
  }
  result.reals.reserve(tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    result.reals.emplace_back(tensor.GetDouble(i), bits);
  }
  return result;
}

Tensor RealTensor::RoundTo(DType to) const {
  if (!IsFloat(dtype)) {
    CLEAVE_CHECK(to == dtype) << DTypeName(dtype) << " to " << DTypeName(to);
    return discrete;
  }
  Tensor result(to, shape);
  for (int64_t i = 0; i < result.size(); ++i) {
    result.SetDouble(i, reals[i].RoundTo(to));
  }
  return result;
}

}  // namespace cleave
