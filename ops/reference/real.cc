#include "ops/reference/real.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/mpfr_cache.h"

namespace cleave {
namespace {

int PossibleBits(int bits) { return std::clamp(bits, 2, kMaxRealBits); }

void Init(mpfr_ptr value, int bits) {
  FreeMpfrCacheWithThread();
  mpfr_init2(value, bits);
  CountReals(1, bits);
}

}  // namespace

Real::Real(int bits) {
  Init(value_, PossibleBits(bits));
  mpfr_set_zero(value_, 1);
}

Real::Real(double value, int bits) {
  Init(value_, PossibleBits(bits));
  if (mpfr_set_d(value_, value, MPFR_RNDN) != 0) {
    exactness_ = Exactness::kRounded;
  }
}

Real::Real(const Exact& value, int bits) {
  Init(value_, PossibleBits(bits));
  mpfr_clear_inexflag();
  value.ToMpfr(value_);
  if (mpfr_inexflag_p() != 0) exactness_ = Exactness::kRounded;
}

Real::Real(const Real& other) : exactness_(other.exactness_) {
  Init(value_, other.bits());
  mpfr_set(value_, other.value_, MPFR_RNDN);
}

// A moved-from Real keeps a value of the least precision.
Real::Real(Real&& other) noexcept : exactness_(other.exactness_) {
  Init(value_, MPFR_PREC_MIN);
  mpfr_swap(value_, other.value_);
}

Real& Real::operator=(const Real& other) {
  if (this == &other) return *this;
  CountReals(-1, bits());
  CountReals(1, other.bits());
  mpfr_set_prec(value_, mpfr_get_prec(other.value_));
  mpfr_set(value_, other.value_, MPFR_RNDN);
  exactness_ = other.exactness_;
  return *this;
}

Real& Real::operator=(Real&& other) noexcept {
  mpfr_swap(value_, other.value_);
  std::swap(exactness_, other.exactness_);
  return *this;
}

Real::~Real() {
  CountReals(-1, bits());
  mpfr_clear(value_);
}

double Real::ToDouble() const { return mpfr_get_d(value_, MPFR_RNDN); }

double Real::RoundTo(DType dtype) const {
  if (!IsFloat(dtype)) return std::numeric_limits<double>::quiet_NaN();
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
  const int length =
      mpfr_asprintf(&text, "%.*Rg", std::clamp(digits, 1, 10000), value_);
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
    if (to == dtype) return discrete;
    return Tensor::Invalid(absl::InvalidArgumentError(
        absl::StrCat(DTypeName(dtype), " is not rounded to ", DTypeName(to))));
  }
  Tensor result(to, shape);
  if (result.valid() && result.size() != static_cast<int64_t>(reals.size())) {
    return Tensor::Invalid(absl::InvalidArgumentError(
        absl::StrCat(reals.size(), " reals for ", result.type().ToString())));
  }
  for (int64_t i = 0; i < result.size(); ++i) {
    result.SetDouble(i, reals[i].RoundTo(to));
  }
  return result;
}

}  // namespace cleave
