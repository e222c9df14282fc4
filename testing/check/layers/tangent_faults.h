// How a derivative that is wrong, or is not there, is told. Internal to the
// layers.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_TANGENT_FAULTS_H_
#define CLEAVE_TESTING_CHECK_LAYERS_TANGENT_FAULTS_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"
#include "testing/check/compare/compare_tangents.h"
#include "testing/check/compare/verdict.h"
#include "testing/check/layers/op_context.h"

namespace cleave {

// Adds why a call has no derivative. False if that settles the layer.
bool AddRefusal(const OpContext& context, const PreparedCall& prepared,
                const std::string& what, const absl::Status& status,
                Verdict& verdict);

// A tangent that is wrong, by the operand of that name.
Counterexample ExplainTangent(const OpContext& context,
                              const PreparedCall& prepared,
                              const std::string& operand,
                              absl::Span<const Tensor> inputs,
                              const TangentFailure& failure);

// The verdict where `graph`, of a transform, cannot be evaluated at
// `arguments`, and the op can at `inputs`; nullopt where it can, or the op
// cannot either.
std::optional<Verdict> FaultOf(const OpContext& context,
                               const PreparedCall& prepared,
                               const std::string& mode, const Graph& graph,
                               absl::Span<const Tensor> inputs,
                               absl::Span<const Tensor> arguments);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_TANGENT_FAULTS_H_
