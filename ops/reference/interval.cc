#include "ops/reference/interval.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/mpfr_thread.h"

namespace cleave {
namespace {

constexpr char kUndecided[] = "undecided: ";

void Init(mpfi_ptr value, int bits) {
  PrepareThreadForMpfr();
  mpfi_init2(value, std::clamp(bits, 2, kMaxRealBits));
  CountReals(2, static_cast<int>(mpfi_get_prec(value)));
}

std::string Text(const char* format, int digits, mpfr_srcptr value) {
  char* text = nullptr;
  const int length =
      mpfr_asprintf(&text, format, std::clamp(digits, 1, 10000), value);
  CLEAVE_CHECK(length >= 0) << "mpfr_asprintf";
  std::string result(text, length);
  mpfr_free_str(text);
  return result;
}

}  // namespace

RealInterval::RealInterval(int bits) {
  Init(value_, bits);
  mpfr_set_zero(low(), 1);
  mpfr_set_zero(high(), 1);
}

RealInterval::RealInterval(double value, int bits) {
  Init(value_, bits);
  EncloseRounded(mpfr_set_d(low(), value, MPFR_RNDN));
}

RealInterval::RealInterval(const Exact& value, int bits) {
  Init(value_, bits);
  value.Enclose(low(), high());
}

// Not by mpfi_set, which forgets the sign of a zero.
RealInterval::RealInterval(const RealInterval& other)
    : undecided_(other.undecided_) {
  Init(value_, other.bits());
  mpfr_set(low(), other.low(), MPFR_RNDN);
  mpfr_set(high(), other.high(), MPFR_RNDN);
}

// A moved-from RealInterval keeps a value of the least precision.
RealInterval::RealInterval(RealInterval&& other) noexcept
    : undecided_(other.undecided_) {
  Init(value_, MPFR_PREC_MIN);
  mpfr_set_zero(low(), 1);
  mpfr_set_zero(high(), 1);
  mpfi_swap(value_, other.value_);
}

RealInterval& RealInterval::operator=(const RealInterval& other) {
  if (this == &other) return *this;
  CountReals(-2, bits());
  CountReals(2, other.bits());
  mpfi_set_prec(value_, mpfi_get_prec(other.value_));
  mpfr_set(low(), other.low(), MPFR_RNDN);
  mpfr_set(high(), other.high(), MPFR_RNDN);
  undecided_ = other.undecided_;
  return *this;
}

RealInterval& RealInterval::operator=(RealInterval&& other) noexcept {
  mpfi_swap(value_, other.value_);
  std::swap(undecided_, other.undecided_);
  return *this;
}

RealInterval::~RealInterval() {
  CountReals(-2, bits());
  mpfi_clear(value_);
}

RealInterval RealInterval::Point(const Real& value) {
  RealInterval result(value.bits());
  mpfr_set(result.low(), value.get(), MPFR_RNDN);
  result.EncloseRounded(0);
  return result;
}

RealInterval RealInterval::NaN(int bits) {
  RealInterval result(bits);
  result.SetNaN();
  return result;
}

RealInterval RealInterval::Undecided(const char* why, int bits) {
  RealInterval result(bits);
  result.SetUndecided(why);
  return result;
}

bool RealInterval::IsPoint() const {
  if (!IsNumber() || !mpfr_equal_p(low(), high())) return false;
  return !mpfr_zero_p(low()) || mpfr_signbit(low()) == mpfr_signbit(high());
}

bool RealInterval::HasZero() const {
  return IsNumber() && mpfr_sgn(low()) <= 0 && mpfr_sgn(high()) >= 0;
}

bool RealInterval::HasInfinity() const {
  return undecided_ != nullptr || mpfr_inf_p(low()) != 0 ||
         mpfr_inf_p(high()) != 0;
}

bool RealInterval::Contains(const Real& value) const {
  if (undecided_ != nullptr) return true;
  if (IsNaN() || mpfr_nan_p(value.get())) {
    return IsNaN() && mpfr_nan_p(value.get());
  }
  return mpfr_lessequal_p(low(), value.get()) &&
         mpfr_lessequal_p(value.get(), high());
}

double RealInterval::KnownBits() const {
  if (undecided_ != nullptr) return 0;
  if (IsNaN() || mpfr_equal_p(low(), high())) {
    return std::numeric_limits<double>::infinity();
  }
  if (HasZero() || HasInfinity()) return 0;
  Real width(64);
  mpfr_sub(width.get(), high(), low(), MPFR_RNDU);
  mpfr_div(width.get(), width.get(), mpfr_sgn(low()) > 0 ? low() : high(),
           MPFR_RNDA);
  return std::max(0.0, 1.0 - static_cast<double>(mpfr_get_exp(width.get())));
}

std::string RealInterval::ToString(int digits) const {
  if (undecided_ != nullptr) return absl::StrCat(kUndecided, undecided_);
  if (IsNaN()) return "nan";
  return absl::StrCat("[", Text("%.*RDg", digits, low()), ", ",
                      Text("%.*RUg", digits, high()), "]");
}

void RealInterval::EncloseRounded(int ternary) {
  undecided_ = nullptr;
  mpfr_set(high(), low(), MPFR_RNDN);
  if (mpfr_nan_p(low())) return;
  if (ternary > 0) mpfr_nextbelow(low());
  if (ternary < 0) mpfr_nextabove(high());
}

void RealInterval::CheckBounds() {
  undecided_ = nullptr;
  if (mpfr_nan_p(low()) || mpfr_nan_p(high())) {
    SetUndecided("a bound has no value");
  } else if (mpfr_zero_p(low()) && mpfr_zero_p(high())) {
    mpfr_set_zero(low(), 1);  // of either sign
    mpfr_set_zero(high(), -1);
  }
}

void RealInterval::SetNaN() {
  undecided_ = nullptr;
  mpfr_set_nan(low());
  mpfr_set_nan(high());
}

void RealInterval::SetUndecided(const char* why) {
  undecided_ = why;
  mpfr_set_inf(low(), -1);
  mpfr_set_inf(high(), 1);
}

IntervalTensor IntervalTensor::FromTensor(const Tensor& tensor, int bits) {
  IntervalTensor result;
  result.dtype = tensor.dtype();
  result.shape = tensor.shape();
  if (!IsFloat(tensor.dtype())) {
    result.discrete = tensor;
    return result;
  }
  result.intervals.reserve(tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    result.intervals.emplace_back(tensor.GetDouble(i), bits);
  }
  return result;
}

bool IsUndecided(const absl::Status& status) {
  return status.code() == absl::StatusCode::kAborted &&
         absl::StrContains(status.message(), kUndecided);
}

absl::Status UndecidedError(absl::string_view why) {
  return absl::AbortedError(absl::StrCat(kUndecided, why));
}

}  // namespace cleave
