#include "testing/check/compare/compare_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/reference/work.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/sample_counts.h"
#include "transforms/vjp/vjp.h"

namespace cleave {
namespace {

// Where an element at first seems wrong the reference is computed again. An
// exponential may be 2^-1074 beside 1, and its square beyond that.
constexpr int kSecondBits = 1280;
constexpr int kThirdBits = 2560;
constexpr int kStructuredBits = 640;
// Elements of one comparison for which more precision is tried only because the
// reference lost them.
constexpr size_t kMostLost = 2;
// Elements settled at a time.
constexpr size_t kBatch = 32;
// Elements whose condition is computed to see how tight a bound is.
constexpr size_t kTightest = 16;
// Where differences for conditions, two evaluations per element of the
// operands, compute more elements than these, conditions come from the spec's
// gradient, one evaluation per element of the result: of the worst ones.
constexpr double kManyWork = 4e6;
constexpr size_t kMaxGradients = 4;

// The work of a spec that is enclosed beside being evaluated: a point in a
// hundred or so, whose enclosures take four times as long.
constexpr double kProvedWork = 2e4;

// More precision may tell what it is.
bool IsLost(const Real& value) { return value.exactness() == Exactness::kLost; }

bool ReadsByIndex(const Graph& graph) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (graph.node(Value{id}).op == ToOpId(Primitive::kGather)) return true;
  }
  return false;
}

}  // namespace

bool MayHaveLeftRange(const Real& value) {
  return !mpfr_number_p(value.get()) || mpfr_zero_p(value.get());
}

// An element whose error exceeds the part of its bound that needs no condition.
struct ValueComparer::Suspect {
  int result = 0;
  int64_t element = 0;
  double got = 0;
  double error = 0;      // in ULP, or in eps
  double ulp = 0;        // the bound's constant part
  double condition = 0;  // and the factor of its condition
  bool is_eps = false;
  DType dtype = DType::kF64;
};

bool Settled(const Real& before, const Real& after) {
  if (mpfr_nan_p(before.get()) || mpfr_nan_p(after.get())) {
    return mpfr_nan_p(before.get()) && mpfr_nan_p(after.get());
  }
  if (mpfr_equal_p(before.get(), after.get())) return true;
  Real change(after.bits());
  mpfr_sub(change.get(), before.get(), after.get(), MPFR_RNDN);
  mpfr_div(change.get(), change.get(), after.get(), MPFR_RNDN);
  return std::abs(change.ToDouble()) < 0x1p-64;
}

absl::StatusOr<ValueComparer> ValueComparer::Make(const ClauseRules& clauses,
                                                  const SampledCall& call,
                                                  const CallGraphs& graphs) {
  ValueComparer comparer;
  comparer.call_ = call;
  comparer.graphs_ = graphs;
  CLEAVE_ASSIGN_OR_RETURN(comparer.reference_,
                          SpecReference::Make(clauses, call, graphs));
  // Apart only at the symbolic shape [n], which tensors of any size have.
  const auto& inputs = graphs.body.inputs();
  comparer.elementwise_ =
      !inputs.empty() && comparer.reference_->elementwise() &&
      IsElementwise(graphs.body) &&
      graphs.body.type(inputs[0].value).rank() == 1 &&
      !graphs.body.type(inputs[0].value).shape[0].IsConstant();
  int64_t elements = 0;
  for (const NamedValue& input : graphs.body.inputs()) {
    const TensorType& type = graphs.body.type(input.value);
    if (!IsFloat(type.dtype)) continue;
    int64_t size = 1;
    for (const Dim& dim : type.shape) size *= dim.Value().value_or(1);
    elements += size;
  }
  comparer.many_elements_ =
      !comparer.elementwise_ &&
      2.0 * static_cast<double>(elements) * WorkOf(*graphs.spec) > kManyWork;
  comparer.rules_ = &clauses.rules();
  return comparer;
}

