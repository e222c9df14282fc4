#include "testing/check/layers/compare_at.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "testing/check/layers/large_calls.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/shrink.h"

namespace cleave {
namespace {

// The elements of the operands that output element `element` comes from.
std::vector<Tensor> ElementOf(const ValueComparer& comparer,
                              absl::Span<const Tensor> inputs,
                              int64_t element) {
  if (!comparer.elementwise()) {
    return std::vector<Tensor>(inputs.begin(), inputs.end());
  }
  return SelectElements(inputs, {element});
}

// Smaller values are not looked for in large tensors: nobody reads them.
int ShrinkTrials(absl::Span<const Tensor> inputs) {
  int64_t elements = 0;
  for (const Tensor& input : inputs) elements += input.size();
  return elements >= kLargeElements ? 0 : 400;
}

// A shrunk counterexample for a failure at `inputs`.
Counterexample Explain(const OpContext& context, const ValueComparer& comparer,
                       absl::Span<const Tensor> inputs,
                       const ValueFailure& failure) {
  std::vector<Tensor> smallest = ElementOf(comparer, inputs, failure.element);
  ValueFailure shown = failure;
  const auto fails = [&](absl::Span<const Tensor> trial) {
    if (context.Expired()) return false;
    const auto comparison = comparer.Compare(trial);
    if (!comparison.ok() || !comparison->failure) return false;
    shown = *comparison->failure;
    return true;
  };
  const int trials = context.ShrinkTrials(ShrinkTrials(smallest));
  if (trials > 0 && fails(smallest)) {
    smallest = ShrinkValues(std::move(smallest), fails, trials);
  }
  Counterexample example;
  example.call = comparer.call().ToString();
  example.inputs = DescribeInputs(comparer.call().OperandNames(), smallest);
  example.expected = shown.expected;
  example.got = shown.got;
  example.ulp = shown.ulp;
  example.bound = shown.bound;
  example.what = absl::StrCat(
      "value of ", comparer.body().outputs()[shown.result].name, "[",
      shown.element, "] in ",
      DTypeName(comparer.body()
                    .type(comparer.body().outputs()[shown.result].value)
                    .dtype));
  example.place = context.Place(comparer.body(), shown.result);
  example.replay = context.Replay();
  return example;
}

}  // namespace

bool CompareAt(const OpContext& context, const ValueComparer& comparer,
               absl::Span<const Tensor> inputs, Verdict& verdict,
               CompareCounts& counts, const PreparedCall* profiled,
               WorstPoint* worst) {
  const auto comparison = comparer.Compare(inputs, verdict.worst_part);
  if (!comparison.ok()) {
    if (!IsBadSample(comparison.status())) {
      Merge(verdict, Verdict::Inconclusive(absl::StrCat(
                         comparer.call().ToString(), ": ",
                         std::string(comparison.status().message()))));
    }
    return true;
  }
  if (profiled != nullptr && context.profiles != nullptr) {
    AddErrors(*profiled, inputs, comparison->errors, context.profiles->value);
  }
  if (comparison->failure) {
    counts.unproved = comparison->failure->unproved;
    Merge(verdict, Verdict::Disagrees(Explain(context, comparer, inputs,
                                              *comparison->failure)));
    return false;
  }
  Verdict agrees = Verdict::Agrees(comparison->samples - comparison->undecided);
  agrees.worst_ulp = comparison->worst_ulp;
  agrees.worst_part = comparison->worst_part;
  if (comparison->worst_element >= 0 && comparison->worst_ulp > 0) {
    agrees.worst_at = absl::StrCat(
        DescribeInputs(comparer.call().OperandNames(),
                       ElementOf(comparer, inputs, comparison->worst_element)),
        " in ", DTypeName(MainDType(comparer.call())));
  }
  if (worst != nullptr && comparison->worst_element >= 0 &&
      (worst->element < 0 || comparison->worst_ulp > worst->ulp)) {
    *worst = {ElementOf(comparer, inputs, comparison->worst_element),
              comparison->worst_result,
              comparer.elementwise() ? 0 : comparison->worst_element,
              comparison->worst_got,
              comparison->worst_ulp,
              comparison->worst_bound,
              comparison->worst_bound_is_whole,
              comparison->worst_unit};
  }
  counts.outside += comparison->outside;
  counts.unclaimed += comparison->unclaimed;
  counts.undecided += comparison->undecided;
  counts.by_body += comparison->by_body;
  counts.other_zeros += comparison->other_zeros;
  Merge(verdict, agrees);
  return true;
}

void AddCountNotes(const CompareCounts& counts, Verdict& verdict) {
  if (counts.by_body > 0) {
    verdict.notes.push_back(
        absl::StrCat(counts.by_body,
                     " points beyond the exponents of the spec's "
                     "reference, against the body over the reals"));
  }
  if (counts.outside > 0) {
    verdict.notes.push_back(
        absl::StrCat(counts.outside, " elements outside the domain"));
  }
  if (counts.unclaimed > 0) {
    verdict.notes.push_back(absl::StrCat(
        counts.unclaimed, " elements of which no accuracy is claimed"));
  }
  if (counts.undecided > 0) {
    verdict.notes.push_back(
        absl::StrCat(counts.undecided, " points that no reference decides"));
  }
  if (counts.other_zeros > 0) {
    verdict.notes.push_back(absl::StrCat(
        counts.other_zeros, " zeros of the other sign than the spec's"));
  }
  if (!counts.unproved.empty()) {
    verdict.notes.push_back(absl::StrCat(
        "reference not proved by intervals there: ", counts.unproved));
  }
}

bool ProveAt(const OpContext& context, const ValueComparer& comparer,
             const WorstPoint& worst, Verdict& verdict, WorstPoints& points) {
  if (worst.element < 0) return true;
  ++points.all;
  const Proved proved = comparer.Prove(worst);
  if (proved.proof == Proof::kAgrees) ++points.proved;
  if (proved.proof != Proof::kDiffers) return true;
  ValueFailure failure;
  failure.result = worst.result;
  failure.element = worst.element;
  failure.expected = proved.enclosure;
  failure.got = FloatToString(worst.got, comparer.DTypeOf(worst.result));
  failure.ulp = proved.error;
  failure.bound = worst.bound;
  Merge(verdict,
        Verdict::Disagrees(Explain(context, comparer, worst.inputs, failure)));
  return false;
}

void AddProofNote(const WorstPoints& points, Verdict& verdict) {
  if (points.all == 0) return;
  verdict.notes.push_back(absl::StrCat("reference proved by intervals at ",
                                       points.proved, " of ", points.all,
                                       " worst points"));
}

}  // namespace cleave
