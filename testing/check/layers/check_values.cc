#include "testing/check/layers/check_values.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/compare/fast_comparer.h"
#include "testing/check/layers/compare_at.h"
#include "testing/check/layers/each_call.h"
#include "testing/check/layers/large_calls.h"
#include "testing/check/layers/shape_decides.h"
#include "testing/check/reference/reference.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/sample_counts.h"
#include "testing/check/samples/value_sampler.h"

namespace cleave {
namespace {

// Points of an elementwise call that are compared at a time.
constexpr int64_t kChunk = 4096;
// Tuples of special values.
constexpr int64_t kMaxEdgePoints = 3000;
constexpr int64_t kMaxVariantEdgePoints = 400;
// Draws of numbers of all magnitudes for an elementwise call at a shape.
constexpr int kFarDraws = 3;
// Elements of a call whose body is another one at other shapes: a branch that
// is right elsewhere is met by some.
constexpr int64_t kElementsOfShape = 1024;
// Draws of such a call, at least: an operand may be one number.
constexpr int kDrawsOfShape = 16;

std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> range;
  for (int64_t i = begin; i < end; ++i) range.push_back(i);
  return range;
}

// Sets every other float to one of the guards' constants.
void MeetGuards(const std::vector<double>& guards, ValueSampler& sampler,
                Tensor& tensor) {
  if (!IsFloat(tensor.dtype())) return;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const uint64_t drawn = sampler.random()();
    if (drawn % 2 == 0) {
      tensor.SetDouble(i, guards[drawn / 2 % guards.size()]);
    }
  }
}

// One element of a tensor of floats becomes an infinity, NaN, a zero, a
// denormal or an end of the range.
void PutSpecialValue(ValueSampler& sampler, Tensor& tensor) {
  if (!IsFloat(tensor.dtype()) || tensor.size() == 0) return;
  const std::vector<double> values = SpecialValues(tensor.dtype());
  tensor.SetDouble(static_cast<int64_t>(sampler.random()() % tensor.size()),
                   values[sampler.random()() % values.size()]);
}

}  // namespace

Verdict CheckRounding(const OpContext& context, const PreparedCalls& prepared) {
  ValueSampler sampler(context.seed + 3);
  // Their own draws: those of the other patterns do not move with them.
  ValueSampler further(context.seed + 13);
  ValueSampler ordinary(context.seed + 17);
  ValueSampler of_shapes(context.seed + 19);
  WorstPoints proved;
  const auto elementwise = [&](const PreparedCall& call,
                               const ValueComparer& comparer, Verdict& verdict,
                               CompareCounts& counts) {
    int floats = 0;
    int operands = 0;
    for (const TensorType& type : call.call.OperandTypes()) {
      floats += IsFloat(type.dtype);
      ++operands;
    }
    const int64_t count =
        floats == 1
            ? (call.default_attributes ? kMinGridPoints : kMinVariantPoints)
            : (call.default_attributes ? kMinTuplePoints
                                       : kMinVariantTuplePoints);
    const bool exhaustive = call.default_attributes && floats == 1;
    // The report shows the error at each point.
    const absl::StatusOr<FastComparer> fast =
        context.profiles == nullptr
            ? FastComparer::Make(comparer, Gaps::kUnknown)
            : absl::UnimplementedError("all errors are wanted");
    WorstPoint worst;
    // False once the layer is settled.
    const auto compare = [&](const std::vector<Tensor>& points) {
      for (int64_t begin = 0; begin < points[0].size(); begin += kChunk) {
        if (context.Expired()) {
          Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
          return false;
        }
        std::vector<Tensor> chunk = SelectElements(
            points, Range(begin, std::min(points[0].size(), begin + kChunk)));
        if (fast.ok()) {
          const int64_t size = chunk[0].size();
          // One point of each call at least is measured, and proved.
          const std::vector<int64_t> left = fast->Undecided(
              chunk, worst.element < 0 ? 0 : verdict.worst_part);
          chunk = SelectElements(chunk, left);
          const auto results =
              static_cast<int64_t>(comparer.body().outputs().size());
          const auto decided = size - static_cast<int64_t>(left.size());
          if (decided > 0) Merge(verdict, Verdict::Agrees(decided * results));
          if (left.empty()) continue;
        }
        if (!CompareAt(context, comparer, chunk, verdict, counts, &call,
                       &worst)) {
          return false;
        }
      }
      return true;
    };
    if (!compare(sampler.Points(call.call, count, exhaustive))) return false;
    if (exhaustive && operands == 1 && MainDType(call.call) == DType::kF32 &&
        !compare(ordinary.OrdinaryPoints(call.call, kMinOrdinaryPoints))) {
      return false;
    }
    return ProveAt(context, comparer, worst, verdict, proved);
  };
  const auto structured = [&](const PreparedCall& call,
                              const ValueComparer& comparer, Verdict& verdict,
                              CompareCounts& counts) {
    WorstPoint worst;
    const auto compare = [&](ValueSampler& drawn, Pattern pattern) {
      const auto tensors = drawn.Tensors(call.call, pattern);
      return CompareAt(context, comparer, tensors, verdict, counts, nullptr,
                       &worst);
    };
    for (Pattern pattern : kRoundingPatterns) {
      if (!compare(sampler, pattern)) return false;
    }
    for (Pattern pattern : kFurtherPatterns) {
      if (!compare(further, pattern)) return false;
    }
    return ProveAt(context, comparer, worst, verdict, proved);
  };
  // A large call has few patterns: sums of positive numbers, whose conditions
  // are small, and at the longest extent one number alone, which counts.
  const auto large = [&](const PreparedCall& call,
                         const ValueComparer& comparer, Verdict& verdict,
                         CompareCounts& counts) {
    const int64_t extent = LargestExtent(call.call);
    std::vector<Pattern> patterns = {Pattern::kUnit, Pattern::kNormal};
    if (extent >= kLongestExtent) patterns = {Pattern::kAllEqual};
    if (call.is_dear) patterns = {Pattern::kNormal};
    // Few elements are in a branch of numbers that are far from 1.
    if (prepared.elementwise) {
      patterns.insert(patterns.end(), kFarDraws, Pattern::kWide);
    }
    for (Pattern pattern : patterns) {
      // Indices up to that extent, where no other axis is indexed.
      for (int64_t limit : {extent, int64_t{0}}) {
        const int64_t before = verdict.samples;
        const auto tensors = sampler.Tensors(call.call, pattern, limit);
        if (!CompareAt(context, comparer, tensors, verdict, counts)) {
          return false;
        }
        if (verdict.samples > before) break;
      }
    }
    return true;
  };
  const auto other_shape = [&](const PreparedCall& call,
                               const ValueComparer& comparer, Verdict& verdict,
                               CompareCounts& counts) {
    const std::vector<double> guards = GuardsOf(call, &comparer.reference());
    int64_t elements = 0;
    for (int draw = 0; draw < kDrawsOfShape || elements < kElementsOfShape;
         ++draw) {
      auto tensors = of_shapes.Tensors(call.call, Pattern::kBranches);
      int64_t most = 1;
      for (Tensor& tensor : tensors) {
        most = std::max(most, tensor.size());
        if (!guards.empty() && of_shapes.random()() % 4 == 0) {
          MeetGuards(guards, of_shapes, tensor);
        }
      }
      elements += most;
      if (!CompareAt(context, comparer, tensors, verdict, counts)) return false;
    }
    return true;
  };
  // A body may ask for the rank, or for an extent.
  const auto at_other_shapes = [&](Verdict& verdict) {
    if (prepared.refused) Merge(verdict, *prepared.refused);
    if (verdict.kind == VerdictKind::kAgrees) {
      Merge(verdict, ForEachCall(context, prepared, prepared.large, large));
    }
    if (verdict.kind == VerdictKind::kAgrees) {
      Merge(verdict, ForEachCall(context, prepared,
                                 CallsThatShapesDecide(prepared), other_shape));
    }
  };
  if (prepared.elementwise) {
    Verdict verdict =
        ForEachCall(context, prepared, prepared.calls, elementwise);
    at_other_shapes(verdict);
    AddSampleNotes(prepared, verdict);
    AddProofNote(proved, verdict);
    return verdict;
  }
  Verdict verdict = ForEachCall(context, prepared, prepared.calls, structured);
  if (verdict.kind == VerdictKind::kAgrees) {
    at_other_shapes(verdict);
    AddSampleNotes(prepared, verdict);
    AddProofNote(proved, verdict);
  }
  if (verdict.kind == VerdictKind::kAgrees &&
      static_cast<int>(prepared.calls.size()) < kMinSignatures) {
    verdict = Verdict::Inconclusive(
        absl::StrCat("only ", prepared.calls.size(), " signatures of ",
                     kMinSignatures, " were accepted"));
  }
  return verdict;
}

