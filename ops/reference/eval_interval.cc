// EvalInterval: the structured kernels over IntervalArithmetic, the pointwise
// functions of intervals, and EvalReference for what holds no float.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/reference/eval_numbers.h"
#include "ops/reference/eval_structured.h"
#include "ops/reference/interval.h"
#include "ops/reference/interval_functions.h"
#include "ops/reference/pointwise_kernels.h"
#include "ops/reference/reference.h"
#include "ops/status_macros.h"

namespace cleave {

std::vector<RealInterval>& NumbersOf(IntervalTensor& tensor) {
  return tensor.intervals;
}
const std::vector<RealInterval>& NumbersOf(const IntervalTensor& tensor) {
  return tensor.intervals;
}
const Extents& ShapeOf(const IntervalTensor& tensor) { return tensor.shape; }
int64_t SizeOf(const IntervalTensor& tensor) { return CountOf(tensor.shape); }
const Tensor& DiscreteOf(const IntervalTensor& tensor) {
  return tensor.discrete;
}
IntervalTensor FromDiscrete(const Tensor& tensor, const IntervalTensor&) {
  return IntervalTensor::FromTensor(tensor, kDefaultRealBits);
}

IntervalTensor Pick(const IndexMap& map, const Extents& shape,
                    absl::Span<const IntervalTensor> operands) {
  return PickNumbers(map, shape, operands);
}

namespace {

// Intervals of `bits`. Kernels ask for decisions by way of bool: one that
// overlapping intervals leave open is noted in `open`, and the evaluation
// fails once its kernel has ended.
struct IntervalArithmetic {
  using Value = RealInterval;
  using Acc = RealInterval;
  using Storage = IntervalTensor;
  DType dtype;
  int bits;
  const char** open;

