// TangentComparer: the tangents that a jvp graph computes against derivatives
// of the primal graph over the reals.

#ifndef CLEAVE_TESTING_CHECK_COMPARE_TANGENTS_H_
#define CLEAVE_TESTING_CHECK_COMPARE_TANGENTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"

namespace cleave {

struct TangentFailure {
  int result = 0;
  int64_t element = 0;
  std::string expected;
  std::string got;
  double ulp = 0;
  double bound = 0;
  std::string place;
};

struct TangentComparison {
  int64_t samples = 0;
  double worst_ulp = 0;
  double worst_part = 0;
  int64_t worst_element = -1;
  std::optional<TangentFailure> failure;
};

class TangentComparer {
 public:
  // `jvp` is expanded; its inputs are those of `primal`, then the tangent of
  // operand `active`; its outputs the results, then the tangents of those that
  // have one. Both graphs must outlive this.
  TangentComparer(const Graph& primal, const Graph& jvp,
                  std::vector<bool> has_tangent, int active)
      : primal_(primal),
        jvp_(jvp),
        has_tangent_(std::move(has_tangent)),
        active_(active) {}

  // Elementwise graphs: dy for dx = 1 at each point, in ULP, within
  // kDerivativeUlp + kDerivativeCondition times the derivative's own condition.
  // Points without a derivative are left out.
  absl::StatusOr<TangentComparison> ComparePoints(
      absl::Span<const Tensor> inputs) const;

  // Any graph: the tangent along `direction`, within `tolerance` times the
  // largest element of the result's derivative.
  absl::StatusOr<TangentComparison> CompareAlong(
      absl::Span<const Tensor> inputs, const Tensor& direction,
      double tolerance) const;

 private:
  const Graph& primal_;
  const Graph& jvp_;
  std::vector<bool> has_tangent_;
  int active_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_COMPARE_TANGENTS_H_