Verdict CheckEdges(const OpContext& context, const PreparedCalls& prepared) {
  ValueSampler sampler(context.seed + 4);
  const auto visit = [&](const PreparedCall& call,
                         const ValueComparer& comparer, Verdict& verdict,
                         CompareCounts& counts) {
    const std::vector<double> guards = GuardsOf(call, &comparer.reference());
    if (prepared.elementwise && comparer.elementwise()) {
      return CompareAt(
          context, comparer,
          sampler.EdgePoints(
              call.call, guards,
              call.default_attributes ? kMaxEdgePoints : kMaxVariantEdgePoints),
          verdict, counts);
    }
    for (int trial = 0; trial < 5; ++trial) {
      const auto tensors = sampler.Tensors(
          call.call, trial == 4 ? Pattern::kAllMinusInfinity : Pattern::kEdges);
      if (!CompareAt(context, comparer, tensors, verdict, counts)) {
        return false;
      }
    }
    if (guards.empty()) return true;
    std::vector<Tensor> tensors = sampler.Tensors(call.call, Pattern::kNormal);
    for (Tensor& tensor : tensors) MeetGuards(guards, sampler, tensor);
    return CompareAt(context, comparer, tensors, verdict, counts);
  };
  Verdict verdict = ForEachCall(context, prepared, prepared.calls, visit);
  if (prepared.elementwise || verdict.samples > 0 ||
      verdict.kind == VerdictKind::kDisagrees ||
      verdict.kind == VerdictKind::kNotChecked) {
    return verdict;
  }
  // Tensors with many special values may all be outside the op's domain, where
  // one of them among probabilities is inside.
  const auto inside = [&](const PreparedCall& call,
                          const ValueComparer& comparer, Verdict& found,
                          CompareCounts& counts) {
    for (int trial = 0; trial < 10; ++trial) {
      std::vector<Tensor> tensors = sampler.Tensors(
          call.call, trial % 2 == 0 ? Pattern::kUnit : Pattern::kShares);
      for (Tensor& tensor : tensors) {
        // Shares with a special value among them are none.
        if (trial % 2 == 0 || sampler.random()() % 2 == 0) {
          PutSpecialValue(sampler, tensor);
        }
      }
      if (!CompareAt(context, comparer, tensors, found, counts)) return false;
    }
    return true;
  };
  return ForEachCall(context, prepared, prepared.calls, inside);
}

}  // namespace cleave
