#include "testing/check/layers/check_host.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "testing/check/compare/compare_host.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/sample_counts.h"
#include "testing/check/samples/shrink.h"
#include "testing/check/samples/shrink_call.h"
#include "testing/check/samples/value_sampler.h"

namespace cleave {
namespace {

// Points of a pointwise call that are compared at a time.
constexpr int64_t kChunk = 4096;
constexpr int64_t kEdgePointsOfKernel = 3000;
constexpr int64_t kVariantEdgePointsOfKernel = 400;
constexpr int kShrinkTrials = 200;
// Around the widths of vectors.
constexpr int64_t kLengths[] = {0, 1, 2, 3, 7, 8, 9, 15, 17, 31, 33, 63, 65};
// Rounds of the search near the largest errors, and the points of each.
constexpr size_t kSources = 12;
constexpr int kSearchRounds = 6;
// How far from a point it looks, in ULP.
constexpr int64_t kSearchSteps[] = {1, 37, 1 << 10, 1 << 15, 1 << 20};
constexpr Pattern kHostPatterns[] = {
    Pattern::kNormal,          Pattern::kWide,         Pattern::kLargeMean,
    Pattern::kOneHuge,         Pattern::kCancellation, Pattern::kTies,
    Pattern::kAllEqual,        Pattern::kUnit,         Pattern::kAllZero,
    Pattern::kEdges,           Pattern::kEdges,        Pattern::kEdges,
    Pattern::kAllMinusInfinity};
// Calls with extents beyond those of vectors and of one block.
constexpr int kLargeCalls = 4;
constexpr int64_t kElementsOfLargeCalls = 300;
constexpr Pattern kPatternsOfLargeCalls[] = {Pattern::kNormal, Pattern::kTies,
                                             Pattern::kEdges};

// The check of one op's kernel.
class HostCheck {
 public:
  explicit HostCheck(const OpContext& context)
      : context_(context), sampler_(context.seed + 10) {}

  Verdict Check(const PreparedCalls& prepared, const PreparedCalls& concrete) {
    const std::vector<PreparedCall> pointwise =
        prepared.elementwise ? prepared.calls : PointwiseOf(concrete);
    for (const PreparedCall& call : pointwise) {
      if (!CheckPointwise(call)) break;
    }
    int accepted = 0;
    for (const PreparedCall& call : concrete.calls) {
      if (refuted_ || context_.Expired()) break;
      if (!CheckPatterns(call, kHostPatterns)) break;
      ++accepted;
    }
    for (const PreparedCall& call : LargerThan(concrete)) {
      if (refuted_ || context_.Expired()) break;
      if (!CheckPatterns(call, kPatternsOfLargeCalls)) break;
    }
    if (refuted_) return std::move(verdict_);
    if (!found_.empty()) AddFindings();
    if (context_.host_survey && verdict_.samples > 0) {
      // It says what there was until then, however little that is.
      if (context_.Expired()) verdict_.notes.push_back(context_.WhyExpired());
    } else if (context_.Expired()) {
      Merge(verdict_, Verdict::Inconclusive(context_.WhyExpired()));
    } else if (verdict_.samples == 0) {
      Merge(verdict_, Verdict::Inconclusive(WhyNothing(prepared, concrete)));
    } else if (pointwise.empty() && accepted < kMinSignatures) {
      Merge(verdict_, Verdict::Inconclusive(
                          absl::StrCat("only ", accepted, " signatures of ",
                                       kMinSignatures, " were accepted")));
    }
    AddNotes();
    return std::move(verdict_);
  }

 private:
  // Where a survey found the largest error of one kind.
  struct Found {
    int64_t count = 0;
    HostComparer comparer;
    std::vector<Tensor> inputs;
    HostFailure worst;
  };

