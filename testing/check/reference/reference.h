// SpecReference: the right results of a call over the reals: its spec,
// corrected by its `special` clauses; how ill-conditioned it is; and the error
// that its accuracy clause allows.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_REFERENCE_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_REFERENCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/reference/interval.h"
#include "ops/reference/real.h"
#include "ops/tensor.h"
#include "testing/check/reference/clause_rules.h"
#include "testing/check/reference/domain.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

// The error allowed to one result, per element: ulp + condition * cond, or
// `eps` (an absolute error, in units of the dtype's eps).
struct ErrorBound {
  bool is_eps = false;
  std::vector<double> ulp;
  std::vector<double> condition;
  std::vector<double> eps;
  // The elements of which no clause claims anything, their bound infinite; no
  // entries where there are none.
  std::vector<bool> unclaimed;
  // Whether a clause declares it; if not, the result is rounded correctly.
  bool declared = false;
};

class SpecReference {
 public:
  // FailedPrecondition if the call has no spec.
  static absl::StatusOr<SpecReference> Make(const ClauseRules& clauses,
                                            const SampledCall& call,
                                            const CallGraphs& graphs);

  // One tensor per result.
  absl::StatusOr<std::vector<RealTensor>> Evaluate(
      absl::Span<const Tensor> inputs, int bits) const;

  // The same, enclosed: Evaluate at infinitely many bits lies within.
  // IsUndecided where it rests on a decision that `bits` do not make.
  absl::StatusOr<std::vector<IntervalTensor>> Enclose(
      absl::Span<const Tensor> inputs, int bits) const;

  // sum over the inputs of |x ds/dx / s|, for each element of each result (no
  // entries for discrete ones). Derivatives are one-sided differences over the
  // reals; at a kink or a jump the smaller side counts. Terms that are not
  // finite count 0. Takes 2 evaluations per float input for an elementwise
  // spec, else 2 per element.
  absl::StatusOr<std::vector<std::vector<double>>> Conditions(
      absl::Span<const Tensor> inputs, int bits) const;

  // For result number `result`, of which only the shape of `got` is taken.
  absl::StatusOr<ErrorBound> Bound(absl::Span<const Tensor> inputs, int result,
                                   const Tensor& got) const;
  // The part of that bound, in ULP, that is the same at all inputs and takes no
  // condition; nullopt where there is none but 0.
  std::optional<double> ConstantUlp(int result) const;
  // How far the body may be from each element of result number `result` over
  // the reals, as a part of that element: what the op's `approximates` clauses
  // allow. Only the shape of `got` is taken. No entries where the op has none.
  absl::StatusOr<std::vector<double>> Approximation(
      absl::Span<const Tensor> inputs, int result, const Tensor& got) const;

  // The ends of the ranges of which the claims are, as a graph's guards.
  absl::StatusOr<std::vector<double>> RangeEnds() const;

  bool elementwise() const { return elementwise_; }
  const Graph& spec() const { return spec_; }
  const Domain& domain() const { return domain_; }
  // (number of the result, the graph of a `special` clause), in their order:
  // its last input is what is expected so far, its output what is instead.
  const std::vector<std::pair<int, Graph>>& specials() const {
    return specials_;
  }

 private:
  absl::StatusOr<std::vector<RealTensor>> EvaluateReals(
      const std::vector<RealTensor>& inputs, int bits) const;
  // The clauses for result number `result`, the first of which that holds at
  // an element counts there: those of its dtype, or else of dtype variables.
  std::vector<const AccuracyOp*> AccuraciesOf(int result) const;
  absl::Status SetBound(const AccuracyOp& clause,
                        absl::Span<const Tensor> inputs, int result,
                        const Tensor& got, ErrorBound& bound) const;
  // The elements at which a clause for the range `on` is the first that holds.
  // They are no longer unclaimed.
  absl::StatusOr<std::vector<int64_t>> Claim(
      const std::optional<ClauseFactor>& on, absl::Span<const Tensor> inputs,
      int result, const Tensor& got, std::vector<bool>& unclaimed) const;
  absl::StatusOr<std::vector<double>> FactorValues(
      const ClauseFactor& factor, absl::Span<const Tensor> inputs, int result,
      const Tensor& got) const;

  const ClauseRules* clauses_ = nullptr;
  SampledCall call_;
  Graph spec_;
  std::vector<TensorType> result_types_;
  std::vector<std::string> result_names_;
  // (place of the result, the special clause's graph), in order.
  std::vector<std::pair<int, Graph>> specials_;
  Domain domain_;
  bool elementwise_ = false;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_REFERENCE_H_
