#include "testing/check/layers/check_kernels.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/simplify.h"
#include "engine/runtime/kernel.h"
#include "ops/budget.h"
#include "ops/primitive.h"
#include "ops/reference/real.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/sample_counts.h"
#include "testing/check/samples/shrink.h"
#include "testing/check/samples/value_sampler.h"

namespace cleave {
namespace {

constexpr int64_t kKernelPoints = 2000;
constexpr int64_t kKernelEdgePoints = 1000;
// As many elements as several tasks of a parallel loop have.
constexpr int64_t kParallelElements = 1 << 18;
constexpr int kShrinkTrials = 60;
// Around the widths of vectors.
constexpr int64_t kLengths[] = {0, 1, 2, 3, 7, 8, 9, 15, 17, 31, 33, 63, 65};

// Whether the order of operations is free anywhere in the graph.
bool HasFreeOrder(const Graph& graph) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    switch (ClassOf(ToPrimitive(graph.node(Value{id}).op))) {
      case PrimitiveClass::kReduction:
      case PrimitiveClass::kContraction:
      case PrimitiveClass::kScan:
      case PrimitiveClass::kScatter:
        return true;
      case PrimitiveClass::kWindow:
        if (ToPrimitive(graph.node(Value{id}).op) == Primitive::kWindowsAdd) {
          return true;
        }
        break;
      default:
        break;
    }
  }
  return false;
}

// The first `count` elements, or `count` elements over and over.
Tensor Resized(const Tensor& tensor, int64_t count) {
  Tensor result(tensor.dtype(), {count});
  if (tensor.size() == 0) return result;
  const size_t width = tensor.byte_size() / tensor.size();
  for (int64_t i = 0; i < count; i += tensor.size()) {
    const int64_t part = std::min(tensor.size(), count - i);
    std::copy(tensor.data(), tensor.data() + part * width,
              result.mutable_data() + i * width);
  }
  return result;
}

std::vector<Tensor> Resized(absl::Span<const Tensor> tensors, int64_t count) {
  std::vector<Tensor> result;
  for (const Tensor& tensor : tensors) result.push_back(Resized(tensor, count));
  return result;
}

struct Difference {
  std::string what;
  std::string expected;
  std::string got;
  double ulp = 0;
  double bound = 0;
};

using MaybeDifference = std::optional<Difference>;

// The kernels of one call and what they are held to.
class CallKernels {
 public:
  static absl::StatusOr<CallKernels> Make(const OpContext& context,
                                          const PreparedCall& call) {
    CallKernels kernels;
    kernels.body_ = call.graphs.body;
    kernels.free_order_ = HasFreeOrder(call.graphs.body);
    // Kernels are made of what is simplified, and held to what is not.
    const Graph simple = Simplify(call.graphs.body, context.rules());
    for (const bool plain : {false, true}) {
      CompileOptions options;
      options.generalize_extents = true;
      options.plain_schedule = plain;
      absl::StatusOr<Kernel> kernel = Compile(simple, context.rules(), options);
      if (!kernel.ok()) return kernel.status();
      kernels.kernels_.push_back(*std::move(kernel));
    }
    // Without a spec the body over the reals is what is meant; where that
    // cannot be evaluated, the interpreter's result is.
    kernels.has_spec_ = call.graphs.spec.has_value();
    CallGraphs graphs = call.graphs;
    if (!graphs.spec) graphs.spec = graphs.BodyOverReals();
    auto comparer = ValueComparer::Make(*context.clauses, call.call, graphs);
    if (comparer.ok()) kernels.comparer_ = *std::move(comparer);
    return kernels;
  }

  bool compiled() const { return kernels_[0].compiled_groups() > 0; }
  // "`sort`: several results have no vector code", of the last run.
  const std::set<std::string>& references() const { return references_; }

