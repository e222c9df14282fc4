#include "transforms/aot/replay.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "engine/ir/graph_text.h"
#include "ops/check.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "transforms/aot/partitioned_function.h"

namespace cleave::aot {
namespace {

absl::StatusOr<const AotPhase*> PhaseOf(const AotTrace& trace,
                                        absl::string_view name) {
  for (const AotPhase& phase : trace.phases) {
    if (phase.name == name) return &phase;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the log has no phase `", name, "`"));
}

absl::StatusOr<Graph> GraphOf(const AotPhase& phase, const RuleSet& rules) {
  absl::StatusOr<Graph> graph = ParseGraph(phase.graph, rules.context());
  if (graph.ok()) return graph;
  return absl::InvalidArgumentError(absl::StrCat(
      "the graph of phase `", phase.name, "`: ", graph.status().message()));
}

// The first line in which two texts differ.
std::string FirstDifference(const std::string& then, const std::string& now) {
  const std::vector<std::string> a = absl::StrSplit(then, '\n');
  const std::vector<std::string> b = absl::StrSplit(now, '\n');
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string left = i < a.size() ? a[i] : "(nothing)";
    const std::string right = i < b.size() ? b[i] : "(nothing)";
    if (left != right) {
      return absl::StrCat("line ", i + 1, ": then ", left, ", now ", right);
    }
  }
  return "";
}

absl::StatusOr<std::vector<ReplayedPhase>> ReplayTrace(
    const AotTrace& trace, std::shared_ptr<const RuleSet> rules) {
  AotOptions options;
  options.num_params_buffers = trace.num_params_buffers;
  options.recompute_loops = trace.recompute_loops;
  for (const std::string& op : trace.decomposed) {
    options.decompositions.by_op.emplace(op, OwnBody());
  }
  for (const auto& [op, other] : trace.replaced) {
    if (other == kByFunction) {
      return NotSupported(
          "the replay of a trace in which a C++ function "
          "decomposed `",
          op, "`");
    }
    options.decompositions.by_op.insert_or_assign(op, RuleName{other});
  }
  options.decompositions.preserve = {trace.preserved.begin(),
                                     trace.preserved.end()};
  options.expand = trace.expand;
  CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<TraceRules> trace_rules,
                          MakeTraceRules(options, rules));
  CLEAVE_ASSIGN_OR_RETURN(const AotPhase* traced, PhaseOf(trace, "trace"));
  CLEAVE_ASSIGN_OR_RETURN(const Graph graph, GraphOf(*traced, *rules));
  AotTrace again;
  CLEAVE_ASSIGN_OR_RETURN(const PartitionedFunction function,
                          PartitionFunctionGraph(graph, trace.active, options,
                                                 *trace_rules, &again));
  std::vector<ReplayedPhase> replayed;
  for (const AotPhase& now : again.phases) {
    CLEAVE_ASSIGN_OR_RETURN(const AotPhase* then, PhaseOf(trace, now.name));
    ReplayedPhase phase;
    phase.name = now.name;
    phase.nodes = now.nodes;
    phase.milliseconds_then = then->milliseconds;
    phase.milliseconds_now = now.milliseconds;
    if (then->graph != now.graph) {
      phase.verdict = ReplayedPhase::Verdict::kDiffers;
      phase.difference = FirstDifference(then->graph, now.graph);
    }
    replayed.push_back(std::move(phase));
  }
  const auto half = [&](absl::string_view name) {
    return std::find_if(
        replayed.begin(), replayed.end(),
        [&](const ReplayedPhase& phase) { return phase.name == name; });
  };
  const auto forward = half("forward");
  const auto backward = half("backward");
  if (forward == replayed.end() ||
      (forward->verdict == ReplayedPhase::Verdict::kSame &&
       backward->verdict == ReplayedPhase::Verdict::kSame)) {
    return replayed;
  }
  // Another partition function than the default one: what it made must fit.
  Partition partition;
  CLEAVE_ASSIGN_OR_RETURN(const AotPhase* then, PhaseOf(trace, "forward"));
  CLEAVE_ASSIGN_OR_RETURN(partition.forward, GraphOf(*then, *rules));
  CLEAVE_ASSIGN_OR_RETURN(then, PhaseOf(trace, "backward"));
  CLEAVE_ASSIGN_OR_RETURN(partition.backward, GraphOf(*then, *rules));
  partition.saved = trace.saved;
  const absl::Status fits = CheckPartition(function.joint, partition);
  for (const auto& phase : {forward, backward}) {
    if (fits.ok()) {
      phase->verdict = ReplayedPhase::Verdict::kFromLog;
      phase->difference.clear();
    } else {
      phase->difference = std::string(fits.message());
    }
  }
  return replayed;
}

absl::string_view VerdictText(ReplayedPhase::Verdict verdict) {
  switch (verdict) {
    case ReplayedPhase::Verdict::kSame:
      return "same";
    case ReplayedPhase::Verdict::kDiffers:
      return "differs";
    case ReplayedPhase::Verdict::kFromLog:
      return "from the log";
  }
  CLEAVE_CHECK(false) << "no such verdict";
}

}  // namespace

std::string ReplayReport::ToString() const {
  std::string out;
  for (size_t i = 0; i < traces.size(); ++i) {
    absl::StrAppendFormat(&out, "trace %-10d %7s %9s %9s\n", i, "nodes",
                          "ms then", "ms now");
    for (const ReplayedPhase& phase : traces[i]) {
      absl::StrAppendFormat(&out, "%-16s %7d %9.2f %9.2f  %s\n", phase.name,
                            phase.nodes, phase.milliseconds_then,
                            phase.milliseconds_now, VerdictText(phase.verdict));
      if (!phase.difference.empty()) {
        absl::StrAppend(&out, "    ", phase.difference, "\n");
      }
    }
  }
  return out;
}

absl::StatusOr<ReplayReport> Replay(const AotLog& log,
                                    std::shared_ptr<const RuleSet> rules) {
  ReplayReport report;
  for (size_t i = 0; i < log.traces.size(); ++i) {
    absl::StatusOr<std::vector<ReplayedPhase>> trace =
        ReplayTrace(log.traces[i], rules);
    if (!trace.ok()) {
      return absl::Status(
          trace.status().code(),
          absl::StrCat("trace ", i, ": ", trace.status().message()));
    }
    for (const ReplayedPhase& phase : *trace) {
      report.same =
          report.same && phase.verdict != ReplayedPhase::Verdict::kDiffers;
    }
    report.traces.push_back(*std::move(trace));
  }
  return report;
}

}  // namespace cleave::aot
