#include "testing/check/samples/value_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "testing/check/samples/float_points.h"
#include "testing/check/samples/int_points.h"

namespace cleave {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<int64_t> ConcreteShape(const TensorType& type) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(dim.Value().value_or(1));
  return shape;
}

// Exponents of operands whose products are ordinary numbers, too.
double MiddleExponent(DType dtype) {
  return dtype == DType::kF64 ? 32 : dtype == DType::kF16 ? 2 : 15;
}

// The exponents of the scale of a pattern of one: squares of kHuge and kTiny
// are out of range, and the numbers are not.
struct Exponents {
  double low = 0;
  double high = 0;
};
Exponents ExponentsOf(DType dtype, Pattern pattern) {
  const bool is_huge = pattern == Pattern::kHuge || pattern == Pattern::kMixed;
  if (!is_huge && pattern != Pattern::kTiny) {
    return {dtype == DType::kF16 ? -7.0 : -20.0, -2};
  }
  switch (dtype) {
    case DType::kF64:
      return is_huge ? Exponents{513, 1015} : Exponents{-1000, -540};
    case DType::kF16:
      return is_huge ? Exponents{8, 12} : Exponents{-12, -8};
    default:
      return is_huge ? Exponents{65, 120} : Exponents{-115, -76};
  }
}

int64_t LargestInt(DType dtype) {
  if (IsBool(dtype)) return 1;
  if (ByteSize(dtype) == 8) return std::numeric_limits<int64_t>::max();
  return (int64_t{1} << (8 * ByteSize(dtype) - (IsSigned(dtype) ? 1 : 0))) - 1;
}

// Shares are multiples of 1 / kWhole, so that every float dtype has them, and
// their sums, exactly.
constexpr int64_t kWhole = 256;

bool HasInt(DType dtype, int64_t value) {
  return value <= LargestInt(dtype) &&
         value >= (IsSigned(dtype) ? -LargestInt(dtype) - 1 : 0);
}

void FillWith(const std::vector<double>& points, Tensor& tensor) {
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetDouble(i, points[i % points.size()]);
  }
}

// Special values and the guards with their neighbours; those beside them, too,
// for an operand that is alone: they would thin out the pairs of several.
Tensor EdgesOfFloats(const std::vector<double>& guards, DType dtype,
                     bool alone) {
  std::vector<double> list = SpecialValues(dtype);
  const std::vector<double> near = GuardValues(guards, dtype);
  list.insert(list.end(), near.begin(), near.end());
  if (alone) {
    const std::vector<double> beside = ValuesBeside(guards, dtype);
    list.insert(list.end(), beside.begin(), beside.end());
  }
  return Tensor::FromDoubles(dtype, {static_cast<int64_t>(list.size())}, list);
}

// The same of integers or bools: all special ones for an operand that is alone.
// A later one may be a divisor, and is not 0.
Tensor EdgesOfInts(const std::vector<int64_t>& guards, DType dtype, bool alone,
                   bool later) {
  std::vector<int64_t> list = {0, 1};
  if (!IsBool(dtype)) {
    if (alone) {
      list = SpecialInts(dtype);
    } else {
      list = {1, 2, 7, LargestInt(dtype)};
      if (IsSigned(dtype)) list.insert(list.end(), {-1, -7});
      if (!later) list.push_back(0);
    }
    for (const int64_t near : IntsNear(guards, dtype)) {
      if (near != 0 || !later) list.push_back(near);
    }
  }
  Tensor tensor(dtype, {static_cast<int64_t>(list.size())});
  for (size_t i = 0; i < list.size(); ++i) tensor.SetInt(i, list[i]);
  return tensor;
}

}  // namespace

bool HasSquareMatrices(const TensorType& type) {
  const size_t rank = type.shape.size();
  return rank >= 2 && type.shape[rank - 1] == type.shape[rank - 2];
}

double ValueSampler::Normal() {
  return std::normal_distribution<double>(0, 1)(random_);
}

double ValueSampler::LogUniform(double low, double high) {
  const double exponent =
      std::uniform_real_distribution<double>(low, high)(random_);
  return (Uniform(0, 1) == 0 ? 1 : -1) * std::exp2(exponent);
}

