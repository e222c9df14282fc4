// Replay: runs the phases of an AotLog again, and compares graphs and times
// with those of the log.

#ifndef CLEAVE_TRANSFORMS_AOT_REPLAY_H_
#define CLEAVE_TRANSFORMS_AOT_REPLAY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/rules/rule_set.h"
#include "transforms/aot/aot_log.h"

namespace cleave::aot {

struct ReplayedPhase {
  enum class Verdict {
    kSame,
    kDiffers,
    // Made by a function of the user's: it was read and verified, and counts
    // as same.
    kFromLog,
  };
  std::string name;
  int64_t nodes = 0;
  double milliseconds_then = 0;
  double milliseconds_now = 0;
  Verdict verdict = Verdict::kSame;
  std::string difference;  // the first line that differs
};

struct ReplayReport {
  std::vector<std::vector<ReplayedPhase>> traces;
  bool same = true;
  std::string ToString() const;
};

// Each trace from its traced graph: ops are replaced and decomposed, reverse
// mode runs, and the default partition; where the log has another one, its
// halves are checked against the joint graph. InvalidArgument where a graph
// does not parse or a phase is missing; errors of the phases.
absl::StatusOr<ReplayReport> Replay(const AotLog& log,
                                    std::shared_ptr<const RuleSet> rules);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_REPLAY_H_
