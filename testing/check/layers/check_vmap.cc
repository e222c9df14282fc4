#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "testing/check/layers/check_transforms.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/reference/work.h"
#include "testing/check/samples/shrink.h"
#include "testing/check/samples/value_sampler.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

// Inputs that are drawn until one is no bad sample.
constexpr int kDraws = 4;
constexpr int kShrinkTrials = 120;
// Calls at which many examples are batched, too, and the elements that this may
// compute. Different examples that these repeat: a prime number, so that two
// which lie a power of two apart differ.
constexpr int kManyExamplesCalls = 2;
constexpr double kManyExamplesWork = 1e6;
constexpr int64_t kDifferentExamples = 7;
constexpr int64_t kManyExamples[] = {257,  511,  512,  513,  1023, 1024, 1025,
                                     2047, 2048, 2049, 4095, 4096, 4097};

// Subsets of the operands that are batched: all, the floats, each alone, and
// those of the op's overrides.
std::vector<std::vector<bool>> Subsets(const RuleSet& rules,
                                       const SampledCall& call) {
  const std::vector<TensorType> types = call.OperandTypes();
  std::vector<std::vector<bool>> subsets;
  const auto add = [&](std::vector<bool> subset) {
    if (std::find(subset.begin(), subset.end(), true) != subset.end() &&
        std::find(subsets.begin(), subsets.end(), subset) == subsets.end()) {
      subsets.push_back(std::move(subset));
    }
  };
  std::vector<bool> floats(types.size());
  for (size_t k = 0; k < types.size(); ++k) floats[k] = IsFloat(types[k].dtype);
  add(std::vector<bool>(types.size(), true));
  add(floats);
  for (size_t k = 0; k < types.size() && k < 4; ++k) {
    std::vector<bool> alone(types.size());
    alone[k] = true;
    add(std::move(alone));
  }
  const std::vector<std::string> names = call.OperandNames();
  for (const RuleSet::Line& line : rules.Lines(call.op, StatementKind::kVmap)) {
    std::vector<bool> given(types.size());
    for (const Statement::OverrideInput& input : line.statement->inputs) {
      for (size_t k = 0; k < types.size(); ++k) {
        if (names[k] == input.name) given[k] = !input.unbatched;
      }
    }
    add(std::move(given));
  }
  return subsets;
}

struct BatchFailure {
  std::string what;
  std::string expected;
  std::string got;
};

// The examples that are compared: all of a few; of many, the ends and those
// beside powers of two.
std::vector<int64_t> Compared(int64_t batch) {
  std::vector<int64_t> examples;
  for (int64_t b = 0; b < batch; ++b) {
    const bool beside_power =
        ((b + 1) & b) == 0 || (b & (b - 1)) == 0 || ((b - 1) & (b - 2)) == 0;
    if (b < 8 || beside_power || b == batch - 1) examples.push_back(b);
  }
  return examples;
}

// The operands of example `b`.
std::vector<Tensor> SlicesOf(absl::Span<const Tensor> inputs,
                             const std::vector<bool>& batched, int64_t b) {
  std::vector<Tensor> slices;
  for (size_t k = 0; k < inputs.size(); ++k) {
    slices.push_back(batched[k] ? SliceOf(inputs[k], b) : inputs[k]);
  }
  return slices;
}

