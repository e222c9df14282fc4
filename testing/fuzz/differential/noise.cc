#include "testing/fuzz/differential/noise.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ops/primitive.h"
#include "ops/reference/reference.h"
#include "ops/static_value.h"
#include "ops/status_macros.h"
#include "testing/fuzz/differential/evaluate.h"
#include "testing/fuzz/differential/parts.h"
#include "testing/fuzz/differential/random.h"

namespace cleave::fuzz {
namespace {

// Units in the last place that a function may be off.
constexpr double kFunctionUlp = 8;
// Units in the last place of the sum of the magnitudes that a sum may be off.
constexpr double kSumUlp = 8;
// Units in the last place that a loop or a branch may be off, where all that
// rounds counts.
constexpr double kRegionUlp = 64;

double Epsilon(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return std::ldexp(1, -10);
    case DType::kBF16:
      return std::ldexp(1, -7);
    case DType::kF32:
    case DType::kC64:
      return std::ldexp(1, -23);
    default:
      return std::ldexp(1, -52);
  }
}

// The distance of the numbers near 0.
double SmallestStep(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return std::ldexp(1, -24);
    case DType::kBF16:
      return std::ldexp(1, -133);
    case DType::kF32:
    case DType::kC64:
      return std::ldexp(1, -149);
    default:
      return std::ldexp(1, -1074);
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

// Functions that are rounded correctly, or exact, wherever they are computed.
// Functions of complex numbers are, too: their parts are computed alike.
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
    case Primitive::kReal:
    case Primitive::kImag:
    case Primitive::kComplex:
      return true;
    default:
      return false;
  }
}

// Exact functions that round their result: a quotient does, a maximum does not.
bool Rounds(Primitive primitive) {
  switch (primitive) {
    case Primitive::kSqrt:
    case Primitive::kConvert:
    case Primitive::kAdd:
    case Primitive::kSub:
    case Primitive::kMul:
    case Primitive::kDiv:
    case Primitive::kFma:
      return true;
    default:
      return false;
  }
}

// |x|, as a number of the same dtype.
Tensor Magnitudes(const Tensor& tensor) {
  if (!IsInexact(tensor.dtype())) return tensor;
  Tensor result(tensor.dtype(), tensor.shape());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (IsComplex(tensor.dtype())) {
      result.SetComplex(i, std::abs(tensor.GetComplex(i)));
    } else {
      result.SetDouble(i, std::abs(tensor.GetDouble(i)));
    }
  }
  return result;
}

// Products of two, and what is multiplied on and on.
bool IsProduct(Primitive primitive) {
  return primitive == Primitive::kReduceProd ||
         primitive == Primitive::kLinearScan;
}

// Whether all partial results are whole numbers that the dtype holds, or, of
// sums, quarters of them. `bound` is of magnitudes; those of products below 1
// count as 1, so that no partial product is larger.
bool IsExactSum(Primitive primitive, const std::vector<Tensor>& operands,
                const Tensor& bound) {
  const double parts = IsProduct(primitive) ? 1 : 4;
  for (const Tensor& operand : operands) {
    if (!IsInexact(operand.dtype())) continue;
    for (int64_t i = 0; i < Parts(operand); ++i) {
      const double scaled = GetPart(operand, i) * parts;
      if (scaled != std::floor(scaled)) return false;
    }
  }
  const double most = 1 / (32 * Epsilon(bound.dtype()));
  for (int64_t i = 0; i < Parts(bound); ++i) {
    if (!(GetPart(bound, i) < most)) return false;
  }
  return true;
}

// `change` of each magnitude; complex magnitudes have no second part.
template <typename Change>
Tensor Changed(const Tensor& magnitudes, const Change& change) {
  if (!IsInexact(magnitudes.dtype())) return magnitudes;
  Tensor result(magnitudes.dtype(), magnitudes.shape());
  for (int64_t i = 0; i < result.size(); ++i) {
    const int64_t at = i * PartsOf(result.dtype());
    SetPart(result, at, change(GetPart(magnitudes, at)));
  }
  return result;
}

