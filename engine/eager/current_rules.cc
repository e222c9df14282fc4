#include "engine/eager/current_rules.h"

#include "engine/eager/storage.h"
#include "ops/status_macros.h"

namespace cleave::functional {

absl::StatusOr<std::shared_ptr<const RuleSet>> CurrentRules() {
  CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<Recorder> recorder,
                          CurrentRecorder());
  if (recorder->rules() != nullptr) return recorder->shared_rules();
  return absl::FailedPreconditionError(
      "the trace on this thread has no rules: it is of primitives alone");
}

}  // namespace cleave::functional