  // The calls that are pointwise at the shape [n], ops of one declared dtype or
  // size included: one call for each choice of dtypes and attributes.
  std::vector<PreparedCall> PointwiseOf(const PreparedCalls& concrete) const {
    std::vector<PreparedCall> found;
    std::set<std::string> seen;
    for (const PreparedCall& prepared : concrete.calls) {
      SampledCall call = prepared.call;
      const std::vector<TensorType> types = call.OperandTypes();
      const bool one_shape =
          !types.empty() && types[0].rank() == 1 &&
          std::all_of(types.begin(), types.end(), [&](const TensorType& t) {
            return t.shape == types[0].shape;
          });
      if (!one_shape) continue;
      for (SampledInput& input : call.inputs) {
        for (auto& type : input.types) {
          if (type) type->shape = {Dim::Variable("n")};
        }
      }
      if (!seen.insert(call.ToString()).second) continue;
      auto graphs = MakeCallGraphs(context_.rules(), call);
      if (!graphs.ok() || !IsElementwise(graphs->body)) continue;
      found.push_back(
          {std::move(call), *std::move(graphs), prepared.default_attributes});
    }
    return found;
  }

  // Some of the calls at larger extents, equal ones equal, where the op accepts
  // them.
  std::vector<PreparedCall> LargerThan(const PreparedCalls& concrete) const {
    static const auto* const kLarger =
        new std::vector<std::map<int64_t, int64_t>>{
            {{2, 17}, {3, 33}, {4, 9}, {5, 20}},
            {{2, 9}, {3, 10}, {4, 6}, {5, 7}}};
    std::vector<PreparedCall> found;
    // The last are the largest, and have the most axes.
    for (auto it = concrete.calls.rbegin();
         it != concrete.calls.rend() && found.size() < kLargeCalls; ++it) {
      for (const auto& extents : *kLarger) {
        SampledCall call = WithExtents(*context_.item, it->call, extents);
        int64_t elements = 0;
        for (const TensorType& type : call.OperandTypes()) {
          int64_t size = 1;
          for (const Dim& dim : type.shape) size *= dim.Value().value_or(1);
          elements += size;
        }
        if (elements > kElementsOfLargeCalls) continue;
        auto graphs = MakeCallGraphs(context_.rules(), call);
        if (!graphs.ok() || HasNegativeExtent(graphs->call)) continue;
        found.push_back({std::move(call), *std::move(graphs), false});
        break;
      }
    }
    return found;
  }

  HostComparer Comparer(SampledCall call, CallGraphs graphs) const {
    return HostComparer(std::move(call), std::move(graphs),
                        *context_.host_kernels, context_.host_tolerance,
                        context_.host_survey);
  }

  // The points of L3 and L4, other lengths, and those that a search finds.
  // False once the kernel is refuted, or no time is left.
  bool CheckPointwise(const PreparedCall& call) {
    const HostComparer comparer = Comparer(call.call, call.graphs);
    if (!comparer.elementwise()) return true;
    int floats = 0;
    for (const TensorType& type : call.call.OperandTypes()) {
      floats += IsFloat(type.dtype);
    }
    const int64_t count =
        floats == 1
            ? (call.default_attributes ? kMinGridPoints : kMinVariantPoints)
            : (call.default_attributes ? kMinTuplePoints
                                       : kMinVariantTuplePoints);
    const std::vector<Tensor> points = sampler_.Points(
        call.call, count, call.default_attributes && floats == 1);
    std::vector<std::pair<double, int64_t>> largest;
    for (int64_t begin = 0; begin < points[0].size(); begin += kChunk) {
      std::vector<int64_t> chunk(std::min(points[0].size() - begin, kChunk));
      std::iota(chunk.begin(), chunk.end(), begin);
      HostComparison comparison;
      if (!CompareAt(comparer, SelectElements(points, chunk), &comparison)) {
        return false;
      }
      for (const auto& [part, element] : comparison.largest) {
        largest.emplace_back(part, begin + element);
      }
    }
    std::sort(largest.rbegin(), largest.rend());
    if (largest.size() > kSources) largest.resize(kSources);
    const std::vector<double> guards = GuardConstants(call.graphs.body);
    const std::vector<Tensor> edges = sampler_.EdgePoints(
        call.call, guards,
        call.default_attributes ? kEdgePointsOfKernel
                                : kVariantEdgePointsOfKernel);
    if (!CompareAt(comparer, edges)) return false;
    for (const int64_t length : kLengths) {
      std::vector<int64_t> some(length);
      for (int64_t& i : some) {
        i = std::uniform_int_distribution<int64_t>(
            0, points[0].size() - 1)(sampler_.random());
      }
      if (!CompareAt(comparer, SelectElements(points, some))) return false;
    }
    return Search(comparer, points, std::move(largest));
  }

