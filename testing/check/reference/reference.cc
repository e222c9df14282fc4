#include "testing/check/reference/reference.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/ir/interval_interpreter.h"
#include "engine/rewrite/expand.h"
#include "ops/status_macros.h"
#include "testing/check/samples/float_points.h"
#include "testing/check/samples/sample_counts.h"

namespace cleave {
namespace {

// Differences for condition numbers are taken at x (1 +- 2^-60): a result
// that the last bit of an f64 decides has a condition as large as that says.
constexpr int kStepBits = 60;

// x (1 + sign 2^-kStepBits).
void Perturb(Real& x, int sign) {
  Real factor(1.0, x.bits());
  mpfr_set_si_2exp(factor.get(), sign, -kStepBits, MPFR_RNDN);
  mpfr_add_ui(factor.get(), factor.get(), 1, MPFR_RNDN);
  mpfr_mul(x.get(), x.get(), factor.get(), MPFR_RNDN);
}

double SmallestNormal(DType dtype) {
  return FromOrdinal(int64_t{1} << (SignificandBits(dtype) - 1), dtype);
}

// |a - b| / |b| * 2^kStepBits; 0 where that is not finite. A number below all
// of the dtype counts as 0, where the unit of the error is that of the smallest
// normal number, whose part it is.
double RelativeChange(const Real& a, const Real& b, DType dtype) {
  Real change(b.bits());
  mpfr_sub(change.get(), a.get(), b.get(), MPFR_RNDN);
  const double least = FromOrdinal(1, dtype);
  if (mpfr_cmp_d(b.get(), least) < 0 && mpfr_cmp_d(b.get(), -least) > 0) {
    mpfr_div_d(change.get(), change.get(), SmallestNormal(dtype), MPFR_RNDN);
  } else {
    mpfr_div(change.get(), change.get(), b.get(), MPFR_RNDN);
  }
  mpfr_mul_2ui(change.get(), change.get(), kStepBits, MPFR_RNDN);
  const double value = std::abs(change.ToDouble());
  return std::isfinite(value) ? value : 0;
}

// A special value that is a bit pattern (the largest finite number) has no
// meaning over the reals: the clause is evaluated in the dtype, and an element
// changes where it gives something else than what was expected.
absl::Status CorrectInDType(const Graph& graph,
                            const std::vector<RealTensor>& arguments, int bits,
                            RealTensor& result) {
  std::vector<Tensor> tensors;
  for (const RealTensor& argument : arguments) {
    tensors.push_back(IsFloat(argument.dtype) ? argument.RoundTo(argument.dtype)
                                              : argument.discrete);
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> corrected,
                          Interpret(graph, tensors));
  for (size_t i = 0; i < result.reals.size(); ++i) {
    const double before = tensors.back().GetDouble(i);
    const double after = corrected[0].GetDouble(i);
    if (before == after || (std::isnan(before) && std::isnan(after))) continue;
    result.reals[i] = Real(after, bits);
  }
  return absl::OkStatus();
}

// The same of an enclosure, where both of its bounds are one number of the
// dtype.
absl::Status CorrectInDType(const Graph& graph, absl::Span<const Tensor> inputs,
                            int bits, IntervalTensor& result) {
  Tensor expected(result.dtype, result.shape);
  for (int64_t i = 0; i < expected.size(); ++i) {
    const RealInterval& interval = result.intervals[i];
    if (interval.undecided() != nullptr) {
      return UndecidedError(interval.undecided());
    }
    Real bound(interval.bits());
    mpfr_set(bound.get(), interval.low(), MPFR_RNDN);
    const double low = bound.RoundTo(result.dtype);
    mpfr_set(bound.get(), interval.high(), MPFR_RNDN);
    const double high = bound.RoundTo(result.dtype);
    if (low != high && !(std::isnan(low) && std::isnan(high))) {
      return UndecidedError("to which float the bounds round");
    }
    expected.SetDouble(i, low);
  }
  std::vector<Tensor> tensors(inputs.begin(), inputs.end());
  tensors.push_back(expected);
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> corrected,
                          Interpret(graph, tensors));
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double before = expected.GetDouble(i);
    const double after = corrected[0].GetDouble(i);
    if (before == after || (std::isnan(before) && std::isnan(after))) continue;
    result.intervals[i] = RealInterval(after, bits);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SpecReference> SpecReference::Make(const ClauseRules& clauses,
                                                  const SampledCall& call,
                                                  const CallGraphs& graphs) {
  if (!graphs.spec) return absl::FailedPreconditionError("no spec");
  SpecReference reference;
  reference.clauses_ = &clauses;
  reference.call_ = call;
  reference.spec_ = *graphs.spec;
  reference.elementwise_ = IsElementwise(*graphs.spec);
  const auto& outputs = graphs.body.outputs();
  if (outputs.size() != reference.spec_.outputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the spec has ", reference.spec_.outputs().size(),
                     " results, the op ", outputs.size()));
  }
  for (const NamedValue& output : outputs) {
    reference.result_types_.push_back(graphs.body.type(output.value));
    reference.result_names_.push_back(output.name);
  }
  const OpClauses& own = clauses.Of(call.op);
  if (!own.error.empty()) return absl::UnimplementedError(own.error);
  for (const ResultClauseOp& special : own.specials) {
    int place = 0;
    for (size_t i = 0; i < reference.result_names_.size(); ++i) {
      if (reference.result_names_[i] == special.result) {
        place = static_cast<int>(i);
      }
    }
    // They speak of infinities and NaN.
    if (!IsFloat(reference.result_types_[place].dtype)) continue;
    CLEAVE_ASSIGN_OR_RETURN(Graph graph,
                            MakeClauseGraph(clauses, call, special.op,
                                            reference.result_types_[place]));
    reference.specials_.emplace_back(place, std::move(graph));
  }
  CLEAVE_ASSIGN_OR_RETURN(reference.domain_,
                          Domain::Make(clauses, call, graphs.body));
  return reference;
}

