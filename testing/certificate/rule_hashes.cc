#include "testing/certificate/rule_hashes.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/lang/diagnostic.h"
#include "engine/lang/json_rule.h"
#include "engine/lang/lexer.h"
#include "engine/lang/parser.h"
#include "testing/certificate/sha256.h"
#include "testing/check/layers/check_sweep.h"
#include "testing/check/layers/read_example.h"

namespace cleave {
namespace {

// The version of what follows.
constexpr char kForm[] = "cleave rule 1\n";

bool IsEverywhere(ItemKind kind) {
  return kind == ItemKind::kJvp || kind == ItemKind::kNumeric ||
         kind == ItemKind::kRewrite;
}

// Derivatives and rewrites may have the names of ops, and are used by no name.
bool IsUsedByName(ItemKind kind) {
  return !IsEverywhere(kind) && kind != ItemKind::kExample;
}

}  // namespace

absl::StatusOr<RuleHashes> RuleHashes::Make(
    const std::vector<NamedSource>& sources) {
  RuleHashes hashes;
  for (const NamedSource& named : sources) {
    const Source source(named.name, named.text);
    const ParseResult parsed =
        named.json ? ParseJsonRules(source) : ParseRules(source);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(named.name, " does not parse"));
    }
    hashes.Add(parsed.file);
  }
  for (size_t i = 0; i < hashes.items_.size(); ++i) {
    if (IsEverywhere(hashes.items_[i].kind)) hashes.everywhere_.insert(i);
  }
  std::vector<std::string> names;
  for (const size_t i : hashes.everywhere_) {
    const std::set<std::string>& used = hashes.items_[i].names;
    names.insert(names.end(), used.begin(), used.end());
  }
  hashes.Reach(std::move(names), hashes.everywhere_);
  return hashes;
}

void RuleHashes::Add(const RuleFile& file) {
  for (const RuleFile::Entry& entry : file.entries) {
    if (!entry.item.has_value()) continue;
    const Item& item = *entry.item;
    // In its canonical text, which is the same for all ways to write it.
    RuleFile alone;
    alone.language = file.language;
    alone.entries.push_back({{}, item, false});
    const Source source("item", PrintRuleFile(alone));
    std::vector<Diagnostic> diagnostics;
    Used used;
    used.kind = item.kind;
    used.name = item.name;
    std::string text;
    for (const Token& token : Lex(source, &diagnostics)) {
      if (token.kind == TokenKind::kDoc || token.kind == TokenKind::kComment) {
        continue;
      }
      if (token.kind == TokenKind::kName) {
        used.names.insert(std::string(token.text));
      }
      absl::StrAppend(&text, token.text, "\n");
    }
    used.hash = Sha256(text);
    const size_t index = items_.size();
    if (IsUsedByName(item.kind)) by_name_[item.name].push_back(index);
    if (item.kind == ItemKind::kExample && item.left != nullptr) {
      examples_[OpOfExample(item)].push_back(index);
    }
    items_.push_back(std::move(used));
  }
}

void RuleHashes::Reach(std::vector<std::string> names,
                       std::set<size_t>& items) const {
  std::set<std::string> reached(names.begin(), names.end());
  while (!names.empty()) {
    const auto it = by_name_.find(names.back());
    names.pop_back();
    if (it == by_name_.end()) continue;
    for (const size_t item : it->second) {
      if (!items.insert(item).second) continue;
      for (const std::string& name : items_[item].names) {
        if (reached.insert(name).second) names.push_back(name);
      }
    }
  }
}

std::string RuleHashes::Of(const std::string& op) const {
  // A part of a sweep rests on what the op rests on.
  if (!WholeSweep(op).empty()) return Of(OpOfSweep(op));
  std::set<size_t> items = everywhere_;
  absl::string_view name = op;
  const bool is_jvp = absl::ConsumePrefix(&name, "jvp ");
  const bool is_rewrite = !is_jvp && absl::ConsumePrefix(&name, "rewrite ");
  if (is_jvp || is_rewrite) {
    const ItemKind kind = is_jvp ? ItemKind::kJvp : ItemKind::kRewrite;
    // It is everywhere already.
    if (std::none_of(items.begin(), items.end(), [&](size_t i) {
          return items_[i].kind == kind && items_[i].name == name;
        })) {
      return "";
    }
  } else {
    if (by_name_.count(op) == 0) return "";
    std::vector<std::string> names = {op};
    // The checker writes the clauses of `f` as ops `f__special_0` and so on.
    const std::string clauses = absl::StrCat(op, "__");
    for (auto it = by_name_.lower_bound(clauses);
         it != by_name_.end() && absl::StartsWith(it->first, clauses); ++it) {
      names.push_back(it->first);
    }
    const auto examples = examples_.find(op);
    if (examples != examples_.end()) {
      for (const size_t example : examples->second) {
        items.insert(example);
        const std::set<std::string>& used = items_[example].names;
        names.insert(names.end(), used.begin(), used.end());
      }
    }
    Reach(std::move(names), items);
  }
  // In the order in which they were loaded, which may decide between rewrites.
  std::string text = absl::StrCat(kForm, op, "\n");
  for (const size_t item : items) {
    absl::StrAppend(&text, items_[item].hash, "\n");
  }
  return Sha256(text);
}

}  // namespace cleave
