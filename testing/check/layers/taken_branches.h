// Which branches of its rule a call takes: how a size that a rule compares with
// is met where it makes a difference. Internal to the layers.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_TAKEN_BRANCHES_H_
#define CLEAVE_TESTING_CHECK_LAYERS_TAKEN_BRANCHES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"
#include "testing/check/layers/branch_log.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

// The integers beyond the extents that are drawn anyway (kAllExtents) with
// which the body of `item`, or of a def or an op that it calls, compares
// something, ascending: 64 for `n >= 64`. Few of them: where there are more,
// the least.
std::vector<int64_t> ComparedSizes(const RuleSet& rules, const Item& item);

// The static conditions, of `if` and `cond` in bodies of any op, as calls have
// decided them so far.
class TakenBranches {
 public:
  TakenBranches(const RuleSet& rules, const Item& item);

  // Compiles the call and what it calls. Whether it decides a condition as no
  // call before did; errors of RuleSet::Call and of the body.
  absl::StatusOr<bool> Add(const SampledCall& call);

  // Whether each condition in the body of the item, and of the defs that it
  // calls, was decided both ways.
  bool IsComplete() const;

 private:
  std::shared_ptr<BranchLog> log_;
  std::shared_ptr<const RuleSet> rules_;  // tell the log
  std::vector<const Expr*> conditions_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_TAKEN_BRANCHES_H_
