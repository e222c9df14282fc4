#include "testing/mutate/judge.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engine/ir/context.h"
#include "ops/budget.h"
#include "testing/mutate/allclose.h"
#include "testing/mutate/equivalence.h"

namespace cleave {
namespace {

// A mutant may ask for anything. These are far above what the rules need at the
// checker's samples, and far below what a machine has.
Limits MutantLimits() {
  Limits limits = CurrentLimits();
  limits.tensor_bytes = std::min<int64_t>(limits.tensor_bytes, 512 << 20);
  limits.loop_steps = std::min<int64_t>(limits.loop_steps, 1'000'000);
  limits.expressions = std::min<int64_t>(limits.expressions, 500'000);
  limits.nodes = std::min<int64_t>(limits.nodes, 1'000'000);
  return limits;
}

std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string TextOf(const Item& item) {
  RuleFile file;
  RuleFile::Entry entry;
  entry.item = item;
  entry.item->docs.clear();
  file.entries.push_back(std::move(entry));
  std::string text = PrintRuleFile(file);
  // Without the line `language 1` and the blank one behind it.
  const size_t begin = text.find("\n\n");
  if (begin != std::string::npos) text.erase(0, begin + 2);
  return text;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Judge>> Judge::Make(const RuleTexts& texts,
                                                   const RuleUses& uses,
                                                   uint64_t seed) {
  LoadResult loaded = texts.Load(std::make_shared<Context>());
  if (loaded.rules == nullptr) {
    return absl::InvalidArgumentError(absl::StrJoin(loaded.diagnostics, "\n"));
  }
  return std::unique_ptr<Judge>(
      new Judge(texts, uses, seed, std::move(loaded.rules)));
}

MutantReport Judge::Check(const RuleTexts::Place& place,
                          const Mutation& mutation) const {
  const auto start = std::chrono::steady_clock::now();
  const BudgetScope scope(MutantLimits(), BudgetScope::Mode::kDefaults);
  const Item item = Mutated(texts_.item(place), mutation);
  MutantReport mutant;
  mutant.rule = RuleUses::NameOf(texts_.item(place));
  mutant.op = mutation.op;
  mutant.part = mutation.part;
  mutant.place = texts_.PositionOf(place, mutation.range);
  mutant.before = mutation.before;
  mutant.after = mutation.after;
  // A tree of rules is as high as its author likes.
  const absl::Status status =
      OnAmpleStack([&] { Decide(place, mutation, item, mutant); });
  if (!status.ok()) mutant.why = std::string(status.message());
  if (mutant.fate != MutantFate::kKilled) mutant.text = TextOf(item);
  mutant.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return mutant;
}

void Judge::Decide(const RuleTexts::Place& place, const Mutation& mutation,
                   const Item& item, MutantReport& mutant) const {
  const std::vector<CheckedRule> checked = uses_.Of(place, seed_);
  std::set<RuleTexts::Place> users;
  for (const CheckedRule& rule : checked) users.insert(rule.place);
  const LoadResult loaded =
      texts_.LoadWith(item, place, users, std::make_shared<Context>());
  if (loaded.rules == nullptr) {
    mutant.why = FirstLine(loaded.diagnostics.front());
    return;
  }
  // Lines of transforms compute no value.
  const bool values = mutation.part == MutatedPart::kValue ||
                      mutation.part == MutatedPart::kRewrite;
  mutant.fate = MutantFate::kSurvived;
  for (const CheckedRule& rule : checked) {
    const OpReport report = CheckOne(loaded.rules, rule.name, values, values);
    for (const auto& [layer, verdict] : report.layers) {
      if (layer == Layer::kTypes &&
          (verdict.kind == VerdictKind::kDisagrees ||
           verdict.kind == VerdictKind::kInconclusive)) {
        mutant.fate = MutantFate::kRejected;
        mutant.why = absl::StrCat(rule.name, " L1 ", verdict.ToString());
        return;
      }
      mutant.verdicts[absl::StrCat(rule.name, " ", LayerName(layer))] =
          verdict.ToString();
      if (verdict.kind != VerdictKind::kDisagrees) continue;
      mutant.fate = MutantFate::kKilled;
      mutant.layer = layer;
      mutant.by = rule.name;
    }
    if (mutant.fate != MutantFate::kKilled) continue;
    if (IsRefuted(rule.name)) {
      mutant.fate = MutantFate::kRejected;
      mutant.refuted = rule.name;
      mutant.why = absl::StrCat(rule.name, " is refuted as it is");
      return;
    }
    mutant.verdicts.clear();
    break;
  }
  if (mutant.fate == MutantFate::kSurvived && IsProved(place, mutation, item)) {
    mutant.fate = MutantFate::kProvedEquivalent;
    return;
  }
  const Item& shown = Declared(checked.front());
  mutant.elementwise = mutation.part == MutatedPart::kValue &&
                       shown.kind == ItemKind::kOp && IsElementwise(shown);
  for (const CheckedRule& rule : checked) {
    const Item& original = Declared(rule);
    // A def is seen in values and in derivatives.
    const bool is_def = texts_.item(place).kind == ItemKind::kDef;
    const MutatedPart part =
        original.kind == ItemKind::kOp && item.kind == ItemKind::kJvp
            ? MutatedPart::kJvp
            : mutation.part;
    mutant.allclose_kills =
        AllcloseKills(*loaded.rules, *original_, original, part, seed_) ||
        (is_def && original.kind == ItemKind::kOp &&
         AllcloseKills(*loaded.rules, *original_, original, MutatedPart::kJvp,
                       seed_));
    if (mutant.allclose_kills) break;
  }
}

const Item& Judge::Declared(const CheckedRule& rule) const {
  const Item& item = texts_.item(rule.place);
  return item.kind == ItemKind::kOverride ? *original_->Find(item.name) : item;
}

OpReport Judge::CheckOne(const std::shared_ptr<const RuleSet>& rules,
                         const std::string& rule, bool types,
                         bool values) const {
  CheckOptions options;
  // Names of rules have none of a glob's signs.
  options.ops = rule;
  options.seed = seed_;
  options.threads = 1;
  options.stop_at_refutation = true;
  if (types) options.layers.insert(Layer::kTypes);
  if (values) {
    for (const Layer layer : {Layer::kReals, Layer::kRounding, Layer::kEdges}) {
      options.layers.insert(layer);
    }
  }
  options.layers.insert(Layer::kTransforms);
  options.layers.insert(Layer::kExamples);
  absl::StatusOr<CheckReport> report = CheckRules(rules, options);
  if (report.ok() && report->ops.size() == 1) return report->ops[0];
  OpReport none;
  none.layers[Layer::kTransforms] = Verdict::Inconclusive(
      report.ok() ? "it was not checked"
                  : std::string(report.status().message()));
  return none;
}

bool Judge::IsRefuted(const std::string& rule) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = refuted_.find(rule);
    if (it != refuted_.end()) return it->second;
  }
  const bool refuted =
      CheckOne(original_, rule, true, true).Has(VerdictKind::kDisagrees);
  const std::lock_guard<std::mutex> lock(mutex_);
  return refuted_[rule] = refuted;
}

bool Judge::IsElementwise(const Item& item) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [it, is_new] = elementwise_.try_emplace(item.name, false);
  if (!is_new) return it->second;
  return it->second = AreElementwise(*original_, item);
}

bool Judge::IsProved(const RuleTexts::Place& place, const Mutation& mutation,
                     const Item& item) const {
  const bool of_dtypes = item.kind == ItemKind::kRewrite &&
                         mutation.op == MutationOperator::kDType;
  if (mutation.target == nullptr && !of_dtypes) return false;
  // Graphs of one context can be compared.
  const LoadResult loaded =
      texts_.LoadWith(item, place, {}, original_->context());
  if (loaded.rules == nullptr) return false;
  if (of_dtypes) return AreEqualRewrites(*original_, *loaded.rules, item);
  const bool is_def = item.kind == ItemKind::kDef;
  const std::set<std::string> defs =
      is_def ? uses_.DefsWith(item.name) : std::set<std::string>();
  const std::vector<RuleTexts::Place> users =
      is_def ? uses_.AllUsers(item.name) : std::vector<RuleTexts::Place>{place};
  return !users.empty() &&
         std::all_of(users.begin(), users.end(), [&](const auto& user) {
           const Item& rule = texts_.item(user);
           if (mutation.op == MutationOperator::kTie &&
               DifferInTiesOfIntegers(*original_, *loaded.rules, rule)) {
             return true;
           }
           if (mutation.op == MutationOperator::kStrictness && !is_def &&
               AreEqualAtNumber(*original_, *loaded.rules, rule,
                                *mutation.target)) {
             return true;
           }
           if ((mutation.op == MutationOperator::kStrictness ||
                mutation.op == MutationOperator::kTie) &&
               !is_def &&
               AreEqualWhereSidesAre(*original_, *loaded.rules, rule,
                                     *mutation.target)) {
             return true;
           }
           std::vector<ExprPtr> changed = {mutation.target,
                                           mutation.replacement};
           if (is_def) changed = CallsIn(rule, defs);
           return ProveEquivalent(*original_, *loaded.rules, rule, changed);
         });
}

}  // namespace cleave
