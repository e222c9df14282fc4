#include "testing/debug/debug_testing.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/rewrite/in_primitives.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "testing/debug/meaning.h"
#include "transforms/jvp/jvp.h"
#include "transforms/shipped_rules/shipped_rules.h"
#include "transforms/vjp/vjp.h"

namespace cleave {

absl::StatusOr<Debugged> MakeDebugged(absl::string_view text,
                                      DebuggedTransform transform) {
  Debugged debugged;
  CLEAVE_ASSIGN_OR_RETURN(
      debugged.rules,
      ShippedRulesWith(absl::StrCat("language 1\n", text), "test.rules"));
  const RuleSet& rules = *debugged.rules;
  CLEAVE_ASSIGN_OR_RETURN(debugged.function, rules.Function("f"));
  Graph graph = debugged.function;
  const std::vector<bool> active(graph.inputs().size(), true);
  if (transform == DebuggedTransform::kJvp) {
    CLEAVE_ASSIGN_OR_RETURN(JvpResult jvp, Jvp(graph, active, rules));
    graph = std::move(jvp.graph);
  } else if (transform == DebuggedTransform::kVjp) {
    CLEAVE_ASSIGN_OR_RETURN(VjpResult vjp, Vjp(graph, active, rules));
    graph = std::move(vjp.graph);
  }
  CLEAVE_ASSIGN_OR_RETURN(debugged.primitives, InPrimitives(graph, rules));
  return debugged;
}

absl::StatusOr<DebugReport> DebugText(absl::string_view text,
                                      const std::vector<Tensor>& inputs,
                                      DebuggedTransform transform,
                                      const DebugOptions& options) {
  CLEAVE_ASSIGN_OR_RETURN(const Debugged debugged,
                          MakeDebugged(text, transform));
  CLEAVE_ASSIGN_OR_RETURN(DebugReport report,
                          DebugGraph(debugged.primitives, inputs, options));
  CLEAVE_RETURN_IF_ERROR(CompareMeaning(debugged.function, debugged.primitives,
                                        *debugged.rules, inputs, options,
                                        report));
  return report;
}

const DebugCause& CauseOf(const DebugReport& report, absl::string_view output) {
  for (const DebugOutput& found : report.outputs) {
    if (found.name != output) continue;
    CLEAVE_CHECK(found.cause.has_value()) << report.ToString();
    return *found.cause;
  }
  CLEAVE_CHECK(false) << "no output " << output;
}

const DebugRow& FirstOff(const DebugReport& report, const DebugCause& cause) {
  return report.rows[cause.path[cause.first].row];
}

Tensor F32(double value) { return Tensor::Scalar(DType::kF32, value); }

}  // namespace cleave
