// Helpers of the tests of this folder: a function of a rule text at a point.

#ifndef CLEAVE_TESTING_DEBUG_DEBUG_TESTING_H_
#define CLEAVE_TESTING_DEBUG_DEBUG_TESTING_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"
#include "testing/debug/debug.h"

namespace cleave {

enum class DebuggedTransform { kNone, kJvp, kVjp };

struct Debugged {
  std::shared_ptr<const RuleSet> rules;
  Graph function;    // of calls
  Graph primitives;  // of the function, or of its derivative in all inputs
};

// The function `f` of `text`, rules without their first line.
absl::StatusOr<Debugged> MakeDebugged(
    absl::string_view text,
    DebuggedTransform transform = DebuggedTransform::kNone);

// The report of DebugGraph, with the findings of CompareMeaning.
absl::StatusOr<DebugReport> DebugText(
    absl::string_view text, const std::vector<Tensor>& inputs,
    DebuggedTransform transform = DebuggedTransform::kNone,
    const DebugOptions& options = {});

// The cause of an output that is off. CHECKs that it is.
const DebugCause& CauseOf(const DebugReport& report, absl::string_view output);

// The row of the first node that is off.
const DebugRow& FirstOff(const DebugReport& report, const DebugCause& cause);

// An f32 scalar.
Tensor F32(double value);

}  // namespace cleave

#endif  // CLEAVE_TESTING_DEBUG_DEBUG_TESTING_H_
