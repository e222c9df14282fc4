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

// A mutant may ask for anything, and its loops may never end. These are far
// above what the rules need at the checker's samples, and far below what a
// machine has.
Limits MutantLimits() {
  Limits limits = CurrentLimits();
  limits.tensor_bytes = std::min<int64_t>(limits.tensor_bytes, 512 << 20);
  limits.loop_steps = std::min<int64_t>(limits.loop_steps, 100'000);
  limits.expressions = std::min<int64_t>(limits.expressions, 500'000);
  limits.nodes = std::min<int64_t>(limits.nodes, 1'000'000);
  return limits;
}

// Whether the rule is not right by this verdict, or not known to be.
bool Fails(const Verdict& verdict) {
  return verdict.kind == VerdictKind::kDisagrees ||
         verdict.kind == VerdictKind::kInconclusive;
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
  // Examples take next to no time, and most mutants fail one. A proof takes
  // less than all other layers do.
  std::set<Layer> first = {Layer::kExamples};
  std::set<Layer> rest = {Layer::kTransforms};
  if (values) {
    first.insert(Layer::kTypes);
    rest.insert({Layer::kReals, Layer::kRounding, Layer::kEdges});
  }
  mutant.fate = MutantFate::kSurvived;
  if (PassesChecks(loaded.rules, checked, first, mutant)) {
    if (IsProved(place, mutation, item, loaded.rules)) {
      mutant.fate = MutantFate::kProvedEquivalent;
      return;
    }
    PassesChecks(loaded.rules, checked, rest, mutant);
  }
  if (mutant.fate == MutantFate::kRejected) return;
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

bool Judge::PassesChecks(const std::shared_ptr<const RuleSet>& rules,
                         const std::vector<CheckedRule>& checked,
                         const std::set<Layer>& layers,
                         MutantReport& mutant) const {
  for (const CheckedRule& rule : checked) {
    const OpReport report = CheckOne(rules, rule.name, layers);
    for (const auto& [layer, verdict] : report.layers) {
      if (layer == Layer::kTypes && Fails(verdict)) {
        mutant.fate = MutantFate::kRejected;
        mutant.why = absl::StrCat(rule.name, " L1 ", verdict.ToString());
        return false;
      }
      mutant.verdicts[absl::StrCat(rule.name, " ", LayerName(layer))] =
          verdict.ToString();
      if (!Fails(verdict)) continue;
      mutant.fate = MutantFate::kKilled;
      mutant.layer = layer;
      mutant.by = rule.name;
    }
    if (mutant.fate != MutantFate::kKilled) continue;
    if (FailsAsItIs(rule.name, *mutant.layer)) {
      mutant.fate = MutantFate::kRejected;
      mutant.refuted = rule.name;
      mutant.why = absl::StrCat(rule.name, " fails as it is");
    }
    mutant.verdicts.clear();
    return false;
  }
  return true;
}

OpReport Judge::CheckOne(const std::shared_ptr<const RuleSet>& rules,
                         const std::string& rule, const std::set<Layer>& layers,
                         const std::vector<double>& points) const {
  CheckOptions options;
  // Names of rules have none of a glob's signs.
  options.ops = rule;
  options.seed = seed_;
  options.threads = 1;
  options.stop_at_refutation = true;
  options.layers = layers;
  options.points = points;
  absl::StatusOr<CheckReport> report = CheckRules(rules, options);
  if (report.ok() && report->ops.size() == 1) return report->ops[0];
  OpReport none;
  none.layers[Layer::kTransforms] = Verdict::Inconclusive(
      report.ok() ? "it was not checked"
                  : std::string(report.status().message()));
  return none;
}

bool Judge::FailsAsItIs(const std::string& rule, Layer layer) const {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = failing_.find({rule, layer});
    if (it != failing_.end()) return it->second;
  }
  const OpReport report = CheckOne(original_, rule, {layer});
  const bool fails =
      std::any_of(report.layers.begin(), report.layers.end(),
                  [](const auto& layer) { return Fails(layer.second); });
  const std::lock_guard<std::mutex> lock(mutex_);
  return failing_[{rule, layer}] = fails;
}

bool Judge::IsElementwise(const Item& item) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [it, is_new] = elementwise_.try_emplace(item.name, false);
  if (!is_new) return it->second;
  return it->second = AreElementwise(*original_, item);
}

bool Judge::IsProved(const RuleTexts::Place& place, const Mutation& mutation,
                     const Item& item,
                     const std::shared_ptr<const RuleSet>& rules) const {
  const bool of_dtypes = item.kind == ItemKind::kRewrite &&
                         mutation.op == MutationOperator::kDType;
  if (mutation.target == nullptr && !of_dtypes) return false;
  const bool is_tie = mutation.op == MutationOperator::kTie;
  if (is_tie && IsTieOfIntegers(texts_.item(place), *mutation.target)) {
    return true;
  }
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
  const bool is_at_border =
      is_tie || mutation.op == MutationOperator::kStrictness;
  const auto is_equal = [&](const RuleTexts::Place& user) {
    const Item& rule = texts_.item(user);
    const RuleSet& mutant = *loaded.rules;
    if (is_tie && DifferInTiesWithoutSlopes(*original_, mutant, rule)) {
      return true;
    }
    if (is_at_border && !is_def &&
        (AreEqualAtNumber(*original_, mutant, rule, *mutation.target) ||
         AreEqualWhereSidesAre(*original_, mutant, rule, *mutation.target))) {
      return true;
    }
    std::vector<ExprPtr> changed = {mutation.target, mutation.replacement};
    if (is_def) changed = CallsIn(rule, defs);
    return ProveEquivalent(*original_, mutant, rule, changed);
  };
  const auto is_right_at_border = [&](const RuleTexts::Place& user) {
    // Where other defs call it, its operands are not the op's.
    if (!is_at_border || defs.size() > 1) return false;
    const Item& rule = texts_.item(user);
    const std::vector<double> borders = BordersOf(
        *original_, *loaded.rules, rule, texts_.item(place), *mutation.target);
    return !borders.empty() &&
           IsRightAt(rules, rule.name, mutation.part, borders);
  };
  return !users.empty() &&
         std::all_of(users.begin(), users.end(), [&](const auto& user) {
           return is_equal(user) || is_right_at_border(user);
         });
}

bool Judge::IsTieOfIntegers(const Item& item, const Expr& chosen) const {
  const std::vector<ExprPtr> sides = SidesOf(chosen);
  if (sides.empty()) return false;
  return std::any_of(sides.begin(), sides.end(),
                     [](const ExprPtr& side) {
                       return IntegerExprs::IsTensorOfPlaces(*side);
                     }) ||
         std::all_of(sides.begin(), sides.end(), [&](const ExprPtr& side) {
           return integers_.IsInteger(item, side);
         });
}

bool Judge::IsRightAt(const std::shared_ptr<const RuleSet>& rules,
                      const std::string& op, MutatedPart part,
                      const std::vector<double>& points) const {
  std::set<Layer> layers = {Layer::kTransforms};
  if (part == MutatedPart::kValue) layers.insert(Layer::kRounding);
  const OpReport report = CheckOne(rules, op, layers, points);
  return report.layers.size() == layers.size() &&
         std::all_of(report.layers.begin(), report.layers.end(),
                     [](const auto& layer) {
                       return layer.second.kind == VerdictKind::kAgrees;
                     });
}

}  // namespace cleave
