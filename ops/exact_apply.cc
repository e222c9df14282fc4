// The pointwise functions of Exact, by the names of the primitives.

#include <mpfr.h>

#include "ops/exact.h"
#include "ops/exact_internal.h"
#include "ops/mpfr_thread.h"

namespace cleave {
namespace {

using MpfrFunction = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);

// log |Gamma(x)|
int Lgamma(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t round) {
  int sign = 0;
  return mpfr_lgamma(result, &sign, x, round);
}

// 1 / (1 + exp(-x)): nothing cancels, so that guard bits suffice.
int Sigmoid(mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t round) {
  mpfr_t denominator;
  mpfr_init2(denominator, mpfr_get_prec(result) + 64);
  mpfr_neg(denominator, x, MPFR_RNDN);
  mpfr_exp(denominator, denominator, MPFR_RNDN);
  mpfr_add_ui(denominator, denominator, 1, MPFR_RNDN);
  const int inexact = mpfr_ui_div(result, 1, denominator, round);
  mpfr_clear(denominator);
  return inexact;
}

struct NamedFunction {
  const char* name;
  MpfrFunction function;
};

constexpr NamedFunction kTranscendental[] = {
    {"exp", mpfr_exp},     {"expm1", mpfr_expm1}, {"log", mpfr_log},
    {"log1p", mpfr_log1p}, {"sin", mpfr_sin},     {"cos", mpfr_cos},
    {"tan", mpfr_tan},     {"asin", mpfr_asin},   {"acos", mpfr_acos},
    {"atan", mpfr_atan},   {"sinh", mpfr_sinh},   {"cosh", mpfr_cosh},
    {"tanh", mpfr_tanh},   {"asinh", mpfr_asinh}, {"acosh", mpfr_acosh},
    {"atanh", mpfr_atanh}, {"erf", mpfr_erf},     {"erfc", mpfr_erfc},
    {"lgamma", Lgamma},    {"sigmoid", Sigmoid},
};

Exact ApplyMpfr(MpfrFunction function, const Exact& x) {
  // A fraction such as 1 + 3^-200 keeps its distance from 1 only at a precision
  // that rationals can need in full.
  constexpr int kShort = kExactBits + internal_exact::kGuardBits;
  constexpr int kFull = kExactBits + 2 * kMaxRationalBits;
  internal_exact::Mpfr argument(kShort), result(kExactBits);
  ExactBuilder::ToMpfr(x, argument.get());
  if (x.IsFinite() && Exact::FromMpfr(argument.get()) != x) {
    mpfr_set_prec(argument.get(), kFull);
    ExactBuilder::ToMpfr(x, argument.get());
  }
  function(result.get(), argument.get(), MPFR_RNDN);
  // The sign of a zero stays.
  if (mpfr_zero_p(result.get())) return Exact::FromMpfr(result.get());
  return ExactBuilder::FromMpfr(
      result.get(), ExactBuilder::Get(x).operations,
      [function, x](mpfr_ptr out) {
        const int bits = static_cast<int>(mpfr_get_prec(out));
        internal_exact::Mpfr wide(bits + ExactBuilder::OperandBits(x));
        x.ToMpfr(wide.get());
        function(out, wide.get(), MPFR_RNDN);
      });
}

Exact Floor(const Exact& x) { return Exact::FloorDiv(x, 1); }

Exact RoundNearestEven(const Exact& x) {
  const Exact floor = Floor(x);
  const Exact twice = (x - floor) * Exact(2);
  const bool odd = Exact::FloorMod(floor, 2) == Exact(1);
  const bool up = Exact(1) < twice || (twice == Exact(1) && odd);
  return up ? floor + Exact(1) : floor;
}

Exact Cbrt(const Exact& x) {
  const Exact third = Exact(1) / Exact(3);
  return x < Exact(0) ? -Exact::Pow(-x, third) : Exact::Pow(x, third);
}

// f(-0) of the functions below, as in ops/README.md; nullopt for other names.
std::optional<Exact> AtNegativeZero(absl::string_view function,
                                    const Exact& zero) {
  for (const char* odd :
       {"sign", "floor", "ceil", "round_nearest_even", "sqrt", "cbrt"}) {
    if (function == odd) return zero;
  }
  if (function == "abs" || function == "neg") return Exact(0);
  if (function == "rsqrt") return -Exact::Infinity();
  return std::nullopt;
}

}  // namespace

std::optional<Exact> Exact::Apply(absl::string_view function, const Exact& x) {
  for (const NamedFunction& known : kTranscendental) {
    if (function == known.name) return ApplyMpfr(known.function, x);
  }
  if (x.IsNegativeZero()) return AtNegativeZero(function, x);
  const bool negative = x < Exact(0);
  if (function == "neg") return -x;
  if (function == "abs") return negative ? -x : x;
  if (function == "sign") {
    if (x.IsNaN()) return x;
    return Exact(negative ? -1 : x == Exact(0) ? 0 : 1);
  }
  if (function == "floor") return x.IsFinite() ? Floor(x) : x;
  if (function == "ceil") return x.IsFinite() ? -Floor(-x) : x;
  if (function == "round_nearest_even") {
    return x.IsFinite() ? RoundNearestEven(x) : x;
  }
  if (function == "sqrt" || function == "rsqrt") {
    if (negative) return NaN();
    const Exact half = Exact(1) / Exact(2);
    return Pow(x, function == "sqrt" ? half : -half);
  }
  if (function == "cbrt") return Cbrt(x);
  return std::nullopt;
}

}  // namespace cleave
