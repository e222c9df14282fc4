#include "testing/check/layers/check_sweep.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "engine/ir/interpreter.h"
#include "ops/check.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/layers/compare_at.h"
#include "testing/check/reference/double_interval.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/signature_sampler.h"

namespace cleave {
namespace {

constexpr char kPrefix[] = "sweep ";
// Points that are evaluated at a time.
constexpr int64_t kChunk = 4096;
// The factor by which rounding may change an error in ULP that was computed in
// doubles.
constexpr double kErrorOfErrors = 1 + 0x1p-40;

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

// Writes the bits of points [begin, begin + size) to the operands: of one
// operand all bits in ascending order, of two those of the first in the upper
// half of the number.
void FillPoints(int64_t begin, std::vector<Tensor>& operands) {
  const int64_t size = operands[0].size();
  if (operands.size() == 1) {
    auto* const bits = reinterpret_cast<uint32_t*>(operands[0].mutable_data());
    for (int64_t i = 0; i < size; ++i) {
      bits[i] = static_cast<uint32_t>(begin + i);
    }
    return;
  }
  auto* const a = reinterpret_cast<uint16_t*>(operands[0].mutable_data());
  auto* const b = reinterpret_cast<uint16_t*>(operands[1].mutable_data());
  for (int64_t i = 0; i < size; ++i) {
    a[i] = static_cast<uint16_t>((begin + i) >> 16);
    b[i] = static_cast<uint16_t>(begin + i);
  }
}

// Doubles by the bits of a dtype of 16.
std::vector<double> TableOf(DType dtype) {
  Tensor all(dtype, {1 << 16});
  auto* const bits = reinterpret_cast<uint16_t*>(all.mutable_data());
  for (int i = 0; i < 1 << 16; ++i) bits[i] = static_cast<uint16_t>(i);
  std::vector<double> values;
  for (int i = 0; i < 1 << 16; ++i) values.push_back(all.GetDouble(i));
  return values;
}

// The elements of tensors of one dtype.
class Elements {
 public:
  explicit Elements(DType dtype)
      : dtype_(dtype),
        table_(ByteSize(dtype) == 2 ? TableOf(dtype) : std::vector<double>()) {}

  double At(const Tensor& tensor, int64_t i) const {
    if (tensor.dtype() != dtype_) return tensor.GetDouble(i);
    if (table_.empty()) {
      float value;
      std::memcpy(&value, tensor.data() + i * sizeof value, sizeof value);
      return value;
    }
    uint16_t bits;
    std::memcpy(&bits, tensor.data() + i * sizeof bits, sizeof bits);
    return table_[bits];
  }

 private:
  const DType dtype_;
  const std::vector<double> table_;
};

// The spec with its special values, by intervals, and what each result claims.
struct FastReference {
  std::optional<DoubleIntervalGraph> spec;
  std::vector<std::pair<int, DoubleIntervalGraph>> specials;
  std::vector<double> ulp;
  std::vector<Format> formats;

  static absl::StatusOr<FastReference> Make(const ValueComparer& comparer) {
    const SpecReference& reference = comparer.reference();
    FastReference fast;
    absl::StatusOr<DoubleIntervalGraph> spec =
        DoubleIntervalGraph::Make(reference.spec());
    if (!spec.ok()) return spec.status();
    fast.spec = *std::move(spec);
    for (const auto& [result, graph] : reference.specials()) {
      absl::StatusOr<DoubleIntervalGraph> special =
          DoubleIntervalGraph::Make(graph);
      if (!special.ok()) return special.status();
      fast.specials.emplace_back(result, *std::move(special));
    }
    const Graph& body = comparer.body();
    for (size_t r = 0; r < body.outputs().size(); ++r) {
      const DType dtype = body.type(body.outputs()[r].value).dtype;
      const std::optional<double> ulp =
          reference.ConstantUlp(static_cast<int>(r));
      if (!IsFloat(dtype) || dtype == DType::kF64 || !ulp) {
        return absl::UnimplementedError(
            "its claim has no part that is the same at all points");
      }
      fast.ulp.push_back(*ulp);
      fast.formats.emplace_back(dtype);
    }
    return fast;
  }

