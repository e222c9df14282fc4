// Exact: a static real number of a rule, kept exact until one dtype asks for
// it.
//
// Rational arithmetic stays rational (GMP); roots, logarithms and the like are
// MPFR numbers of kExactBits bits. So `sqrt(1 / 2)` and `2 / pi` are rounded
// once, to the dtype of the place that they stand at.
//
//   Exact third = Exact(1) / Exact(3);
//   third.ToDouble();                       // nearest f64
//   Exact::Parse("1e-5")->ToString();       // "1e-05" exactly: 1/100000

#ifndef CLEAVE_OPS_EXACT_H_
#define CLEAVE_OPS_EXACT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ops/dtype.h"

struct __mpfr_struct;

namespace cleave {

// Bits of an irrational Exact.
inline constexpr int kExactBits = 320;
// Rationals whose numerator or denominator outgrows this many bits become
// irrational Exacts, so that no rule can exhaust memory.
inline constexpr int kMaxRationalBits = 4096;

class Exact {
 public:
  Exact();               // 0
  Exact(int64_t value);  // NOLINT: integers are exact numbers.
  // The value of a double, exactly; infinities and NaN included.
  static Exact FromDouble(double value);
  static Exact Infinity();
  static Exact NaN();
  static Exact Pi();
  // A decimal literal ("12", "0.1", "1e-5", "inf", "-inf", "nan"), or the text
  // of ToString; InvalidArgument otherwise.
  static absl::StatusOr<Exact> Parse(absl::string_view text);

  bool IsRational() const;
  bool IsInteger() const;  // a finite integer
  bool IsFinite() const;
  bool IsNaN() const;
  // The value where it is an integer that fits.
  std::optional<int64_t> ToInt64() const;
  // Rounded once, to nearest even.
  double ToDouble() const;
  // Rounded once to `dtype` (a float), returned as the double that holds it.
  double RoundTo(DType dtype) const;
  // Sets `out` (any precision, initialised) to the value, rounded to nearest.
  void ToMpfr(__mpfr_struct* out) const;
  // Canonical text that Parse reads back to the same value: an integer, a
  // shortest decimal where one is exact ("0.1"), "p/q", or "#<hex float>".
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
  static Exact Pow(const Exact& a, const Exact& b);
  // A pointwise function by the primitive's name ("sqrt", "log", "floor", ...);
  // nullopt where there is none of that name.
  static std::optional<Exact> Apply(absl::string_view function, const Exact& x);

  // Comparisons of a NaN are false, except !=.
  friend bool operator==(const Exact& a, const Exact& b);
  friend bool operator!=(const Exact& a, const Exact& b) { return !(a == b); }
  friend bool operator<(const Exact& a, const Exact& b);
  friend bool operator<=(const Exact& a, const Exact& b);

 private:
  struct Rep;
  std::shared_ptr<const Rep> rep_;
};

}  // namespace cleave

#endif  // CLEAVE_OPS_EXACT_H_