// The batched graph against the loop over the slices of `inputs`.
absl::StatusOr<std::optional<BatchFailure>> CompareWithLoop(
    const Graph& body, const Graph& batched_graph,
    absl::Span<const Tensor> inputs, const std::vector<bool>& batched,
    int64_t batch) {
  const absl::StatusOr<std::vector<Tensor>> batched_results =
      Interpret(batched_graph, inputs);
  std::optional<BatchFailure> failure;
  if (IsBadSample(batched_results.status())) {
    // The sample is a bad one if the loop cannot take it; that of no examples
    // takes any, out of range as they may be.
    if (batch == 0) return batched_results.status();
    for (int64_t b = 0; b < batch; ++b) {
      CLEAVE_RETURN_IF_ERROR(
          Interpret(body, SlicesOf(inputs, batched, b)).status());
    }
    failure = BatchFailure{"it has no value", "a value",
                           std::string(batched_results.status().message())};
    return failure;
  }
  CLEAVE_RETURN_IF_ERROR(batched_results.status());
  const std::vector<Tensor>& got = *batched_results;
  for (size_t r = 0; r < got.size(); ++r) {
    if (got[r].rank() == 0 || got[r].shape()[0] != batch) {
      failure = BatchFailure{absl::StrCat("shape of result ", r),
                             absl::StrCat("a leading axis of ", batch),
                             got[r].type().ToString()};
      return failure;
    }
  }
  for (int64_t b : Compared(batch)) {
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> want,
                            Interpret(body, SlicesOf(inputs, batched, b)));
    for (size_t r = 0; r < want.size(); ++r) {
      const Tensor slice = SliceOf(got[r], b);
      if (!SameValue(slice, want[r])) {
        failure = BatchFailure{
            absl::StrCat("result ", body.outputs()[r].name, " of example ", b),
            want[r].ToString(), slice.ToString()};
        return failure;
      }
    }
  }
  return failure;
}

// Operands of which some have a leading axis of `batch` different examples.
std::vector<Tensor> BatchedInputs(const SampledCall& call, int number,
                                  const std::vector<bool>& batched,
                                  int64_t batch, ValueSampler& sampler) {
  std::vector<std::vector<Tensor>> examples;
  const int64_t different = std::clamp<int64_t>(batch, 1, kDifferentExamples);
  for (int64_t b = 0; b < different; ++b) {
    examples.push_back(sampler.Tensors(
        call, static_cast<Pattern>((number + b) % kNumPatterns)));
  }
  std::vector<Tensor> inputs;
  for (size_t k = 0; k < batched.size(); ++k) {
    std::vector<Tensor> slices;
    for (int64_t b = 0; b < batch; ++b) {
      slices.push_back(examples[b % different][k]);
    }
    inputs.push_back(batched[k] ? Stack(examples[0][k], slices)
                                : examples[0][k]);
  }
  return inputs;
}

// The batches of call number `number` (from 1) of an op: none, one, a few; and
// many for the first ones with elements.
std::vector<int64_t> Batches(const PreparedCall& prepared, int number,
                             int& many, ValueSampler& sampler) {
  std::vector<int64_t> batches = {number % 5 == 3   ? 0
                                  : number % 5 == 4 ? 1
                                                    : 3};
  for (const TensorType& type : prepared.call.OperandTypes()) {
    for (const Dim& dim : type.shape) {
      if (dim.Value().value_or(0) == 0) return batches;
    }
  }
  if (many == kManyExamplesCalls) return batches;
  // The least first: a batch that every one of them exceeds.
  int64_t batch = kManyExamples[0];
  if (many > 0) {
    batch = kManyExamples[sampler.random()() % std::size(kManyExamples)];
  }
  while (batch > kManyExamples[0] &&
         WorkOf(prepared.graphs) * static_cast<double>(batch) >
             kManyExamplesWork) {
    batch = std::max(kManyExamples[0], batch / 2 + 1);
  }
  ++many;
  batches.push_back(batch);
  return batches;
}

// The check of one call, batched over one subset of its operands.
class BatchCheck {
 public:
  BatchCheck(const OpContext& context, const PreparedCall& prepared,
             std::vector<bool> batched, int64_t batch, const RuleSet& rules)
      : context_(context),
        prepared_(prepared),
        batched_(std::move(batched)),
        batch_(batch) {
    std::vector<int> in_axes;
    for (bool b : batched_) in_axes.push_back(b ? 0 : kNotMapped);
    const std::vector<int> out_axes(prepared.graphs.call.outputs().size(), 0);
    graph_ = Vmap(prepared.graphs.call, in_axes, Dim(batch), out_axes, rules);
    if (graph_.ok()) graph_ = Expand(*graph_, context.rules());
  }

