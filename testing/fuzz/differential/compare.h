// How two results part, and whether they may.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_COMPARE_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_COMPARE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"
#include "testing/fuzz/differential/check_case.h"

namespace cleave::fuzz {

using Results = absl::StatusOr<std::vector<Tensor>>;

bool IsOverLimits(const Results& results);

// How they part, bit by bit; empty where they do not. Where one of them is over
// limits, nothing is known.
std::string Parting(const Results& got, const Results& want);

// Makes the outcome one that differs; false.
bool Differs(Outcome& outcome, const std::string& what,
             const std::string& text);
// The same for a step that did not succeed, which may be over limits.
bool Failed(Outcome& outcome, const std::string& what,
            const absl::Status& status);

// Whether `got` is `want`, which `graph` of primitives gives for `inputs`, or
// as near as noise leads (noise.h). Where not, the outcome says how.
bool IsNear(const Graph& graph, const std::vector<Tensor>& inputs,
            const Results& got, const Results& want, const std::string& what,
            Outcome& outcome);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_COMPARE_H_