absl::StatusOr<const Graph*> ValueComparer::Gradient() const {
  if (!gradient_is_made_) {
    const Graph& spec = reference_->spec();
    std::vector<bool> active;
    for (const NamedValue& input : spec.inputs()) {
      active.push_back(IsFloat(spec.type(input.value).dtype));
    }
    absl::StatusOr<VjpResult> vjp = Vjp(spec, active, *rules_);
    if (vjp.ok()) {
      CLEAVE_ASSIGN_OR_RETURN(gradient_, Expand(vjp->graph, *rules_));
    } else if (!absl::IsUnimplemented(vjp.status())) {
      return vjp.status();
    }
    gradient_is_made_ = true;
  }
  return gradient_.has_value() ? &*gradient_ : nullptr;
}

absl::StatusOr<double> ValueComparer::ConditionByGradient(
    const Graph& gradient, absl::Span<const Tensor> inputs,
    absl::Span<const RealTensor> expected, const Suspect& suspect) const {
  constexpr int kBits = 128;
  std::vector<RealTensor> arguments;
  for (const Tensor& input : inputs) {
    arguments.push_back(RealTensor::FromTensor(input, kBits));
  }
  const size_t results = graphs_.body.outputs().size();
  for (size_t r = 0; r < results; ++r) {
    const DType dtype = DTypeOf(static_cast<int>(r));
    if (!IsFloat(dtype)) continue;
    Tensor cotangent(dtype, expected[r].shape);
    if (static_cast<int>(r) == suspect.result) {
      cotangent.SetDouble(suspect.element, 1);
    }
    arguments.push_back(RealTensor::FromTensor(cotangent, kBits));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<RealTensor> outputs,
                          InterpretReal(gradient, arguments, kBits));
  double moved = 0;
  size_t next = results;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!IsFloat(inputs[k].dtype())) continue;
    const RealTensor& slopes = outputs[next++];
    for (size_t i = 0; i < slopes.reals.size(); ++i) {
      const double term =
          std::abs(slopes.reals[i].ToDouble() *
                   inputs[k].GetDouble(static_cast<int64_t>(i)));
      moved += term;
    }
  }
  const double normal = FromOrdinal(
      int64_t{1} << (SignificandBits(suspect.dtype) - 1), suspect.dtype);
  const Real& value = expected[suspect.result].reals[suspect.element];
  return moved / std::max(std::abs(value.ToDouble()), normal);
}

absl::Status ValueComparer::JudgeByGradient(
    absl::Span<const Tensor> inputs, absl::Span<const RealTensor> expected,
    std::vector<Suspect>& suspects, ValueComparison& comparison) const {
  std::stable_sort(suspects.begin(), suspects.end(),
                   [](const Suspect& a, const Suspect& b) {
                     return a.error * b.ulp > b.error * a.ulp;
                   });
  if (suspects.size() > kMaxGradients) {
    comparison.left_out += suspects.size() - kMaxGradients;
    suspects.resize(kMaxGradients);
  }
  std::vector<Suspect> left;
  for (Suspect& suspect : suspects) {
    if (suspect.condition > 0 && std::isfinite(suspect.error)) {
      double condition = HUGE_VAL;
      CLEAVE_ASSIGN_OR_RETURN(const Graph* const gradient, Gradient());
      if (gradient != nullptr) {
        CLEAVE_ASSIGN_OR_RETURN(
            condition,
            ConditionByGradient(*gradient, inputs, expected, suspect));
      }
      if (!std::isfinite(condition)) {
        ++comparison.left_out;
        continue;
      }
      suspect.ulp += suspect.condition * condition;
      suspect.condition = 0;
    }
    if (!(suspect.error <= suspect.ulp)) {
      left.push_back(suspect);
      continue;
    }
    if (suspect.error > comparison.worst_ulp) {
      comparison.worst_ulp = suspect.error;
      comparison.worst_result = suspect.result;
      comparison.worst_element = suspect.element;
      comparison.worst_got = suspect.got;
      comparison.worst_bound = suspect.is_eps ? 0 : suspect.ulp;
      comparison.worst_bound_is_whole = !suspect.is_eps;
      comparison.worst_unit = UnitExponent(
          expected[suspect.result].reals[suspect.element], suspect.dtype);
    }
    comparison.worst_part =
        std::max(comparison.worst_part, suspect.error / suspect.ulp);
  }
  suspects = std::move(left);
  comparison.samples -= comparison.left_out;
  return absl::OkStatus();
}

