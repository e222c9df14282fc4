// FastComparer: which points of a pointwise call intervals of doubles decide.
//
// A ValueComparer evaluates the spec with 256 bits. For f32 and narrower dtypes
// an enclosure by doubles (double_interval.h) acquits most points at a fraction
// of that. It never convicts: the other points are left to the comparer.

#ifndef CLEAVE_TESTING_CHECK_COMPARE_FAST_COMPARER_H_
#define CLEAVE_TESTING_CHECK_COMPARE_FAST_COMPARER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/dtype.h"
#include "ops/tensor.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/reference/double_interval.h"

namespace cleave {

class FastComparer {
 public:
  // For the call of `comparer`, which it refers to. Unimplemented, and why,
  // where intervals decide nothing: the call is not elementwise, or has
  // operands or results that are no floats, or results of f64; a primitive of
  // the spec is refused; or no part of the claim is the same at all points.
  static absl::StatusOr<FastComparer> Make(const ValueComparer& comparer,
                                           Gaps gaps);

  // The points of `inputs`, of shape [n], that are left, ascending: those of
  // which intervals do not say that the error is within the claim; a few with
  // the largest parts of their claims, if these may be above `known_part`, so
  // that they are measured exactly; and those outside the domain, which the
  // comparer counts. All of them where the body has no value at one.
  std::vector<int64_t> Undecided(absl::Span<const Tensor> inputs,
                                 double known_part) const;

 private:
  FastComparer() = default;
  std::vector<std::vector<DoubleInterval>> Evaluate(
      absl::Span<const Tensor> inputs) const;

  const ValueComparer* comparer_ = nullptr;
  DoubleIntervalGraph spec_;
  // Special values, by the result that each is of.
  std::vector<std::pair<int, DoubleIntervalGraph>> specials_;
  // The claim of each result in ULP, and its dtype.
  std::vector<double> ulp_;
  std::vector<DType> dtypes_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_COMPARE_FAST_COMPARER_H_
