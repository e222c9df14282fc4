// ScreenSlopes: whether the derivatives of a call look wrong in f64. Far
// cheaper than a derivative over the reals, so that calls may be large.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_SCREEN_SLOPES_H_
#define CLEAVE_TESTING_CHECK_LAYERS_SCREEN_SLOPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"

namespace cleave {

// The transforms of a call by all of its float operands, in primitives.
struct CallSlopes {
  // Inputs: primals, then directions; outputs: results, then tangents.
  Graph jvp;
  std::vector<bool> has_tangent;  // by result
  // Inputs: primals, then cotangents; outputs: cotangents of the operands.
  Graph vjp;
};

struct SlopeSuspicion {
  std::string what;  // "derivative of y[3]", or the law that is broken
  bool in_reverse = false;
  double expected = 0;
  double got = 0;
};

struct SlopeScreen {
  int64_t compared = 0;
  std::optional<SlopeSuspicion> suspicion;
};

// `body` computes the results of the call from `x`, its operands; `directions`
// are those of the float operands, `cotangents` those of the results with a
// tangent. All floats are f64. The tangents are compared with differences of
// the body: a suspicion is one that is off by more than a thousandth of the
// largest of its result at two steps, where the differences on both sides
// agree. <Jv, w> must be <v, J^T w> but for a ten-thousandth of the sizes of
// its terms. Results that are not finite are not compared.
// Errors of Interpret.
absl::StatusOr<SlopeScreen> ScreenSlopes(const Graph& body,
                                         const CallSlopes& slopes,
                                         absl::Span<const Tensor> x,
                                         absl::Span<const Tensor> directions,
                                         absl::Span<const Tensor> cotangents);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_SCREEN_SLOPES_H_