void ValueComparison::Note(int64_t element, double ulp) {
  if (errors.empty()) return;
  double& error = errors[element];
  if (!(ulp <= error)) error = ulp;
}

absl::StatusOr<ValueComparison> ValueComparer::Compare(
    absl::Span<const Tensor> inputs, double known_part) const {
  const auto got = Interpret(graphs_.body, inputs);
  if (got.ok()) return CompareResults(inputs, *got, known_part);
  if (!IsBadSample(got.status())) return got.status();
  // Integers divided by zero have a value over the reals. An index that is
  // none the spec refuses, too.
  if (!ReadsByIndex(graphs_.body)) return got.status();
  const auto expected = reference_->Evaluate(inputs, kFirstReferenceBits);
  if (!expected.ok()) return got.status();
  // An index by which nothing is read may be refused.
  if (std::all_of(expected->begin(), expected->end(), [](const RealTensor& y) {
        return std::find(y.shape.begin(), y.shape.end(), 0) != y.shape.end();
      })) {
    return got.status();
  }
  ValueComparison comparison;
  ValueFailure failure;
  failure.expected = "a value, by the spec";
  failure.got = std::string(got.status().message());
  failure.ulp = std::numeric_limits<double>::infinity();
  comparison.failure = std::move(failure);
  return comparison;
}

absl::StatusOr<ValueComparison> ValueComparer::CompareResults(
    absl::Span<const Tensor> inputs, absl::Span<const Tensor> got,
    double known_part) const {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<RealTensor> expected,
                          reference_->Evaluate(inputs, kFirstReferenceBits));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<std::vector<bool>> outside,
                          reference_->domain().Outside(inputs, got));
  ValueComparison comparison;
  std::vector<RealTensor> exact;  // evaluated when it is needed
  std::vector<Suspect> suspects;
  std::vector<Suspect> passed;  // the worst of those with a condition term
  std::vector<Suspect> lost;    // right as far as the reference knows
  for (size_t r = 0; r < got.size(); ++r) {
    const Tensor& tensor = got[r];
    if (tensor.shape() != expected[r].shape) {
      return absl::InvalidArgumentError(
          absl::StrCat("result ", r, ": the spec's shape is not the body's"));
    }
    if (IsFloat(tensor.dtype()) != IsFloat(expected[r].dtype)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "result ", r, ": ", DTypeName(expected[r].dtype), " in the spec, ",
          DTypeName(tensor.dtype()), " in the body"));
    }
    const auto is_outside = [&, r](int64_t i) {
      return !outside[r].empty() && outside[r][i];
    };
    const int64_t left_out =
        std::count(outside[r].begin(), outside[r].end(), true);
    comparison.samples += tensor.size() - left_out;
    comparison.outside += left_out;
    if (!IsFloat(tensor.dtype())) {
      for (int64_t i = 0; i < tensor.size(); ++i) {
        int64_t want = expected[r].discrete.GetInt(i);
        if (want == tensor.GetInt(i) || comparison.failure) continue;
        if (is_outside(i)) continue;
        // A product of integers may have more bits than the first precision.
        if (exact.empty()) {
          CLEAVE_ASSIGN_OR_RETURN(exact,
                                  reference_->Evaluate(inputs, kThirdBits));
        }
        want = exact[r].discrete.GetInt(i);
        if (want == tensor.GetInt(i)) continue;
        ValueFailure failure;
        failure.result = static_cast<int>(r);
        failure.element = i;
        failure.expected = exact[r].discrete.ElementToString(i);
        failure.got = tensor.ElementToString(i);
        failure.ulp = std::numeric_limits<double>::infinity();
        comparison.failure = std::move(failure);
      }
      continue;
    }
    CLEAVE_ASSIGN_OR_RETURN(
        const ErrorBound bound,
        reference_->Bound(inputs, static_cast<int>(r), tensor));
    comparison.bound_declared |= bound.declared;
    if (elementwise_ && comparison.errors.empty()) {
      comparison.errors.resize(tensor.size(),
                               std::numeric_limits<double>::quiet_NaN());
    }
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (is_outside(i)) continue;
      if (!bound.unclaimed.empty() && bound.unclaimed[i]) {
        ++comparison.unclaimed;
        --comparison.samples;
        continue;
      }
      const Real& want = expected[r].reals[i];
      Suspect suspect;
      suspect.result = static_cast<int>(r);
      suspect.element = i;
      suspect.got = tensor.GetDouble(i);
      suspect.is_eps = bound.is_eps;
      suspect.dtype = tensor.dtype();
      suspect.ulp = bound.is_eps ? bound.eps[i] : bound.ulp[i];
      suspect.condition = bound.is_eps ? 0 : bound.condition[i];
      suspect.error = bound.is_eps ? EpsError(want, suspect.got, suspect.dtype)
                                   : UlpError(want, suspect.got, suspect.dtype);
      if (suspect.error != 0 && !(suspect.error <= suspect.ulp)) {
        suspects.push_back(suspect);
        continue;
      }
      if (IsLost(want)) lost.push_back(suspect);
      const double shown = bound.is_eps
                               ? UlpError(want, suspect.got, suspect.dtype)
                               : suspect.error;
      comparison.Note(i, shown);
      if (shown > comparison.worst_ulp || comparison.worst_element < 0) {
        comparison.worst_ulp = shown;
        comparison.worst_result = static_cast<int>(r);
        comparison.worst_element = i;
        comparison.worst_got = suspect.got;
        comparison.worst_bound = bound.is_eps ? 0 : suspect.ulp;
        comparison.worst_bound_is_whole =
            !bound.is_eps && suspect.condition == 0;
        comparison.worst_unit = UnitExponent(want, suspect.dtype);
      }
      if (suspect.error > 0) {
        if (suspect.condition == 0) {
          comparison.worst_part =
              std::max(comparison.worst_part, suspect.error / suspect.ulp);
        } else {
          passed.push_back(suspect);
        }
      } else if (suspect.got == 0 && mpfr_zero_p(want.get()) &&
                 std::signbit(suspect.got) != (mpfr_signbit(want.get()) != 0)) {
        ++comparison.other_zeros;
      }
    }
  }
  if (comparison.failure) return comparison;
  const size_t step = (lost.size() + kMostLost - 1) / kMostLost;
  for (size_t i = 0; i < lost.size(); i += step) suspects.push_back(lost[i]);
  if (many_elements_) {
    CLEAVE_RETURN_IF_ERROR(
        JudgeByGradient(inputs, expected, suspects, comparison));
    passed.clear();
  }
  CLEAVE_RETURN_IF_ERROR(Settle(inputs, std::move(suspects), comparison));
  if (!comparison.failure && !passed.empty()) {
    CLEAVE_RETURN_IF_ERROR(EstimatePart(inputs, expected, std::move(passed),
                                        known_part, comparison));
  }
  return comparison;
}

