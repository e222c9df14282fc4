// EvalReal: the structured kernels over RealArithmetic, the pointwise functions
// of MPFR, and EvalReference for what holds no real.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/reference/eval_numbers.h"
#include "ops/reference/eval_structured.h"
#include "ops/reference/pointwise_kernels.h"
#include "ops/reference/real.h"
#include "ops/reference/real_functions.h"
#include "ops/reference/reference.h"
#include "ops/status_macros.h"

namespace cleave {

std::vector<Real>& NumbersOf(RealTensor& tensor) { return tensor.reals; }
const std::vector<Real>& NumbersOf(const RealTensor& tensor) {
  return tensor.reals;
}
const Extents& ShapeOf(const RealTensor& tensor) { return tensor.shape; }
int64_t SizeOf(const RealTensor& tensor) { return CountOf(tensor.shape); }
const Tensor& DiscreteOf(const RealTensor& tensor) { return tensor.discrete; }
RealTensor FromDiscrete(const Tensor& tensor, const RealTensor&) {
  return RealTensor::FromTensor(tensor, kDefaultRealBits);
}

RealTensor Pick(const IndexMap& map, const Extents& shape,
                absl::Span<const RealTensor> operands) {
  return PickNumbers(map, shape, operands);
}

namespace {

Exactness Worst(const Real& a, const Real& b, int ternary) {
  return std::max({a.exactness(), b.exactness(),
                   ternary == 0 ? Exactness::kExact : Exactness::kRounded});
}

// `open`: no operand is zero. A zero made of them by rounding is none.
void Finish(Real& result, Exactness worst, bool open) {
  const bool lost =
      open && worst != Exactness::kExact && mpfr_zero_p(result.get()) != 0;
  result.set_exactness(lost ? Exactness::kLost : worst);
}

// Reals of `bits`; nothing is rounded to the dtype.
struct RealArithmetic {
  using Value = Real;
  using Acc = Real;
  using Storage = RealTensor;
  DType dtype;
  int bits;

