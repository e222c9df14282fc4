// RealMemo: values of functions of MPFR numbers that were computed a moment
// ago. The derivatives of an op along many directions evaluate the same
// functions at the same points. Internal to ops.
//
//   RealMemo& memo = RealMemo::OfThread();
//   if (memo.Recall(Primitive::kLgamma, out, x, nullptr)) return;
//   mpfr_lgamma(..);
//   memo.Keep(Primitive::kLgamma, out, x, nullptr, inexact);

#ifndef CLEAVE_OPS_REFERENCE_REAL_MEMO_H_
#define CLEAVE_OPS_REFERENCE_REAL_MEMO_H_

#include <mpfr.h>

#include <cstddef>
#include <memory>

#include "ops/primitive.h"

namespace cleave {

// So many values, each in the place that its arguments choose: a later one
// takes the place of an earlier one.
class RealMemo {
 public:
  static RealMemo& OfThread();

  // Sets `out` to f(x), or f(m, x) where m is not null, if that is known to the
  // precision of `out`, and the inexact flag of MPFR if it was set by that
  // value. O(limbs).
  bool Recall(Primitive f, mpfr_ptr out, mpfr_srcptr x, mpfr_srcptr m) const;

  // Keeps the value. Only finite numbers other than 0, of at most kMaxLimbs
  // limbs, are kept.
  void Keep(Primitive f, mpfr_srcptr out, mpfr_srcptr x, mpfr_srcptr m,
            bool inexact);

 private:
  static constexpr size_t kEntries = 4096;
  static constexpr size_t kMaxLimbs = 10;

  struct Number {
    mpfr_prec_t bits = 0;  // 0: none
    mpfr_exp_t exponent = 0;
    int sign = 0;
    mp_limb_t limbs[kMaxLimbs];

    // False for what is not kept.
    bool Set(mpfr_srcptr x);
    bool Is(mpfr_srcptr x) const;
  };
  struct Entry {
    Primitive f = Primitive::kInput;
    Number x;
    Number m;  // without bits for a function of x alone
    Number value;
    bool inexact = false;
  };

  static size_t PlaceOf(Primitive f, mpfr_prec_t bits, mpfr_srcptr x,
                        mpfr_srcptr m);

  std::unique_ptr<Entry[]> entries_;  // null before the first is kept
};

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_REAL_MEMO_H_
