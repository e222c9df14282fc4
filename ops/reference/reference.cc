#include "ops/reference/reference.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/reference/eval_structured.h"
#include "ops/reference/philox.h"
#include "ops/reference/reference_pointwise.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

Tensor EvalConstant(const Attributes& attributes, DType dtype) {
  Tensor result(dtype, {});
  const StaticValue& value = attributes.Get("value");
  if (IsBool(dtype)) {
    result.SetInt(0, value.AsBool());
    return result;
  }
  const Exact exact = value.kind() == StaticValue::Kind::kInt
                          ? Exact(*value.AsDim().Value())
                          : value.AsReal();
  if (IsInt(dtype)) {
    // u64 goes beyond int64_t: its bits are those of the value minus 2^64.
    std::optional<int64_t> bits = exact.ToInt64();
    if (!bits) bits = (exact - Exact::Pow(Exact(2), Exact(64))).ToInt64();
    CLEAVE_CHECK(bits.has_value()) << exact.ToString();
    return IntArithmetic{dtype}.Store({}, {*bits});
  }
  if (IsComplex(dtype)) {
    const DType part = dtype == DType::kC64 ? DType::kF32 : DType::kF64;
    result.SetComplex(0, exact.RoundTo(part));
  } else {
    result.SetDouble(0, exact.RoundTo(dtype));
  }
  return result;
}

absl::StatusOr<Tensor> EvalLeaf(Primitive primitive,
                                const Attributes& attributes,
                                const ConcreteType& type) {
  switch (primitive) {
    case Primitive::kConstant:
      return EvalConstant(attributes, type.dtype);
    case Primitive::kExtent: {
      const Dim& dim = attributes.Get("value").AsDim();
      if (!dim.Value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("`extent`: ", dim.ToString(), " is not known"));
      }
      return IntsTensor({}, {*dim.Value()});
    }
    default: {
      std::vector<int64_t> values(type.shape[0]);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<int64_t>(i);
      }
      return IntsTensor(type.shape, values);
    }
  }
}

// Each key gives a block of elements, numbered in row-major order.
Tensor EvalRandom(Primitive primitive, const Tensor& keys,
                  const ConcreteType& type) {
  const std::vector<int64_t> key_values = LoadInts(keys);
  const int64_t block =
      keys.size() == 0 ? 0 : CountOf(type.shape) / keys.size();
  const DType dtype = type.dtype;
  const bool wide = ByteSize(dtype) == 8;
  const RandomStream stream = primitive == Primitive::kRandomSplit
                                  ? RandomStream::kSplit
                                  : RandomStream::kBits;
  const auto next = [wide](RandomWords& words) {
    return wide ? words.Next64() : words.Next();
  };
  if (primitive != Primitive::kRandomUniform) {
    std::vector<int64_t> bits;
    bits.reserve(CountOf(type.shape));
    for (const int64_t key : key_values) {
      RandomWords words(static_cast<uint64_t>(key), stream);
      for (int64_t i = 0; i < block; ++i) {
        bits.push_back(static_cast<int64_t>(next(words)));
      }
    }
    return IntArithmetic{dtype}.Store(type.shape, bits);
  }
  // As many leading bits as the significand has: each value is exact, below 1.
  Tensor result(dtype, type.shape);
  const int significand = SignificandBits(dtype);
  const int shift = (wide ? 64 : 32) - significand;
  int64_t place = 0;
  for (const int64_t key : key_values) {
    RandomWords words(static_cast<uint64_t>(key), stream);
    for (int64_t i = 0; i < block; ++i) {
      result.SetDouble(
          place++,
          std::ldexp(static_cast<double>(next(words) >> shift), -significand));
    }
  }
  return result;
}

// Each key gives the key that its number picks.
Tensor EvalFoldIn(const Tensor& keys, const Tensor& numbers) {
  Tensor result(DType::kKey, keys.shape());
  for (int64_t i = 0; i < keys.size(); ++i) {
    result.SetInt(i, static_cast<int64_t>(
                         FoldIn(static_cast<uint64_t>(keys.GetInt(i)),
                                static_cast<uint64_t>(numbers.GetInt(i)))));
  }
  return result;
}

// The bytes of a number and of an element of its tensor, at most.
constexpr int64_t kNumberBytes = 16;

absl::StatusOr<std::vector<Tensor>> Evaluated(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const Tensor> operands, const std::vector<ConcreteType>& types) {
  if (IsStructured(primitive)) {
    return WithArithmetic(
        operands[0].dtype(),
        [&](const auto& a) -> absl::StatusOr<std::vector<Tensor>> {
          return EvalStructured(a, primitive, attributes, operands, types);
        });
  }
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kLeaf: {
      CLEAVE_ASSIGN_OR_RETURN(Tensor result,
                              EvalLeaf(primitive, attributes, types[0]));
      return std::vector<Tensor>{std::move(result)};
    }
    case PrimitiveClass::kProjection:
      return std::vector<Tensor>{operands[attributes.GetInt("index")]};
    case PrimitiveClass::kPointwise: {
      CLEAVE_ASSIGN_OR_RETURN(
          Tensor result, EvalPointwise(primitive, types[0].dtype, operands));
      return std::vector<Tensor>{std::move(result)};
    }
    case PrimitiveClass::kRandom:
      if (primitive == Primitive::kRandomFoldIn) {
        return std::vector<Tensor>{EvalFoldIn(operands[0], operands[1])};
      }
      return std::vector<Tensor>{EvalRandom(primitive, operands[0], types[0])};
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("`", PrimitiveName(primitive),
                       "` is evaluated by the interpreter of graphs"));
  }
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> EvalReference(
    Primitive primitive, const Attributes& attributes,
    absl::Span<const Tensor> operands, absl::Span<const TensorType> declared) {
  for (const Tensor& operand : operands) {
    CLEAVE_RETURN_IF_ERROR(operand.status());
  }
  const auto dtype = [&](size_t i) { return operands[i].dtype(); };
  const auto shape = [&](size_t i) -> const Extents& {
    return operands[i].shape();
  };
  const OperandTypes operand_types{operands.size(), dtype, shape};
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<ConcreteType> types,
      ConcreteTypes(primitive, attributes, operand_types, declared));
  CLEAVE_RETURN_IF_ERROR(
      CheckWorkingBytes(primitive, operand_types, types, kNumberBytes));
  CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> results,
                          Evaluated(primitive, attributes, operands, types));
  // A kernel that was to end early left its results as they were.
  CLEAVE_RETURN_IF_ERROR(PollBudget());
  // There may be no memory for a result.
  for (const Tensor& result : results) CLEAVE_RETURN_IF_ERROR(result.status());
  return results;
}

}  // namespace cleave