  // From the points with the largest errors on to near ones that have larger
  // ones.
  bool Search(const HostComparer& comparer, std::vector<Tensor> points,
              std::vector<std::pair<double, int64_t>> largest) {
    for (int round = 0; round < kSearchRounds && !largest.empty(); ++round) {
      // Each source stays, so that the next round begins no lower.
      constexpr int64_t kNear = 1 + 4 * std::size(kSearchSteps);
      std::vector<int64_t> places;
      for (const auto& [part, element] : largest) {
        places.insert(places.end(), kNear, element);
      }
      points = SelectElements(points, places);
      for (Tensor& tensor : points) {
        if (!IsFloat(tensor.dtype())) continue;
        for (int64_t i = 0; i < tensor.size(); ++i) {
          if (i % kNear != 0) Step(tensor, i, (i % kNear - 1) / 4);
        }
      }
      HostComparison comparison;
      if (!CompareAt(comparer, points, &comparison)) return false;
      largest = std::move(comparison.largest);
    }
    return true;
  }

  void Step(Tensor& tensor, int64_t i, int64_t step) {
    const double value = tensor.GetDouble(i);
    if (!std::isfinite(value)) return;
    const int64_t reach = kSearchSteps[step];
    const int64_t moved =
        Ordinal(value, tensor.dtype()) + std::uniform_int_distribution<int64_t>(
                                             -reach, reach)(sampler_.random());
    const int64_t max = MaxOrdinal(tensor.dtype());
    tensor.SetDouble(i,
                     FromOrdinal(std::clamp(moved, -max, max), tensor.dtype()));
  }

  bool CheckPatterns(const PreparedCall& call,
                     absl::Span<const Pattern> patterns) {
    const HostComparer comparer = Comparer(call.call, call.graphs);
    for (const Pattern pattern : patterns) {
      if (!CompareAt(comparer, sampler_.Tensors(call.call, pattern))) {
        return false;
      }
    }
    return true;
  }

  // Adds what was found to the verdict. False once there is no more to find.
  bool CompareAt(const HostComparer& comparer, absl::Span<const Tensor> inputs,
                 HostComparison* shown = nullptr) {
    if (context_.Expired()) return false;
    const auto comparison = comparer.Compare(inputs);
    if (!comparison.ok()) {
      if (IsBadSample(comparison.status())) return true;
      Merge(verdict_, Verdict::Inconclusive(absl::StrCat(
                          comparer.call().ToString(), ": ",
                          std::string(comparison.status().message()))));
      return !absl::IsResourceExhausted(comparison.status());
    }
    if (comparison->unimplemented) {
      ++unimplemented_;
      why_unimplemented_ = *comparison->unimplemented;
      return true;
    }
    if (context_.host_survey) {
      Keep(comparer, inputs, comparison->failures);
    } else if (comparison->failure) {
      refuted_ = true;
      Merge(verdict_, Verdict::Disagrees(
                          Explain(comparer, inputs, *comparison->failure)));
      return false;
    }
    Verdict agrees = Verdict::Agrees(comparison->samples);
    agrees.worst_ulp = comparison->worst_ulp;
    agrees.worst_part = comparison->worst_part;
    if (comparison->worst_element >= 0 && comparison->worst_ulp > 0) {
      std::vector<Tensor> at(inputs.begin(), inputs.end());
      if (comparer.elementwise()) {
        at = SelectElements(inputs, {comparison->worst_element});
      }
      agrees.worst_at =
          absl::StrCat(DescribeInputs(comparer.call().OperandNames(), at),
                       " in ", DTypeName(MainDType(comparer.call())));
    }
    as_body_ += comparison->as_body;
    undecided_ += comparison->undecided;
    not_compared_ += comparison->not_compared;
    other_zeros_ += comparison->other_zeros;
    if (!comparison->not_real.empty()) not_real_ = comparison->not_real;
    if (agrees.samples > 0) Merge(verdict_, agrees);
    if (shown != nullptr) *shown = *comparison;
    return true;
  }

