#include "testing/check/layers/check_values.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/ir/interpreter.h"
#include "ops/status_macros.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/compare/fast_comparer.h"
#include "testing/check/layers/compare_at.h"
#include "testing/check/layers/large_calls.h"
#include "testing/check/reference/reference.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/sample_counts.h"
#include "testing/check/samples/shrink.h"
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

std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> range;
  for (int64_t i = begin; i < end; ++i) range.push_back(i);
  return range;
}

const char* MissingSpec(const OpContext& context) {
  if (!context.item->laws.empty()) return "its spec is laws";
  return "no spec";
}

void AddSampleNotes(const PreparedCalls& prepared, Verdict& verdict) {
  for (std::string& note : SampleNotes(prepared)) {
    verdict.notes.push_back(std::move(note));
  }
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

// The constants that body, spec and domain compare with, and the ends of the
// ranges of which the claims of `reference` are, if there is one.
std::vector<double> GuardsOf(const PreparedCall& call,
                             const SpecReference* reference) {
  std::vector<double> guards = GuardConstants(call.graphs.body);
  const auto add = [&guards](const std::vector<double>& more) {
    guards.insert(guards.end(), more.begin(), more.end());
  };
  add(GuardConstants(*call.graphs.spec));
  add(call.domain.Guards());
  if (reference == nullptr) return guards;
  const absl::StatusOr<std::vector<double>> ends = reference->RangeEnds();
  // The bounds of claims that cannot be evaluated are an error of L3.
  if (ends.ok()) add(*ends);
  return guards;
}

// The first step of each value layer: a verdict if there is nothing to check.
std::optional<Verdict> NothingToCheck(const OpContext& context,
                                      const PreparedCalls& prepared) {
  if (context.item->spec == nullptr) {
    return Verdict::NotChecked(MissingSpec(context));
  }
  if (prepared.calls.empty()) {
    return Verdict::Inconclusive(
        prepared.problems.empty()
            ? absl::StrCat("no sampled call is accepted (", prepared.rejected,
                           " rejected)")
            : prepared.problems.front());
  }
  return std::nullopt;
}

// Runs `visit(call, comparer)` for those of `calls` with a spec.
template <typename Visit>
Verdict ForEachCall(const OpContext& context, const PreparedCalls& prepared,
                    const std::vector<PreparedCall>& calls, Visit visit) {
  if (const auto nothing = NothingToCheck(context, prepared)) return *nothing;
  Verdict verdict;
  CompareCounts counts;
  for (const PreparedCall& call : calls) {
    if (!call.graphs.spec) continue;
    if (context.Expired()) {
      Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
      break;
    }
    const auto comparer =
        ValueComparer::Make(*context.clauses, call.call, call.graphs);
    if (!comparer.ok()) {
      Merge(verdict, Verdict::Inconclusive(absl::StrCat(
                         call.call.ToString(), ": ",
                         std::string(comparer.status().message()))));
      continue;
    }
    if (!visit(call, *comparer, verdict, counts)) break;
  }
  AddCountNotes(counts, verdict);
  return verdict;
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
  if (prepared.elementwise) {
    Verdict verdict =
        ForEachCall(context, prepared, prepared.calls, elementwise);
    // A body may ask for the rank, or for an extent.
    if (verdict.kind == VerdictKind::kAgrees) {
      Merge(verdict, ForEachCall(context, prepared, prepared.large, large));
    }
    AddSampleNotes(prepared, verdict);
    AddProofNote(proved, verdict);
    return verdict;
  }
  Verdict verdict = ForEachCall(context, prepared, prepared.calls, structured);
  if (verdict.kind == VerdictKind::kAgrees) {
    Merge(verdict, ForEachCall(context, prepared, prepared.large, large));
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
  ValueSampler sampler(context.seed + 2);
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
      samples.push_back(sampler.CellPoints(
          call.call, GuardsOf(call, approximated), kMinPointsPerCell));
    } else {
      for (Pattern pattern : {Pattern::kNormal, Pattern::kWide, Pattern::kUnit,
                              Pattern::kTies, Pattern::kShares}) {
        auto within = TensorsWithin(call, pattern, sampler);
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
