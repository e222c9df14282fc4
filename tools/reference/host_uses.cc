#include "tools/reference/host_uses.h"

#include <utility>

#include "engine/lang/json_rule.h"
#include "engine/lang/parser.h"
#include "engine/lang/walk_expr.h"

namespace cleave {

const Expr* CallThatIsTheResult(const Item& item) {
  if (item.body == nullptr || item.body->statements.empty()) return nullptr;
  const Statement& last = item.body->statements.back();
  const Expr* value = last.equation.value.get();
  if (last.kind != StatementKind::kResult || value == nullptr ||
      last.equation.indexed) {
    return nullptr;
  }
  while (value->kind == ExprKind::kTie) value = value->children[0].get();
  return value->kind == ExprKind::kCall ? value : nullptr;
}

std::set<std::string> CalleesOf(const Item& item) {
  std::set<std::string> callees;
  ForEachExpr(item.body, [&](const ExprPtr& expr) {
    if (expr->kind == ExprKind::kCall) callees.insert(expr->text);
    if (expr->kind == ExprKind::kTransformCall) callees.insert(expr->callee);
  });
  return callees;
}

HostUses::HostUses(const std::vector<NamedSource>& sources) {
  std::vector<RuleFile> files;
  for (const NamedSource& named : sources) {
    const Source source(named.name, named.text);
    ParseResult parsed =
        named.json ? ParseJsonRules(source) : ParseRules(source);
    if (parsed.ok()) files.push_back(std::move(parsed.file));
  }
  std::map<std::string, std::set<std::string>> by_def;
  std::vector<const Item*> hosts;
  for (const RuleFile& file : files) {
    for (const RuleFile::Entry& entry : file.entries) {
      if (!entry.item) continue;
      if (entry.item->kind == ItemKind::kDef) {
        by_def[entry.item->name].merge(CalleesOf(*entry.item));
      }
      if (entry.item->kind == ItemKind::kAten ||
          entry.item->kind == ItemKind::kOnnx) {
        hosts.push_back(&*entry.item);
      }
    }
  }
  for (const Item* host : hosts) {
    const std::string name =
        (host->kind == ItemKind::kAten ? "aten." : "onnx.") + host->name;
    const Expr* const call = CallThatIsTheResult(*host);
    if (call != nullptr) uses_[call->text].names.insert(name);
    const std::set<std::string> direct = CalleesOf(*host);
    std::vector<std::string> stack(direct.begin(), direct.end());
    std::set<std::string> seen;
    while (!stack.empty()) {
      const std::string callee = std::move(stack.back());
      stack.pop_back();
      if (!seen.insert(callee).second) continue;
      const auto def = by_def.find(callee);
      if (def != by_def.end()) {
        stack.insert(stack.end(), def->second.begin(), def->second.end());
      }
      HostUse& use = uses_[callee];
      if (use.names.count(name) == 0) use.callers.insert(name);
    }
  }
}

const HostUse* HostUses::Of(absl::string_view op) const {
  const auto it = uses_.find(op);
  return it == uses_.end() ? nullptr : &it->second;
}

}  // namespace cleave