  // The verdict on inputs drawn for the call number `number`; nullopt where all
  // of them are bad samples.
  std::optional<Verdict> Check(int number, ValueSampler& sampler) {
    if (!graph_.ok() && !IsImpossible(graph_.status())) {
      return NotTransformed(context_, prepared_.call, "vmap", graph_.status());
    }
    std::vector<Tensor> inputs;
    absl::StatusOr<std::optional<BatchFailure>> failure;
    for (int draw = 0; draw < kDraws; ++draw) {
      inputs = BatchedInputs(prepared_.call, number, batched_, batch_, sampler);
      failure = Compare(inputs);
      if (!IsBadSample(failure.status())) break;
    }
    if (IsBadSample(failure.status())) return std::nullopt;
    if (!failure.ok()) {
      const std::string message(failure.status().message());
      if (IsImpossible(failure.status())) return Verdict::NotChecked(message);
      return Verdict::Inconclusive(
          absl::StrCat("vmap of ", prepared_.call.ToString(), ": ", message));
    }
    if (*failure) return Explain(std::move(inputs), **failure);
    Verdict agrees = Verdict::Agrees(1);
    return agrees;
  }

 private:
  absl::StatusOr<std::optional<BatchFailure>> Compare(
      absl::Span<const Tensor> inputs) const {
    if (!graph_.ok()) return graph_.status();
    return CompareWithLoop(prepared_.graphs.body, *graph_, inputs, batched_,
                           batch_);
  }

  Verdict Explain(std::vector<Tensor> inputs, BatchFailure shown) const {
    const int trials =
        context_.ShrinkTrials(batch_ > kDifferentExamples ? 0 : kShrinkTrials);
    inputs = ShrinkValues(
        std::move(inputs),
        [&](absl::Span<const Tensor> trial) {
          if (context_.Expired()) return false;
          const auto again = Compare(trial);
          if (!again.ok() || !*again) return false;
          shown = **again;
          return true;
        },
        trials);
    Counterexample example;
    example.call = prepared_.call.ToString();
    const std::vector<std::string> names = prepared_.call.OperandNames();
    std::vector<std::string> over;
    for (size_t k = 0; k < names.size(); ++k) {
      if (batched_[k]) over.push_back(names[k]);
    }
    example.inputs = DescribeInputs(names, inputs);
    example.what = absl::StrCat("vmap over ", absl::StrJoin(over, ", "),
                                " is not the loop: ", shown.what);
    example.expected = shown.expected;
    example.got = shown.got;
    example.place = context_.Place();
    example.replay = context_.Replay();
    return Verdict::Disagrees(std::move(example));
  }

  const OpContext& context_;
  const PreparedCall& prepared_;
  std::vector<bool> batched_;
  int64_t batch_;
  absl::StatusOr<Graph> graph_;
};

}  // namespace

Verdict CheckVmap(const OpContext& context, const PreparedCalls& concrete,
                  const RuleSet& rules) {
  if (concrete.calls.empty()) {
    return Verdict::Inconclusive(concrete.problems.empty()
                                     ? "no sampled call is accepted"
                                     : concrete.problems.front());
  }
  Verdict verdict;
  ValueSampler sampler(context.seed + 5);
  int number = 0;
  int many = 0;
  std::set<int64_t> sizes;
  for (const PreparedCall& prepared : concrete.calls) {
    if (prepared.call.OperandTypes().empty()) continue;
    ++number;
    for (int64_t batch : Batches(prepared, number, many, sampler)) {
      for (const std::vector<bool>& batched :
           Subsets(context.rules(), prepared.call)) {
        if (context.Expired()) {
          Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
          return verdict;
        }
        const std::optional<Verdict> one =
            BatchCheck(context, prepared, batched, batch, rules)
                .Check(number, sampler);
        if (!one) continue;
        if (one->kind == VerdictKind::kNotChecked) return *one;
        Merge(verdict, *one);
        if (one->kind == VerdictKind::kDisagrees) return verdict;
        sizes.insert(batch);
      }
    }
  }
  if (!sizes.empty()) {
    verdict.notes.push_back(
        absl::StrCat("batches ", absl::StrJoin(sizes, " ")));
  }
  return verdict;
}

}  // namespace cleave