  // Nullopt where all agree. Errors are those of the sample.
  absl::StatusOr<MaybeDifference> Compare(absl::Span<const Tensor> inputs,
                                          Verdict& agrees) {
    const auto want = Interpret(body_, inputs);
    std::vector<std::vector<Tensor>> results;
    for (size_t k = 0; k < kernels_.size(); ++k) {
      for (const bool serial : {false, true}) {
        auto got = Run(k, inputs, serial);
        if (!want.ok() && !got.ok()) return want.status();
        if (EndsCall(want.status())) return want.status();
        if (EndsCall(got.status())) return got.status();
        if (!want.ok() || !got.ok())
          return Refusal(want.status(), got.status());
        if (serial) {
          if (auto d = SameBits(results.back(), *got, "on one thread")) {
            return d;
          }
        } else {
          results.push_back(*std::move(got));
        }
      }
    }
    if (!free_order_) {
      if (auto d = SameBits(results[1], results[0], "against plain loops")) {
        return d;
      }
    }
    for (const std::vector<Tensor>& got : results) {
      auto difference = AgainstInterpreter(inputs, *want, got, agrees);
      if (!difference.ok() || *difference) return difference;
    }
    for (const Tensor& result : *want) agrees.samples += result.size();
    return MaybeDifference();
  }

  // A pointwise call at other lengths: the same elements.
  absl::StatusOr<MaybeDifference> CompareLengths(
      absl::Span<const Tensor> inputs) {
    auto whole = Run(0, inputs, false);
    if (!whole.ok()) return whole.status();
    std::vector<int64_t> lengths(std::begin(kLengths), std::end(kLengths));
    lengths.push_back(kParallelElements + 1);
    for (const int64_t length : lengths) {
      const std::vector<Tensor> part = Resized(inputs, length);
      for (const bool serial : {false, true}) {
        auto got = Run(0, part, serial);
        if (!got.ok()) return got.status();
        if (auto d = SameBits(Resized(*whole, length), *got,
                              absl::StrCat("at ", length, " elements",
                                           serial ? " on one thread" : ""))) {
          return d;
        }
      }
    }
    return MaybeDifference();
  }

 private:
  absl::StatusOr<std::vector<Tensor>> Run(size_t k,
                                          absl::Span<const Tensor> inputs,
                                          bool serial) {
    RunReport report;
    RunOptions options;
    options.call.serial = serial;
    options.report = &report;
    auto results = kernels_[k].Run(inputs, options);
    for (const StepReport& step : report.steps) {
      if (!step.why.empty()) references_.insert(step.why);
    }
    return results;
  }

  static Difference Refusal(const absl::Status& want, const absl::Status& got) {
    return {"one of interpreter and kernel refuses", want.ToString(),
            got.ToString()};
  }

  MaybeDifference SameBits(absl::Span<const Tensor> want,
                           absl::Span<const Tensor> got,
                           const std::string& where) const {
    for (size_t r = 0; r < want.size(); ++r) {
      if (SameValue(want[r], got[r])) continue;
      return Difference{
          absl::StrCat("bits of ", body_.outputs()[r].name, " ", where),
          want[r].ToString(), got[r].ToString()};
    }
    return std::nullopt;
  }

