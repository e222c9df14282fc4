// EvalInterval: the structured kernels over IntervalArithmetic, the pointwise
// functions of intervals, and EvalReference for what holds no float.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/reference/eval_structured.h"
#include "ops/reference/interval.h"
#include "ops/reference/interval_functions.h"
#include "ops/reference/pointwise_kernels.h"
#include "ops/reference/reference.h"
#include "ops/status_macros.h"

namespace cleave {

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
  IntervalTensor result;
  result.dtype = operands[0].dtype;
  result.shape = shape;
  result.intervals.reserve(map.size());
  for (int64_t source : map) {
    if (BudgetEnded()) break;
    size_t operand = 0;
    while (source >= SizeOf(operands[operand])) {
      source -= SizeOf(operands[operand++]);
    }
    result.intervals.push_back(operands[operand].intervals[source]);
  }
  return result;
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

absl::Status Unsupported(Primitive primitive, absl::string_view why) {
  return absl::UnimplementedError(
      absl::StrCat("`", PrimitiveName(primitive),
                   "` is not supported over the reals: ", why));
}

// Truncates and saturates; NaN gives 0.
int64_t ToInteger(mpfr_srcptr v, DType dtype) {
  const IntArithmetic a{dtype};
  if (mpfr_nan_p(v)) return 0;
  if (a.is_unsigned()) {
    if (mpfr_sgn(v) <= 0) return 0;
    const uint64_t highest = static_cast<uint64_t>(a.Highest());
    if (mpfr_cmp_ui(v, highest) >= 0) return a.Highest();
    return static_cast<int64_t>(mpfr_get_ui(v, MPFR_RNDZ));
  }
  if (mpfr_cmp_si(v, a.Highest()) >= 0) return a.Highest();
  if (mpfr_cmp_si(v, a.Lowest()) <= 0) return a.Lowest();
  return mpfr_get_si(v, MPFR_RNDZ);
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
    return Unsupported(Primitive::kConvert, "complex numbers");
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
    const int64_t low = ToInteger(v.low(), dtype);
    if (low != ToInteger(v.high(), dtype)) open = "the integer of an interval";
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

// Nothing in the call is a float: integers mean what they always mean.
absl::StatusOr<std::vector<IntervalTensor>> EvalDiscrete(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const IntervalTensor> operands, int bits) {
  std::vector<Tensor> tensors;
  for (const IntervalTensor& operand : operands) {
    tensors.push_back(operand.discrete);
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                          EvalReference(primitive, attributes, tensors));
  std::vector<IntervalTensor> wrapped;
  for (const Tensor& result : results) {
    wrapped.push_back(IntervalTensor::FromTensor(result, bits));
  }
  return wrapped;
}

// The bytes of an interval, without its digits.
constexpr int64_t kIntervalBytes = 128;

absl::StatusOr<std::vector<IntervalTensor>> Evaluated(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const IntervalTensor> operands,
    const std::vector<ConcreteType>& types, bool any_float, int bits) {
  const DType dtype = types[0].dtype;
  if (IsComplex(dtype)) return Unsupported(primitive, "complex results");
  if (primitive == Primitive::kConstant && IsFloat(dtype)) {
    const StaticValue& value = attributes.Get("value");
    IntervalTensor result;
    result.dtype = dtype;
    result.intervals.emplace_back(value.kind() == StaticValue::Kind::kInt
                                      ? Exact(*value.AsDim().Value())
                                      : value.AsReal(),
                                  bits);
    return std::vector<IntervalTensor>{std::move(result)};
  }
  if (primitive == Primitive::kResult) {
    return std::vector<IntervalTensor>{operands[attributes.GetInt("index")]};
  }
  // Where an operand is a float, so is operand 0, except in select.
  const bool from_int_to_float =
      primitive == Primitive::kConvert && !any_float && IsFloat(dtype);
  if (!any_float && !from_int_to_float) {
    return EvalDiscrete(primitive, attributes, operands, bits);
  }
  if (IsStructured(primitive)) {
    const char* open = nullptr;
    auto results =
        EvalStructured(IntervalArithmetic{operands[0].dtype, bits, &open},
                       primitive, attributes, operands, types);
    // An error may follow from a count that nothing decides.
    if (open != nullptr) return UndecidedError(open);
    return results;
  }
  CLEAVE_CHECK(ClassOf(primitive) == PrimitiveClass::kPointwise)
      << PrimitiveName(primitive);
  CLEAVE_ASSIGN_OR_RETURN(
      IntervalTensor result,
      EvalPointwiseInterval(primitive, operands, dtype, bits));
  return std::vector<IntervalTensor>{std::move(result)};
}

}  // namespace

absl::StatusOr<std::vector<IntervalTensor>> EvalInterval(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const IntervalTensor> operands, int bits) {
  if (primitive == Primitive::kBitcastConvert ||
      primitive == Primitive::kNextafter) {
    return Unsupported(primitive, "its meaning is a bit pattern");
  }
  if (bits < 2 || bits > kMaxRealBits) {
    return absl::InvalidArgumentError(
        absl::StrCat(bits, " bits of working precision"));
  }
  std::vector<TensorType> operand_types;
  bool any_float = false;
  for (const IntervalTensor& operand : operands) {
    CLEAVE_RETURN_IF_ERROR(operand.discrete.status());
    TensorType& type = operand_types.emplace_back();
    type.dtype = operand.dtype;
    type.shape.assign(operand.shape.begin(), operand.shape.end());
    any_float |= IsFloat(operand.dtype);
    if (IsComplex(operand.dtype)) {
      return Unsupported(primitive, "complex operands");
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<ConcreteType> types,
                          ConcreteTypes(primitive, attributes, operand_types));
  CLEAVE_RETURN_IF_ERROR(CheckWorkingBytes(primitive, operand_types, types,
                                           kIntervalBytes + bits / 4));
  CLEAVE_ASSIGN_OR_RETURN(
      std::vector<IntervalTensor> results,
      Evaluated(primitive, attributes, operands, types, any_float, bits));
  CLEAVE_RETURN_IF_ERROR(PollBudget());
  return results;
}

}  // namespace cleave
