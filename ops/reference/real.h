// RealTensor: an array of real numbers (MPFR) beside integers and bools.
// EvalReal: the value of a primitive over the reals, which gives the meaning of
// a spec, and the value of a body if nothing were rounded. inf and NaN behave
// as IEEE arithmetic does.

#ifndef CLEAVE_OPS_REFERENCE_REAL_H_
#define CLEAVE_OPS_REFERENCE_REAL_H_

#include <mpfr.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave {

inline constexpr int kDefaultRealBits = 256;
inline constexpr int kMaxRealBits = 1 << 20;

// How far a value is the number that it stands for. A difference of rounded
// numbers that is zero tells nothing of the difference: 1 - 1 / (1 +
// exp(-2000)) is 0 at any precision that stays affordable.
enum class Exactness : uint8_t {
  kExact,    // it is the number
  kRounded,  // it has the error of the working precision
  kLost,     // a zero for what is not zero, or made of one
};

// One MPFR number with value semantics. Bits of precision beyond kMaxRealBits,
// or fewer than 2, count as the nearest number that can be had.
//
// Copies share one number until one of them is written to: most of the numbers
// of an evaluation are copies, of a tensor that is broadcast or moved. Copies
// may belong to several threads. Functions of MPFR that give a number new
// memory (mpfr_set_prec, mpfr_prec_round, mpfr_swap) must not be called with
// one.
class Real {
 public:
  explicit Real(int bits = kDefaultRealBits);
  Real(double value, int bits);
  Real(const Exact& value, int bits);
  // A Real that was moved from shares the number, as one that was copied.
  Real(const Real& other) noexcept;
  Real& operator=(const Real& other) noexcept;
  ~Real();
  // To write to; the number is this Real's alone from then on.
  mpfr_ptr get() { return Own()->value; }
  mpfr_srcptr get() const { return number_->value; }
  int bits() const { return static_cast<int>(mpfr_get_prec(number_->value)); }
  Exactness exactness() const { return number_->exactness; }
  // Writing through get() leaves it as it is.
  void set_exactness(Exactness exactness) { Own()->exactness = exactness; }
  // Rounded once to nearest even; RoundTo gives the double that holds it, and
  // NaN for a dtype that is no float.
  double ToDouble() const;
  double RoundTo(DType dtype) const;
  // `digits` significant decimal digits, at least 1 and at most 10000.
  std::string ToString(int digits) const;

 private:
  // Its limbs stand behind it, in the same memory.
  struct Number {
    std::atomic<int64_t> owners{1};
    Exactness exactness = Exactness::kExact;
    mpfr_t value;
  };

  // Zero, of so many bits.
  static Number* Make(int bits);
  // The number has one owner less.
  static void Drop(Number* number);
  // The number, which nobody else owns.
  Number* Own() {
    if (number_->owners.load(std::memory_order_acquire) != 1) Unshare();
    return number_;
  }
  void Unshare();

  Number* number_;
};

// A tensor whose floats are Reals and whose integers and bools are concrete.
struct RealTensor {
  DType dtype =
      DType::kF64;  // the declared dtype; floats are not rounded to it
  std::vector<int64_t> shape;
  std::vector<Real> reals;  // floats
  Tensor discrete;          // integers, bools, keys

  static RealTensor FromTensor(const Tensor& tensor, int bits);
  // Each real rounded once to `dtype`. Discrete elements have their own dtype
  // only; another one makes an invalid Tensor, as do too many or too few reals.
  Tensor RoundTo(DType dtype) const;
};

// As EvalReference, over the reals with `bits` of working precision. `convert`
// between float dtypes and rounding to f16/bf16 are the identity. Unimplemented
// for primitives whose meaning is a bit pattern (bitcast_convert, nextafter)
// and for complex operands. InvalidArgument for less than 2 bits, or more than
// kMaxRealBits.
absl::StatusOr<std::vector<RealTensor>> EvalReal(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const RealTensor> operands, int bits,
    absl::Span<const TensorType> declared = {});

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_REAL_H_
