#include "testing/check/layers/taken_branches.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "engine/lang/walk_expr.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/observe_branches.h"
#include "ops/status_macros.h"
#include "testing/check/layers/large_calls.h"
#include "testing/check/samples/attribute_values.h"

namespace cleave {
namespace {

// No size beyond is affordable, and a rule with many has tables, not branches.
constexpr int64_t kMaxSize = 4096;
constexpr size_t kMaxSizes = 4;

// The items whose bodies are part of that of `item`, which is the first: defs,
// and where they are wanted ops.
std::vector<const Item*> WithCalled(const RuleSet& rules, const Item& item,
                                    bool with_ops) {
  std::vector<const Item*> items = {&item};
  std::set<const Item*> seen = {&item};
  // It grows by what is called.
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& caller = *items[i];
    ForEachExpr(caller.body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kCall) return;
      const Item* called = FindDef(rules, e->text, caller);
      if (called == nullptr && with_ops) called = rules.Find(e->text);
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
  for (const Item* part : WithCalled(rules, item, true)) {
    ForEachExpr(part->body, [&sizes](const ExprPtr& e) {
      if (e->kind != ExprKind::kBinary ||
          ComparisonOperators().count(e->text) == 0) {
        return;
      }
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

TakenBranches::TakenBranches(const RuleSet& rules, const Item& item)
    : log_(std::make_shared<BranchLog>()),
      rules_(ObserveBranches(rules, log_)) {
  const auto add = [&](const ExprPtr& e) {
    if (e->kind == ExprKind::kIf || e->kind == ExprKind::kCond) {
      conditions_.push_back(e->children[0].get());
    }
  };
  for (const Item* part : WithCalled(rules, item, false)) {
    if (part->body == nullptr) continue;
    for (const Statement& statement : part->body->statements) {
      // Lines of transforms are compiled for these alone.
      if (statement.kind == StatementKind::kLet ||
          statement.kind == StatementKind::kResult) {
        ForEachExpr(statement.equation, add);
      }
    }
  }
}

absl::StatusOr<bool> TakenBranches::Add(const SampledCall& call) {
  const size_t before = log_->decisions();
  CLEAVE_ASSIGN_OR_RETURN(const Graph graph, MakeCallGraph(*rules_, call));
  CLEAVE_RETURN_IF_ERROR(Expand(graph, *rules_).status());
  return log_->decisions() > before;
}

bool TakenBranches::IsComplete() const {
  return std::all_of(conditions_.begin(), conditions_.end(),
                     [&](const Expr* condition) {
                       return log_->WasDecided(*condition, true) &&
                              log_->WasDecided(*condition, false);
                     });
}

}  // namespace cleave
