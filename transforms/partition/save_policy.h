// SavePolicy: a user's decision about single values of a joint graph: to save
// them for the backward half, or to compute them again there.
//
//   MinCutOptions options;
//   options.policy = SaveOnlyTheseNames({"attention"});
//
// A value has a name if it is the result of `checkpoint_name(x, name: "..")`,
// an op that is the identity, and vanishes when it is expanded.

#ifndef CLEAVE_TRANSFORMS_PARTITION_SAVE_POLICY_H_
#define CLEAVE_TRANSFORMS_PARTITION_SAVE_POLICY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave::aot {

enum class SaveDecision : uint8_t {
  kNone,  // as the costs say
  // Saved where the backward half needs it or what it would be needed for: at
  // no cost, and whatever the memory budget.
  kMustSave,
  // Its bytes count a `kPreference`th, or that many times.
  kPreferSave,
  kPreferRecompute,
  // Never saved, whatever it costs to compute again; but for a `nonzero`, which
  // is saved always.
  kMustRecompute,
  // As kMustSave; rests on the host between the halves.
  kOffload,
};

inline constexpr double kPreference = 8;

// Asked once per value that the function itself computes; not for primals,
// which can be saved always, nor for what only the backward half needs, which
// is computed there.
using SavePolicy = std::function<SaveDecision(const Graph&, Value)>;

// All that the backward half takes of the forward half is saved.
SavePolicy EverythingSaveable();
// Nothing is, but for the primals.
SavePolicy NothingSaveable();
// The results of contractions, calls of that class (recompute_cost.h) included,
// and nothing else. The rule set must outlive the policy.
SavePolicy DotsSaveable(const RuleSet& rules);
// The first three by a name: "everything", "nothing", "dots". InvalidArgument
// for another one.
absl::StatusOr<SavePolicy> NamedPolicy(absl::string_view name,
                                       const RuleSet& rules);
// The values of these names, and nothing else.
SavePolicy SaveOnlyTheseNames(std::vector<std::string> names);
// All named values but those of these names; the costs decide about values
// without a name.
SavePolicy SaveAnyNamesButThese(std::vector<std::string> names);
// The values of these names, those of the second list on the host.
SavePolicy SaveAndOffloadOnlyTheseNames(std::vector<std::string> saved,
                                        std::vector<std::string> offloaded);
// A checkpoint: what was written in one of these rules or functions (by its
// provenance) is computed again.
SavePolicy RecomputeWithin(std::vector<std::string> rules);
// The first decision that is not kNone.
SavePolicy FirstOf(std::vector<SavePolicy> policies);

// The name of a value; empty if it has none.
absl::string_view CheckpointName(const Graph& graph, Value v);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_PARTITION_SAVE_POLICY_H_