// The product at the changed magnitudes.
template <typename Change>
absl::StatusOr<Tensor> ProductOf(const EvaluatedNode& node,
                                 const std::vector<Tensor>& magnitudes,
                                 const Change& change) {
  std::vector<Tensor> changed;
  for (const Tensor& tensor : magnitudes) {
    changed.push_back(Changed(tensor, change));
  }
  CLEAVE_ASSIGN_OR_RETURN(
      std::vector<Tensor> products,
      EvalReference(node.primitive, node.graph.attributes(node.value),
                    changed));
  return std::move(products[0]);
}

// A part is NaN, which decides nothing, where `leaves(at)`: the sum or product
// whose magnitude stands at `at` may leave the range.
template <typename Leaves>
void MarkLeaving(Tensor& result, const Leaves& leaves) {
  const int parts = PartsOf(result.dtype());
  Tensor noisy(result.dtype(), result.shape());
  for (int64_t i = 0; i < Parts(result); ++i) {
    SetPart(noisy, i, leaves(i / parts * parts) ? NAN : GetPart(result, i));
  }
  result = noisy;
}

// In some order a product of a part of the factors leaves the range, whatever
// the whole is: 1e-310 1e-45 1e300 is 0, or 1e-55. There the result is NaN,
// which decides nothing.
absl::Status AddRangeNoise(const EvaluatedNode& node,
                           const std::vector<Tensor>& magnitudes,
                           const Tensor& largest) {
  CLEAVE_ASSIGN_OR_RETURN(
      const Tensor smallest,
      ProductOf(node, magnitudes, [](double x) { return x > 1 ? 1 : x; }));
  // Without these a zero would look like an underflow.
  CLEAVE_ASSIGN_OR_RETURN(
      const Tensor factors,
      ProductOf(node, magnitudes, [](double x) { return x == 0 ? 0 : 1; }));
  const DType dtype = node.results[0].dtype();
  const double least = SmallestStep(dtype) / Epsilon(dtype);
  MarkLeaving(node.results[0], [&](int64_t at) {
    return !std::isfinite(GetPart(largest, at)) ||
           (GetPart(smallest, at) < least && GetPart(factors, at) != 0);
  });
  return absl::OkStatus();
}

// About how many roundings one element of a sum has gone through.
double Terms(const EvaluatedNode& node) {
  const double result = std::max<double>(1, node.results[0].size());
  const double first = node.operands.empty() ? 1 : node.operands[0].size();
  switch (node.primitive) {
    case Primitive::kScatter:
      return node.operands[2].size();
    case Primitive::kLinearScan: {
      const auto& shape = node.results[0].shape();
      return 2.0 * shape[node.graph.attributes(node.value).GetInt("axis")];
    }
    default:
      if (ClassOf(node.primitive) == PrimitiveClass::kContraction) {
        // [b, m, k] [b, k, n] -> [b, m, n]
        return std::sqrt(first * node.operands[1].size() / result) + 1;
      }
      return first / result + 1;
  }
}

// Each part off by half of `ulp` to `ulp` units in the last place of the
// element of `scale`: with one unit every part moves, so that a few samples
// show it.
void AddNoise(Tensor& tensor, const Tensor& scale, double ulp, Random& random) {
  Tensor moved(tensor.dtype(), tensor.shape());
  const int parts = PartsOf(tensor.dtype());
  for (int64_t i = 0; i < Parts(tensor); ++i) {
    const double value = GetPart(tensor, i);
    const double sign = random.Between(0, 1) == 0 ? -1 : 1;
    const double units =
        sign * ulp * static_cast<double>(random.Between(500, 1000)) / 1000;
    double size = std::abs(GetPart(scale, i / parts * parts));
    if (parts == 2) size = std::hypot(size, GetPart(scale, i / 2 * 2 + 1));
    const double unit = std::max(size * Epsilon(tensor.dtype()),
                                 size > 0 ? SmallestStep(tensor.dtype()) : 0);
    SetPart(moved, i, std::isfinite(size) ? value + units * unit : value);
  }
  tensor = moved;
}