  std::vector<std::vector<DoubleInterval>> Evaluate(
      const std::vector<std::vector<DoubleInterval>>& inputs) const {
    std::vector<std::vector<DoubleInterval>> results = spec->Evaluate(inputs);
    for (const auto& [result, graph] : specials) {
      std::vector<std::vector<DoubleInterval>> arguments = inputs;
      arguments.push_back(std::move(results[result]));
      results[result] = std::move(graph.Evaluate(arguments)[0]);
    }
    return results;
  }
};

// The call at [n] with the default attributes.
const PreparedCall* CallOf(const PreparedCalls& prepared, const Sweep& sweep) {
  for (const PreparedCall& call : prepared.calls) {
    const std::vector<TensorType> types = call.call.OperandTypes();
    if (call.default_attributes && call.graphs.spec &&
        static_cast<int>(types.size()) == sweep.operands &&
        std::all_of(types.begin(), types.end(), [&](const TensorType& type) {
          return type.dtype == sweep.dtype;
        })) {
      return &call;
    }
  }
  return nullptr;
}

}  // namespace

std::string Sweep::Name() const {
  return absl::StrFormat("%s%s %s %02d/%d", kPrefix, op, DTypeName(dtype), part,
                         parts);
}

std::string WholeSweep(absl::string_view name) {
  if (!absl::StartsWith(name, kPrefix)) return "";
  return std::string(name.substr(0, name.rfind(' ')));
}

std::string OpOfSweep(absl::string_view name) {
  const std::vector<std::string> words = absl::StrSplit(name, ' ');
  return words.size() < 2 || !absl::StartsWith(name, kPrefix) ? "" : words[1];
}

std::vector<Sweep> SweepsOf(const RuleSet& rules, const Item& item,
                            const std::set<DType>& dtypes) {
  std::vector<Sweep> sweeps;
  const size_t operands = item.inputs.size();
  if (item.kind != ItemKind::kOp || item.spec == nullptr || operands < 1 ||
      operands > 2 || rules.Lines(item.name, StatementKind::kResult).empty()) {
    return sweeps;
  }
  const auto calls = rules.SymbolicCalls(item.name);
  if (!calls.ok() || calls->empty()) return sweeps;
  for (const Graph& call : *calls) {
    for (uint32_t id = 0; id < call.size(); ++id) {
      if (IsPrimitive(call.node(Value{id}).op)) continue;
      if (!rules.IsElementwise(call, Value{id}).value_or(false)) return sweeps;
    }
  }
  for (const DType dtype : SignatureSampler(item, /*seed=*/0).DTypes()) {
    // The values of 16 bits of one operand are all in L3.
    if (operands == 1 ? dtype != DType::kF32
                      : !IsFloat(dtype) || ByteSize(dtype) != 2) {
      continue;
    }
    if (!dtypes.empty() && dtypes.count(dtype) == 0) continue;
    for (int part = 1; part <= kSweepParts; ++part) {
      sweeps.push_back({item.name, dtype, static_cast<int>(operands), part});
    }
  }
  return sweeps;
}

Verdict CheckSweep(OpContext context, const Sweep& sweep) {
  context.dtypes = {sweep.dtype};
  context.sizes.clear();
  const PreparedCalls prepared =
      PrepareCalls(context, PrepareConcreteCalls(context));
  const PreparedCall* const call = CallOf(prepared, sweep);
  if (call == nullptr) {
    return prepared.exceeded
               ? Verdict::Inconclusive(prepared.problems.back())
               : Verdict::NotChecked("no call has these operands alone");
  }
  const auto comparer =
      ValueComparer::Make(*context.clauses, call->call, call->graphs);
  if (!comparer.ok()) {
    return Verdict::Inconclusive(std::string(comparer.status().message()));
  }
  if (!comparer->elementwise()) return Verdict::NotChecked("not pointwise");
  const absl::StatusOr<FastReference> fast = FastReference::Make(*comparer);
  if (!fast.ok()) {
    return Verdict::NotChecked(std::string(fast.status().message()));
  }
  const Elements elements(sweep.dtype);
  const int64_t size = kSweepPoints / sweep.parts;
  const int64_t begin = (sweep.part - 1) * size;
  Verdict verdict;
  verdict.kind = VerdictKind::kAgrees;
  verdict.strength = Strength::kExhaustive;
  CompareCounts counts;
  int64_t slow_points = 0;
  std::vector<Tensor> points;
  for (int i = 0; i < sweep.operands; ++i) {
    points.emplace_back(sweep.dtype, std::vector<int64_t>{kChunk});
  }
  std::vector<std::vector<DoubleInterval>> inputs(
      sweep.operands, std::vector<DoubleInterval>(kChunk));
  const size_t results = comparer->body().outputs().size();
  for (int64_t at = begin; at < begin + size; at += kChunk) {
    if (context.Expired()) {
      Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
      break;
    }
    FillPoints(at, points);
    const auto got = Interpret(comparer->body(), points);
    std::vector<int64_t> slow;
    if (got.ok()) {
      for (int k = 0; k < sweep.operands; ++k) {
        for (int64_t i = 0; i < kChunk; ++i) {
          inputs[k][i] = DoubleInterval::Of(elements.At(points[k], i));
        }
      }
      const std::vector<std::vector<DoubleInterval>> expected =
          fast->Evaluate(inputs);
      // The largest error is measured again by the other way, which knows it
      // exactly.
      double worst = verdict.worst_ulp;
      int64_t worst_at = -1;
      for (int64_t i = 0; i < kChunk; ++i) {
        for (size_t r = 0; r < results; ++r) {
          const double error = fast->formats[r].ErrorOf(
              expected[r][i], elements.At((*got)[r], i));
          if (!(error <= fast->ulp[r])) {
            slow.push_back(i);
            break;
          }
          if (error > worst) {
            worst = error;
            worst_at = i;
          }
        }
      }
      if (worst_at >= 0) slow.push_back(worst_at);
      std::sort(slow.begin(), slow.end());
      slow.erase(std::unique(slow.begin(), slow.end()), slow.end());
    } else {
      for (int64_t i = 0; i < kChunk; ++i) slow.push_back(i);
    }
    const auto decided = static_cast<int64_t>((kChunk - slow.size()) * results);
    verdict.samples += decided;
    if (slow.empty()) continue;
    slow_points += static_cast<int64_t>(slow.size());
    const Strength strength = verdict.strength;
    if (!CompareAt(context, *comparer, SelectElements(points, slow), verdict,
                   counts)) {
      verdict.counterexample->replay = absl::StrCat(
          "cleave check ", context.rules().SourceOf(*context.shown).name(),
          " --tier full --op '", sweep.Name(), "' --seed ", context.run_seed);
      return verdict;
    }
    if (verdict.kind == VerdictKind::kAgrees) verdict.strength = strength;
  }
  counts.other_zeros = 0;  // those of the fast points are not counted
  if (verdict.kind == VerdictKind::kAgrees && counts.undecided > 0) {
    verdict.strength = Strength::kSampled;
  }
  AddCountNotes(counts, verdict);
  verdict.notes.push_back(absl::StrCat(
      slow_points, " of ", size, " points by 256 bits, the rest by intervals"));
  return verdict;
}

}  // namespace cleave
