#include "testing/check/layers/tangent_faults.h"

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "ops/budget.h"
#include "testing/check/samples/shrink.h"

namespace cleave {

bool AddRefusal(const OpContext& context, const PreparedCall& prepared,
                const std::string& what, const absl::Status& status,
                Verdict& verdict) {
  const Verdict refusal = NotTransformed(context, prepared.call, what, status);
  Merge(verdict, refusal);
  return refusal.kind == VerdictKind::kInconclusive;
}

Counterexample ExplainTangent(const OpContext& context,
                              const PreparedCall& prepared,
                              const std::string& operand,
                              absl::Span<const Tensor> inputs,
                              const TangentFailure& failure) {
  Counterexample example;
  example.call = prepared.call.ToString();
  example.inputs = DescribeInputs(prepared.call.OperandNames(), inputs);
  example.what = absl::StrCat(
      "derivative of ", prepared.graphs.body.outputs()[failure.result].name,
      "[", failure.element, "] by ", operand);
  example.expected = failure.expected;
  example.got = failure.got;
  example.ulp = failure.ulp;
  example.bound = failure.bound;
  example.place = failure.place;
  example.replay = context.Replay();
  return example;
}

std::optional<Verdict> FaultOf(const OpContext& context,
                               const PreparedCall& prepared,
                               const std::string& mode, const Graph& graph,
                               absl::Span<const Tensor> inputs,
                               absl::Span<const Tensor> arguments) {
  const absl::StatusOr<std::vector<Tensor>> results =
      Interpret(graph, arguments);
  if (results.ok() || EndsCall(results.status())) return std::nullopt;
  return NotEvaluated(context, prepared, mode, inputs, results.status());
}

}  // namespace cleave
