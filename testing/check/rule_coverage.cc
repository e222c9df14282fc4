#include "testing/check/rule_coverage.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/lang/marked_line.h"
#include "engine/lang/source.h"
#include "engine/rules/observe_branches.h"

namespace cleave {
namespace {

// One way in which a condition is decided.
struct Arm {
  const Expr* condition;
  bool holds;
  SourceRange range;  // that is shown
  const char* what;   // where the condition was decided, but never so
};

// The lines and branches of one item, in the order of the text.
class ItemBranches {
 public:
  explicit ItemBranches(const RuleSet& rules, const Item& item)
      : rules_(rules), item_(item) {
    switch (item.kind) {
      case ItemKind::kOp:
        AddDeclaration();
        if (item.spec != nullptr) AddBody(*item.spec);
        AddLinesInForce();
        break;
      case ItemKind::kOverride:
        AddLinesInForce();
        break;
      default:
        if (item.body != nullptr) AddBody(*item.body);
        break;
    }
  }

  const std::vector<const Statement*>& lines() const { return lines_; }
  const std::vector<Arm>& arms() const { return arms_; }
  // Names that are called: ops, defs, builtins.
  const std::set<std::string>& callees() const { return callees_; }

 private:
  void AddArms(const ExprPtr& condition, SourceRange holds,
               const char* if_never, SourceRange fails, const char* if_always) {
    arms_.push_back({condition.get(), true, holds, if_never});
    arms_.push_back({condition.get(), false, fails, if_always});
  }

  void AddDeclaration() {
    for (const AttributeDecl& attribute : item_.attributes) {
      Add(attribute.list_length);
      Add(attribute.default_value);
    }
    for (const NamedExpr& let : item_.lets) Add(let.value);
    for (const InputDecl& input : item_.inputs) AddType(input.type);
    for (const ErrorClause& error : item_.errors) {
      Add(error.condition);
      AddArms(error.condition, error.range, "no checked call meets this error",
              error.range, "every checked call meets this error");
    }
    for (const ResultDecl& result : item_.results) {
      AddType(result.type);
      if (result.condition == nullptr) continue;
      Add(result.condition);
      AddArms(result.condition, result.range,
              "this result is in no checked call", result.range,
              "this result is in every checked call");
    }
  }

  void AddType(const TypeExpr& type) {
    Add(type.dtype);
    for (const AxisExpr& axis : type.axes) {
      Add(axis.size);
      Add(axis.bound);
    }
  }

  // The lines that no override of the op replaces.
  void AddLinesInForce() {
    bool any = false;
    for (const StatementKind kind :
         {StatementKind::kResult, StatementKind::kJvp, StatementKind::kVmap,
          StatementKind::kVjp}) {
      for (const RuleSet::Line& line : rules_.Lines(item_.name, kind)) {
        if (line.item != &item_) continue;
        AddStatement(*line.statement);
        any = true;
      }
    }
    // The lets are those of any line.
    if (!any) return;
    for (const Statement& statement : item_.body->statements) {
      if (statement.kind == StatementKind::kLet) AddStatement(statement);
    }
  }

  void AddBody(const Body& body) {
    for (const Statement& statement : body.statements) AddStatement(statement);
  }

  void AddStatement(const Statement& statement) {
    lines_.push_back(&statement);
    Add(statement.equation);
  }

  void Add(const Equation& equation) {
    for (const Binder& binder : equation.indices) Add(binder.bound);
    Add(equation.value);
  }

  void Add(const std::vector<NamedExpr>& named) {
    for (const NamedExpr& one : named) Add(one.value);
  }

  void Add(const ExprPtr& e) {
    if (e == nullptr) return;
    AddOwn(*e);
    for (const ExprPtr& child : e->children) Add(child);
    Add(e->named);
    for (const ExprPtr& second : e->seconds) Add(second);
    Add(e->named_seconds);
    for (const Equation& field : e->fields) Add(field);
    for (const Binder& binder : e->binders) Add(binder.bound);
    if (e->body != nullptr) AddBody(*e->body);
    if (e->else_body != nullptr) AddBody(*e->else_body);
  }

  void AddOwn(const Expr& e) {
    static constexpr char kNever[] = "no checked call takes this branch";
    switch (e.kind) {
      case ExprKind::kIf: {
        const ExprPtr& condition = e.children[0];
        if (e.children.size() > 2) {
          AddArms(condition, e.children[1]->range, kNever, e.children[2]->range,
                  kNever);
        } else {
          AddArms(condition, e.children[1]->range, kNever, condition->range,
                  "this condition holds in every checked call");
        }
        break;
      }
      case ExprKind::kCond:
        AddArms(e.children[0], e.body->range, kNever, e.else_body->range,
                kNever);
        break;
      case ExprKind::kComprehension:
        if (e.children.size() < 3) break;
        AddArms(e.children[2], e.children[2]->range,
                "this condition takes no element in any checked call",
                e.children[2]->range,
                "this condition takes every element in every checked call");
        break;
      case ExprKind::kBinary:
        if (e.text != "??" || !MayBeAbsent(*e.children[0])) break;
        AddArms(e.children[0], e.children[0]->range,
                "this value is absent in every checked call",
                e.children[1]->range,
                "no checked call takes this value in place of an absent one");
        break;
      case ExprKind::kCall:
        callees_.insert(e.text);
        break;
      case ExprKind::kTransformCall:
        callees_.insert(e.callee);
        break;
      default:
        break;
    }
  }

  // Not where it is a read of a tensor that is there: then the other value is
  // for indices that lie outside.
  bool MayBeAbsent(const Expr& e) const {
    if (e.kind != ExprKind::kIndex) return true;
    const Expr& read = *e.children[0];
    return read.kind == ExprKind::kName &&
           std::any_of(item_.inputs.begin(), item_.inputs.end(),
                       [&](const InputDecl& input) {
                         return input.optional && input.name == read.text;
                       });
  }

