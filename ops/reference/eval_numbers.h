// The frame that EvalReal and EvalInterval share: a primitive on tensors whose
// floats are numbers that nothing rounds to a dtype, and whose integers and
// bools are known. Internal to ops.
//
// An Evaluation has
//   Storage     the tensors: dtype, shape, discrete, FromTensor; NumbersOf
//   gives
//               the vector of their numbers
//   Bytes       that a number takes at so many bits
//   Structured  a structured primitive
//   Pointwise   a pointwise one

#ifndef CLEAVE_OPS_REFERENCE_EVAL_NUMBERS_H_
#define CLEAVE_OPS_REFERENCE_EVAL_NUMBERS_H_

#include <mpfr.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/reference/eval_structured.h"
#include "ops/reference/pointwise_kernels.h"
#include "ops/reference/real.h"
#include "ops/reference/reference.h"
#include "ops/status_macros.h"

namespace cleave {

inline absl::Status UnsupportedOverReals(Primitive primitive,
                                         absl::string_view why) {
  return absl::UnimplementedError(
      absl::StrCat("`", PrimitiveName(primitive),
                   "` is not supported over the reals: ", why));
}

// Truncates and saturates; NaN gives 0.
inline int64_t SaturatedInteger(mpfr_srcptr v, DType dtype) {
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

template <typename Storage>
Storage PickNumbers(const IndexMap& map, const Extents& shape,
                    absl::Span<const Storage> operands) {
  Storage result;
  result.dtype = operands[0].dtype;
  result.shape = shape;
  auto& numbers = NumbersOf(result);
  numbers.reserve(map.size());
  BudgetPolls polls;
  for (int64_t source : map) {
    if (polls.Ended()) break;
    const Storage* operand = operands.data();
    for (int64_t size; source >= (size = NumbersOf(*operand).size());) {
      source -= size;
      ++operand;
    }
    numbers.push_back(NumbersOf(*operand)[source]);
  }
  return result;
}

// Nothing in the call is a float: integers mean what they always mean.
template <typename Storage>
absl::StatusOr<std::vector<Storage>> EvalDiscrete(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const Storage> operands, int bits,
    absl::Span<const TensorType> declared) {
  std::vector<Tensor> tensors;
  for (const Storage& operand : operands) tensors.push_back(operand.discrete);
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Tensor> results,
      EvalReference(primitive, attributes, tensors, declared));
  std::vector<Storage> wrapped;
  for (const Tensor& result : results) {
    wrapped.push_back(Storage::FromTensor(result, bits));
  }
  return wrapped;
}

template <typename Evaluation>
absl::StatusOr<std::vector<typename Evaluation::Storage>> EvalTyped(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const typename Evaluation::Storage> operands,
    const std::vector<ConcreteType>& types, bool any_float, int bits,
    absl::Span<const TensorType> declared) {
  using Storage = typename Evaluation::Storage;
  const DType dtype = types[0].dtype;
  if (IsComplex(dtype)) {
    return UnsupportedOverReals(primitive, "complex results");
  }
  if (primitive == Primitive::kConstant && IsFloat(dtype)) {
    const StaticValue& value = attributes.Get("value");
    Storage result;
    result.dtype = dtype;
    NumbersOf(result).emplace_back(value.kind() == StaticValue::Kind::kInt
                                       ? Exact(*value.AsDim().Value())
                                       : value.AsReal(),
                                   bits);
    return Alone(std::move(result));
  }
  if (primitive == Primitive::kResult) {
    return std::vector<Storage>{operands[attributes.GetInt("index")]};
  }
  // Where an operand is a float, so is operand 0, except in select.
  const bool from_int_to_float =
      primitive == Primitive::kConvert && !any_float && IsFloat(dtype);
  if (!any_float && !from_int_to_float) {
    return EvalDiscrete(primitive, attributes, operands, bits, declared);
  }
  if (IsStructured(primitive)) {
    return Evaluation::Structured(primitive, attributes, operands, types, bits);
  }
  CLEAVE_CHECK(ClassOf(primitive) == PrimitiveClass::kPointwise)
      << PrimitiveName(primitive);
  CLEAVE_ASSIGN_OR_RETURN(
      Storage result, Evaluation::Pointwise(primitive, operands, dtype, bits));
  return Alone(std::move(result));
}

template <typename Evaluation>
absl::StatusOr<std::vector<typename Evaluation::Storage>> EvalNumbers(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const typename Evaluation::Storage> operands, int bits,
    absl::Span<const TensorType> declared) {
  using Storage = typename Evaluation::Storage;
  if (primitive == Primitive::kBitcastConvert ||
      primitive == Primitive::kNextafter) {
    return UnsupportedOverReals(primitive, "its meaning is a bit pattern");
  }
  if (bits < 2 || bits > kMaxRealBits) {
    return absl::InvalidArgumentError(
        absl::StrCat(bits, " bits of working precision"));
  }
  bool any_float = false;
  for (const Storage& operand : operands) {
    CLEAVE_RETURN_IF_ERROR(operand.discrete.status());
    any_float |= IsFloat(operand.dtype);
    if (IsComplex(operand.dtype)) {
      return UnsupportedOverReals(primitive, "complex operands");
    }
  }
  const auto dtype = [&](size_t i) { return operands[i].dtype; };
  const auto shape = [&](size_t i) -> const Extents& {
    return operands[i].shape;
  };
  const OperandTypes operand_types{operands.size(), dtype, shape};
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<ConcreteType> types,
      ConcreteTypes(primitive, attributes, operand_types, declared));
  CLEAVE_RETURN_IF_ERROR(CheckWorkingBytes(primitive, operand_types, types,
                                           Evaluation::Bytes(bits)));
  CLEAVE_ASSIGN_OR_RETURN(
      std::vector<Storage> results,
      EvalTyped<Evaluation>(primitive, attributes, operands, types, any_float,
                            bits, declared));
  CLEAVE_RETURN_IF_ERROR(PollBudget());
  return results;
}

}  // namespace cleave

#endif  // CLEAVE_OPS_REFERENCE_EVAL_NUMBERS_H_
