// BranchLog: what calls decided in the rules, and what they evaluated.
//
//   const auto log = std::make_shared<BranchLog>();
//   const auto rules = ObserveBranches(base, log);
//   .. calls ..: log->WasDecided(*condition, true)

#ifndef CLEAVE_TESTING_CHECK_LAYERS_BRANCH_LOG_H_
#define CLEAVE_TESTING_CHECK_LAYERS_BRANCH_LOG_H_

#include <cstddef>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "engine/elaborate/branch_observer.h"
#include "engine/lang/ast.h"

namespace cleave {

// Collects decisions and evaluations. Thread-safe.
class BranchLog : public BranchObserver {
 public:
  void Decided(const Expr& condition, bool holds) override;
  void Evaluated(const Expr& value) override;
  bool WasDecided(const Expr& condition, bool holds) const;
  bool WasEvaluated(const Expr& value) const;
  // How many decisions there were, each counted once.
  size_t decisions() const;

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  absl::flat_hash_set<std::pair<const Expr*, bool>> decided_;
  absl::flat_hash_set<const Expr*> evaluated_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_BRANCH_LOG_H_
