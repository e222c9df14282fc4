// ComputeSection: the results of one section of a case: its call, transformed
// and evaluated.

#ifndef CLEAVE_TESTING_CONFORMANCE_COMPUTE_SECTION_H_
#define CLEAVE_TESTING_CONFORMANCE_COMPUTE_SECTION_H_

#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"
#include "testing/conformance/case_call.h"
#include "testing/conformance/case_suite.h"

namespace cleave {

// Evaluates a graph of primitives, as Interpret does.
using GraphEvaluator = std::function<absl::StatusOr<std::vector<Tensor>>(
    const Graph& graph, absl::Span<const Tensor> inputs)>;

// Nullopt where the section has no such output.
using Computed = std::vector<std::optional<Tensor>>;

// One entry per declared result of the op; of sections of gradients, one per
// input of the call. Errors are those of the transforms and of `evaluate`.
absl::StatusOr<Computed> ComputeSection(const CaseCall& call,
                                        const CaseSection& section,
                                        const RuleSet& rules,
                                        const GraphEvaluator& evaluate);

// The outputs that the suite expects, entry by entry.
ExpectedOutputs ExpectedOf(const CaseCall& call, const CaseSection& section);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CONFORMANCE_COMPUTE_SECTION_H_
