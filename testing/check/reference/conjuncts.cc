#include "testing/check/reference/conjuncts.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <utility>

#include "engine/lang/build_expr.h"

namespace cleave {
namespace {

bool IsAnd(const Expr& expr) {
  return expr.kind == ExprKind::kBinary && expr.text == "and";
}

void AddSides(const ExprPtr& condition, std::vector<ExprPtr>& sides) {
  if (!IsAnd(*condition)) {
    sides.push_back(condition);
    return;
  }
  for (const ExprPtr& side : condition->children) AddSides(side, sides);
}

// As text. Attributes are computed once and for all: `axes: 0..len(B)` makes no
// call.
void AddCalls(const Expr& expr, std::set<std::string>& calls) {
  if (expr.kind == ExprKind::kCall) calls.insert(PrintExpr(expr));
  for (const ExprPtr& child : expr.children) {
    if (child != nullptr) AddCalls(*child, calls);
  }
}

// One empty text where there are none.
std::set<std::string> CallsOf(const Expr& expr) {
  std::set<std::string> calls;
  AddCalls(expr, calls);
  if (calls.empty()) calls.insert("");
  return calls;
}

struct Group {
  ExprPtr condition;
  std::set<std::string> calls;
};

bool Meet(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(),
                     [&](const auto& call) { return b.count(call) != 0; });
}

}  // namespace

std::vector<ExprPtr> IndependentConjuncts(const ExprPtr& condition) {
  std::vector<ExprPtr> sides;
  AddSides(condition, sides);
  std::vector<Group> groups;
  for (const ExprPtr& side : sides) {
    Group grown = {side, CallsOf(*side)};
    // It may hold groups together that had nothing in common.
    std::vector<Group> others;
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
      if (!Meet(group->calls, grown.calls)) {
        others.push_back(std::move(*group));
        continue;
      }
      grown.condition =
          build_expr::Binary(group->condition, "and", grown.condition);
      grown.calls.insert(group->calls.begin(), group->calls.end());
    }
    groups.assign(std::make_move_iterator(others.rbegin()),
                  std::make_move_iterator(others.rend()));
    groups.push_back(std::move(grown));
  }
  std::vector<ExprPtr> conditions;
  for (Group& group : groups) conditions.push_back(std::move(group.condition));
  return conditions;
}

}  // namespace cleave