// The terms of sums of 16 bits are kept in f32.
double SumUlp(const EvaluatedNode& node) {
  const double terms = Terms(node) / 3;
  const DType dtype = node.results[0].dtype();
  const bool narrow = dtype == DType::kF16 || dtype == DType::kBF16;
  return std::max(
      kSumUlp, narrow ? terms * Epsilon(DType::kF32) / Epsilon(dtype) : terms);
}

// The same numbers in f32.
Tensor Widened(const Tensor& tensor) {
  Tensor result(DType::kF32, tensor.shape());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    result.SetDouble(i, tensor.GetDouble(i));
  }
  return result;
}

// In some order a part of the finite terms leaves the range, whatever the whole
// is: 3e38 + 3e38 - 3e38 is 3e38, or inf, and beside -inf it is -inf, or NaN.
// f16 is summed in f32; bf16 has the range of f32.
absl::Status AddOverflowNoise(const EvaluatedNode& node,
                              const std::vector<Tensor>& magnitudes) {
  std::vector<Tensor> finite;
  for (const Tensor& tensor : magnitudes) {
    finite.push_back(
        Changed(tensor.dtype() == DType::kF16 ? Widened(tensor) : tensor,
                [](double x) { return std::isfinite(x) ? x : 0.0; }));
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Tensor> bounds,
      EvalReference(node.primitive, node.graph.attributes(node.value), finite));
  MarkLeaving(node.results[0], [&](int64_t at) {
    return !std::isfinite(GetPart(bounds[0], at));
  });
  return absl::OkStatus();
}

absl::Status AddSumNoise(const EvaluatedNode& node, Random& random) {
  std::vector<Tensor> magnitudes;
  for (const Tensor& tensor : node.operands) {
    magnitudes.push_back(Magnitudes(tensor));
  }
  const Attributes& attributes = node.graph.attributes(node.value);
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Tensor> bounds,
      EvalReference(node.primitive, attributes, magnitudes));
  Tensor largest = bounds[0];
  if (IsProduct(node.primitive)) {
    CLEAVE_ASSIGN_OR_RETURN(largest, ProductOf(node, magnitudes, [](double x) {
                              return x < 1 ? 1 : x;
                            }));
  }
  if (IsExactSum(node.primitive, node.operands, largest)) {
    return absl::OkStatus();
  }
  AddNoise(node.results[0], bounds[0], SumUlp(node), random);
  return IsProduct(node.primitive) ? AddRangeNoise(node, magnitudes, largest)
                                   : AddOverflowNoise(node, magnitudes);
}

// Operations that decide the sign of a NaN: they keep, set or move its bits.
// The sign of a NaN that any other operation computes is free.
bool DecidesSignOfNan(Primitive primitive) {
  switch (primitive) {
    case Primitive::kAbs:
    case Primitive::kNeg:
    case Primitive::kBitcastConvert:
    case Primitive::kNograd:
    case Primitive::kCopysign:
    case Primitive::kSelect:
    case Primitive::kReal:
    case Primitive::kImag:
    case Primitive::kComplex:
      return true;
    default:
      return ClassOf(primitive) != PrimitiveClass::kPointwise &&
             !IsSum(primitive);
  }
}

// NaN of either sign.
void AddSignOfNanNoise(Tensor& tensor, Random& random) {
  for (int64_t i = 0; i < Parts(tensor); ++i) {
    if (!std::isnan(GetPart(tensor, i))) continue;
    SetPart(tensor, i, random.Between(0, 1) == 0 ? -NAN : NAN);
  }
}

