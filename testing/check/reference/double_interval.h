// DoubleIntervalGraph: an elementwise graph over the reals, enclosed by
// intervals of doubles. It decides most points of a sweep at a fraction of what
// 256 bits cost; the rest is left to them.
//
//   absl::StatusOr<DoubleIntervalGraph> graph =
//       DoubleIntervalGraph::Make(*graphs.spec);
//   std::vector<std::vector<DoubleInterval>> results =
//       graph->Evaluate({{DoubleInterval::Of(0.5)}});
//   results[0][0].low, results[0][0].high   // the value lies between
//
// EvalInterval of ops/reference does the same at any precision, for a proof of
// single points. The value that EvalReal gives at exact inputs lies in the
// interval, or is the NaN that the interval says; kUnknown says nothing. Sums,
// products, quotients and roots are widened by the error of IEEE arithmetic.
// The functions of the C library are taken to be within 16 ULP in f64; glibc's
// manual lists no more than 5 for those that are used here.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_DOUBLE_INTERVAL_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_DOUBLE_INTERVAL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"

namespace cleave {

// A bool is 0 or 1.
struct DoubleInterval {
  enum class State : uint8_t {
    kReal,     // low <= value <= high; an infinite value is an interval of it
    kNan,      // no number
    kUnknown,  // any value
  };

  double low = 0;
  double high = 0;
  State state = State::kReal;
  // Both ends are to be multiplied by exp(scale): exp(1e30) is [1, 1] with the
  // scale 1e30, so that log(1 + exp(x)) is enclosed where it is near x. 0 where
  // the ends themselves are doubles.
  double scale = 0;

  static DoubleInterval Of(double value);
  static DoubleInterval NaN() { return {0, 0, State::kNan, 0}; }
  static DoubleInterval Unknown() { return {0, 0, State::kUnknown, 0}; }
  static DoubleInterval Bool(bool value) { return Of(value ? 1 : 0); }

  bool IsReal() const { return state == State::kReal; }
  // One number that is a double, or one infinity.
  bool IsPoint() const { return IsReal() && low == high && scale == 0; }
};

// Primitives that are not enclosed: they are refused, or their values are
// kUnknown. Example of the latter: select(x > 0, x, lgamma(x)) is known at 1.
enum class Gaps : uint8_t { kRefused, kUnknown };

class DoubleIntervalGraph {
 public:
  // `graph` is elementwise (IsElementwise), its floats are f16 to f64.
  // Unimplemented, with the primitive, where one is refused.
  static absl::StatusOr<DoubleIntervalGraph> Make(const Graph& graph,
                                                  Gaps gaps = Gaps::kRefused);

  // By output and element, with the scale 0. As many inputs as the graph has,
  // of one size.
  std::vector<std::vector<DoubleInterval>> Evaluate(
      absl::Span<const std::vector<DoubleInterval>> inputs) const;

 private:
  Graph graph_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_DOUBLE_INTERVAL_H_