  absl::StatusOr<MaybeDifference> AgainstInterpreter(
      absl::Span<const Tensor> inputs, absl::Span<const Tensor> want,
      absl::Span<const Tensor> got, Verdict& agrees) const {
    std::set<int64_t> differing;
    bool differs = false;
    for (size_t r = 0; r < want.size(); ++r) {
      if (want[r].shape() != got[r].shape() ||
          want[r].dtype() != got[r].dtype()) {
        return MaybeDifference(
            Difference{absl::StrCat("type of ", body_.outputs()[r].name),
                       want[r].type().ToString(), got[r].type().ToString()});
      }
      if (SameValue(want[r], got[r])) continue;
      differs = true;
      for (int64_t i = 0; i < want[r].size(); ++i) {
        const Tensor a = ElementAt(want[r], i);
        if (!SameValue(a, ElementAt(got[r], i))) differing.insert(i);
      }
    }
    if (!differs) return MaybeDifference();
    if (!comparer_) return WithinUndeclared(want, got, agrees);
    std::vector<Tensor> chosen(inputs.begin(), inputs.end());
    std::vector<Tensor> results(got.begin(), got.end());
    if (comparer_->elementwise()) {
      const std::vector<int64_t> elements(differing.begin(), differing.end());
      chosen = SelectElements(inputs, elements);
      results = SelectElements(got, elements);
    }
    const auto comparison = comparer_->CompareResults(chosen, results);
    if (comparison.status().code() == absl::StatusCode::kUnimplemented) {
      return WithinUndeclared(want, got, agrees);
    }
    if (!comparison.ok()) return comparison.status();
    if (comparison->failure && !has_spec_) {
      // Nothing declares how far the body may be from the reals.
      std::vector<Tensor> wanted(want.begin(), want.end());
      if (comparer_->elementwise()) {
        wanted = SelectElements(
            want, std::vector<int64_t>(differing.begin(), differing.end()));
      }
      const auto interpreted = comparer_->CompareResults(chosen, wanted);
      if (interpreted.ok() && interpreted->failure) {
        agrees.notes = {
            "calls at which the interpreter, too, is far from the body over "
            "the reals: without a spec not judged"};
        return MaybeDifference();
      }
    }
    if (comparison->failure) {
      const ValueFailure& failure = *comparison->failure;
      return MaybeDifference(Difference{
          absl::StrCat("value of the kernel's ",
                       body_.outputs()[failure.result].name),
          failure.expected, failure.got, failure.ulp, failure.bound});
    }
    agrees.worst_part = std::max(agrees.worst_part, comparison->worst_part);
    agrees.worst_ulp = std::max(agrees.worst_ulp, comparison->worst_ulp);
    return MaybeDifference();
  }

  static Tensor ElementAt(const Tensor& tensor, int64_t i) {
    const size_t width = tensor.byte_size() / tensor.size();
    Tensor one(tensor.dtype(), {1});
    std::copy(tensor.data() + i * width, tensor.data() + (i + 1) * width,
              one.mutable_data());
    return one;
  }

  // Each element within a few ULP of the interpreter's.
  MaybeDifference WithinUndeclared(absl::Span<const Tensor> want,
                                   absl::Span<const Tensor> got,
                                   Verdict& agrees) const {
    for (size_t r = 0; r < want.size(); ++r) {
      const DType dtype = want[r].dtype();
      for (int64_t i = 0; i < want[r].size(); ++i) {
        if (SameValue(ElementAt(want[r], i), ElementAt(got[r], i))) continue;
        Difference difference{
            absl::StrCat("the kernel's ", body_.outputs()[r].name, "[", i,
                         "] against the interpreter's"),
            ElementAt(want[r], i).ToString(), ElementAt(got[r], i).ToString()};
        if (!IsFloat(dtype)) return difference;
        const double expected = want[r].GetDouble(i);
        difference.ulp = UlpError(Real(expected, kFirstReferenceBits),
                                  got[r].GetDouble(i), dtype);
        difference.bound = kUndeclaredUlp;
        if (!(difference.ulp <= kUndeclaredUlp)) return difference;
        agrees.worst_ulp = std::max(agrees.worst_ulp, difference.ulp);
      }
    }
    return std::nullopt;
  }

  Graph body_;
  bool free_order_ = false;
  bool has_spec_ = false;
  std::vector<Kernel> kernels_;  // by pattern; plain
  std::optional<ValueComparer> comparer_;
  std::set<std::string> references_;
};

Counterexample Example(const OpContext& context, const PreparedCall& call,
                       absl::Span<const Tensor> inputs,
                       const Difference& difference) {
  Counterexample example;
  example.call = call.call.ToString();
  example.inputs = DescribeInputs(call.call.OperandNames(), inputs);
  example.what = difference.what;
  example.expected = difference.expected;
  example.got = difference.got;
  example.ulp = difference.ulp;
  example.bound = difference.bound;
  example.place = context.Place();
  example.replay = absl::StrCat(context.Replay(), " --kernels");
  return example;
}

