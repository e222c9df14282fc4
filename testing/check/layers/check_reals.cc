// CheckReals (check_values.h).

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/ir/interpreter.h"
#include "ops/status_macros.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/layers/check_values.h"
#include "testing/check/layers/domain_sampler.h"
#include "testing/check/layers/each_call.h"
#include "testing/check/reference/reference.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/sample_counts.h"
#include "testing/check/samples/shrink.h"
#include "testing/check/samples/value_sampler.h"

namespace cleave {
namespace {

// Whether the real `b` is `a` to within half of `bits`, or to within the part
// `allowed` of it, or both vanish in every dtype.
bool AgreeAsReals(const Real& a, const Real& b, int bits, double allowed) {
  if (mpfr_nan_p(a.get()) || mpfr_nan_p(b.get())) {
    return mpfr_nan_p(a.get()) && mpfr_nan_p(b.get());
  }
  if (mpfr_equal_p(a.get(), b.get())) return true;
  if (!mpfr_number_p(a.get()) || !mpfr_number_p(b.get())) return false;
  Real difference(bits);
  mpfr_sub(difference.get(), a.get(), b.get(), MPFR_RNDN);
  const mpfr_exp_t exponent = mpfr_get_exp(difference.get());
  if (exponent < -1100) return true;
  if (allowed > 0) {
    Real most(bits);
    mpfr_mul_d(most.get(), a.get(), allowed, MPFR_RNDN);
    if (mpfr_cmpabs(difference.get(), most.get()) <= 0) return true;
  }
  const mpfr_exp_t size =
      std::max(mpfr_zero_p(a.get()) ? mpfr_get_emin() : mpfr_get_exp(a.get()),
               mpfr_zero_p(b.get()) ? mpfr_get_emin() : mpfr_get_exp(b.get()));
  // Irrational constants of a rule have 320 bits.
  return exponent < size - std::min(bits / 2, 240);
}

// The dtype that stands for all floats over the reals, where nothing is
// rounded: f64, or the widest one that is checked.
DType WidestFloat(const std::vector<PreparedCall>& calls) {
  DType widest = DType::kF64;
  int bits = 0;
  for (const PreparedCall& call : calls) {
    const DType dtype = MainDType(call.call);
    if (!IsFloat(dtype) || SignificandBits(dtype) <= bits) continue;
    bits = SignificandBits(dtype);
    widest = dtype;
  }
  return widest;
}

struct RealDifference {
  int result = 0;
  int64_t element = 0;
  std::string spec;
  std::string body;
  double allowed = 0;    // the part of the spec that `approximates` allows
  std::string unproved;  // why no enclosures prove it
  // The spec is 0, infinite or NaN, as it is where an exponential between is
  // beyond all exponents.
  bool may_have_left_range = false;
};

// Differences that are proved or left undecided before the others are let go.
constexpr size_t kMostDifferences = 16;

// The first difference of spec and body at `inputs` that no precision up to the
// last one heals, and that enclosures do not refute. Where a value may have
// left the range of exponents, and enclosures do not tell, the element is
// undecided. In elementwise graphs only the elements that differ are evaluated
// again. `approximated` is not null if the op has `approximates` clauses, which
// allow a difference. OutOfRange where all that is left of a call is undecided.
absl::StatusOr<std::optional<RealDifference>> DifferOverReals(
    const CallGraphs& graphs, const SpecReference* approximated,
    absl::Span<const Tensor> inputs, bool elementwise) {
  static constexpr int kBits[] = {kFirstReferenceBits, 640, 2560};
  std::vector<Tensor> chosen(inputs.begin(), inputs.end());
  std::vector<int64_t> elements;  // of `inputs`, those in `chosen`
  std::vector<RealDifference> differences;
  for (int bits : kBits) {
    std::vector<RealTensor> reals;
    for (const Tensor& input : chosen) {
      reals.push_back(RealTensor::FromTensor(input, bits));
    }
    const auto spec = InterpretReal(*graphs.spec, reals, bits);
    if (!spec.ok()) return spec.status();
    const auto body = InterpretReal(graphs.BodyOverReals(), reals, bits);
    if (!body.ok()) return body.status();
    differences.clear();
    std::vector<int64_t> differing;
    for (size_t r = 0; r < spec->size(); ++r) {
      const RealTensor& a = (*spec)[r];
      const RealTensor& b = (*body)[r];
      if (a.shape != b.shape || IsFloat(a.dtype) != IsFloat(b.dtype)) {
        return absl::InvalidArgumentError("the types of spec and body differ");
      }
      const auto found = [&](int64_t i, std::string x, std::string y,
                             double part, bool may_have_left_range) {
        differing.push_back(i);
        if (differences.size() == kMostDifferences) return;
        differences.push_back({static_cast<int>(r),
                               elements.empty() ? i : elements[i],
                               std::move(x),
                               std::move(y),
                               part,
                               {},
                               may_have_left_range});
      };
      for (int64_t i = 0; !IsFloat(a.dtype) && i < a.discrete.size(); ++i) {
        if (a.discrete.GetInt(i) != b.discrete.GetInt(i)) {
          found(i, a.discrete.ElementToString(i), b.discrete.ElementToString(i),
                0, false);
        }
      }
      std::vector<double> allowed;
      if (approximated != nullptr) {
        CLEAVE_ASSIGN_OR_RETURN(
            allowed, approximated->Approximation(chosen, static_cast<int>(r),
                                                 Tensor(a.dtype, a.shape)));
      }
      for (size_t i = 0; i < a.reals.size(); ++i) {
        const double part = allowed.empty() ? 0 : allowed[i];
        if (!AgreeAsReals(a.reals[i], b.reals[i], bits, part)) {
          found(i, a.reals[i].ToString(30), b.reals[i].ToString(30), part,
                MayHaveLeftRange(a.reals[i]));
        }
      }
    }
    if (differences.empty()) return std::nullopt;
    if (elementwise) {
      std::sort(differing.begin(), differing.end());
      differing.erase(std::unique(differing.begin(), differing.end()),
                      differing.end());
      chosen = SelectElements(chosen, differing);
      for (int64_t& i : differing) i = elements.empty() ? i : elements[i];
      elements = std::move(differing);
    }
  }
  bool undecided = false;
  for (RealDifference& difference : differences) {
    const Proved proved = ProveEqual(
        graphs,
        elementwise ? SelectElements(inputs, {difference.element})
                    : std::vector<Tensor>(inputs.begin(), inputs.end()),
        kBits, difference.result, elementwise ? 0 : difference.element,
        difference.allowed);
    if (proved.proof == Proof::kAgrees) continue;
    if (proved.proof == Proof::kOpen && difference.may_have_left_range) {
      undecided = true;
      continue;
    }
    difference.unproved = proved.why;
    return std::move(difference);
  }
  if (undecided && !elementwise) {
    return absl::OutOfRangeError("a value left the range of exponents");
  }
  return std::nullopt;
}

}  // namespace

Verdict CheckReals(const OpContext& context, const PreparedCalls& prepared) {
  if (const auto nothing = NothingToCheck(context, prepared)) return *nothing;
  DomainSampler sampler(context.seed + 2);
  const DType stands = WidestFloat(prepared.calls);
  Verdict verdict;
  bool all_same = true;
  for (const PreparedCall& call : prepared.calls) {
    if (!call.graphs.spec) continue;
    // In fewer digits `compute acc` converts what the spec does not.
    if (!IsFloat(MainDType(call.call)) || MainDType(call.call) == stands) {
      all_same = all_same && call.graphs.same;
    }
    if (prepared.elementwise && IsFloat(MainDType(call.call)) &&
        MainDType(call.call) != stands) {
      continue;
    }
    if (context.Expired()) {
      Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
      break;
    }
    std::optional<SpecReference> reference;
    if (!context.item->approximations.empty()) {
      absl::StatusOr<SpecReference> made =
          SpecReference::Make(*context.clauses, call.call, call.graphs);
      if (!made.ok()) {
        return Verdict::NotChecked(std::string(made.status().message()));
      }
      reference = *std::move(made);
    }
    const SpecReference* const approximated =
        reference.has_value() ? &*reference : nullptr;
    std::vector<std::vector<Tensor>> samples;
    if (prepared.elementwise) {
      samples.push_back(sampler.values().CellPoints(
          call.call, GuardsOf(call, approximated), kMinPointsPerCell));
    } else {
      for (Pattern pattern : {Pattern::kNormal, Pattern::kWide, Pattern::kUnit,
                              Pattern::kTies, Pattern::kShares}) {
        auto within = sampler.Tensors(call, pattern);
        if (within) samples.push_back(*std::move(within));
      }
    }
    for (std::vector<Tensor>& inputs : samples) {
      if (prepared.elementwise) {
        absl::StatusOr<std::vector<Tensor>> kept = call.domain.Within(inputs);
        if (kept.ok()) inputs = *std::move(kept);
        if (inputs[0].size() == 0) continue;
      }
      const auto difference = DifferOverReals(call.graphs, approximated, inputs,
                                              prepared.elementwise);
      if (!difference.ok()) {
        if (difference.status().code() == absl::StatusCode::kUnimplemented) {
          return Verdict::NotChecked(
              std::string(difference.status().message()));
        }
        if (!IsBadSample(difference.status())) {
          Merge(verdict, Verdict::Inconclusive(
                             std::string(difference.status().message())));
        }
        continue;
      }
      if (!*difference) {
        Verdict agrees;
        agrees.kind = VerdictKind::kAgrees;
        for (const NamedValue& output : call.graphs.body.outputs()) {
          if (prepared.elementwise) {
            agrees.samples += inputs[0].size();
            continue;
          }
          int64_t size = 1;
          for (const Dim& dim : call.graphs.body.type(output.value).shape) {
            size *= dim.Value().value_or(1);
          }
          agrees.samples += size;
        }
        Merge(verdict, agrees);
        continue;
      }
      RealDifference shown = **difference;
      std::vector<Tensor> smallest = inputs;
      if (prepared.elementwise) {
        smallest = SelectElements(inputs, {shown.element});
      }
      const auto fails = [&](absl::Span<const Tensor> trial) {
        if (context.Expired() || !call.domain.Contains(trial).value_or(true)) {
          return false;
        }
        const auto again = DifferOverReals(call.graphs, approximated, trial,
                                           prepared.elementwise);
        if (!again.ok() || !*again) return false;
        shown = **again;
        return true;
      };
      if (fails(smallest)) {
        smallest =
            ShrinkValues(std::move(smallest), fails, context.ShrinkTrials());
      }
      Counterexample example;
      example.call = call.call.ToString();
      example.inputs = DescribeInputs(call.call.OperandNames(), smallest);
      example.expected = shown.spec;
      example.got = shown.body;
      example.what = absl::StrCat("value of ",
                                  call.graphs.body.outputs()[shown.result].name,
                                  "[", shown.element, "] over the reals");
      example.place = context.Place(call.graphs.body, shown.result);
      example.replay = context.Replay();
      if (shown.allowed > 0) {
        absl::StrAppend(
            &example.got,
            absl::StrFormat(", where %.3g of it is allowed", shown.allowed));
      }
      Merge(verdict, Verdict::Disagrees(std::move(example)));
      CompareCounts counts;
      counts.unproved = shown.unproved;
      AddCountNotes(counts, verdict);
      return verdict;
    }
  }
  if (all_same && verdict.kind == VerdictKind::kAgrees) {
    verdict.kind = VerdictKind::kNotIndependent;
    verdict.why = "spec and body are one graph";
  }
  return verdict;
}

}  // namespace cleave