absl::StatusOr<std::vector<RealTensor>> SpecReference::EvaluateReals(
    const std::vector<RealTensor>& inputs, int bits) const {
  CLEAVE_ASSIGN_OR_RETURN(std::vector<RealTensor> results,
                          InterpretReal(spec_, inputs, bits));
  for (const auto& [place, graph] : specials_) {
    std::vector<RealTensor> arguments = inputs;
    arguments.push_back(results[place]);
    auto corrected = InterpretReal(graph, arguments, bits);
    if (corrected.status().code() == absl::StatusCode::kUnimplemented) {
      CLEAVE_RETURN_IF_ERROR(
          CorrectInDType(graph, arguments, bits, results[place]));
      continue;
    }
    if (!corrected.ok()) return corrected.status();
    results[place] = std::move((*corrected)[0]);
  }
  return results;
}

absl::StatusOr<std::vector<RealTensor>> SpecReference::Evaluate(
    absl::Span<const Tensor> inputs, int bits) const {
  std::vector<RealTensor> reals;
  for (const Tensor& input : inputs) {
    reals.push_back(RealTensor::FromTensor(input, bits));
  }
  return EvaluateReals(reals, bits);
}

absl::StatusOr<std::vector<IntervalTensor>> SpecReference::Enclose(
    absl::Span<const Tensor> inputs, int bits) const {
  std::vector<IntervalTensor> arguments;
  for (const Tensor& input : inputs) {
    arguments.push_back(IntervalTensor::FromTensor(input, bits));
  }
  CLEAVE_ASSIGN_OR_RETURN(std::vector<IntervalTensor> results,
                          InterpretInterval(spec_, arguments, bits));
  for (const auto& [place, graph] : specials_) {
    arguments.resize(inputs.size());
    arguments.push_back(results[place]);
    auto corrected = InterpretInterval(graph, arguments, bits);
    if (corrected.status().code() == absl::StatusCode::kUnimplemented) {
      CLEAVE_RETURN_IF_ERROR(
          CorrectInDType(graph, inputs, bits, results[place]));
      continue;
    }
    if (!corrected.ok()) return corrected.status();
    results[place] = std::move((*corrected)[0]);
  }
  return results;
}

