// CompareAt: one comparison of a body with its spec, added to a verdict.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_COMPARE_AT_H_
#define CLEAVE_TESTING_CHECK_LAYERS_COMPARE_AT_H_

#include <cstdint>
#include <string>

#include "absl/types/span.h"
#include "ops/tensor.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// The counts that are noted beside a verdict.
struct CompareCounts {
  int64_t undecided = 0;
  int64_t outside = 0;  // of the op's domain
  int64_t unclaimed = 0;
  int64_t by_body = 0;
  int64_t other_zeros = 0;
  std::string unproved;  // why no enclosure proves the refutation
};

// The worst points of calls, and those whose reference an enclosure proves.
struct WorstPoints {
  int64_t all = 0;
  int64_t proved = 0;
};

// Compares at `inputs` and adds what was found to `verdict`, and the errors to
// the profile of `profiled`, if there is a call. A worse point than `worst` is
// kept there. False once the op is refuted, by a counterexample that was made
// small.
bool CompareAt(const OpContext& context, const ValueComparer& comparer,
               absl::Span<const Tensor> inputs, Verdict& verdict,
               CompareCounts& counts, const PreparedCall* profiled = nullptr,
               WorstPoint* worst = nullptr);

// Proves the reference at the worst point of a call. False if an enclosure
// refutes what points let pass.
bool ProveAt(const OpContext& context, const ValueComparer& comparer,
             const WorstPoint& worst, Verdict& verdict, WorstPoints& points);

void AddCountNotes(const CompareCounts& counts, Verdict& verdict);
void AddProofNote(const WorstPoints& points, Verdict& verdict);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_COMPARE_AT_H_
