// RealInterval: a number that is known to lie between two others. EvalInterval:
// an enclosure of what a primitive means over the reals. EvalReal gives one
// number whose error nobody bounds; its value lies within the enclosure but for
// that error, so that each of the two evaluations checks the other.
//
//   const IntervalTensor x = IntervalTensor::FromTensor(tensor, 256);
//   absl::StatusOr<std::vector<IntervalTensor>> y =
//       EvalInterval(Primitive::kExp, {}, {x}, 256);
//   y->front().intervals[0].ToString(8);  // "[2.7182818, 2.7182819]"
//
// An interval is one of
//   a point     the number itself: finite, an infinity, or a zero with its sign
//   bounds      low <= value <= high. An infinite bound may be the value. The
//               sign of a zero is not known.
//   NaN         the function has no value there, as log(-1) and 0 / 0
//   undecided   it may be any of them, and why: 1 / [-1, 1], log([-1, 1])
//
// An undecided element does no harm where a select takes another one. A
// decision that rests on overlapping intervals (a comparison, an order, a
// count, an integer) is an error: IsUndecided.

#ifndef CLEAVE_OPS_REFERENCE_INTERVAL_H_
#define CLEAVE_OPS_REFERENCE_INTERVAL_H_

#include <mpfi.h>
#include <mpfr.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/reference/real.h"
#include "ops/static_value.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave {

// An interval with value semantics, over two numbers of MPFR. Bits of precision
// are as those of Real.
class RealInterval {
 public:
  // The point +0.
  explicit RealInterval(int bits = kDefaultRealBits);
  // Points where `bits` hold the number, else the two neighbours around it.
  RealInterval(double value, int bits);
  RealInterval(const Exact& value, int bits);
  RealInterval(const RealInterval& other);
  RealInterval(RealInterval&& other) noexcept;
  RealInterval& operator=(const RealInterval& other);
  RealInterval& operator=(RealInterval&& other) noexcept;
  ~RealInterval();

  // The number that `value` holds, whatever its exactness.
  static RealInterval Point(const Real& value);
  static RealInterval NaN(int bits);
  // `why` is a literal: it outlives all intervals.
  static RealInterval Undecided(const char* why, int bits);

  // Bounds or a point, which writing through them does not check. They are
  // infinite where the interval is undecided.
  mpfi_ptr get() { return value_; }
  mpfi_srcptr get() const { return value_; }
  mpfr_ptr low() { return &value_->left; }
  mpfr_ptr high() { return &value_->right; }
  mpfr_srcptr low() const { return &value_->left; }
  mpfr_srcptr high() const { return &value_->right; }
  int bits() const { return static_cast<int>(mpfr_get_prec(low())); }

  bool IsNaN() const { return mpfr_nan_p(low()) != 0; }
  // Why it is undecided, or null.
  const char* undecided() const { return undecided_; }
  bool IsNumber() const { return undecided_ == nullptr && !IsNaN(); }
  // One number, a zero of one sign.
  bool IsPoint() const;
  bool HasZero() const;      // among its numbers; false of NaN and undecided
  bool HasInfinity() const;  // as a bound or as the value; true of undecided
  // Whether `value` may be what is enclosed: undecided intervals hold all.
  bool Contains(const Real& value) const;
  // -log2 of (high - low) / |value|: bits that are known of the number.
  // Infinity of a point and of NaN; 0 where not even the sign is known.
  double KnownBits() const;
  // The bounds, low rounded down, high up; "nan"; "undecided: why".
  std::string ToString(int digits) const;

  // For functions of MPFR that wrote `low()`, rounded to nearest, and gave
  // `ternary`: the point, or the neighbours of the number that it was rounded
  // from.
  void EncloseRounded(int ternary);
  // For functions that wrote both bounds: undecided where one is NaN; a zero
  // has either sign.
  void CheckBounds();
  void SetNaN();
  void SetUndecided(const char* why);

 private:
  mpfi_t value_;
  const char* undecided_ = nullptr;
};

// A tensor whose floats are RealIntervals and whose integers and bools are
// known.
struct IntervalTensor {
  DType dtype = DType::kF64;
  std::vector<int64_t> shape;
  std::vector<RealInterval> intervals;  // floats
  Tensor discrete;                      // integers, bools, keys

  static IntervalTensor FromTensor(const Tensor& tensor, int bits);
};

// Whether an evaluation ended since a decision rests on overlapping intervals:
// more bits, or other inputs, may decide it. The code is Aborted, the message
// begins with "undecided: ", behind the place in a graph.
bool IsUndecided(const absl::Status& status);
absl::Status UndecidedError(absl::string_view why);

// As EvalReal, which it encloses: each result of EvalReal, if it were computed
// without error, lies in the interval. IsUndecided where a bool or an integer
// depends on intervals that overlap; the other errors are those of EvalReal.
absl::StatusOr<std::vector<IntervalTensor>> EvalInterval(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const IntervalTensor> operands, int bits,
    absl::Span<const TensorType> declared = {});

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_INTERVAL_H_