absl::Status ValueComparer::EstimatePart(absl::Span<const Tensor> inputs,
                                         absl::Span<const RealTensor> expected,
                                         std::vector<Suspect> worst,
                                         double known_part,
                                         ValueComparison& comparison) const {
  const auto larger = [](const Suspect& a, const Suspect& b) {
    return a.error > b.error;
  };
  const size_t count = std::min(worst.size(), kTightest);
  std::partial_sort(worst.begin(), worst.begin() + count, worst.end(), larger);
  worst.resize(count);
  // Errors that cannot improve the estimate tell nothing.
  known_part = std::max(known_part, comparison.worst_part);
  worst.erase(std::remove_if(worst.begin(), worst.end(),
                             [&](const Suspect& suspect) {
                               return suspect.error / suspect.ulp <= known_part;
                             }),
              worst.end());
  if (worst.empty()) return absl::OkStatus();
  if (!elementwise_) {
    // One evaluation for each, where differences take two for each operand's
    // element.
    CLEAVE_ASSIGN_OR_RETURN(const Graph* const gradient, Gradient());
    if (gradient != nullptr) {
      worst.resize(std::min(worst.size(), kMaxGradients));
      for (const Suspect& suspect : worst) {
        CLEAVE_ASSIGN_OR_RETURN(
            const double condition,
            ConditionByGradient(*gradient, inputs, expected, suspect));
        if (!std::isfinite(condition)) continue;
        comparison.worst_part = std::max(
            comparison.worst_part,
            suspect.error / (suspect.ulp + suspect.condition * condition));
      }
      return absl::OkStatus();
    }
  }
  std::vector<Tensor> chosen(inputs.begin(), inputs.end());
  if (elementwise_) {
    std::vector<int64_t> elements;
    for (const Suspect& suspect : worst) elements.push_back(suspect.element);
    chosen = SelectElements(inputs, elements);
  }
  CLEAVE_ASSIGN_OR_RETURN(const auto conditions,
                          reference_->Conditions(chosen, kFirstReferenceBits));
  for (size_t i = 0; i < worst.size(); ++i) {
    const Suspect& suspect = worst[i];
    const double condition =
        conditions[suspect.result][elementwise_ ? i : suspect.element];
    comparison.worst_part =
        std::max(comparison.worst_part,
                 suspect.error / (suspect.ulp + suspect.condition * condition));
  }
  return absl::OkStatus();
}