  // Adds what is off in one comparison to what the survey found.
  void Keep(const HostComparer& comparer, absl::Span<const Tensor> inputs,
            const std::map<HostFailureKind, HostFailures>& failures) {
    for (const auto& [kind, of_kind] : failures) {
      verdict_.samples += of_kind.count;
      const auto before = found_.find(kind);
      int64_t count = of_kind.count;
      if (before != found_.end()) {
        count += before->second.count;
        before->second.count = count;
        if (!(of_kind.worst.ulp > before->second.worst.ulp)) continue;
        found_.erase(before);
      }
      HostFailure worst = of_kind.worst;
      std::vector<Tensor> at(inputs.begin(), inputs.end());
      if (comparer.elementwise() && worst.element >= 0) {
        at = SelectElements(inputs, {worst.element});
        worst.element = 0;
      }
      found_.emplace(kind,
                     Found{count, comparer, std::move(at), std::move(worst)});
    }
  }

  // The verdict of a survey that found something.
  void AddFindings() {
    for (const auto& [kind, found] : found_) {
      HostFinding finding;
      finding.kind = kind;
      finding.count = found.count;
      finding.example = Explain(found.comparer, found.inputs, found.worst);
      if (kind == HostFailureKind::kInaccurate) {
        finding.worst_ulp = found.worst.ulp;
        if (found.comparer.elementwise()) {
          finding.worst_at =
              absl::StrCat(DescribeInputs(found.comparer.call().OperandNames(),
                                          found.inputs),
                           " in ", DTypeName(MainDType(found.comparer.call())));
        }
      }
      verdict_.findings.push_back(std::move(finding));
    }
    Merge(verdict_, Verdict::Disagrees(verdict_.findings.front().example));
  }

  // A counterexample that is as small as can be: of a survey, one of the
  // failure's kind.
  Counterexample Explain(const HostComparer& comparer,
                         absl::Span<const Tensor> inputs,
                         const HostFailure& failure) const {
    CallInputs failing{comparer.call(), {inputs.begin(), inputs.end()}};
    HostFailure shown = failure;
    const auto fails_at = [&](const HostComparer& at,
                              absl::Span<const Tensor> trial) {
      if (context_.Expired()) return false;
      const auto comparison = at.Compare(trial);
      if (!comparison.ok() || !comparison->failure) return false;
      if (!context_.host_survey) {
        shown = *comparison->failure;
        return true;
      }
      const auto same = comparison->failures.find(failure.kind);
      if (same == comparison->failures.end()) return false;
      shown = same->second.worst;
      return true;
    };
    if (comparer.elementwise()) {
      const auto fails = [&](absl::Span<const Tensor> trial) {
        return fails_at(comparer, trial);
      };
      failing.inputs = FewElements(std::move(failing.inputs), failure, fails);
    }
    Concretize(failing);
    const auto fails = [&](const CallInputs& trial) {
      auto graphs = MakeCallGraphs(context_.rules(), trial.call);
      return graphs.ok() && !HasNegativeExtent(graphs->call) &&
             fails_at(Comparer(trial.call, *std::move(graphs)), trial.inputs);
    };
    if (context_.shrinks && fails(failing)) {
      failing = ShrinkCall(*context_.item, std::move(failing), fails);
      auto graphs = MakeCallGraphs(context_.rules(), failing.call);
      if (graphs.ok()) {
        const HostComparer last = Comparer(failing.call, *std::move(graphs));
        failing.inputs = ShrinkValues(
            std::move(failing.inputs),
            [&](absl::Span<const Tensor> trial) {
              return fails_at(last, trial);
            },
            kShrinkTrials);
        // A bad trial may have been the last: the failure shown is that of
        // what is printed.
        fails_at(last, failing.inputs);
      }
    }
    Counterexample example;
    example.call = failing.call.ToString();
    example.inputs =
        DescribeInputs(failing.call.OperandNames(), failing.inputs);
    example.what = shown.what;
    example.expected = shown.expected;
    example.got = shown.got;
    example.ulp = shown.ulp;
    example.bound = shown.bound;
    example.place = context_.Place();
    example.replay = Replay();
    return example;
  }

