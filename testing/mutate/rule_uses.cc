#include "testing/mutate/rule_uses.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/lang/walk_expr.h"

namespace cleave {
namespace {

// The primitives that operators stand for.
const std::map<std::string, std::string>& OperatorPrimitives() {
  static const auto* const table = new std::map<std::string, std::string>{
      {"+", "add"}, {"-", "sub"}, {"*", "mul"}, {"/", "div"}, {"^", "pow"}};
  return *table;
}

// Adds the names of what an expression calls, operators by their primitives.
void AddCalls(const Expr& e, std::set<std::string>& names) {
  if (e.kind == ExprKind::kCall) names.insert(e.text);
  if (e.kind == ExprKind::kTransformCall) names.insert(e.callee);
  if (e.kind == ExprKind::kUnary && e.text == "-") names.insert("neg");
  if (e.kind == ExprKind::kBinary) {
    const auto it = OperatorPrimitives().find(e.text);
    if (it != OperatorPrimitives().end()) names.insert(it->second);
  }
}

std::set<std::string> MeantBy(const Item& item) {
  std::set<std::string> names;
  ForEachExprOfMeaning(item,
                       [&names](const ExprPtr& e) { AddCalls(*e, names); });
  return names;
}

std::set<std::string> ComputedBy(const Item& item) {
  std::set<std::string> names;
  ForEachExpr(item.body, [&names](const ExprPtr& e) { AddCalls(*e, names); });
  return names;
}

}  // namespace

std::string RuleUses::NameOf(const Item& item) {
  switch (item.kind) {
    case ItemKind::kDef:
      return absl::StrCat("def ", item.name);
    case ItemKind::kJvp:
      return absl::StrCat("jvp ", item.name);
    case ItemKind::kRewrite:
      return absl::StrCat("rewrite ", item.name);
    default:
      return item.name;
  }
}

RuleUses::RuleUses(const RuleTexts& texts) : texts_(texts) {
  for (const RuleTexts::Place& place : texts.Items()) {
    const Item& item = texts.item(place);
    if (item.kind == ItemKind::kDef) defs_[item.name] = place;
  }
  for (const RuleTexts::Place& place : texts.Items()) {
    const Item& item = texts.item(place);
    if (item.kind == ItemKind::kOp || item.kind == ItemKind::kJvp) {
      uses_[place] = {WithDefs(MeantBy(item)), WithDefs(ComputedBy(item))};
    }
  }
}

std::set<std::string> RuleUses::WithDefs(std::set<std::string> names) const {
  std::vector<std::string> open(names.begin(), names.end());
  while (!open.empty()) {
    const auto def = defs_.find(open.back());
    open.pop_back();
    if (def == defs_.end()) continue;
    for (const std::string& name : ComputedBy(texts_.item(def->second))) {
      if (names.insert(name).second) open.push_back(name);
    }
  }
  return names;
}

std::vector<CheckedRule> RuleUses::Of(const RuleTexts::Place& place,
                                      uint64_t seed) const {
  const Item& item = texts_.item(place);
  std::vector<CheckedRule> rules;
  if (item.kind != ItemKind::kDef) rules.push_back({NameOf(item), place});
  if (item.kind != ItemKind::kDef && item.kind != ItemKind::kJvp) return rules;
  std::vector<CheckedRule> users;
  for (const auto& [user, uses] : uses_) {
    const Item& other = texts_.item(user);
    if (uses.computed.count(item.name) == 0 ||
        (item.kind == ItemKind::kDef && uses.meant.count(item.name) != 0) ||
        (item.kind == ItemKind::kJvp && other.kind != ItemKind::kOp)) {
      continue;
    }
    users.push_back({NameOf(other), user});
  }
  for (const char c : item.name) seed = seed * 131 + static_cast<uint8_t>(c);
  std::shuffle(users.begin(), users.end(), std::mt19937_64(seed));
  if (users.size() > kMaxUsers) users.resize(kMaxUsers);
  rules.insert(rules.end(), users.begin(), users.end());
  return rules;
}

std::vector<RuleTexts::Place> RuleUses::AllUsers(const std::string& def) const {
  std::vector<RuleTexts::Place> users;
  for (const auto& [user, uses] : uses_) {
    if (uses.computed.count(def) != 0) users.push_back(user);
  }
  return users;
}

std::set<std::string> RuleUses::DefsWith(const std::string& def) const {
  std::set<std::string> found = {def};
  for (const auto& [name, place] : defs_) {
    if (WithDefs({name}).count(def) != 0) found.insert(name);
  }
  return found;
}

}  // namespace cleave
