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
#include "ops/mpfr_thread.h"

namespace cleave {
namespace {

int PossibleBits(int bits) { return std::clamp(bits, 2, kMaxRealBits); }

}  // namespace

void Real::Allocate(int bits) {
  PrepareThreadForMpfr();
  CountReals(1, bits);
  const size_t limbs = mpfr_custom_get_size(bits) / sizeof(mp_limb_t);
  beyond_.reset(limbs <= kOwnLimbs ? nullptr : new mp_limb_t[limbs]);
  mp_limb_t* const digits = beyond_ == nullptr ? limbs_ : beyond_.get();
  mpfr_custom_init(digits, bits);
  mpfr_custom_init_set(value_, MPFR_ZERO_KIND, 0, bits, digits);
}

void Real::CopyValue(const Real& other) {
  void* const digits = mpfr_custom_get_significand(value_);
  const mpfr_ptr value = value_;
  *value = *other.get();
  mpfr_custom_move(value, digits);
  // The limbs of zeros, infinities and NaN mean nothing.
  if (mpfr_regular_p(value)) {
    std::memcpy(digits, mpfr_custom_get_significand(other.value_),
                mpfr_custom_get_size(bits()));
  }
  exactness_ = other.exactness_;
}

Real::Real(int bits) { Allocate(PossibleBits(bits)); }

Real::Real(double value, int bits) {
  Allocate(PossibleBits(bits));
  if (mpfr_set_d(value_, value, MPFR_RNDN) != 0) {
    exactness_ = Exactness::kRounded;
  }
}

Real::Real(const Exact& value, int bits) {
  Allocate(PossibleBits(bits));
  mpfr_clear_inexflag();
  value.ToMpfr(value_);
  if (mpfr_inexflag_p() != 0) exactness_ = Exactness::kRounded;
}

Real::Real(const Real& other) {
  Allocate(other.bits());
  CopyValue(other);
}

// A moved-from Real keeps its value, or zero of the least precision.
Real::Real(Real&& other) noexcept {
  const bool has_beyond = other.beyond_ != nullptr;
  Allocate(has_beyond ? MPFR_PREC_MIN : other.bits());
  if (has_beyond) {
    *this = std::move(other);
  } else {
    CopyValue(other);
  }
}

Real& Real::operator=(const Real& other) {
  if (this == &other) return *this;
  if (bits() != other.bits()) {
    CountReals(-1, bits());
    Allocate(other.bits());
  }
  CopyValue(other);
  return *this;
}

Real& Real::operator=(Real&& other) noexcept {
  if (this == &other) return *this;
  if (other.beyond_ == nullptr) return *this = other;
  CountReals(-1, bits());
  beyond_ = std::move(other.beyond_);
  *get() = *other.get();
  exactness_ = other.exactness_;
  other.Allocate(MPFR_PREC_MIN);
  return *this;
}

Real::~Real() { CountReals(-1, bits()); }

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
