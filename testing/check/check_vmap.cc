#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "testing/check/check_transforms.h"
#include "testing/check/samples/shrink.h"
#include "testing/check/samples/value_sampler.h"
#include "testing/check/tensor_slices.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

// Inputs that are drawn until one is no bad sample.
constexpr int kDraws = 4;
constexpr int kShrinkTrials = 120;

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

// The batched graph against the loop over the slices of `inputs`.
absl::StatusOr<std::optional<BatchFailure>> CompareWithLoop(
    const Graph& body, const Graph& batched_graph,
    absl::Span<const Tensor> inputs, const std::vector<bool>& batched,
    int64_t batch) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> got,
                          Interpret(batched_graph, inputs));
  std::optional<BatchFailure> failure;
  for (size_t r = 0; r < got.size(); ++r) {
    if (got[r].rank() == 0 || got[r].shape()[0] != batch) {
      failure = BatchFailure{absl::StrCat("shape of result ", r),
                             absl::StrCat("a leading axis of ", batch),
                             got[r].type().ToString()};
      return failure;
    }
  }
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<Tensor> slices;
    for (size_t k = 0; k < inputs.size(); ++k) {
      slices.push_back(batched[k] ? SliceOf(inputs[k], b) : inputs[k]);
    }
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> want,
                            Interpret(body, slices));
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
  for (int64_t b = 0; b < std::max<int64_t>(batch, 1); ++b) {
    examples.push_back(sampler.Tensors(
        call, static_cast<Pattern>((number + b) % kNumPatterns)));
  }
  std::vector<Tensor> inputs;
  for (size_t k = 0; k < batched.size(); ++k) {
    std::vector<Tensor> slices;
    for (int64_t b = 0; b < batch; ++b) slices.push_back(examples[b][k]);
    inputs.push_back(batched[k] ? Stack(examples[0][k], slices)
                                : examples[0][k]);
  }
  return inputs;
}

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
  for (const PreparedCall& prepared : concrete.calls) {
    const SampledCall& call = prepared.call;
    if (call.OperandTypes().empty()) continue;
    ++number;
    for (const std::vector<bool>& batched : Subsets(context.rules(), call)) {
      if (context.Expired()) {
        Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
        return verdict;
      }
      const int64_t batch = number % 5 == 3 ? 0 : number % 5 == 4 ? 1 : 3;
      std::vector<int> in_axes;
      for (bool b : batched) in_axes.push_back(b ? 0 : kNotMapped);
      const std::vector<int> out_axes(prepared.graphs.call.outputs().size(), 0);
      absl::StatusOr<Graph> graph =
          Vmap(prepared.graphs.call, in_axes, Dim(batch), out_axes, rules);
      if (graph.ok()) graph = Expand(*graph, context.rules());
      std::vector<Tensor> inputs;
      const auto compare = [&](absl::Span<const Tensor> trial) {
        return graph.ok() ? CompareWithLoop(prepared.graphs.body, *graph, trial,
                                            batched, batch)
                          : absl::StatusOr<std::optional<BatchFailure>>(
                                graph.status());
      };
      absl::StatusOr<std::optional<BatchFailure>> failure;
      for (int draw = 0; draw < kDraws; ++draw) {
        inputs = BatchedInputs(call, number, batched, batch, sampler);
        failure = compare(inputs);
        if (!IsBadSample(failure.status())) break;
      }
      if (IsBadSample(failure.status())) continue;
      if (!failure.ok()) {
        const std::string message(failure.status().message());
        if (IsImpossible(failure.status())) {
          return Verdict::NotChecked(message);
        }
        Merge(verdict, Verdict::Inconclusive(absl::StrCat(
                           "vmap of ", call.ToString(), ": ", message)));
        continue;
      }
      if (*failure) {
        BatchFailure shown = **failure;
        inputs = ShrinkValues(
            std::move(inputs),
            [&](absl::Span<const Tensor> trial) {
              if (context.Expired()) return false;
              const auto again = compare(trial);
              if (!again.ok() || !*again) return false;
              shown = **again;
              return true;
            },
            kShrinkTrials);
        Counterexample example;
        example.call = call.ToString();
        std::vector<std::string> names = call.OperandNames();
        std::vector<std::string> over;
        for (size_t k = 0; k < names.size(); ++k) {
          if (batched[k]) over.push_back(names[k]);
        }
        example.inputs = DescribeInputs(names, inputs);
        example.what = absl::StrCat("vmap over ", absl::StrJoin(over, ", "),
                                    " is not the loop: ", shown.what);
        example.expected = shown.expected;
        example.got = shown.got;
        example.place = context.Place();
        example.replay = context.Replay();
        Merge(verdict, Verdict::Disagrees(std::move(example)));
        return verdict;
      }
      Verdict agrees;
      agrees.kind = VerdictKind::kAgrees;
      agrees.samples = 1;
      Merge(verdict, agrees);
    }
  }
  return verdict;
}

}  // namespace cleave