  const std::vector<Real>& Load(const RealTensor& tensor) const {
    return tensor.reals;
  }
  RealTensor Store(const Extents& shape, std::vector<Real> values) const {
    RealTensor result;
    result.dtype = dtype;
    result.shape = shape;
    result.reals = std::move(values);
    return result;
  }
  Acc Make(const Real& v) const {
    Real result(bits);
    const int error = mpfr_set(result.get(), v.get(), MPFR_RNDN);
    result.set_exactness(Worst(v, v, error));
    return result;
  }
  Real Round(const Acc& acc) const { return acc; }
  void Add(Acc& acc, const Real& v) const {
    const bool open = !IsZero(acc) && !IsZero(v);
    const int error = mpfr_add(acc.get(), acc.get(), v.get(), MPFR_RNDN);
    Finish(acc, Worst(acc, v, error), open);
  }
  void AddProduct(Acc& acc, const Real& a, const Real& b) const {
    const bool open = !IsZero(acc) && !IsZero(a) && !IsZero(b);
    const int error =
        mpfr_fma(acc.get(), a.get(), b.get(), acc.get(), MPFR_RNDN);
    Finish(acc, std::max(Worst(acc, a, error), b.exactness()), open);
  }
  void Multiply(Acc& acc, const Real& v) const {
    const int error = mpfr_mul(acc.get(), acc.get(), v.get(), MPFR_RNDN);
    Finish(acc, Worst(acc, v, error), false);
  }
  void MultiplyAdd(Acc& acc, const Real& a, const Real& b) const {
    const bool open = !IsZero(acc) && !IsZero(a) && !IsZero(b);
    const int error =
        mpfr_fma(acc.get(), acc.get(), a.get(), b.get(), MPFR_RNDN);
    Finish(acc, std::max(Worst(acc, a, error), b.exactness()), open);
  }
  Real Product(const std::vector<Real>& values) const {
    Real product(1.0, bits);
    for (const Real& v : values) Multiply(product, v);
    return product;
  }
  Real Zero() const { return Real(bits); }
  Real Lowest() const {
    Real result(bits);
    mpfr_set_inf(result.get(), -1);
    return result;
  }
  Real Highest() const {
    Real result(bits);
    mpfr_set_inf(result.get(), 1);
    return result;
  }
  bool IsNaN(const Real& v) const { return mpfr_nan_p(v.get()); }
  bool IsNegative(const Real& v) const { return mpfr_signbit(v.get()); }
  bool IsZero(const Real& v) const { return mpfr_zero_p(v.get()); }
  bool Less(const Real& a, const Real& b) const {
    return mpfr_less_p(a.get(), b.get());
  }
};

RealTensor FromInts(const Tensor& x, DType dtype, int bits) {
  const IntArithmetic a{x.dtype()};
  RealTensor result;
  result.dtype = dtype;
  result.shape = x.shape();
  for (const int64_t v : a.Load(x)) {
    Real& real = result.reals.emplace_back(bits);
    if (a.is_unsigned()) {
      mpfr_set_ui(real.get(), static_cast<uint64_t>(v), MPFR_RNDN);
    } else {
      mpfr_set_si(real.get(), v, MPFR_RNDN);
    }
  }
  return result;
}

absl::StatusOr<RealTensor> Convert(const RealTensor& x, DType dtype, int bits) {
  if (IsComplex(dtype)) {
    return UnsupportedOverReals(Primitive::kConvert, "complex numbers");
  }
  if (IsFloat(dtype)) {
    if (!IsFloat(x.dtype)) return FromInts(x.discrete, dtype, bits);
    RealTensor result = x;
    result.dtype = dtype;
    return result;
  }
  std::vector<int64_t> ints;
  ints.reserve(x.reals.size());
  for (const Real& v : x.reals) {
    ints.push_back(IsBool(dtype) ? !mpfr_zero_p(v.get())
                                 : SaturatedInteger(v.get(), dtype));
  }
  return FromDiscrete(IntArithmetic{dtype}.Store(x.shape, ints), x);
}

absl::Status Binary(Primitive primitive, mpfr_ptr out, mpfr_srcptr a,
                    mpfr_srcptr b) {
  switch (primitive) {
    case Primitive::kAdd:
      mpfr_add(out, a, b, MPFR_RNDN);
      return absl::OkStatus();
    case Primitive::kSub:
      mpfr_sub(out, a, b, MPFR_RNDN);
      return absl::OkStatus();
    case Primitive::kMul:
      mpfr_mul(out, a, b, MPFR_RNDN);
      return absl::OkStatus();
    case Primitive::kDiv:
      mpfr_div(out, a, b, MPFR_RNDN);
      return absl::OkStatus();
    case Primitive::kRem:
      mpfr_fmod(out, a, b, MPFR_RNDN);
      return absl::OkStatus();
    case Primitive::kPow:
      mpfr_pow(out, a, b, MPFR_RNDN);
      return absl::OkStatus();
    case Primitive::kAtan2:
      mpfr_atan2(out, a, b, MPFR_RNDN);
      return absl::OkStatus();
    case Primitive::kCopysign:
      mpfr_copysign(out, a, b, MPFR_RNDN);
      return absl::OkStatus();
    case Primitive::kPolygamma:
      return RealPolygamma(out, a, b);
    default:
      return absl::InternalError(
          absl::StrCat("`", PrimitiveName(primitive), "` has no kernel"));
  }
}

bool GivesIntegers(Primitive primitive) {
  switch (primitive) {
    case Primitive::kFloor:
    case Primitive::kCeil:
    case Primitive::kRoundNearestEven:
      return true;
    default:
      return false;
  }
}

absl::StatusOr<RealTensor> EvalPointwiseReal(
    Primitive primitive, absl::Span<const RealTensor> operands, DType dtype,
    int bits) {
  const RealTensor& x = operands[0];
  switch (primitive) {
    case Primitive::kConvert:
      return Convert(x, dtype, bits);
    case Primitive::kSelect:
      return Pick(MapOfSelect(x.discrete), x.shape, operands.subspan(1));
    default:
      break;
  }
  const RealArithmetic a{x.dtype, bits};
  if (IsComparison(primitive)) {
    return FromDiscrete(
        CompareKernel(a, primitive, x.shape, x.reals, operands[1].reals), x);
  }
  if (primitive == Primitive::kMax || primitive == Primitive::kMin) {
    return a.Store(x.shape, MaxMinKernel(a, primitive == Primitive::kMax,
                                         x.reals, operands[1].reals));
  }
  if (primitive == Primitive::kIsnan || primitive == Primitive::kIsinf) {
    std::vector<int64_t> flags;
    for (const Real& v : x.reals) {
      flags.push_back((primitive == Primitive::kIsnan
                           ? mpfr_nan_p(v.get())
                           : mpfr_inf_p(v.get())) != 0);
    }
    return FromDiscrete(IntArithmetic{DType::kBool}.Store(x.shape, flags), x);
  }
  std::vector<int64_t> exponents;
  if (primitive == Primitive::kLdexp) {
    exponents = LoadInts(operands[1].discrete);
  }
  std::vector<Real> results;
  results.reserve(x.reals.size());
  for (size_t i = 0; i < x.reals.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(PollBudget());
    Real& out = results.emplace_back(bits);
    const mpfr_srcptr v = x.reals[i].get();
    mpfr_clear_inexflag();
    if (primitive == Primitive::kFma) {
      mpfr_fma(out.get(), v, operands[1].reals[i].get(),
               operands[2].reals[i].get(), MPFR_RNDN);
    } else if (primitive == Primitive::kLdexp) {
      mpfr_mul_2si(out.get(), v, exponents[i], MPFR_RNDN);
    } else if (operands.size() == 2) {
      CLEAVE_RETURN_IF_ERROR(
          Binary(primitive, out.get(), v, operands[1].reals[i].get()));
    } else if (!RealUnary(primitive, out.get(), v)) {
      return absl::InternalError(
          absl::StrCat("`", PrimitiveName(primitive), "` has no kernel"));
    }
    Exactness worst = Worst(x.reals[i], x.reals[i], mpfr_inexflag_p());
    bool open = mpfr_zero_p(v) == 0;
    for (size_t k = 1; k < operands.size(); ++k) {
      if (!IsFloat(operands[k].dtype)) continue;
      worst = std::max(worst, operands[k].reals[i].exactness());
      open &= mpfr_zero_p(operands[k].reals[i].get()) == 0;
    }
    // To the next integer below 0.3 is 0, however 0.3 was rounded.
    Finish(out, worst, open && !GivesIntegers(primitive));
  }
  return a.Store(x.shape, std::move(results));
}

struct RealEvaluation {
  using Storage = RealTensor;

  // And some for the number itself, without its digits.
  static int64_t Bytes(int bits) { return 64 + bits / 8; }

  static absl::StatusOr<std::vector<RealTensor>> Structured(
      Primitive primitive, const Attributes& attributes,
      absl::Span<const RealTensor> operands,
      const std::vector<ConcreteType>& types, int bits) {
    return EvalStructured(RealArithmetic{operands[0].dtype, bits}, primitive,
                          attributes, operands, types);
  }

  static absl::StatusOr<RealTensor> Pointwise(
      Primitive primitive, absl::Span<const RealTensor> operands, DType dtype,
      int bits) {
    return EvalPointwiseReal(primitive, operands, dtype, bits);
  }
};

}  // namespace

absl::StatusOr<std::vector<RealTensor>> EvalReal(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const RealTensor> operands, int bits,
    absl::Span<const TensorType> declared) {
  return EvalNumbers<RealEvaluation>(primitive, attributes, operands, bits,
                                     declared);
}

}  // namespace cleave
