// Exact: a static real number of a rule, kept exact until one dtype asks for
// it.
//
// Rational arithmetic stays rational (GMP); roots, logarithms and the like are
// MPFR numbers of kExactBits bits. So `sqrt(1 / 2)` and `2 / pi` are rounded
// once, to the dtype of the place that they stand at. Who wants more bits has
// them computed again, from what made the number: `sin(2 * pi)` has no place
// from which on its digits are wrong.
//
//   Exact third = Exact(1) / Exact(3);
//   third.ToDouble();                       // nearest f64
//   Exact::Parse("1e-5")->ToString();       // "1e-05" exactly: 1/100000
//
// Zeros. Arithmetic is that of the real numbers, whose zero has no sign: -(0)
// and 0 * -5 are 0. A negative zero is a value of its own, which somebody gave
// (the attribute -0.0 of a call). It equals 0, and passes through arithmetic as
// in IEEE 754:
//
//   const Exact zero = Exact::FromDouble(-0.0);
//   zero == Exact(0);                       // true, but not IsSame
//   zero * 5;                               // -0
//   Exact(5) / zero;                        // -inf
//   zero + 0;                               // 0

#ifndef CLEAVE_OPS_EXACT_H_
#define CLEAVE_OPS_EXACT_H_

#include <mpfr.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/dtype.h"

namespace cleave {

// Bits of an irrational Exact.
inline constexpr int kExactBits = 320;
// An irrational Exact that more operations than these made has kExactBits
// bits, and no more.
inline constexpr int kMaxExactOperations = 64;
// Rationals whose numerator or denominator outgrows this many bits become
// irrational Exacts, so that no rule can exhaust memory.
inline constexpr int kMaxRationalBits = 4096;
// Irrational Exacts of at least 2^kMaxExactExponent are infinite, those below
// its reciprocal are 0: far outside every dtype, and cheap to compute with.
inline constexpr int kMaxExactExponent = 65536;

class Exact {
 public:
  Exact();               // 0
  Exact(int64_t value);  // NOLINT: integers are exact numbers.
  // The value of a double, exactly; infinities, NaN and -0.0 included.
  static Exact FromDouble(double value);
  // An MPFR number, rounded to kExactBits; a short one becomes rational. The
  // sign of a zero stays.
  static Exact FromMpfr(mpfr_srcptr value);
  static Exact Infinity();
  static Exact NaN();
  static Exact Pi();
  // A decimal literal ("12", "0.1", "1e-5", "inf", "-inf", "nan"), or the text
  // of ToString; InvalidArgument otherwise. The integer "-0" is 0, decimals
  // such as "-0.0" are the negative zero.
  static absl::StatusOr<Exact> Parse(absl::string_view text);

  bool IsRational() const;
  bool IsInteger() const;  // a finite integer
  bool IsFinite() const;
  bool IsNaN() const;
  bool IsNegativeZero() const;  // rational, and an integer
  // The value where it is an integer that fits.
  std::optional<int64_t> ToInt64() const;
  // Rounded once, to nearest even.
  double ToDouble() const;
  // Rounded once to `dtype`, returned as the double that holds it; subnormal
  // results are exact roundings too, overflow is infinite, and a negative
  // number that underflows is -0. NaN for a dtype that is no float.
  double RoundTo(DType dtype) const;
  // Sets `out` (any precision, initialised) to the value, rounded to nearest.
  // Beyond kExactBits an irrational is computed again, each operation at the
  // precision of `out`.
  void ToMpfr(mpfr_ptr out) const;
  // Sets bounds of the value, initialised and of one precision. They are equal
  // where it is a number of that precision, or none (infinite, NaN).
  void Enclose(mpfr_ptr low, mpfr_ptr high) const;
  // Canonical text that Parse reads back to the same value: an integer, a
  // decimal where an exact one is short ("0.1"), "p/q", "inf", "-inf", "nan",
  // "-0.0", or "#<hex float>" of an irrational.
  std::string ToString() const;

  Exact operator-() const;
  friend Exact operator+(const Exact& a, const Exact& b);
  friend Exact operator-(const Exact& a, const Exact& b);
  friend Exact operator*(const Exact& a, const Exact& b);
  // x / 0 is a signed infinity or NaN, as in IEEE arithmetic.
  friend Exact operator/(const Exact& a, const Exact& b);
  // Floor division and its remainder (the divisor's sign); NaN if b is 0.
  static Exact FloorDiv(const Exact& a, const Exact& b);
  static Exact FloorMod(const Exact& a, const Exact& b);
  // Exact where a rational result is small: 2^10, (9/4)^(1/2). x^0 is 1, 0^-1
  // is inf, a negative base with a fractional exponent gives NaN.
  static Exact Pow(const Exact& a, const Exact& b);
  // A pointwise function by the primitive's name ("sqrt", "log", "floor", ...);
  // nullopt where there is none of that name.
  static std::optional<Exact> Apply(absl::string_view function, const Exact& x);

  // Numeric: -0 equals 0. Comparisons of a NaN are false, except !=.
  friend bool operator==(const Exact& a, const Exact& b);
  friend bool operator!=(const Exact& a, const Exact& b) { return !(a == b); }
  friend bool operator<(const Exact& a, const Exact& b);
  friend bool operator<=(const Exact& a, const Exact& b);
  // Whether one may stand for the other: NaNs are the same, -0 and 0 are not.
  // For identities: keys of caches, attributes of nodes.
  friend bool IsSame(const Exact& a, const Exact& b);

 private:
  struct Rep;
  friend struct ExactBuilder;
  std::shared_ptr<const Rep> rep_;  // null for 0
};

bool IsSame(const Exact& a, const Exact& b);

}  // namespace cleave

#endif  // CLEAVE_OPS_EXACT_H_