  const std::vector<RealInterval>& Load(const IntervalTensor& tensor) const {
    return tensor.intervals;
  }
  IntervalTensor Store(const Extents& shape,
                       std::vector<RealInterval> values) const {
    IntervalTensor result;
    result.dtype = dtype;
    result.shape = shape;
    result.intervals = std::move(values);
    return result;
  }
  Acc Make(const RealInterval& v) const {
    RealInterval result(bits);
    UnaryInterval(Primitive::kConvert, result, v);
    return result;
  }
  RealInterval Round(const Acc& acc) const { return acc; }
  void Add(Acc& acc, const RealInterval& v) const { AddIntervals(acc, acc, v); }
  void AddProduct(Acc& acc, const RealInterval& a,
                  const RealInterval& b) const {
    FmaIntervals(acc, a, b, acc);
  }
  void Multiply(Acc& acc, const RealInterval& v) const {
    MultiplyIntervals(acc, acc, v);
  }
  void MultiplyAdd(Acc& acc, const RealInterval& a,
                   const RealInterval& b) const {
    FmaIntervals(acc, acc, a, b);
  }
  RealInterval Product(const std::vector<RealInterval>& values) const {
    RealInterval product(1.0, bits);
    for (const RealInterval& v : values) Multiply(product, v);
    return product;
  }
  RealInterval Zero() const { return RealInterval(bits); }
  RealInterval Lowest() const { return RealInterval(-HUGE_VAL, bits); }
  RealInterval Highest() const { return RealInterval(HUGE_VAL, bits); }
  bool IsNaN(const RealInterval& v) const {
    if (v.undecided() != nullptr) *open = v.undecided();
    return v.IsNaN();
  }
  bool IsZero(const RealInterval& v) const {
    if (v.HasZero() && !mpfr_equal_p(v.low(), v.high())) {
      *open = "whether it is 0";
    }
    if (v.undecided() != nullptr) *open = v.undecided();
    return v.HasZero();
  }
  // The order of the lower bounds where they overlap, which a sort can use.
  bool Less(const RealInterval& a, const RealInterval& b) const {
    if (!mpfr_less_p(a.high(), b.low()) &&
        !mpfr_greaterequal_p(a.low(), b.high())) {
      *open = "an order of what overlaps";
    }
    return mpfr_less_p(a.low(), b.low());
  }
};

// Not one of the two: bounds overlap.
RealInterval MaxOf(const IntervalArithmetic& arithmetic, const RealInterval& a,
                   const RealInterval& b) {
  RealInterval result(arithmetic.bits);
  MaxOfIntervals(result, true, a, b);
  return result;
}
RealInterval MinOf(const IntervalArithmetic& arithmetic, const RealInterval& a,
                   const RealInterval& b) {
  RealInterval result(arithmetic.bits);
  MaxOfIntervals(result, false, a, b);
  return result;
}

IntervalTensor FromInts(const Tensor& x, DType dtype, int bits) {
  const IntArithmetic a{x.dtype()};
  IntervalTensor result;
  result.dtype = dtype;
  result.shape = x.shape();
  for (const int64_t v : a.Load(x)) {
    RealInterval& interval = result.intervals.emplace_back(bits);
    interval.EncloseRounded(
        a.is_unsigned()
            ? mpfr_set_ui(interval.low(), static_cast<uint64_t>(v), MPFR_RNDN)
            : mpfr_set_si(interval.low(), v, MPFR_RNDN));
  }
  return result;
}

absl::StatusOr<IntervalTensor> Convert(const IntervalTensor& x, DType dtype,
                                       int bits) {
  if (IsComplex(dtype)) {
    return UnsupportedOverReals(Primitive::kConvert, "complex numbers");
  }
  if (IsFloat(dtype)) {
    if (!IsFloat(x.dtype)) return FromInts(x.discrete, dtype, bits);
    IntervalTensor result = x;
    result.dtype = dtype;
    return result;
  }
  const char* open = nullptr;
  const IntervalArithmetic a{x.dtype, bits, &open};
  std::vector<int64_t> ints;
  ints.reserve(x.intervals.size());
  for (const RealInterval& v : x.intervals) {
    if (IsBool(dtype)) {
      ints.push_back(!a.IsZero(v));
      continue;
    }
    if (v.undecided() != nullptr) open = v.undecided();
    const int64_t low = SaturatedInteger(v.low(), dtype);
    if (low != SaturatedInteger(v.high(), dtype))
      open = "the integer of an interval";
    ints.push_back(low);
  }
  if (open != nullptr) return UndecidedError(open);
  return FromDiscrete(IntArithmetic{dtype}.Store(x.shape, ints), x);
}

// isnan and isinf.
absl::StatusOr<IntervalTensor> Classified(bool nan, const IntervalTensor& x) {
  std::vector<int64_t> flags;
  for (const RealInterval& v : x.intervals) {
    if (v.undecided() != nullptr) return UndecidedError(v.undecided());
    const bool infinite = !v.IsNaN() && v.HasInfinity();
    if (!nan && infinite && !v.IsPoint()) {
      return UndecidedError("whether it is infinite");
    }
    flags.push_back(nan ? v.IsNaN() : infinite);
  }
  return FromDiscrete(IntArithmetic{DType::kBool}.Store(x.shape, flags), x);
}

absl::StatusOr<IntervalTensor> EvalPointwiseInterval(
    Primitive primitive, absl::Span<const IntervalTensor> operands, DType dtype,
    int bits) {
  const IntervalTensor& x = operands[0];
  const char* open = nullptr;
  const IntervalArithmetic a{x.dtype, bits, &open};
  switch (primitive) {
    case Primitive::kConvert:
      return Convert(x, dtype, bits);
    case Primitive::kSelect:
      return Pick(MapOfSelect(x.discrete), x.shape, operands.subspan(1));
    case Primitive::kMax:
    case Primitive::kMin:
      return a.Store(x.shape, MaxMinKernel(a, primitive == Primitive::kMax,
                                           x.intervals, operands[1].intervals));
    case Primitive::kIsnan:
    case Primitive::kIsinf:
      return Classified(primitive == Primitive::kIsnan, x);
    default:
      break;
  }
  if (IsComparison(primitive)) {
    Tensor flags = CompareKernel(a, primitive, x.shape, x.intervals,
                                 operands[1].intervals);
    if (open != nullptr) return UndecidedError(open);
    return FromDiscrete(flags, x);
  }
  std::vector<int64_t> exponents;
  if (primitive == Primitive::kLdexp) {
    exponents = LoadInts(operands[1].discrete);
  }
  std::vector<RealInterval> results;
  results.reserve(x.intervals.size());
  for (size_t i = 0; i < x.intervals.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(PollBudget());
    RealInterval& out = results.emplace_back(bits);
    const RealInterval& v = x.intervals[i];
    if (primitive == Primitive::kFma) {
      FmaIntervals(out, v, operands[1].intervals[i], operands[2].intervals[i]);
    } else if (primitive == Primitive::kLdexp) {
      ScaleInterval(out, v, exponents[i]);
    } else if (operands.size() == 2) {
      CLEAVE_RETURN_IF_ERROR(
          BinaryInterval(primitive, out, v, operands[1].intervals[i]));
    } else if (!UnaryInterval(primitive, out, v)) {
      return absl::InternalError(
          absl::StrCat("`", PrimitiveName(primitive), "` has no kernel"));
    }
  }
  return a.Store(x.shape, std::move(results));
}

struct IntervalEvaluation {
  using Storage = IntervalTensor;

  // And some for the interval itself, without its digits.
  static int64_t Bytes(int bits) { return 128 + bits / 4; }

  static absl::StatusOr<std::vector<IntervalTensor>> Structured(
      Primitive primitive, const Attributes& attributes,
      absl::Span<const IntervalTensor> operands,
      const std::vector<ConcreteType>& types, int bits) {
    const char* open = nullptr;
    auto results =
        EvalStructured(IntervalArithmetic{operands[0].dtype, bits, &open},
                       primitive, attributes, operands, types);
    // An error may follow from a count that nothing decides.
    if (open != nullptr) return UndecidedError(open);
    return results;
  }

  static absl::StatusOr<IntervalTensor> Pointwise(
      Primitive primitive, absl::Span<const IntervalTensor> operands,
      DType dtype, int bits) {
    return EvalPointwiseInterval(primitive, operands, dtype, bits);
  }
};

}  // namespace

absl::StatusOr<std::vector<IntervalTensor>> EvalInterval(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const IntervalTensor> operands, int bits,
    absl::Span<const TensorType> declared) {
  return EvalNumbers<IntervalEvaluation>(primitive, attributes, operands, bits,
                                         declared);
}

}  // namespace cleave