int64_t ValueSampler::Uniform(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(random_);
}

int64_t ValueSampler::WideInt(DType dtype, const std::vector<int64_t>& near) {
  switch (Uniform(0, near.empty() ? 2 : 3)) {
    case 0:
      return AnyInt(dtype, random_);
    case 1:
      return LogUniformInt(dtype, random_);
    case 2: {
      // Two bits, or one and what stands beside it.
      const int width = 8 * static_cast<int>(ByteSize(dtype));
      const uint64_t power = uint64_t{1} << Uniform(0, width - 1);
      const uint64_t other = Uniform(0, 1) == 0
                                 ? uint64_t{1} << Uniform(0, width - 1)
                                 : static_cast<uint64_t>(Uniform(0, 1));
      const uint64_t bits = Uniform(0, 1) == 0 ? power + other : power - other;
      return IntFromBits(IsSigned(dtype) && Uniform(0, 1) == 0 ? -bits : bits,
                         dtype);
    }
    default:
      return near[Uniform(0, near.size() - 1)];
  }
}

void ValueSampler::FillIndices(Tensor& tensor, int64_t limit,
                               absl::Span<const int64_t> marks) {
  const int64_t last =
      std::clamp<int64_t>(limit - 1, 0, LargestInt(tensor.dtype()));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    tensor.SetInt(i, Uniform(0, last));
    if (marks.empty() || Uniform(0, 3) != 0) continue;
    const int64_t mark = marks[Uniform(0, marks.size() - 1)];
    if (HasInt(tensor.dtype(), mark)) tensor.SetInt(i, mark);
  }
}

void ValueSampler::FillWithShares(Tensor& tensor) {
  const std::vector<int64_t>& shape = tensor.shape();
  if (shape.empty() || tensor.size() == 0) return;
  const bool is_first = Uniform(0, 1) == 0;
  const int64_t count = is_first ? shape.front() : shape.back();
  const int64_t lines = tensor.size() / count;
  for (int64_t line = 0; line < lines; ++line) {
    // The whole is cut at places that differ, but for long lines.
    std::vector<int64_t> cuts = {0, kWhole};
    for (int64_t i = 1; i < count; ++i) {
      int64_t cut = Uniform(1, kWhole - 1);
      const auto is_taken = [&] {
        return std::find(cuts.begin(), cuts.end(), cut) != cuts.end();
      };
      while (count <= kWhole / 4 && is_taken()) cut = Uniform(1, kWhole - 1);
      cuts.push_back(cut);
    }
    std::sort(cuts.begin(), cuts.end());
    for (int64_t i = 0; i < count; ++i) {
      tensor.SetDouble(is_first ? i * lines + line : line * count + i,
                       static_cast<double>(cuts[i + 1] - cuts[i]) / kWhole);
    }
  }
}

void ValueSampler::MakeDiagonalsDominant(Tensor& tensor) {
  if (!HasSquareMatrices(tensor.type())) return;
  const int64_t n = tensor.shape().back();
  // The magnitudes of a row of normal numbers are 0.8 n together.
  const double scale = 0.5 / static_cast<double>(n);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t at = i % (n * n);
    tensor.SetDouble(i,
                     at % (n + 1) == 0
                         ? std::uniform_real_distribution<double>(1, 2)(random_)
                         : scale * tensor.GetDouble(i));
  }
}

void ValueSampler::FillDiscrete(const std::vector<int64_t>& guards,
                                Pattern pattern, Tensor& tensor) {
  const DType dtype = tensor.dtype();
  const bool any = pattern == Pattern::kWide || pattern == Pattern::kEdges;
  std::vector<int64_t> near;
  if (any && !IsBool(dtype)) near = IntsNear(guards, dtype);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (IsBool(dtype)) {
      tensor.SetInt(i, Uniform(0, 1));
      continue;
    }
    int64_t value = IsSigned(dtype) ? Uniform(-9, 9) : Uniform(0, 9);
    if (pattern == Pattern::kWide ||
        (pattern == Pattern::kEdges && Uniform(0, 3) == 0)) {
      value = WideInt(dtype, near);
    } else if (pattern == Pattern::kLargeMean) {
      value = LargestInt(dtype) - std::abs(value);
    } else if (pattern == Pattern::kOneHuge && i == tensor.size() / 2) {
      value = IsSigned(dtype) ? -LargestInt(dtype) - 1 : LargestInt(dtype);
    }
    tensor.SetInt(i, value);
  }
}

