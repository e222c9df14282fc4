// The representation of Exacts, shared by the files of //ops:exact.

#ifndef CLEAVE_OPS_EXACT_INTERNAL_H_
#define CLEAVE_OPS_EXACT_INTERNAL_H_

#include <gmpxx.h>
#include <mpfr.h>

#include <functional>
#include <memory>
#include <utility>

#include "ops/exact.h"
#include "ops/mpfr_thread.h"

namespace cleave {

// Computes a number again, at the precision of `out`.
using Recompute = std::function<void(mpfr_ptr out)>;

// Either a rational in lowest terms, which may be a negative zero, or an MPFR
// number, never an MPFR zero.
struct Exact::Rep {
  explicit Rep(mpq_class value) : rational(true), q(std::move(value)) {}
  explicit Rep(mpfr_srcptr value) : rational(false) {
    PrepareThreadForMpfr();
    mpfr_init2(f, kExactBits);
    mpfr_set(f, value, MPFR_RNDN);
  }
  ~Rep() {
    if (!rational) mpfr_clear(f);
  }
  Rep(const Rep&) = delete;
  Rep& operator=(const Rep&) = delete;

  bool rational;
  bool negative_zero = false;  // then q is 0
  mpq_class q;
  mpfr_t f;
  // How f came about, which took so many operations; null if that is unknown.
  Recompute recompute;
  int operations = 0;
};

namespace internal_exact {

// Guard bits of the operands of an irrational operation.
inline constexpr int kGuardBits = 64;

class Mpfr {
 public:
  explicit Mpfr(int bits) {
    PrepareThreadForMpfr();
    mpfr_init2(value_, bits);
  }
  ~Mpfr() { mpfr_clear(value_); }
  Mpfr(const Mpfr&) = delete;
  Mpfr& operator=(const Mpfr&) = delete;
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

inline size_t Bits(const mpz_class& z) {
  return mpz_sizeinbase(z.get_mpz_t(), 2);
}

}  // namespace internal_exact

// Makes Exacts from results; the only place that decides the representation.
struct ExactBuilder {
  using Rep = Exact::Rep;

  static const Rep& Get(const Exact& x);
  static Exact FromRational(mpq_class q);
  // The result of arithmetic: every zero is 0.
  static Exact FromMpfr(mpfr_srcptr f);
  // The same, which `recompute` made of operands that took `operations`.
  static Exact FromMpfr(mpfr_srcptr f, int operations, Recompute recompute);
  // The value at `out`'s precision, of at most kExactBits where irrational.
  static void ToMpfr(const Exact& x, mpfr_ptr out);
  static Exact Zero(bool negative);
  // Bits of the operands of irrational operations: wide enough that a rational
  // such as 1 + 2^-300 keeps its distance from 1.
  static int OperandBits(const Exact& x);
  // The finite value as a rational of any size (|exponents| are bounded).
  static mpq_class ToRational(const Exact& x);

  template <typename RationalOp, typename MpfrOp>
  static Exact Binary(const Exact& a, const Exact& b, RationalOp rational_op,
                      MpfrOp mpfr_op) {
    const Rep& x = Get(a);
    const Rep& y = Get(b);
    if (x.rational && y.rational) return FromRational(rational_op(x.q, y.q));
    return Irrational(a, b, mpfr_op);
  }

  // The operation of MPFR on numbers of any kind.
  template <typename MpfrOp>
  static Exact Irrational(const Exact& a, const Exact& b, MpfrOp mpfr_op) {
    internal_exact::Mpfr left(OperandBits(a)), right(OperandBits(b)),
        result(kExactBits);
    ToMpfr(a, left.get());
    ToMpfr(b, right.get());
    mpfr_op(result.get(), left.get(), right.get(), MPFR_RNDN);
    return FromMpfr(result.get(), Get(a).operations + Get(b).operations,
                    [a, b, mpfr_op](mpfr_ptr out) {
                      const int bits = static_cast<int>(mpfr_get_prec(out));
                      internal_exact::Mpfr p(bits + OperandBits(a)),
                          q(bits + OperandBits(b));
                      a.ToMpfr(p.get());
                      b.ToMpfr(q.get());
                      mpfr_op(out, p.get(), q.get(), MPFR_RNDN);
                    });
  }

  // Ordering of two numbers, neither NaN.
  static int Cmp(const Exact& a, const Exact& b) {
    const Rep& x = Get(a);
    const Rep& y = Get(b);
    if (x.rational && y.rational) return cmp(x.q, y.q);
    if (x.rational) return -mpfr_cmp_q(y.f, x.q.get_mpq_t());
    if (y.rational) return mpfr_cmp_q(x.f, y.q.get_mpq_t());
    return mpfr_cmp(x.f, y.f);
  }

  static int Sign(const Exact& x) {
    const Rep& rep = Get(x);
    return rep.rational ? sgn(rep.q) : mpfr_sgn(rep.f);
  }

  // Also of a negative zero.
  static bool IsNegative(const Exact& x) {
    return Sign(x) < 0 || x.IsNegativeZero();
  }

  static bool IsInfinite(const Exact& x) {
    const Rep& rep = Get(x);
    return !rep.rational && mpfr_inf_p(rep.f);
  }

  static absl::StatusOr<Exact> ParseDecimal(absl::string_view text);
  static absl::StatusOr<Exact> ParseHex(absl::string_view text);
};

}  // namespace cleave

#endif  // CLEAVE_OPS_EXACT_INTERNAL_H_
