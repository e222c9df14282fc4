#include "ops/reference/real.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/mpfr_thread.h"

namespace cleave {
namespace {

int PossibleBits(int bits) { return std::clamp(bits, 2, kMaxRealBits); }

}  // namespace

Real::Number* Real::Make(int bits) {
  static_assert(sizeof(Number) % alignof(mp_limb_t) == 0);
  PrepareThreadForMpfr();
  CountReals(1, bits);
  void* const memory =
      ::operator new(sizeof(Number) + mpfr_custom_get_size(bits));
  Number* const number = new (memory) Number;
  mp_limb_t* const digits = reinterpret_cast<mp_limb_t*>(number + 1);
  mpfr_custom_init(digits, bits);
  mpfr_custom_init_set(number->value, MPFR_ZERO_KIND, 0, bits, digits);
  return number;
}

void Real::Drop(Number* number) {
  // Nobody else can begin to share what one alone owns.
  if (number->owners.load(std::memory_order_acquire) != 1 &&
      number->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  CountReals(-1, static_cast<int>(mpfr_get_prec(number->value)));
  number->~Number();
  ::operator delete(number);
}

void Real::Unshare() {
  Number* const shared = number_;
  number_ = Make(bits());
  const mpfr_ptr value = number_->value;
  void* const digits = mpfr_custom_get_significand(value);
  *value = *shared->value;
  mpfr_custom_move(value, digits);
  // The limbs of zeros, infinities and NaN mean nothing.
  if (mpfr_regular_p(value)) {
    std::memcpy(digits, mpfr_custom_get_significand(shared->value),
                mpfr_custom_get_size(bits()));
  }
  number_->exactness = shared->exactness;
  Drop(shared);
}

Real::Real(int bits) : number_(Make(PossibleBits(bits))) {}

Real::Real(double value, int bits) : Real(bits) {
  if (mpfr_set_d(number_->value, value, MPFR_RNDN) != 0) {
    number_->exactness = Exactness::kRounded;
  }
}

Real::Real(const Exact& value, int bits) : Real(bits) {
  mpfr_clear_inexflag();
  value.ToMpfr(number_->value);
  if (mpfr_inexflag_p() != 0) number_->exactness = Exactness::kRounded;
}

Real::Real(const Real& other) noexcept : number_(other.number_) {
  number_->owners.fetch_add(1, std::memory_order_relaxed);
}

Real& Real::operator=(const Real& other) noexcept {
  other.number_->owners.fetch_add(1, std::memory_order_relaxed);
  Drop(number_);
  number_ = other.number_;
  return *this;
}

Real::~Real() { Drop(number_); }

double Real::ToDouble() const { return mpfr_get_d(get(), MPFR_RNDN); }

double Real::RoundTo(DType dtype) const {
  if (!IsFloat(dtype)) return std::numeric_limits<double>::quiet_NaN();
  if (dtype == DType::kF64 || !mpfr_number_p(get())) return ToDouble();
  // By way of the double rounded to odd: the second rounding is the only one.
  double rounded = mpfr_get_d(get(), MPFR_RNDZ);
  uint64_t bits;
  std::memcpy(&bits, &rounded, sizeof bits);
  if ((bits & 1) == 0 && mpfr_cmp_d(get(), rounded) != 0) {
    rounded = std::nextafter(rounded, std::copysign(HUGE_VAL, rounded));
  }
  return RoundToDType(rounded, dtype);
}

std::string Real::ToString(int digits) const {
  char* text = nullptr;
  const int length =
      mpfr_asprintf(&text, "%.*Rg", std::clamp(digits, 1, 10000), get());
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
