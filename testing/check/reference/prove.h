// Proofs by intervals: that the reference of an element is what the checker
// took it for. Points of two precisions may agree and both be wrong; an
// enclosure (ops/reference/interval.h) holds the value for certain.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_PROVE_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_PROVE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/reference/interval.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

enum class Proof : uint8_t {
  kOpen,    // the enclosures do not tell
  kAgrees,  // for every number of the enclosure
  kDiffers,
};

struct Proved {
  Proof proof = Proof::kOpen;
  std::string why;   // kOpen: "a division by what may be 0"
  double error = 0;  // the largest one over the enclosure, where it is decided
  std::string enclosure;  // in 30 digits, where it is decided
};

// The enclosures of a call's results at that many bits.
using EncloseAt =
    std::function<absl::StatusOr<std::vector<IntervalTensor>>(int bits)>;
// The error of what was got, if the reference is that number.
using ErrorAt = std::function<double(const Real& expected)>;

// Whether an element's error is at most `bound` (or is 0), by the first of
// `precisions` whose enclosure decides.
Proved ProveError(const EncloseAt& enclose, absl::Span<const int> precisions,
                  int result, int64_t element, const ErrorAt& error, double got,
                  double bound);

// Whether spec and body have one value there, to 240 bits, as the constants of
// a rule have 320; or, if a part of the spec's value is `allowed`, whether they
// differ by no more than that.
Proved ProveEqual(const CallGraphs& graphs, absl::Span<const Tensor> inputs,
                  absl::Span<const int> precisions, int result, int64_t element,
                  double allowed = 0);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_PROVE_H_
