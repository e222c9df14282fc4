#include "testing/check/compare/fast_comparer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "engine/ir/interpreter.h"
#include "testing/check/samples/float_points.h"

namespace cleave {
namespace {

// The factor by which rounding may change an error in ULP that was computed in
// doubles.
constexpr double kErrorOfErrors = 1 + 0x1p-40;

// Decided points that are measured nevertheless: a claim with a condition term
// is larger at some of them than at others.
constexpr size_t kMeasured = 4;

// The units of errors in a dtype, and where its numbers end.
class Format {
 public:
  explicit Format(DType dtype)
      : digits_(SignificandBits(dtype)),
        least_(std::ilogb(FromOrdinal(int64_t{1} << (digits_ - 1), dtype))),
        most_(std::ilogb(FromOrdinal(MaxOrdinal(dtype), dtype))),
        // The largest float and half a unit: from there on it rounds to inf.
        overflow_(std::ldexp(2 - std::ldexp(1.0, -digits_), most_)) {}

  // The largest error in ULP that `got` may have; infinite where it is not
  // known to be small.
  double ErrorOf(const DoubleInterval& expected, double got) const {
    constexpr double kUnknown = std::numeric_limits<double>::infinity();
    if (expected.state == DoubleInterval::State::kNan) {
      return std::isnan(got) ? 0 : kUnknown;
    }
    if (!expected.IsReal() || std::isnan(got)) return kUnknown;
    if (std::isinf(got)) {
      // An infinity of the spec, or a number that rounds to it.
      if (got > 0 ? expected.low >= overflow_ : expected.high <= -overflow_) {
        return 0;
      }
      return kUnknown;
    }
    // Zeros of the other sign are counted by the comparer.
    if (got == 0 &&
        (std::signbit(got) ? expected.high >= 0 : expected.low < 0)) {
      return kUnknown;
    }
    if (!std::isfinite(expected.low) || !std::isfinite(expected.high)) {
      return kUnknown;
    }
    const double smallest =
        expected.low <= 0 && expected.high >= 0
            ? 0
            : std::min(std::abs(expected.low), std::abs(expected.high));
    const int exponent = smallest == 0
                             ? least_
                             : std::clamp(std::ilogb(smallest), least_, most_);
    const double difference =
        std::max(std::abs(got - expected.low), std::abs(got - expected.high));
    return std::ldexp(difference, digits_ - 1 - exponent) * kErrorOfErrors;
  }

