#include "transforms/shipped_rules/shipped_rules.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "engine/rules/rule_files.h"
#include "ops/status_macros.h"
#include "transforms/derived_rules.h"
#include "transforms/shipped_rules/embedded_rules.h"

namespace cleave {
namespace {

using internal_shipped_rules::EmbeddedFile;
using internal_shipped_rules::kChecked;
using internal_shipped_rules::kFileCount;
using internal_shipped_rules::kFiles;

// The rule files of a folder, by the names that they have in the program.
absl::StatusOr<std::vector<NamedSource>> ReadShipped(
    const std::string& folder) {
  if (folder.empty()) return std::vector<NamedSource>();
  absl::StatusOr<std::vector<NamedSource>> sources = ReadRuleFiles({folder});
  if (!sources.ok()) return sources;
  for (NamedSource& source : *sources) {
    absl::string_view inside = source.name;
    absl::ConsumePrefix(&inside, folder);
    absl::ConsumePrefix(&inside, "/");
    source.name = absl::StrCat("rules/", inside);
    source.shipped = true;
  }
  return sources;
}

}  // namespace

std::vector<NamedSource> EmbeddedRules() {
  std::vector<NamedSource> sources;
  for (size_t i = 0; i < kFileCount; ++i) {
    NamedSource& source = sources.emplace_back();
    source.name = kFiles[i].name;
    source.text = std::string(kFiles[i].text, kFiles[i].size);
    source.shipped = true;
  }
  return sources;
}

bool WereCheckedByBuild(const std::vector<NamedSource>& sources) {
  return kChecked &&
         std::equal(sources.begin(), sources.end(), kFiles, kFiles + kFileCount,
                    [](const NamedSource& source, const EmbeddedFile& file) {
                      return !source.json && !source.generated &&
                             source.text ==
                                 absl::string_view(file.text, file.size);
                    });
}

LoadResult LoadShippedRules(const ShippedRulesOptions& options) {
  std::optional<std::string> folder = options.folder;
  if (!folder.has_value()) {
    if (const char* chosen = std::getenv("CLEAVE_RULES")) folder = chosen;
  }
  absl::StatusOr<std::vector<NamedSource>> sources =
      folder.has_value() ? ReadShipped(*folder) : EmbeddedRules();
  if (!sources.ok()) {
    LoadResult failed;
    failed.diagnostics.push_back(
        absl::StrCat(sources.status().message(), "\n"));
    failed.mistakes.emplace_back().message =
        std::string(sources.status().message());
    return failed;
  }
  LoadOptions load;
  load.derive = MakeDerivedRules;
  load.cache_folder = options.cache_folder;
  load.trusted = WereCheckedByBuild(*sources);
  return LoadRules(*sources,
                   options.context != nullptr ? options.context
                                              : std::make_shared<Context>(),
                   load);
}

absl::StatusOr<std::shared_ptr<const RuleSet>> SharedShippedRules() {
  using Shared = absl::StatusOr<std::shared_ptr<const RuleSet>>;
  static const auto* const shared = new Shared([]() -> Shared {
    LoadResult loaded = LoadShippedRules();
    if (loaded.rules != nullptr) return std::move(loaded.rules);
    return absl::InvalidArgumentError(absl::StrJoin(loaded.diagnostics, ""));
  }());
  return *shared;
}

absl::StatusOr<std::shared_ptr<const RuleSet>> ShippedRulesWith(
    absl::string_view text, absl::string_view name) {
  CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<const RuleSet> shipped,
                          SharedShippedRules());
  LoadResult loaded =
      ExtendRules(shipped, {std::string(name), std::string(text)});
  if (loaded.rules != nullptr) return std::move(loaded.rules);
  return absl::InvalidArgumentError(absl::StrJoin(loaded.diagnostics, ""));
}

}  // namespace cleave
