// ValueComparer: the body of a call, run by the reference kernels, against its
// spec over the reals, element by element in ULP.

#ifndef CLEAVE_TESTING_CHECK_COMPARE_COMPARE_VALUES_H_
#define CLEAVE_TESTING_CHECK_COMPARE_COMPARE_VALUES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "testing/check/reference/prove.h"
#include "testing/check/reference/reference.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

// An element that is wrong.
struct ValueFailure {
  int result = 0;
  int64_t element = 0;
  std::string expected;  // 30 digits
  std::string got;
  double ulp = 0;
  double bound = 0;
  // Why no enclosure proves it; empty where one does.
  std::string unproved;
};

struct ValueComparison {
  int64_t samples = 0;  // elements compared
  int64_t outside = 0;  // elements outside the op's domain, not among them
  // Elements of which no `accuracy` clause claims anything, not among them.
  int64_t unclaimed = 0;
  double worst_ulp = 0;
  int worst_result = 0;
  int64_t worst_element = -1;
  double worst_got = 0;  // what was compared there
  // In ULP; a part of the bound there where it is not `whole`.
  double worst_bound = 0;
  bool worst_bound_is_whole = false;
  // UnitExponent of the reference that the two are about.
  int64_t worst_unit = 0;
  // The largest error as a part of its bound; a lower estimate where the bound
  // has a condition term, which is computed for the worst elements only.
  double worst_part = 0;
  bool bound_declared = false;
  // Elements that the reference could not decide: an intermediate value left
  // the range of its exponents, or did not settle.
  int64_t undecided = 0;
  // Elements like that which agree with the body over the reals instead.
  int64_t by_body = 0;
  // Zeros of the other sign than the spec's.
  int64_t other_zeros = 0;
  // Elements of a large call whose condition was not computed, since others
  // had larger errors; they are no samples.
  int64_t left_out = 0;
  // For an elementwise call, per element the largest error of its results in
  // ULP; NaN where none was judged.
  std::vector<double> errors;
  std::optional<ValueFailure> failure;

  // Notes the error of an element.
  void Note(int64_t element, double ulp);
};

// The element of a call whose error is largest, and what is known of it.
struct WorstPoint {
  std::vector<Tensor> inputs;  // the element's alone, of an elementwise call
  int result = 0;
  int64_t element = -1;
  double got = 0;
  double ulp = 0;
  double bound = 0;
  bool bound_is_whole = false;
  int64_t unit = 0;  // that of the two, as UnitExponent says it
};

class ValueComparer {
 public:
  static absl::StatusOr<ValueComparer> Make(const ClauseRules& clauses,
                                            const SampledCall& call,
                                            const CallGraphs& graphs);

  // Compares all elements of all results, up to the first that is wrong for
  // certain. A part of a bound that is `known_part` at most is not estimated.
  // Errors of the evaluation: OutOfRange for an index that is none.
  absl::StatusOr<ValueComparison> Compare(absl::Span<const Tensor> inputs,
                                          double known_part = 0) const;

  // The same for results that something else than the interpreter gave.
  absl::StatusOr<ValueComparison> CompareResults(
      absl::Span<const Tensor> inputs, absl::Span<const Tensor> got,
      double known_part = 0) const;

  // Whether an enclosure of the reference proves that the error at `point` is
  // within its bound. kOpen for calls whose spec takes much work, and where the
  // bound is not known.
  Proved Prove(const WorstPoint& point) const;

  // Spec and body are elementwise: elements may be compared apart.
  bool elementwise() const { return elementwise_; }
  const Graph& body() const { return graphs_.body; }
  const SpecReference& reference() const { return *reference_; }
  DType DTypeOf(int result) const {
    return graphs_.body.type(graphs_.body.outputs()[result].value).dtype;
  }
  const SampledCall& call() const { return call_; }

 private:
  struct Suspect;
  // The spec's, made when it is first asked for; null where it has none.
  absl::StatusOr<const Graph*> Gradient() const;
  absl::StatusOr<double> ConditionByGradient(
      const Graph& gradient, absl::Span<const Tensor> inputs,
      absl::Span<const RealTensor> expected, const Suspect& suspect) const;
  absl::Status JudgeByGradient(absl::Span<const Tensor> inputs,
                               absl::Span<const RealTensor> expected,
                               std::vector<Suspect>& suspects,
                               ValueComparison& comparison) const;
  absl::Status Settle(absl::Span<const Tensor> inputs,
                      std::vector<Suspect> suspects,
                      ValueComparison& comparison) const;
  std::vector<Tensor> SelectOne(absl::Span<const Tensor> inputs,
                                int64_t element) const;
  absl::StatusOr<bool> AgreesWithBody(const std::vector<Tensor>& inputs,
                                      const Suspect& suspect,
                                      double bound) const;
  absl::Status EstimatePart(absl::Span<const Tensor> inputs,
                            absl::Span<const RealTensor> expected,
                            std::vector<Suspect> worst, double known_part,
                            ValueComparison& comparison) const;

  SampledCall call_;
  CallGraphs graphs_;
  std::optional<SpecReference> reference_;
  bool elementwise_ = false;
  // Conditions of calls with many elements come from the spec's cotangents.
  // A call whose spec has no cotangents is not judged by a condition.
  bool many_elements_ = false;
  const RuleSet* rules_ = nullptr;
  mutable bool gradient_is_made_ = false;
  mutable std::optional<Graph> gradient_;
};

// Over- and underflow of intermediate values reach only these.
bool MayHaveLeftRange(const Real& value);

// Whether two references of growing precision are one number.
bool Settled(const Real& before, const Real& after);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_COMPARE_COMPARE_VALUES_H_
