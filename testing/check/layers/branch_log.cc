#include "testing/check/layers/branch_log.h"

namespace cleave {

void BranchLog::Decided(const Expr& condition, bool holds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  decided_.emplace(&condition, holds);
}

void BranchLog::Evaluated(const Expr& value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  evaluated_.insert(&value);
}

bool BranchLog::WasDecided(const Expr& condition, bool holds) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return decided_.contains({&condition, holds});
}

bool BranchLog::WasEvaluated(const Expr& value) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return evaluated_.contains(&value);
}

size_t BranchLog::decisions() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return decided_.size();
}

}  // namespace cleave