absl::StatusOr<std::vector<std::vector<double>>> SpecReference::Conditions(
    absl::Span<const Tensor> inputs, int bits) const {
  std::vector<RealTensor> reals;
  for (const Tensor& input : inputs) {
    reals.push_back(RealTensor::FromTensor(input, bits));
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<RealTensor> center,
                          EvaluateReals(reals, bits));
  std::vector<std::vector<double>> conditions;
  for (const RealTensor& result : center) {
    conditions.emplace_back(IsFloat(result.dtype) ? result.reals.size() : 0,
                            0.0);
  }
  // Adds the term of operand `operand`'s elements [begin, end).
  const auto add = [&](size_t operand, size_t begin,
                       size_t end) -> absl::Status {
    std::vector<RealTensor> sides[2];
    for (int side = 0; side < 2; ++side) {
      std::vector<RealTensor> moved = reals;
      for (size_t i = begin; i < end; ++i) {
        Perturb(moved[operand].reals[i], side == 0 ? 1 : -1);
      }
      CLEAVE_ASSIGN_OR_RETURN(sides[side], EvaluateReals(moved, bits));
    }
    for (size_t r = 0; r < center.size(); ++r) {
      const DType dtype = result_types_[r].dtype;
      for (size_t k = 0; k < conditions[r].size(); ++k) {
        conditions[r][k] += std::min(
            RelativeChange(sides[0][r].reals[k], center[r].reals[k], dtype),
            RelativeChange(sides[1][r].reals[k], center[r].reals[k], dtype));
      }
    }
    return absl::OkStatus();
  };
  for (size_t operand = 0; operand < reals.size(); ++operand) {
    const size_t size = reals[operand].reals.size();
    if (size == 0) continue;
    if (elementwise_) {
      CLEAVE_RETURN_IF_ERROR(add(operand, 0, size));
      continue;
    }
    for (size_t i = 0; i < size; ++i) {
      CLEAVE_RETURN_IF_ERROR(add(operand, i, i + 1));
    }
  }
  return conditions;
}

absl::StatusOr<std::vector<double>> SpecReference::FactorValues(
    const ClauseFactor& factor, absl::Span<const Tensor> inputs, int result,
    const Tensor& got) const {
  if (factor.op.empty()) {
    return std::vector<double>(got.size(), factor.literal);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const Graph graph,
      MakeClauseGraph(*clauses_, call_, factor.op, result_types_[result]));
  constexpr int kBits = 128;
  std::vector<RealTensor> arguments;
  for (const Tensor& input : inputs) {
    arguments.push_back(RealTensor::FromTensor(input, kBits));
  }
  // The expected result has no part in a factor but its shape.
  arguments.push_back(
      RealTensor::FromTensor(Tensor(got.dtype(), got.shape()), kBits));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<RealTensor> factors,
                          InterpretReal(graph, arguments, kBits));
  std::vector<double> numbers;
  for (const Real& real : factors[0].reals) numbers.push_back(real.ToDouble());
  return numbers;
}

std::vector<const AccuracyOp*> SpecReference::AccuraciesOf(int result) const {
  std::vector<const AccuracyOp*> of_dtype;
  std::vector<const AccuracyOp*> of_variable;
  for (const AccuracyOp& op : clauses_->Of(call_.op).accuracies) {
    const auto dtype = ParseDType(op.dtype);
    if (!dtype.ok()) {
      if (of_variable.empty() || of_variable[0]->dtype == op.dtype) {
        of_variable.push_back(&op);
      }
    } else if (*dtype == result_types_[result].dtype) {
      of_dtype.push_back(&op);
    }
  }
  return of_dtype.empty() ? of_variable : of_dtype;
}

std::optional<double> SpecReference::ConstantUlp(int result) const {
  const std::vector<const AccuracyOp*> clauses = AccuraciesOf(result);
  if (clauses.empty()) return elementwise_ ? 0.5 : kUndeclaredUlp;
  const AccuracyOp& first = *clauses[0];
  if (first.on || first.is_eps || !first.ulp.op.empty() ||
      !(first.ulp.literal > 0)) {
    return std::nullopt;
  }
  return first.ulp.literal;
}

