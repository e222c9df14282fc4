#include "testing/fuzz/differential/noise.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/ir/interpreter.h"
#include "engine/ir/substitute.h"
#include "ops/primitive.h"
#include "ops/reference.h"
#include "ops/status_macros.h"
#include "testing/fuzz/differential/random.h"

namespace cleave::fuzz {
namespace {

// Units in the last place that a function may be off.
constexpr double kFunctionUlp = 8;
// Of the sum of the magnitudes, that a sum may be off.
constexpr double kSumUlp = 8;

double Epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return std::ldexp(1, -10);
    case DType::kBF16:
      return std::ldexp(1, -7);
    case DType::kF32:
      return std::ldexp(1, -23);
    default:
      return std::ldexp(1, -52);
  }
}

bool IsSum(Primitive primitive) {
  switch (primitive) {
    case Primitive::kReduceSum:
    case Primitive::kReduceProd:
    case Primitive::kLinearScan:
    case Primitive::kScatter:
    case Primitive::kWindowsAdd:
      return true;
    default:
      return ClassOf(primitive) == PrimitiveClass::kContraction;
  }
}

// Rounded correctly, or exact, wherever they are computed.
bool IsExactFunction(Primitive primitive) {
  switch (primitive) {
    case Primitive::kAbs:
    case Primitive::kNeg:
    case Primitive::kSign:
    case Primitive::kCeil:
    case Primitive::kFloor:
    case Primitive::kRoundNearestEven:
    case Primitive::kSqrt:
    case Primitive::kConvert:
    case Primitive::kBitcastConvert:
    case Primitive::kNograd:
    case Primitive::kAdd:
    case Primitive::kSub:
    case Primitive::kMul:
    case Primitive::kDiv:
    case Primitive::kRem:
    case Primitive::kCopysign:
    case Primitive::kNextafter:
    case Primitive::kMax:
    case Primitive::kMin:
    case Primitive::kLdexp:
    case Primitive::kSelect:
    case Primitive::kFma:
      return true;
    default:
      return false;
  }
}

Tensor Magnitudes(const Tensor& tensor) {
  if (!IsFloat(tensor.dtype())) return tensor;
  Tensor result(tensor.dtype(), tensor.shape());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    result.SetDouble(i, std::abs(tensor.GetDouble(i)));
  }
  return result;
}

// Whether all partial results are whole numbers that the dtype holds.
bool IsExactSum(const std::vector<Tensor>& operands, const Tensor& bound) {
  for (const Tensor& operand : operands) {
    if (!IsFloat(operand.dtype())) continue;
    for (int64_t i = 0; i < operand.size(); ++i) {
      // Quarters of whole numbers, and products of two.
      const double quarters = operand.GetDouble(i) * 4;
      if (quarters != std::floor(quarters)) return false;
    }
  }
  const double most = 1 / (32 * Epsilon(bound.dtype()));
  for (int64_t i = 0; i < bound.size(); ++i) {
    if (!(bound.GetDouble(i) < most)) return false;
  }
  return true;
}

void AddNoise(Tensor& tensor, const Tensor& scale, double ulp, Random& random) {
  Tensor moved(tensor.dtype(), tensor.shape());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double value = tensor.GetDouble(i);
    const double by = ulp * Epsilon(tensor.dtype()) *
                      static_cast<double>(random.Between(-1000, 1000)) / 1000;
    const double size = std::abs(scale.GetDouble(i));
    moved.SetDouble(i, std::isfinite(size) ? value + by * size : value);
  }
  tensor = moved;
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> InterpretWithNoise(
    const Graph& graph, const std::vector<Tensor>& inputs, uint64_t seed) {
  CLEAVE_ASSIGN_OR_RETURN(const DimValues dims, BindDims(graph, inputs));
  DimSubstitution numbers;
  for (const auto& [name, value] : dims) numbers.emplace(name, Dim(value));
  const Graph concrete = SubstituteDims(graph, numbers);
  Random random(seed);
  std::vector<std::vector<Tensor>> values(concrete.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[concrete.inputs()[i].value.id] = {inputs[i]};
  }
  for (uint32_t id = 0; id < concrete.size(); ++id) {
    const Value v{id};
    const Primitive primitive = ToPrimitive(concrete.node(v).op);
    if (primitive == Primitive::kInput) continue;
    const auto operands = concrete.operands(v);
    if (primitive == Primitive::kResult) {
      values[id] = {
          values[operands[0].id][concrete.attributes(v).GetInt("index")]};
      continue;
    }
    if (primitive == Primitive::kScan || primitive == Primitive::kCond ||
        primitive == Primitive::kWhile || primitive == Primitive::kNonzero) {
      return absl::UnimplementedError(
          "a region, or an extent found on the way");
    }
    std::vector<Tensor> taken;
    for (const Value operand : operands) {
      taken.push_back(values[operand.id][0]);
    }
    const Attributes& attributes = concrete.attributes(v);
    CLEAVE_ASSIGN_OR_RETURN(values[id],
                            EvalReference(primitive, attributes, taken));
    Tensor& result = values[id][0];
    if (!IsFloat(result.dtype())) continue;
    if (IsSum(primitive)) {
      std::vector<Tensor> magnitudes;
      for (const Tensor& tensor : taken) {
        magnitudes.push_back(Magnitudes(tensor));
      }
      CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> bounds,
                              EvalReference(primitive, attributes, magnitudes));
      if (!IsExactSum(taken, bounds[0])) {
        AddNoise(result, bounds[0], kSumUlp, random);
      }
    } else if (ClassOf(primitive) == PrimitiveClass::kPointwise &&
               !IsExactFunction(primitive)) {
      AddNoise(result, result, kFunctionUlp, random);
    }
  }
  std::vector<Tensor> outputs;
  for (const NamedValue& output : concrete.outputs()) {
    outputs.push_back(values[output.value.id][0]);
  }
  return outputs;
}

}  // namespace cleave::fuzz
