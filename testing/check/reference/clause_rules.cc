#include "testing/check/reference/clause_rules.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/lang/ast.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/observe_branches.h"
#include "ops/check.h"
#include "testing/check/reference/clause_writer.h"

namespace cleave {
namespace {

// The text of all clauses, in which nobody else reads, has this name.
constexpr char kFileName[] = "clauses";

using WrittenItems = std::vector<ClauseItem>;

std::string Text(const std::vector<const WrittenItems*>& groups) {
  RuleFile file;
  for (const WrittenItems* items : groups) {
    for (const ClauseItem& written : *items) {
      RuleFile::Entry entry;
      entry.item = written.item;
      file.entries.push_back(std::move(entry));
    }
  }
  return PrintRuleFile(file);
}

LoadResult LoadBeside(const std::shared_ptr<const RuleSet>& base,
                      const std::vector<const WrittenItems*>& groups) {
  return ExtendRules(base, {kFileName, Text(groups), false, true});
}

// Which of the clauses cannot be written so, and why.
std::string WhyNot(const std::shared_ptr<const RuleSet>& base,
                   const WrittenItems& items,
                   const std::map<std::string, std::string>& shown) {
  for (const ClauseItem& one : items) {
    const WrittenItems alone = {one};
    const LoadResult loaded = LoadBeside(base, {&alone});
    if (loaded.rules != nullptr || loaded.mistakes.empty()) continue;
    return absl::StrCat(shown.at(one.item.name), " cannot be evaluated: ",
                        loaded.mistakes.front().message);
  }
  return "its clauses cannot be evaluated together";
}

}  // namespace

ClauseRules ClauseRules::Make(std::shared_ptr<const RuleSet> base,
                              const std::vector<std::string>& ops) {
  ClauseRules result;
  std::map<std::string, WrittenItems> items;
  std::vector<const WrittenItems*> all;
  for (const std::string& op : ops) {
    const Item* item = base->Find(op);
    CLEAVE_CHECK(item != nullptr) << op;
    WrittenClauses written = WriteClauses(*item);
    const Source& source = base->SourceOf(*item);
    for (const ClauseItem& one : written.items) {
      result.shown_[one.item.name] =
          absl::StrCat("the `", one.clause, "` clause at ", source.name(), ":",
                       source.PositionOf(one.begin).line);
    }
    if (base->Lines(op, StatementKind::kResult).empty() &&
        item->spec != nullptr) {
      // The host's function is taken to compute the spec: its transforms can be
      // checked against that.
      Item body;
      body.kind = ItemKind::kOverride;
      body.name = op;
      body.body = item->spec;
      result.shown_[op] = absl::StrCat("the spec of `", op, "`");
      written.items.push_back({std::move(body), "spec", 0});
    }
    result.clauses_[op] = std::move(written.clauses);
    if (written.items.empty()) continue;
    all.push_back(&(items[op] = std::move(written.items)));
  }
  if (all.empty()) {
    result.rules_ = std::move(base);
    return result;
  }
  LoadResult loaded = LoadBeside(base, all);
  if (loaded.rules != nullptr) {
    result.rules_ = std::move(loaded.rules);
    return result;
  }
  // Some cannot be written so: those of each op alone tell which.
  all.clear();
  for (auto& [op, list] : items) {
    if (LoadBeside(base, {&list}).rules != nullptr) {
      all.push_back(&list);
    } else {
      result.clauses_[op].error = WhyNot(base, list, result.shown_);
    }
  }
  if (!all.empty()) loaded = LoadBeside(base, all);
  result.rules_ =
      loaded.rules != nullptr ? std::move(loaded.rules) : std::move(base);
  return result;
}

absl::StatusOr<Graph> MakeClauseGraph(const ClauseRules& clauses,
                                      const SampledCall& call,
                                      const std::string& op,
                                      const TensorType& expected) {
  absl::StatusOr<Graph> graph =
      MakeCallGraph(clauses.rules(), call, op, {{kExpectedInput, expected}});
  if (graph.ok()) graph = Expand(*graph, clauses.rules());
  if (graph.ok()) return graph;
  // The user knows the clause, not the op that was made of it.
  std::string why = absl::StrReplaceAll(graph.status().message(),
                                        {{absl::StrCat("`", op, "`: "), ""}});
  if (absl::StartsWith(why, absl::StrCat(kFileName, ":"))) {
    const size_t end = why.find(": ");
    if (end != std::string::npos) why = why.substr(end + 2);
  }
  absl::Status shown(graph.status().code(),
                     absl::StrCat(clauses.ClauseOf(op), ": ", why));
  graph.status().ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) {
        shown.SetPayload(url, payload);
      });
  return shown;
}

std::string ClauseRules::ClauseOf(const std::string& op) const {
  const auto it = shown_.find(op);
  return it == shown_.end() ? op : it->second;
}

void ClauseRules::Observe(std::shared_ptr<BranchObserver> observer) {
  rules_ = ObserveBranches(*rules_, std::move(observer));
}

const OpClauses& ClauseRules::Of(const std::string& op) const {
  static const OpClauses* const kNone = new OpClauses();
  const auto it = clauses_.find(op);
  return it == clauses_.end() ? *kNone : it->second;
}

}  // namespace cleave
