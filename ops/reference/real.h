// RealTensor: an array of real numbers (MPFR) beside integers and bools.
// EvalReal: the value of a primitive over the reals, which gives the meaning of
// a spec, and the value of a body if nothing were rounded. inf and NaN behave
// as IEEE arithmetic does.

#ifndef CLEAVE_OPS_REFERENCE_REAL_H_
#define CLEAVE_OPS_REFERENCE_REAL_H_

#include <mpfr.h>

#include <cstdint>
#include <memory>
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
// Its limbs are within it up to kDefaultRealBits, since most of the time of an
// evaluation goes to numbers that are made, copied and dropped. Functions of
// MPFR that give a number new memory (mpfr_set_prec, mpfr_prec_round,
// mpfr_swap) must not be called with one.
class Real {
 public:
  explicit Real(int bits = kDefaultRealBits);
  Real(double value, int bits);
  Real(const Exact& value, int bits);
  Real(const Real& other);
  Real(Real&& other) noexcept;
  Real& operator=(const Real& other);
  Real& operator=(Real&& other) noexcept;
  ~Real();
  mpfr_ptr get() { return value_; }
  mpfr_srcptr get() const { return value_; }
  int bits() const { return static_cast<int>(mpfr_get_prec(value_)); }
  Exactness exactness() const { return exactness_; }
  // Writing through get() leaves it as it is.
  void set_exactness(Exactness exactness) { exactness_ = exactness; }
  // Rounded once to nearest even; RoundTo gives the double that holds it, and
  // NaN for a dtype that is no float.
  double ToDouble() const;
  double RoundTo(DType dtype) const;
  // `digits` significant decimal digits, at least 1 and at most 10000.
  std::string ToString(int digits) const;

 private:
  static constexpr int kOwnLimbs = kDefaultRealBits / GMP_NUMB_BITS;

  // Zero, of so many bits.
  void Allocate(int bits);
  // The value of `other`, which has as many bits.
  void CopyValue(const Real& other);

  mpfr_t value_;
  mp_limb_t limbs_[kOwnLimbs];           // of `value_`, if they are enough
  std::unique_ptr<mp_limb_t[]> beyond_;  // of `value_`, or else null
  Exactness exactness_ = Exactness::kExact;
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