// As few elements of a pointwise call as halving leaves.
std::vector<Tensor> Halved(
    std::vector<Tensor> inputs,
    const std::function<bool(absl::Span<const Tensor>)>& fails) {
  while (inputs[0].size() > 1) {
    const int64_t half = inputs[0].size() / 2;
    std::vector<int64_t> first(half);
    std::iota(first.begin(), first.end(), 0);
    std::vector<int64_t> second(inputs[0].size() - half);
    std::iota(second.begin(), second.end(), half);
    std::vector<Tensor> trial = SelectElements(inputs, first);
    if (!fails(trial)) trial = SelectElements(inputs, second);
    if (!fails(trial)) break;
    inputs = std::move(trial);
  }
  return inputs;
}

std::vector<std::vector<Tensor>> SamplesOf(const PreparedCall& call,
                                           bool elementwise,
                                           ValueSampler& sampler) {
  if (elementwise) {
    std::vector<double> guards = GuardConstants(call.graphs.body);
    return {sampler.Points(call.call, kKernelPoints, false),
            sampler.EdgePoints(call.call, guards, kKernelEdgePoints)};
  }
  std::vector<std::vector<Tensor>> samples;
  for (const Pattern pattern :
       {Pattern::kNormal, Pattern::kWide, Pattern::kTies, Pattern::kEdges}) {
    samples.push_back(sampler.Tensors(call.call, pattern));
  }
  return samples;
}

}  // namespace

Verdict CheckKernels(const OpContext& context, const PreparedCalls& prepared) {
  if (prepared.calls.empty()) {
    return Verdict::Inconclusive(prepared.problems.empty()
                                     ? "no sampled call is accepted"
                                     : prepared.problems.front());
  }
  Verdict verdict;
  ValueSampler sampler(context.seed + 6);
  std::set<std::string> references;
  for (const PreparedCall& call : prepared.calls) {
    if (context.Expired()) {
      Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
      break;
    }
    if (call.graphs.body.inputs().empty()) continue;
    auto kernels = CallKernels::Make(context, call);
    if (EndsCall(kernels.status())) {
      Merge(verdict,
            Verdict::Inconclusive(std::string(kernels.status().message())));
      continue;
    }
    if (!kernels.ok()) {
      Merge(verdict,
            Verdict::Disagrees(Example(context, call, {},
                                       {"no kernel can be made", "a kernel",
                                        kernels.status().ToString()})));
      return verdict;
    }
    bool ran = false;
    for (std::vector<Tensor>& inputs :
         SamplesOf(call, prepared.elementwise, sampler)) {
      Verdict agrees;
      agrees.kind = VerdictKind::kAgrees;
      absl::StatusOr<MaybeDifference> difference =
          kernels->Compare(inputs, agrees);
      const bool lengths =
          prepared.elementwise && difference.ok() && !*difference;
      if (lengths) difference = kernels->CompareLengths(inputs);
      if (!difference.ok()) {
        if (!IsBadSample(difference.status())) {
          Merge(verdict, Verdict::Inconclusive(absl::StrCat(
                             call.call.ToString(), ": ",
                             std::string(difference.status().message()))));
        }
        continue;
      }
      ran = true;
      if (!*difference) {
        if (kernels->compiled()) Merge(verdict, agrees);
        continue;
      }
      Difference shown = **difference;
      const auto fails = [&](absl::Span<const Tensor> trial) {
        if (context.Expired()) return false;
        Verdict ignored;
        auto again = kernels->Compare(trial, ignored);
        if (!again.ok() || !*again) return false;
        shown = **again;
        return true;
      };
      if (prepared.elementwise) inputs = Halved(std::move(inputs), fails);
      inputs = ShrinkValues(std::move(inputs), fails,
                            context.ShrinkTrials(kShrinkTrials));
      Merge(verdict, Verdict::Disagrees(Example(context, call, inputs, shown)));
      return verdict;
    }
    if (ran)
      references.insert(kernels->references().begin(),
                        kernels->references().end());
  }
  if (references.empty()) return verdict;
  const std::string by_reference =
      absl::StrCat("by reference kernels: ", absl::StrJoin(references, "; "));
  if (verdict.kind == VerdictKind::kNotChecked) {
    verdict.why = by_reference;
  } else {
    verdict.notes.push_back(by_reference);
  }
  return verdict;
}

}  // namespace cleave