 private:
  const int digits_;
  const int least_;
  const int most_;
  const double overflow_;
};

// The doubles of a dtype of 16 bits by those bits.
std::vector<double> MakeTable(DType dtype) {
  Tensor all(dtype, {1 << 16});
  auto* const bits = reinterpret_cast<uint16_t*>(all.mutable_data());
  for (int i = 0; i < 1 << 16; ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<double> values;
  for (int i = 0; i < 1 << 16; ++i) values.push_back(all.GetDouble(i));
  return values;
}

// The elements of a tensor of floats as doubles.
std::vector<double> DoublesOf(const Tensor& tensor) {
  static const auto& f16 = *new std::vector<double>(MakeTable(DType::kF16));
  static const auto& bf16 = *new std::vector<double>(MakeTable(DType::kBF16));
  std::vector<double> values(tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (ByteSize(tensor.dtype()) == 2) {
      uint16_t bits;
      std::memcpy(&bits, tensor.data() + i * sizeof bits, sizeof bits);
      values[i] = (tensor.dtype() == DType::kF16 ? f16 : bf16)[bits];
    } else if (tensor.dtype() == DType::kF32) {
      float value;
      std::memcpy(&value, tensor.data() + i * sizeof value, sizeof value);
      values[i] = value;
    } else {
      values[i] = tensor.GetDouble(i);
    }
  }
  return values;
}

}  // namespace

absl::StatusOr<FastComparer> FastComparer::Make(const ValueComparer& comparer,
                                                Gaps gaps) {
  const SpecReference& reference = comparer.reference();
  if (!comparer.elementwise()) return absl::UnimplementedError("not pointwise");
  FastComparer fast;
  fast.comparer_ = &comparer;
  const Graph& body = comparer.body();
  for (const NamedValue& input : body.inputs()) {
    if (!IsFloat(body.type(input.value).dtype)) {
      return absl::UnimplementedError("an operand is no float");
    }
  }
  absl::StatusOr<DoubleIntervalGraph> spec =
      DoubleIntervalGraph::Make(reference.spec(), gaps);
  if (!spec.ok()) return spec.status();
  fast.spec_ = *std::move(spec);
  for (const auto& [result, graph] : reference.specials()) {
    absl::StatusOr<DoubleIntervalGraph> special =
        DoubleIntervalGraph::Make(graph, gaps);
    if (!special.ok()) return special.status();
    fast.specials_.emplace_back(result, *std::move(special));
  }
  for (size_t r = 0; r < body.outputs().size(); ++r) {
    const DType dtype = comparer.DTypeOf(static_cast<int>(r));
    const std::optional<double> ulp =
        reference.ConstantUlp(static_cast<int>(r));
    if (!IsFloat(dtype) || dtype == DType::kF64 || !ulp) {
      return absl::UnimplementedError(
          "its claim has no part that is the same at all points");
    }
    fast.ulp_.push_back(*ulp);
    fast.dtypes_.push_back(dtype);
  }
  return fast;
}

std::vector<std::vector<DoubleInterval>> FastComparer::Evaluate(
    absl::Span<const Tensor> inputs) const {
  std::vector<std::vector<DoubleInterval>> points;
  for (const Tensor& input : inputs) {
    std::vector<DoubleInterval>& intervals = points.emplace_back();
    for (const double x : DoublesOf(input)) {
      intervals.push_back(DoubleInterval::Of(x));
    }
  }
  std::vector<std::vector<DoubleInterval>> results = spec_.Evaluate(points);
  for (const auto& [result, graph] : specials_) {
    std::vector<std::vector<DoubleInterval>> arguments = points;
    arguments.push_back(std::move(results[result]));
    results[result] = std::move(graph.Evaluate(arguments)[0]);
  }
  return results;
}

std::vector<int64_t> FastComparer::Undecided(absl::Span<const Tensor> inputs,
                                             double known_part) const {
  const int64_t count = inputs[0].size();
  std::vector<int64_t> left;
  const auto got = Interpret(comparer_->body(), inputs);
  const auto outside =
      got.ok() ? comparer_->reference().domain().Outside(inputs, *got)
               : got.status();
  if (!outside.ok()) {
    for (int64_t i = 0; i < count; ++i) left.push_back(i);
    return left;
  }
  const std::vector<std::vector<DoubleInterval>> expected = Evaluate(inputs);
  // Decided points whose part may be above the known one.
  std::vector<std::pair<double, int64_t>> worst;
  for (size_t r = 0; r < ulp_.size(); ++r) {
    const Format format(dtypes_[r]);
    const std::vector<double> values = DoublesOf((*got)[r]);
    for (int64_t i = 0; i < count; ++i) {
      const double error = format.ErrorOf(expected[r][i], values[i]);
      const bool is_outside = !(*outside)[r].empty() && (*outside)[r][i];
      if (is_outside || !(error <= ulp_[r])) {
        left.push_back(i);
      } else if (error / ulp_[r] > known_part) {
        worst.emplace_back(error / ulp_[r], i);
      }
    }
  }
  const size_t measured = std::min(worst.size(), kMeasured);
  std::partial_sort(worst.begin(),
                    worst.begin() + static_cast<int64_t>(measured), worst.end(),
                    std::greater<>());
  for (size_t i = 0; i < measured; ++i) left.push_back(worst[i].second);
  std::sort(left.begin(), left.end());
  left.erase(std::unique(left.begin(), left.end()), left.end());
  return left;
}

}  // namespace cleave
