#include "testing/check/check_entries.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "testing/check/layers/read_example.h"
#include "testing/check/samples/large_axes.h"
#include "testing/check/samples/signature_sampler.h"
#include "testing/glob.h"

namespace cleave {

bool IsWanted(const RuleSet& rules, const CheckOptions& options,
              const std::string& name, const Item* item) {
  return item != nullptr && MatchesGlob(options.ops, name) &&
         (options.sources.empty() ||
          options.sources.count(rules.SourceOf(*item).name()) != 0);
}

namespace {

// Adds the parts of the sweeps of ops that are wanted, or are wanted
// themselves.
void AddSweeps(const RuleSet& rules, const CheckOptions& options,
               std::vector<CheckEntry>& entries) {
  if ((!options.layers.empty() &&
       options.layers.count(Layer::kRounding) == 0) ||
      !options.sizes.empty()) {
    return;
  }
  for (const std::string& name : rules.Names(ItemKind::kOp)) {
    const Item* item = rules.Find(name);
    if (!options.sources.empty() &&
        options.sources.count(rules.SourceOf(*item).name()) == 0) {
      continue;
    }
    for (Sweep& sweep : SweepsOf(rules, *item, options.dtypes)) {
      std::string part = sweep.Name();
      if (!MatchesGlob(options.ops, name) && !MatchesGlob(options.ops, part)) {
        continue;
      }
      entries.push_back({std::move(part), item, item, false, std::move(sweep)});
    }
  }
}

// The entries that are checked, in the order of the report.
std::vector<CheckEntry> EntriesOf(const RuleSet& rules,
                                  const CheckOptions& options) {
  std::vector<CheckEntry> entries;
  const auto wanted = [&](const std::string& name, const Item* item) {
    return IsWanted(rules, options, name, item);
  };
  const auto find = [&](const std::string& name,
                        const std::vector<const Item*>& among) -> const Item* {
    for (const Item* item : among) {
      if (wanted(name, item)) return item;
    }
    return nullptr;
  };
  for (const std::string& name : rules.Names(ItemKind::kOp)) {
    const Item* item = rules.Find(name);
    const Item* shown = item;
    if (!wanted(name, shown)) shown = find(name, rules.Overrides(name));
    const bool examples_alone = shown == nullptr;
    if (examples_alone) shown = find(name, ExamplesOf(name, rules.examples()));
    if (shown == nullptr) continue;
    entries.push_back({name, item, shown, examples_alone});
  }
  for (const std::string& name : rules.Names(ItemKind::kJvp)) {
    const std::string shown = absl::StrCat("jvp ", name);
    const Item* item = rules.FindDerivative(name);
    if (wanted(shown, item)) {
      entries.push_back({shown, item, item});
    } else if (rules.Find(name) == nullptr) {
      // The examples belong to an op of the same name, if there is one.
      const Item* example = find(shown, ExamplesOf(name, rules.examples()));
      if (example != nullptr) entries.push_back({shown, item, example, true});
    }
  }
  for (const std::string& name : rules.Names(ItemKind::kRewrite)) {
    const std::string shown = absl::StrCat("rewrite ", name);
    const Item* item = rules.FindRewrite(name);
    if (wanted(shown, item)) entries.push_back({shown, item, item});
  }
  if (options.tier == Tier::kFull) AddSweeps(rules, options, entries);
  return entries;
}

}  // namespace

absl::StatusOr<std::vector<CheckEntry>> EntriesToCheck(
    const RuleSet& rules, const CheckOptions& options) {
  if (options.layers.count(Layer::kKernels) != 0 &&
      options.kernels == nullptr) {
    return absl::InvalidArgumentError(
        "L6 is asked for, and `kernels` of CheckOptions is not set: "
        "CheckKernels compiles and checks them");
  }
  for (const std::string& name : options.host_kernels.Ops()) {
    const Item* item = rules.Find(name);
    if (item != nullptr && item->kind == ItemKind::kOp) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "the host kernel of `", name, "` is for no op of these rules",
        item != nullptr
            ? ": the item of that name is no `op`, and host ops are compared "
              "with case suites"
            : ""));
  }
  if (options.shards < 1 || options.shard < 1 ||
      options.shard > options.shards) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no shard ", options.shard, " of ", options.shards));
  }
  std::vector<CheckEntry> entries = EntriesOf(rules, options);
  for (const auto& [name, size] : options.sizes) {
    const auto has = [&, size_name = name](const CheckEntry& entry) {
      const std::vector<LargeAxis> axes = LargeAxesOf(*entry.item);
      return entry.item->kind == ItemKind::kOp &&
             std::any_of(axes.begin(), axes.end(), [&](const LargeAxis& axis) {
               return !axis.is_pack &&
                      axis.name.substr(0, axis.name.find('#')) == size_name;
             });
    };
    if (size < 0 || std::none_of(entries.begin(), entries.end(), has)) {
      return absl::InvalidArgumentError(absl::StrCat(
          size < 0 ? "a negative size: " : "no op of these has a size ", name));
    }
  }
  return entries;
}

std::vector<CheckEntry> EntriesOfShard(const std::vector<CheckEntry>& entries,
                                       const CheckOptions& options) {
  std::vector<CheckEntry> mine;
  for (size_t i = options.shard - 1; i < entries.size(); i += options.shards) {
    mine.push_back(entries[i]);
  }
  return mine;
}

}  // namespace cleave