// Whether a region computes something that is free, or reads a sign that is.
bool HasFreeOperation(const Graph& graph) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    const Primitive primitive = ToPrimitive(graph.node(v).op);
    if (primitive == Primitive::kBitcastConvert ||
        primitive == Primitive::kCopysign) {
      return true;
    }
    if (!IsInexact(graph.type(v).dtype)) continue;
    if (IsSum(primitive)) return true;
    if (ClassOf(primitive) == PrimitiveClass::kControl) return true;
    if (ClassOf(primitive) == PrimitiveClass::kPointwise &&
        !IsExactFunction(primitive)) {
      return true;
    }
  }
  return false;
}

absl::Status AddControlNoise(const EvaluatedNode& node, NoiseOf noise_of,
                             Random& random) {
  if (noise_of == NoiseOf::kAll) {
    for (Tensor& result : node.results) {
      if (IsInexact(result.dtype())) {
        AddNoise(result, result, kRegionUlp, random);
      }
    }
    return absl::OkStatus();
  }
  for (const auto& [name, value] : node.graph.attributes(node.value).values()) {
    if (value.kind() == StaticValue::Kind::kRegion &&
        HasFreeOperation(*value.AsRegion().graph)) {
      return absl::UnimplementedError("a region");
    }
  }
  return absl::OkStatus();
}

// Adds noise to the nodes of one evaluation.
class NoiseSource {
 public:
  NoiseSource(uint64_t seed, NoiseOf noise_of)
      : random_(seed), noise_of_(noise_of) {}

  absl::Status Visit(const EvaluatedNode& node) {
    const bool takes_moved = TakesMoved(node);
    if (ClassOf(node.primitive) == PrimitiveClass::kControl) {
      if (takes_moved) moved_.insert(node.value);
      return AddControlNoise(node, noise_of_, random_);
    }
    Tensor& result = node.results[0];
    if (!IsInexact(result.dtype())) return absl::OkStatus();
    const Tensor settled = result;
    CLEAVE_RETURN_IF_ERROR(AddNodeNoise(node, takes_moved));
    if (takes_moved || !SameValue(result, settled)) moved_.insert(node.value);
    if (!DecidesSignOfNan(node.primitive)) AddSignOfNanNoise(result, random_);
    return absl::OkStatus();
  }

 private:
  bool TakesMoved(const EvaluatedNode& node) const {
    const auto operands = node.graph.operands(node.value);
    return std::any_of(operands.begin(), operands.end(), [&](Value operand) {
      const bool is_result =
          ToPrimitive(node.graph.node(operand).op) == Primitive::kResult;
      return moved_.contains(is_result ? node.graph.operands(operand)[0]
                                       : operand);
    });
  }

  // A sum of a large number and of a small one that is moved seldom moves: a
  // few samples do not show that it rounds to either side. It moves by one
  // unit.
  absl::Status AddNodeNoise(const EvaluatedNode& node, bool takes_moved) {
    Tensor& result = node.results[0];
    if (IsSum(node.primitive)) return AddSumNoise(node, random_);
    if (ClassOf(node.primitive) != PrimitiveClass::kPointwise) {
      return absl::OkStatus();
    }
    if (!IsExactFunction(node.primitive)) {
      AddNoise(result, result, kFunctionUlp, random_);
    } else if (noise_of_ == NoiseOf::kAll ||
               (takes_moved && Rounds(node.primitive))) {
      AddNoise(result, result, 1, random_);
    }
    return absl::OkStatus();
  }

  Random random_;
  NoiseOf noise_of_;
  // Values that noise has changed, or that are computed from such.
  absl::flat_hash_set<Value> moved_;
};

}  // namespace

absl::StatusOr<std::vector<Tensor>> InterpretWithNoise(
    const Graph& graph, const std::vector<Tensor>& inputs, uint64_t seed,
    NoiseOf noise_of) {
  NoiseSource source(seed, noise_of);
  return EvaluateNodes(graph, inputs, [&](const EvaluatedNode& node) {
    return source.Visit(node);
  });
}

}  // namespace cleave::fuzz