  // The extents of the tensors in the place of variables.
  static void Concretize(CallInputs& failing) {
    size_t k = 0;
    for (SampledInput& input : failing.call.inputs) {
      for (auto& type : input.types) {
        if (type) type = failing.inputs[k++].type();
      }
    }
  }

  // One element of a pointwise call, or as few as halving leaves.
  static std::vector<Tensor> FewElements(
      std::vector<Tensor> inputs, const HostFailure& failure,
      const std::function<bool(absl::Span<const Tensor>)>& fails) {
    const auto part = [&](int64_t begin, int64_t end) {
      std::vector<int64_t> elements(end - begin);
      std::iota(elements.begin(), elements.end(), begin);
      return SelectElements(inputs, elements);
    };
    if (failure.element >= 0) {
      std::vector<Tensor> one = part(failure.element, failure.element + 1);
      if (fails(one)) return one;
    }
    while (inputs[0].size() > 1) {
      const int64_t size = inputs[0].size();
      bool smaller = false;
      for (const auto& [begin, end] :
           {std::pair(int64_t{0}, size / 2), std::pair(size / 2, size),
            std::pair(int64_t{0}, size - 1), std::pair(int64_t{1}, size)}) {
        std::vector<Tensor> trial = part(begin, end);
        if (!fails(trial)) continue;
        inputs = std::move(trial);
        smaller = true;
        break;
      }
      if (!smaller) break;
    }
    return inputs;
  }

  // Where the kernel is in the host's program, what is run again is written in
  // C++.
  std::string Replay() const {
    if (!context_.host_replay.empty()) {
      return absl::StrCat(context_.Replay(), context_.host_replay);
    }
    std::string text = absl::StrCat("options.ops = \"", context_.item->name,
                                    "\"; options.seed = ", context_.run_seed,
                                    "; options.layers = {Layer::kHostKernel};");
    if (context_.dtypes.empty()) return text;
    return absl::StrCat(text, " options.dtypes = {",
                        absl::StrJoin(context_.dtypes, ", ",
                                      [](std::string* out, DType dtype) {
                                        absl::StrAppend(out, "*ParseDType(\"",
                                                        DTypeName(dtype),
                                                        "\")");
                                      }),
                        "};");
  }

  std::string WhyNothing(const PreparedCalls& prepared,
                         const PreparedCalls& concrete) const {
    if (unimplemented_ > 0) {
      return absl::StrCat("the kernel does no sampled call: ",
                          why_unimplemented_);
    }
    for (const PreparedCalls* calls : {&prepared, &concrete}) {
      if (!calls->problems.empty()) return calls->problems.front();
    }
    return "nothing was compared";
  }

  void AddNotes() {
    const auto note = [&](int64_t count, const auto&... what) {
      if (count > 0) verdict_.notes.push_back(absl::StrCat(count, what...));
    };
    note(unimplemented_,
         " samples that the kernel does not do: ", why_unimplemented_);
    note(as_body_,
         " elements that are what the body gives in floating point, and not "
         "what it means over the reals");
    note(not_compared_, " elements with infinities or NaN, not compared");
    note(undecided_, " elements that no precision decides");
    note(other_zeros_, " zeros of the other sign than the body's");
    if (!not_real_.empty()) {
      verdict_.notes.push_back(
          absl::StrCat("against the body in floating point: ", not_real_));
    }
  }

  const OpContext& context_;
  ValueSampler sampler_;
  Verdict verdict_;
  bool refuted_ = false;
  std::map<HostFailureKind, Found> found_;
  int64_t unimplemented_ = 0;
  std::string why_unimplemented_;
  int64_t as_body_ = 0;
  int64_t undecided_ = 0;
  int64_t not_compared_ = 0;
  int64_t other_zeros_ = 0;
  std::string not_real_;
};

}  // namespace

Verdict CheckHostKernel(const OpContext& context, const PreparedCalls& prepared,
                        const PreparedCalls& concrete) {
  return HostCheck(context).Check(prepared, concrete);
}

}  // namespace cleave