std::vector<Tensor> ValueComparer::SelectOne(absl::Span<const Tensor> inputs,
                                             int64_t element) const {
  if (elementwise_) return SelectElements(inputs, {element});
  return std::vector<Tensor>(inputs.begin(), inputs.end());
}

absl::StatusOr<bool> ValueComparer::AgreesWithBody(
    const std::vector<Tensor>& inputs, const Suspect& suspect,
    double bound) const {
  std::vector<RealTensor> reals;
  for (const Tensor& input : inputs) {
    reals.push_back(RealTensor::FromTensor(input, kSecondBits));
  }
  const auto body = InterpretReal(graphs_.BodyOverReals(), reals, kSecondBits);
  if (!body.ok()) return false;
  const Real& want =
      (*body)[suspect.result].reals[elementwise_ ? 0 : suspect.element];
  const double error = suspect.is_eps
                           ? EpsError(want, suspect.got, suspect.dtype)
                           : UlpError(want, suspect.got, suspect.dtype);
  return mpfr_number_p(want.get()) && error <= bound;
}

Proved ValueComparer::Prove(const WorstPoint& point) const {
  Proved open;
  if (!elementwise_ && WorkOf(reference_->spec()) > kProvedWork) {
    open.why = "the call is large";
    return open;
  }
  const DType dtype = DTypeOf(point.result);
  // The measured error passed: so does a true one that is not larger.
  const double tolerance = 0x1p-10 + point.ulp * 0x1p-30;
  Proved proved = ProveError(
      [&](int bits) { return reference_->Enclose(point.inputs, bits); },
      {kFirstReferenceBits, kStructuredBits, kSecondBits}, point.result,
      point.element,
      [&](const Real& want) {
        const double error = UlpError(want, point.got, dtype);
        // Where the terms of the reference cancel, it has other units at
        // another precision: the bound is in those of the one that it is of.
        const int64_t unit = UnitExponent(want, dtype);
        return unit < point.unit
                   ? std::ldexp(error, static_cast<int>(unit - point.unit))
                   : error;
      },
      point.got, std::max(point.ulp + tolerance, point.bound));
  if (proved.proof != Proof::kDiffers || point.bound_is_whole) return proved;
  open.why = "the bound is not known";
  return open;
}