  const RuleSet& rules_;
  const Item& item_;
  std::vector<const Statement*> lines_;
  std::vector<Arm> arms_;
  std::set<std::string> callees_;
};

// The text of a range with its spaces made one.
std::string OneLine(SourceRange range, const Source& source) {
  std::string text = source.text().substr(range.begin, range.end - range.begin);
  absl::RemoveExtraAsciiWhitespace(&text);
  return text;
}

std::string ItemTitle(const Item& item) {
  switch (item.kind) {
    case ItemKind::kDef:
      return absl::StrCat("def ", item.name);
    case ItemKind::kJvp:
      return absl::StrCat("jvp ", item.name);
    case ItemKind::kOverride:
      return absl::StrCat("override ", item.name);
    default:
      return item.name;
  }
}

struct Counted {
  uint32_t begin;
  UncoveredArm arm;
};

RuleCoverage CoverageOfItem(const RuleSet& rules, const Item& item,
                            const ItemBranches& branches,
                            const BranchLog& log) {
  const Source& source = rules.SourceOf(item);
  RuleCoverage coverage;
  coverage.item = ItemTitle(item);
  coverage.file = source.name();
  coverage.place = absl::StrCat(source.name(), ":",
                                source.PositionOf(item.range.begin).line);
  std::vector<Counted> uncovered;
  const auto miss = [&](SourceRange range, const char* what, bool is_line,
                        int index) {
    const Source::Position at = source.PositionOf(range.begin);
    uncovered.push_back(
        {range.begin,
         {absl::StrCat(source.name(), ":", at.line, ":", at.column), what,
          OneLine(range, source), MarkedLine(range, source), is_line, index}});
  };
  for (const Statement* line : branches.lines()) {
    if (log.WasEvaluated(*line->equation.value)) {
      ++coverage.covered_lines;
    } else {
      miss(line->range, "no checked call evaluates this line", true,
           coverage.lines);
    }
    ++coverage.lines;
  }
  for (const Arm& arm : branches.arms()) {
    if (log.WasDecided(*arm.condition, arm.holds)) {
      ++coverage.covered_branches;
    } else if (log.WasDecided(*arm.condition, !arm.holds)) {
      miss(arm.range, arm.what, false, coverage.branches);
    } else {
      miss(arm.range, kNeverAsked, false, coverage.branches);
    }
    ++coverage.branches;
  }
  std::stable_sort(
      uncovered.begin(), uncovered.end(),
      [](const Counted& a, const Counted& b) { return a.begin < b.begin; });
  for (Counted& one : uncovered) {
    coverage.uncovered.push_back(std::move(one.arm));
  }
  return coverage;
}

std::string Share(int covered, int all) {
  return all == 0 ? std::string("-")
                  : absl::StrFormat("%d/%d %5.1f %%", covered, all,
                                    100.0 * covered / all);
}

}  // namespace

std::vector<RuleCoverage> CoverageOf(const RuleSet& rules,
                                     const std::vector<const Item*>& items,
                                     bool with_defs, const BranchLog& log) {
  std::vector<const Item*> counted = items;
  std::set<const Item*> seen(items.begin(), items.end());
  std::set<std::string> files;
  for (const Item* item : items) files.insert(rules.SourceOf(*item).name());
  std::vector<std::tuple<std::string, uint32_t, RuleCoverage>> found;
  // It grows by the defs that are called.
  for (size_t i = 0; i < counted.size(); ++i) {
    const Item& item = *counted[i];
    const ItemBranches branches(rules, item);
    const std::string& file = rules.SourceOf(item).name();
    if (files.count(file) != 0) {
      found.emplace_back(file, item.range.begin,
                         CoverageOfItem(rules, item, branches, log));
    }
    if (!with_defs) continue;
    for (const std::string& callee : branches.callees()) {
      const Item* def = FindDef(rules, callee, item);
      if (def != nullptr && seen.insert(def).second) counted.push_back(def);
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) <
           std::tie(std::get<0>(b), std::get<1>(b));
  });
  std::vector<RuleCoverage> coverage;
  for (auto& one : found) coverage.push_back(std::move(std::get<2>(one)));
  return coverage;
}

std::string CoverageText(const std::vector<RuleCoverage>& coverage) {
  RuleCoverage all;
  all.file = "all";
  std::vector<RuleCoverage> files;
  for (const RuleCoverage& item : coverage) {
    if (files.empty() || files.back().file != item.file) {
      files.emplace_back().file = item.file;
    }
    for (RuleCoverage* sum : {&files.back(), &all}) {
      sum->lines += item.lines;
      sum->covered_lines += item.covered_lines;
      sum->branches += item.branches;
      sum->covered_branches += item.covered_branches;
    }
  }
  if (files.size() != 1) files.push_back(all);
  size_t width = std::string("coverage").size();
  for (const RuleCoverage& file : files) {
    width = std::max(width, file.file.size());
  }
  std::string text = absl::StrFormat(
      "%-*s  %-16s  branches\n", static_cast<int>(width), "coverage", "lines");
  for (const RuleCoverage& file : files) {
    absl::StrAppendFormat(&text, "%-*s  %-16s  %s\n", static_cast<int>(width),
                          file.file, Share(file.covered_lines, file.lines),
                          Share(file.covered_branches, file.branches));
  }
  for (const RuleCoverage& item : coverage) {
    for (const UncoveredArm& arm : item.uncovered) {
      absl::StrAppend(&text, "\n", arm.place, ": not covered: ", arm.what, " [",
                      item.item, "]\n", arm.marked);
    }
  }
  return text;
}

}  // namespace cleave
