#include "ops/reference/real_memo.h"

#include <cstdint>
#include <cstring>

namespace cleave {
namespace {

size_t LimbsOf(mpfr_prec_t bits) {
  return mpfr_custom_get_size(bits) / sizeof(mp_limb_t);
}

const mp_limb_t* DigitsOf(mpfr_srcptr x) {
  return static_cast<const mp_limb_t*>(
      mpfr_custom_get_significand(const_cast<mpfr_ptr>(x)));
}

uint64_t Mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 29);
}

uint64_t Mixed(uint64_t hash, mpfr_srcptr x) {
  hash = Mixed(hash, static_cast<uint64_t>(mpfr_get_exp(x)) * 2 +
                         (mpfr_signbit(x) != 0));
  const size_t limbs = LimbsOf(mpfr_get_prec(x));
  for (size_t i = 0; i < limbs; ++i) hash = Mixed(hash, DigitsOf(x)[i]);
  return hash;
}

}  // namespace

bool RealMemo::Number::Set(mpfr_srcptr x) {
  bits = 0;
  const size_t count = LimbsOf(mpfr_get_prec(x));
  if (!mpfr_regular_p(x) || count > kMaxLimbs) return false;
  bits = mpfr_get_prec(x);
  exponent = mpfr_get_exp(x);
  sign = mpfr_signbit(x) != 0 ? -1 : 1;
  std::memcpy(limbs, DigitsOf(x), count * sizeof(mp_limb_t));
  return true;
}

bool RealMemo::Number::Is(mpfr_srcptr x) const {
  return bits == mpfr_get_prec(x) && mpfr_regular_p(x) &&
         exponent == mpfr_get_exp(x) && (sign < 0) == (mpfr_signbit(x) != 0) &&
         std::memcmp(limbs, DigitsOf(x), LimbsOf(bits) * sizeof(mp_limb_t)) ==
             0;
}

RealMemo& RealMemo::OfThread() {
  static thread_local RealMemo memo;
  return memo;
}

size_t RealMemo::PlaceOf(Primitive f, mpfr_prec_t bits, mpfr_srcptr x,
                         mpfr_srcptr m) {
  uint64_t hash = Mixed(static_cast<uint64_t>(f), static_cast<uint64_t>(bits));
  hash = Mixed(hash, x);
  if (m != nullptr && mpfr_regular_p(m)) hash = Mixed(hash, m);
  return hash % kEntries;
}

bool RealMemo::Recall(Primitive f, mpfr_ptr out, mpfr_srcptr x,
                      mpfr_srcptr m) const {
  if (entries_ == nullptr || !mpfr_regular_p(x)) return false;
  const Entry& entry = entries_[PlaceOf(f, mpfr_get_prec(out), x, m)];
  if (entry.f != f || entry.value.bits != mpfr_get_prec(out) ||
      !entry.x.Is(x) || (m == nullptr ? entry.m.bits != 0 : !entry.m.Is(m))) {
    return false;
  }
  mpfr_t value;
  mpfr_custom_init_set(value, entry.value.sign * MPFR_REGULAR_KIND,
                       entry.value.exponent, entry.value.bits,
                       const_cast<mp_limb_t*>(entry.value.limbs));
  mpfr_set(out, value, MPFR_RNDN);  // of as many bits: exact
  if (entry.inexact) mpfr_set_inexflag();
  return true;
}

void RealMemo::Keep(Primitive f, mpfr_srcptr out, mpfr_srcptr x, mpfr_srcptr m,
                    bool inexact) {
  if (!mpfr_regular_p(x)) return;
  if (entries_ == nullptr) entries_ = std::make_unique<Entry[]>(kEntries);
  Entry& entry = entries_[PlaceOf(f, mpfr_get_prec(out), x, m)];
  entry.m.bits = 0;
  const bool kept = entry.x.Set(x) && entry.value.Set(out) &&
                    (m == nullptr || entry.m.Set(m));
  entry.f = kept ? f : Primitive::kInput;
  entry.inexact = inexact;
}

}  // namespace cleave