absl::Status ValueComparer::Settle(absl::Span<const Tensor> inputs,
                                   std::vector<Suspect> suspects,
                                   ValueComparison& comparison) const {
  const int low = elementwise_ ? kSecondBits : kStructuredBits;
  const int high = elementwise_ ? kThirdBits : kSecondBits;
  for (size_t begin = 0; begin < suspects.size() && !comparison.failure;) {
    // A structured call is evaluated as a whole anyhow.
    const size_t end = elementwise_ ? std::min(suspects.size(), begin + kBatch)
                                    : suspects.size();
    std::vector<Tensor> chosen(inputs.begin(), inputs.end());
    if (elementwise_) {
      std::vector<int64_t> elements;
      for (size_t i = begin; i < end; ++i) {
        elements.push_back(suspects[i].element);
      }
      chosen = SelectElements(inputs, elements);
    }
    CLEAVE_ASSIGN_OR_RETURN(const auto expected,
                            reference_->Evaluate(chosen, low));
    std::vector<std::vector<double>> conditions;       // at `low` bits
    std::vector<std::vector<double>> more_conditions;  // at `high` bits
    std::vector<RealTensor> again;
    for (size_t i = begin; i < end && !comparison.failure; ++i) {
      const Suspect& suspect = suspects[i];
      const size_t at = elementwise_ ? i - begin : suspect.element;
      const auto error_at = [&](const Real& want) {
        return suspect.is_eps ? EpsError(want, suspect.got, suspect.dtype)
                              : UlpError(want, suspect.got, suspect.dtype);
      };
      const Real& first = expected[suspect.result].reals[at];
      const Real* reference = &first;
      double error = error_at(first);
      double bound = suspect.ulp;
      // The bound of what is not finite may be NaN.
      const auto passes = [&] { return error == 0 || error <= bound; };
      // Where the reference is known to so many bits.
      const auto add_condition = [&](const Real& want, int bits,
                                     auto& known) -> absl::Status {
        if (IsLost(want) || passes() || suspect.condition == 0 ||
            !std::isfinite(error)) {
          return absl::OkStatus();
        }
        if (known.empty()) {
          CLEAVE_ASSIGN_OR_RETURN(known, reference_->Conditions(chosen, bits));
        }
        bound += suspect.condition * known[suspect.result][at];
        return absl::OkStatus();
      };
      CLEAVE_RETURN_IF_ERROR(add_condition(first, low, conditions));
      if (IsLost(first) || !passes()) {
        if (again.empty()) {
          CLEAVE_ASSIGN_OR_RETURN(again, reference_->Evaluate(chosen, high));
        }
        const Real& second = again[suspect.result].reals[at];
        reference = &second;
        error = error_at(second);
        // In units of another number, where the terms of the first cancel.
        bound = suspect.ulp;
        CLEAVE_RETURN_IF_ERROR(add_condition(second, high, more_conditions));
        if (IsLost(second) || !passes()) {
          bool decided = !IsLost(second) && Settled(first, second);
          if (decided && MayHaveLeftRange(second)) {
            const std::vector<Tensor> one = SelectOne(chosen, at);
            mpfr_clear_flags();
            CLEAVE_RETURN_IF_ERROR(
                reference_->Evaluate(one, kFirstReferenceBits).status());
            decided = !mpfr_overflow_p() && !mpfr_underflow_p();
          }
          if (!decided) {
            CLEAVE_ASSIGN_OR_RETURN(
                const bool agrees,
                AgreesWithBody(SelectOne(chosen, at), suspect, bound));
            ++(agrees ? comparison.by_body : comparison.undecided);
            continue;
          }
          // Two precisions agree, which an enclosure proves or refutes.
          const std::vector<Tensor> one = SelectOne(chosen, at);
          const Proved proved = ProveError(
              [&](int bits) { return reference_->Enclose(one, bits); },
              {kFirstReferenceBits, low, high}, suspect.result,
              elementwise_ ? 0 : suspect.element, error_at, suspect.got, bound);
          if (proved.proof != Proof::kAgrees) {
            ValueFailure failure;
            failure.result = suspect.result;
            failure.element = suspect.element;
            failure.expected = second.ToString(30);
            failure.got = FloatToString(suspect.got, suspect.dtype);
            failure.ulp = error;
            failure.bound = bound;
            failure.unproved = proved.why;
            comparison.Note(suspect.element, error);
            comparison.failure = std::move(failure);
            continue;
          }
          error = proved.error;
        }
      }
      comparison.Note(suspect.element, error);
      if (error > comparison.worst_ulp) {
        comparison.worst_ulp = error;
        comparison.worst_result = suspect.result;
        comparison.worst_element = suspect.element;
        comparison.worst_got = suspect.got;
        comparison.worst_bound = suspect.is_eps ? 0 : bound;
        comparison.worst_bound_is_whole = !suspect.is_eps;
        comparison.worst_unit = UnitExponent(*reference, suspect.dtype);
      }
      if (bound > 0) {
        comparison.worst_part = std::max(comparison.worst_part, error / bound);
      }
    }
    begin = end;
  }
  return absl::OkStatus();
}

}  // namespace cleave
