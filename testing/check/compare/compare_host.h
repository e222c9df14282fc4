// HostComparer: compares the results of a host kernel for a call with the body
// of the op over the reals, within the bound of host_tolerance.h.

#ifndef CLEAVE_TESTING_CHECK_COMPARE_COMPARE_HOST_H_
#define CLEAVE_TESTING_CHECK_COMPARE_COMPARE_HOST_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/host_kernel.h"
#include "ops/reference/real.h"
#include "testing/check/compare/host_tolerance.h"
#include "testing/check/compare/verdict.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

// A kernel that is wrong, in an element or as a whole.
struct HostFailure {
  HostFailureKind kind = HostFailureKind::kCall;
  int result = 0;
  int64_t element = -1;  // -1: not of one element
  std::string what;      // "y[2], in f32", "what the kernel returns"
  std::string expected;
  std::string got;
  double ulp = 0;  // infinity where it is no number of ULPs
  double bound = 0;
};

struct HostFailures {
  int64_t count = 0;
  HostFailure worst;  // the first of those with the largest error
};

struct HostComparison {
  int64_t samples = 0;  // elements that were judged
  double worst_ulp = 0;
  int64_t worst_element = -1;
  // The largest error as a part of its bound; of the elements that need no
  // spread, without it.
  double worst_part = 0;
  // The elements with the largest errors by their part of the bound, the
  // largest first: of pointwise calls, a few.
  std::vector<std::pair<double, int64_t>> largest;
  int64_t as_body = 0;       // right since the body gives the same value
  int64_t undecided = 0;     // the reals do not settle
  int64_t not_compared = 0;  // special values
  int64_t other_zeros = 0;   // of the other sign
  // The body has no meaning over the reals, as it looks at bits: it was run in
  // floating point in its place.
  std::string not_real;
  // The message of a kernel that does not do such calls (Unimplemented).
  std::optional<std::string> unimplemented;
  // The first, and all by their kinds: one, unless all are asked for.
  std::optional<HostFailure> failure;
  std::map<HostFailureKind, HostFailures> failures;

  void Add(HostFailure wrong);
};

class HostComparer {
 public:
  // `kernels` has a function for the op of the call, and outlives this.
  HostComparer(SampledCall call, CallGraphs graphs, const HostKernels& kernels,
               const HostTolerance& tolerance, bool all_failures = false);

  // Runs both, and compares up to the first element that is wrong for certain,
  // or, with `all_failures`, to the end. Errors are those of the body:
  // OutOfRange for an index that is none.
  absl::StatusOr<HostComparison> Compare(absl::Span<const Tensor> inputs) const;

  // Elements may be compared apart: it is a pointwise call at the shape [n].
  bool elementwise() const { return elementwise_; }
  const SampledCall& call() const { return call_; }
  const Graph& body() const { return graphs_.body; }

 private:
  struct Suspect;
  bool GoesOn(const HostComparison& comparison) const {
    return all_failures_ || !comparison.failure;
  }
  absl::StatusOr<std::vector<Tensor>> RunKernel(
      absl::Span<const Tensor> inputs, HostComparison& comparison,
      std::optional<HostFailure>& failed) const;
  void Judge(int result, const Tensor& want,
             const std::optional<RealTensor>& exact, const Tensor& got,
             const std::vector<bool>& skipped, std::vector<Suspect>& suspects,
             HostComparison& comparison) const;
  absl::Status Settle(absl::Span<const Tensor> inputs,
                      std::vector<Suspect> suspects,
                      HostComparison& comparison) const;
  absl::StatusOr<std::vector<double>> Spreads(
      absl::Span<const Tensor> inputs, const std::vector<RealTensor>& center,
      const std::vector<Suspect>& suspects,
      const std::vector<int64_t>& places) const;

  SampledCall call_;
  CallGraphs graphs_;
  const HostKernels& kernels_;
  HostTolerance tolerance_;
  bool all_failures_ = false;
  bool elementwise_ = false;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_COMPARE_COMPARE_HOST_H_