absl::Status SpecReference::SetBound(const AccuracyOp& clause,
                                     absl::Span<const Tensor> inputs,
                                     int result, const Tensor& got,
                                     ErrorBound& bound) const {
  bound.is_eps = clause.is_eps;
  if (!clause.is_eps) {
    CLEAVE_ASSIGN_OR_RETURN(bound.ulp,
                            FactorValues(clause.ulp, inputs, result, got));
    CLEAVE_ASSIGN_OR_RETURN(
        bound.condition, FactorValues(clause.condition, inputs, result, got));
    return absl::OkStatus();
  }
  const auto it = clause.eps.find(result_names_[result]);
  const EpsBound& eps =
      it == clause.eps.end() ? clause.eps.begin()->second : it->second;
  CLEAVE_ASSIGN_OR_RETURN(bound.eps,
                          FactorValues(eps.size, inputs, result, got));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<double> factors,
                          FactorValues(eps.factor, inputs, result, got));
  // Below the normal numbers, rounding leaves as much as it does there.
  const DType dtype = result_types_[result].dtype;
  const double least = IsFloat(dtype) ? SmallestNormal(dtype) : 0;
  for (size_t i = 0; i < bound.eps.size(); ++i) {
    double& value = bound.eps[i];
    // NaN stays, and so does what is no magnitude.
    if (value >= 0 && value < least) value = least;
    value *= factors[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<ErrorBound> SpecReference::Bound(absl::Span<const Tensor> inputs,
                                                int result,
                                                const Tensor& got) const {
  const std::vector<const AccuracyOp*> clauses = AccuraciesOf(result);
  ErrorBound bound;
  if (clauses.empty()) {
    bound.ulp.assign(got.size(), elementwise_ ? 0.5 : kUndeclaredUlp);
    bound.condition.assign(got.size(), elementwise_ ? 0 : kUndeclaredCondition);
    return bound;
  }
  bound.declared = true;
  if (!clauses[0]->on) {
    CLEAVE_RETURN_IF_ERROR(SetBound(*clauses[0], inputs, result, got, bound));
    return bound;
  }
  bound.is_eps = clauses[0]->is_eps;
  std::vector<double>& constant = bound.is_eps ? bound.eps : bound.ulp;
  constant.assign(got.size(), HUGE_VAL);
  bound.condition.assign(got.size(), 0);
  bound.unclaimed.assign(got.size(), true);
  for (const AccuracyOp* clause : clauses) {
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<int64_t> claimed,
        Claim(clause->on, inputs, result, got, bound.unclaimed));
    ErrorBound part;
    CLEAVE_RETURN_IF_ERROR(SetBound(*clause, inputs, result, got, part));
    for (const int64_t i : claimed) {
      constant[i] = bound.is_eps ? part.eps[i] : part.ulp[i];
      if (!bound.is_eps) bound.condition[i] = part.condition[i];
    }
  }
  return bound;
}

absl::StatusOr<std::vector<int64_t>> SpecReference::Claim(
    const std::optional<ClauseFactor>& on, absl::Span<const Tensor> inputs,
    int result, const Tensor& got, std::vector<bool>& unclaimed) const {
  std::vector<double> holds(got.size(), 1);
  if (on) {
    CLEAVE_ASSIGN_OR_RETURN(holds, FactorValues(*on, inputs, result, got));
  }
  std::vector<int64_t> claimed;
  for (int64_t i = 0; i < got.size(); ++i) {
    if (!unclaimed[i] || holds[i] == 0) continue;
    unclaimed[i] = false;
    claimed.push_back(i);
  }
  return claimed;
}

absl::StatusOr<std::vector<double>> SpecReference::Approximation(
    absl::Span<const Tensor> inputs, int result, const Tensor& got) const {
  std::vector<double> allowed;
  const std::vector<ApproximationOp>& clauses =
      clauses_->Of(call_.op).approximations;
  if (clauses.empty() || !IsFloat(result_types_[result].dtype)) return allowed;
  allowed.assign(got.size(), 0);
  std::vector<bool> unclaimed(got.size(), true);
  std::vector<std::vector<double>> conditions;
  for (const ApproximationOp& clause : clauses) {
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> claimed,
                            Claim(clause.on, inputs, result, got, unclaimed));
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<double> relative,
                            FactorValues(clause.relative, inputs, result, got));
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<double> factors,
        FactorValues(clause.condition, inputs, result, got));
    for (const int64_t i : claimed) {
      allowed[i] = relative[i];
      if (factors[i] == 0) continue;
      if (conditions.empty()) {
        CLEAVE_ASSIGN_OR_RETURN(conditions,
                                Conditions(inputs, kFirstReferenceBits));
      }
      allowed[i] += factors[i] * conditions[result][i];
    }
  }
  return allowed;
}

absl::StatusOr<std::vector<double>> SpecReference::RangeEnds() const {
  std::vector<const ClauseFactor*> ranges;
  const OpClauses& own = clauses_->Of(call_.op);
  for (const ApproximationOp& clause : own.approximations) {
    if (clause.on) ranges.push_back(&*clause.on);
  }
  for (const AccuracyOp& clause : own.accuracies) {
    if (clause.on) ranges.push_back(&*clause.on);
  }
  std::vector<double> ends;
  for (const ClauseFactor* range : ranges) {
    CLEAVE_ASSIGN_OR_RETURN(
        const Graph graph,
        MakeClauseGraph(*clauses_, call_, range->op, result_types_.front()));
    const std::vector<double> found = GuardConstants(graph);
    ends.insert(ends.end(), found.begin(), found.end());
  }
  return ends;
}

}  // namespace cleave
