#include "testing/check/layers/taken_branches.h"

#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/numbers.h"
#include "engine/elaborate/branch_observer.h"
#include "engine/lang/walk_expr.h"
#include "engine/rules/observe_branches.h"
#include "testing/check/layers/large_calls.h"

namespace cleave {
namespace {

// No size beyond is affordable, and a rule with many has tables, not branches.
constexpr int64_t kMaxSize = 4096;
constexpr size_t kMaxSizes = 4;

bool IsComparison(const Expr& e) {
  static const auto& comparisons =
      *new std::set<std::string>{"==", "!=", "<", "<=", ">", ">="};
  return e.kind == ExprKind::kBinary && comparisons.count(e.text) != 0;
}

// The items whose bodies are part of that of `item`, which is the first.
std::vector<const Item*> WithCalled(const RuleSet& rules, const Item& item) {
  std::vector<const Item*> items = {&item};
  std::set<const Item*> seen = {&item};
  // It grows by what is called.
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& caller = *items[i];
    ForEachExpr(caller.body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kCall) return;
      const Item* called = FindDef(rules, e->text, caller);
      if (called == nullptr) called = rules.Find(e->text);
      if (called != nullptr && seen.insert(called).second) {
        items.push_back(called);
      }
    });
  }
  return items;
}

}  // namespace

std::vector<int64_t> ComparedSizes(const RuleSet& rules, const Item& item) {
  std::set<int64_t> sizes;
  for (const Item* part : WithCalled(rules, item)) {
    ForEachExpr(part->body, [&sizes](const ExprPtr& e) {
      if (!IsComparison(*e)) return;
      for (const ExprPtr& side : e->children) {
        int64_t size = 0;
        if (side->kind == ExprKind::kNumber &&
            absl::SimpleAtoi(side->text, &size) && size > kAllExtents &&
            size <= kMaxSize) {
          sizes.insert(size);
        }
      }
    });
  }
  std::vector<int64_t> least(sizes.begin(), sizes.end());
  if (least.size() > kMaxSizes) least.resize(kMaxSizes);
  return least;
}

class TakenBranches::Log : public BranchObserver {
 public:
  void Decided(const Expr& condition, bool holds) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    decided_.emplace(&condition, holds);
  }
  size_t count() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return decided_.size();
  }

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  absl::flat_hash_set<std::pair<const Expr*, bool>> decided_;
};

TakenBranches::TakenBranches(const RuleSet& rules)
    : log_(std::make_shared<Log>()), rules_(ObserveBranches(rules, log_)) {}

TakenBranches::~TakenBranches() = default;

bool TakenBranches::AddsTo(const SampledCall& call) {
  const size_t before = log_->count();
  const absl::StatusOr<CallGraphs> graphs = MakeCallGraphs(*rules_, call);
  return graphs.ok() && log_->count() > before;
}

}  // namespace cleave
