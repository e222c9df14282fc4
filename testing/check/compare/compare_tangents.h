// TangentComparer: the tangents that a jvp graph computes against derivatives
// of the primal graph over the reals.

#ifndef CLEAVE_TESTING_CHECK_COMPARE_COMPARE_TANGENTS_H_
#define CLEAVE_TESTING_CHECK_COMPARE_COMPARE_TANGENTS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/reference/real.h"
#include "ops/tensor.h"
#include "testing/check/reference/derivative.h"

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
  // Points left out since the body meets a tie there.
  int64_t ties = 0;
  double worst_ulp = 0;
  double worst_part = 0;
  int64_t worst_element = -1;
  // ComparePoints gives per element of `samples` its error in ULP; NaN else.
  std::vector<double> errors;
  std::optional<TangentFailure> failure;
};

// The slopes over the reals of an elementwise graph, `primal`, by operand
// `active`: for ComparePoints.
absl::StatusOr<Slopes> PointSlopes(
    const Graph& primal, absl::Span<const Tensor> inputs, int active,
    DifferencePrecision precision = kCoarseDifferences);

// A derivative in primitives.
struct JvpGraphs {
  Graph graph;
  std::optional<Graph> over_reals;  // where that is another (over_reals.h)
  std::vector<bool> has_tangent;

  const Graph& OverReals() const { return over_reals ? *over_reals : graph; }
};

class TangentComparer {
 public:
  // `primal` is differentiated over the reals: the spec, or `body` itself, the
  // body over the reals. The inputs of `jvp` are those of `body`, then the
  // tangent of operand `active`; its outputs the results, then the tangents of
  // those that have one. The graphs must outlive this.
  TangentComparer(const Graph& primal, const Graph& body, const JvpGraphs& jvp,
                  int active)
      : primal_(primal), body_(body), jvp_(jvp), active_(active) {}

  // Elementwise graphs: dy for dx = 1 at each point, in ULP, within
  // kDerivativeUlp + kDerivativeCondition times the derivative's own condition.
  // Points without a derivative are left out, and those where it is a
  // convention: ties of the body's max and
  // min, as long as the slope is one of those around.
  absl::StatusOr<TangentComparison> ComparePoints(
      absl::Span<const Tensor> inputs) const;
  // The same with `slopes`, of PointSlopes, of these points and perhaps of
  // others behind them.
  absl::StatusOr<TangentComparison> ComparePoints(
      absl::Span<const Tensor> inputs, const Slopes& slopes) const;

  // Any graph: the tangent along `direction`, within `tolerance` times the
  // largest element of the result's derivative (in f64; 2^14.5 times as much in
  // f32, by half of the digits that it has less); where a tangent cancels to
  // less than that, over the reals it must be the derivative, and in floating
  // point lie within `tolerance` times the largest element of the result, too,
  // or within some ULP of that times the step's change of the operand, or of
  // the result's derivative along all elements of the operand at once, or some
  // times what an ULP of the matrices of the arguments moves the tangent.
  // Near the ends of the dtype an infinity or NaN may stand for the tangent.
  // A difference where the body sorts equal keys is left out, and a tangent
  // that is right at one of some points around that are nearer than any float,
  // since there the result has a jump or a kink; and NaN where the result is
  // steep in some element of the operand (SteepAlong): an infinite slope, times
  // the 0 of the direction.
  absl::StatusOr<TangentComparison> CompareAlong(
      absl::Span<const Tensor> inputs, const Tensor& direction,
      double tolerance) const;

 private:
  absl::StatusOr<std::vector<RealTensor>> TangentsOverReals(
      absl::Span<const Tensor> arguments, int bits) const;
  // The largest change over the reals of an element of output number `output`
  // of the jvp, which is `tangent`, where each argument moves by its ULP: over
  // some random moves. 0 where the jvp has no meaning over the reals.
  absl::StatusOr<double> ChangeByUlps(absl::Span<const Tensor> arguments,
                                      size_t output, int64_t element,
                                      const Real& tangent) const;

  const Graph& primal_;
  const Graph& body_;
  const JvpGraphs& jvp_;
  int active_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_COMPARE_COMPARE_TANGENTS_H_