void ValueSampler::FillInts(const std::vector<int64_t>& guards, bool nonzero,
                            Tensor& tensor) {
  FillDiscrete({}, Pattern::kNormal, tensor);
  if (IsBool(tensor.dtype())) return;
  const std::vector<int64_t> near = IntsNear(guards, tensor.dtype());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (i % 3 == 0) tensor.SetInt(i, WideInt(tensor.dtype(), near));
    if (nonzero && tensor.GetInt(i) == 0) tensor.SetInt(i, 3);
  }
}

std::vector<Tensor> ValueSampler::Tensors(const SampledCall& call,
                                          Pattern pattern,
                                          int64_t index_limit) {
  const std::vector<TensorType> types = call.OperandTypes();
  const std::vector<bool> indices = call.IndexOperands();
  // Any index is below the least extent, and is an index of that axis alone
  // which has the extent: the op refuses what is too large.
  std::vector<int64_t> extents;
  for (size_t k = 0; k < types.size(); ++k) {
    if (indices[k]) continue;
    for (int64_t extent : ConcreteShape(types[k])) {
      if (extent > 0) extents.push_back(extent);
    }
  }
  std::sort(extents.begin(), extents.end());
  int64_t limit = extents.empty() ? 2 : extents.front();
  std::vector<int64_t> marks;
  const bool any =
      std::find(indices.begin(), indices.end(), true) != indices.end();
  if (any && index_limit == 0 && Uniform(0, 1) == 0) {
    if (!extents.empty()) limit = extents[Uniform(0, extents.size() - 1)];
    // An index that is ignored, say; and one from the end.
    for (const auto& [name, value] : call.attributes.values()) {
      if (value.kind() != StaticValue::Kind::kInt) continue;
      if (const auto mark = value.AsDim().Value()) marks.push_back(*mark);
    }
    if (Uniform(0, 1) == 0) marks.push_back(-Uniform(1, limit));
  }
  if (index_limit > 0) limit = index_limit;
  std::vector<Tensor> tensors;
  for (size_t k = 0; k < types.size(); ++k) {
    Tensor tensor(types[k].dtype, ConcreteShape(types[k]));
    if (!IsFloat(types[k].dtype)) {
      if (indices[k]) {
        FillIndices(tensor, limit, marks);
      } else {
        FillDiscrete(call.int_guards, pattern, tensor);
      }
      tensors.push_back(std::move(tensor));
      continue;
    }
    const int64_t n = tensor.size();
    if (!call.points.empty()) {
      FillWith(call.points, tensor);
      tensors.push_back(std::move(tensor));
      continue;
    }
    const bool narrow = types[k].dtype == DType::kF16;
    const double mean = narrow ? 100 : 1e4;
    const double equal = Normal();
    const double small = pattern == Pattern::kNeighbours
                             ? equal * std::exp2(-Uniform(0, 12))
                             : equal;
    const int64_t zero = n > 0 ? Uniform(0, n - 1) : 0;
    const Exponents exponents = ExponentsOf(types[k].dtype, pattern);
    const double scale = std::abs(LogUniform(exponents.low, exponents.high));
    for (int64_t i = 0; i < n; ++i) {
      double value = Normal();
      switch (pattern) {
        case Pattern::kNormal:
        case Pattern::kEdges:
          break;
        case Pattern::kWide:
          value = narrow ? LogUniform(-6, 4) : LogUniform(-12, 12);
          break;
        case Pattern::kLargeMean:
          value += mean;
          break;
        case Pattern::kCancellation:
          value = i % 2 == 1 ? -tensor.GetDouble(i - 1) * (1 + 0.01 * value)
                             : 10 * value;
          break;
        case Pattern::kOneHuge:
          if (i == n / 2) value = narrow ? 200 : 1e8;
          break;
        case Pattern::kTies:
          value = static_cast<double>(Uniform(-1, 2));
          break;
        case Pattern::kNeighbours:
          value = FromOrdinal(
              Ordinal(RoundToDType(small, types[k].dtype), types[k].dtype) +
                  Uniform(-1, 1),
              types[k].dtype);
          break;
        case Pattern::kAllEqual:
          value = equal;
          break;
        case Pattern::kUnit:
          value = std::uniform_real_distribution<double>(0.001, 0.999)(random_);
          break;
        case Pattern::kAllMinusInfinity:
          value = -kInfinity;
          break;
        case Pattern::kFar:
          if (i % 2 == 1) value *= narrow ? 20 : 1000;
          break;
        case Pattern::kAllZero:
          value = 0;
          break;
        case Pattern::kDominated:
          value = i == zero ? 0 : -std::abs(LogUniform(0, 3.7));
          break;
        case Pattern::kSmall:
        case Pattern::kHuge:
        case Pattern::kTiny:
          value *= scale;
          break;
        case Pattern::kMixed:
          if (Uniform(0, 2) == 0) value *= scale;
          break;
        case Pattern::kBranches:
          value = Uniform(0, 1) == 0 ? static_cast<double>(Uniform(-4, 4))
                                     : LogUniform(-6, 10);
          break;
        case Pattern::kShares:
        case Pattern::kDominant:
          break;
      }
      tensor.SetDouble(i, value);
    }
    if (pattern == Pattern::kShares) FillWithShares(tensor);
    if (pattern == Pattern::kDominant) MakeDiagonalsDominant(tensor);
    if (pattern == Pattern::kEdges && n > 0) {
      static constexpr double kEdges[] = {
          kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(),
          0.0,       -0.0,       1.0};
      const int64_t count = Uniform(1, 2);
      for (int64_t i = 0; i < count; ++i) {
        tensor.SetDouble(Uniform(0, n - 1), kEdges[Uniform(0, 5)]);
      }
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<Tensor> ValueSampler::GivenPoints(const SampledCall& call) {
  const auto count = static_cast<int64_t>(call.points.size());
  std::vector<Tensor> tensors;
  for (const TensorType& type : call.OperandTypes()) {
    Tensor& tensor =
        tensors.emplace_back(type.dtype, std::vector<int64_t>{count});
    if (IsFloat(type.dtype)) {
      FillWith(call.points, tensor);
    } else {
      FillDiscrete({}, Pattern::kNormal, tensor);
    }
  }
  return tensors;
}

std::vector<Tensor> ValueSampler::Points(const SampledCall& call, int64_t count,
                                         bool exhaustive) {
  if (!call.points.empty()) return GivenPoints(call);
  const std::vector<TensorType> types = call.OperandTypes();
  int floats = 0;
  for (const TensorType& type : types) floats += IsFloat(type.dtype);
  std::vector<Tensor> tensors;
  std::vector<double> grid;
  if (floats == 1) {
    for (const TensorType& type : types) {
      if (!IsFloat(type.dtype)) continue;
      grid = exhaustive && ByteSize(type.dtype) == 2
                 ? AllValues(type.dtype)
                 : UlpUniformGrid(type.dtype, count, random_);
    }
    count = static_cast<int64_t>(grid.size());
  }
  bool later = false;         // an operand that may be a divisor
  std::vector<double> first;  // the operand before: neighbours of its values
  for (const TensorType& type : types) {
    Tensor tensor(type.dtype, {count});
    if (!IsFloat(type.dtype)) {
      FillInts(call.int_guards, later, tensor);
      later = true;
    } else if (floats == 1) {
      for (int64_t i = 0; i < count; ++i) tensor.SetDouble(i, grid[i]);
    } else {
      const int64_t max = MaxOrdinal(type.dtype);
      const double middle = MiddleExponent(type.dtype);
      std::vector<double> values(count);
      for (int64_t i = 0; i < count; ++i) {
        switch (first.empty() ? i % 4 : Uniform(0, 4)) {
          case 0:  // anywhere, up to the ends of the range
            values[i] = FromOrdinal(Uniform(-max, max), type.dtype);
            break;
          case 1:
            values[i] = LogUniform(-4, 4);
            break;
          case 2:
            values[i] = Normal();
            break;
          case 3:
            values[i] = Uniform(0, 3) == 0 ? static_cast<double>(Uniform(-3, 3))
                                           : LogUniform(-middle, middle);
            break;
          default: {  // near the other operand, or its opposite
            const double other = RoundToDType(first[i], type.dtype);
            values[i] =
                std::isfinite(other)
                    ? FromOrdinal(std::clamp(Ordinal(other, type.dtype) +
                                                 Uniform(-3, 3),
                                             -max, max),
                                  type.dtype)
                    : other;
            if (Uniform(0, 1) == 0) values[i] = -values[i];
          }
        }
        tensor.SetDouble(i, values[i]);
      }
      first = std::move(values);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<Tensor> ValueSampler::OrdinaryPoints(const SampledCall& call,
                                                 int64_t count) {
  if (!call.points.empty()) return GivenPoints(call);
  std::vector<Tensor> tensors;
  for (const TensorType& type : call.OperandTypes()) {
    Tensor tensor(type.dtype, {count});
    for (int64_t i = 0; i < count; ++i) tensor.SetDouble(i, LogUniform(-6, 10));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<Tensor> ValueSampler::EdgePoints(const SampledCall& call,
                                             const std::vector<double>& guards,
                                             int64_t limit) {
  if (!call.points.empty()) return GivenPoints(call);
  const std::vector<TensorType> types = call.OperandTypes();
  std::vector<Tensor> lists;
  int64_t total = 1;
  for (const TensorType& type : types) {
    const bool later = !lists.empty();
    lists.push_back(IsFloat(type.dtype)
                        ? EdgesOfFloats(guards, type.dtype, types.size() == 1)
                        : EdgesOfInts(call.int_guards, type.dtype,
                                      types.size() == 1, later));
    total *= lists.back().size();
  }
  const int64_t count = std::min(total, limit);
  std::vector<Tensor> tensors;
  for (const TensorType& type : types)
    tensors.emplace_back(type.dtype, std::vector<int64_t>{count});
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = total <= limit ? i : Uniform(0, total - 1);
    for (size_t k = 0; k < types.size(); ++k) {
      const int64_t at = place % lists[k].size();
      place /= lists[k].size();
      if (IsFloat(types[k].dtype)) {
        tensors[k].SetDouble(i, lists[k].GetDouble(at));
      } else {
        tensors[k].SetInt(i, lists[k].GetInt(at));
      }
    }
  }
  return tensors;
}

std::vector<Tensor> ValueSampler::CellPoints(const SampledCall& call,
                                             const std::vector<double>& guards,
                                             int64_t count) {
  if (!call.points.empty()) return GivenPoints(call);
  const std::vector<TensorType> types = call.OperandTypes();
  std::vector<double> bounds = guards;
  std::sort(bounds.begin(), bounds.end());
  const int64_t cells = static_cast<int64_t>(bounds.size()) + 1;
  const int64_t total = cells * count;
  std::vector<Tensor> tensors;
  for (const TensorType& type : types) {
    Tensor tensor(type.dtype, {total});
    if (!IsFloat(type.dtype)) {
      FillInts(call.int_guards, !tensors.empty(), tensor);
      tensors.push_back(std::move(tensor));
      continue;
    }
    for (int64_t i = 0; i < total; ++i) {
      // Operands take their cells apart.
      const int64_t cell = tensors.empty() ? i / count : Uniform(0, cells - 1);
      const double distance =
          i % 2 == 0 ? std::abs(LogUniform(-20, 8)) : std::abs(3 * Normal());
      double value;
      if (bounds.empty()) {
        value = LogUniform(0, 0) * distance;
      } else if (cell == 0) {
        value = bounds.front() - distance;
      } else if (cell == cells - 1) {
        value = bounds.back() + distance;
      } else {
        value = bounds[cell - 1] +
                std::uniform_real_distribution<double>(0, 1)(random_) *
                    (bounds[cell] - bounds[cell - 1]);
      }
      tensor.SetDouble(i, value);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Tensor ValueSampler::Tangent(const TensorType& type) {
  Tensor tensor(type.dtype, ConcreteShape(type));
  for (int64_t i = 0; i < tensor.size(); ++i) tensor.SetDouble(i, Normal());
  return tensor;
}

}  // namespace cleave
