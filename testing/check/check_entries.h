// CheckEntry: one item that CheckRules checks. Internal to check.h.

#ifndef CLEAVE_TESTING_CHECK_CHECK_ENTRIES_H_
#define CLEAVE_TESTING_CHECK_CHECK_ENTRIES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"
#include "testing/check/check.h"
#include "testing/check/layers/check_sweep.h"

namespace cleave {

struct CheckEntry {
  std::string name;  // as it is reported
  const Item* item;
  const Item* shown;  // whose place is reported: the item, or an override
  // The op is another source's, and the example alone one of those to check.
  bool examples_alone = false;
  // If it is set, the check is this part of a sweep over the op.
  std::optional<Sweep> sweep = {};
};

// Whether the item is one of those that `options` ask for.
bool IsWanted(const RuleSet& rules, const CheckOptions& options,
              const std::string& name, const Item* item);

// The entries of all shards, in the order of the report. InvalidArgument as for
// CheckRules.
absl::StatusOr<std::vector<CheckEntry>> EntriesToCheck(
    const RuleSet& rules, const CheckOptions& options);

// The entries of the shard.
std::vector<CheckEntry> EntriesOfShard(const std::vector<CheckEntry>& entries,
                                       const CheckOptions& options);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_CHECK_ENTRIES_H_
