#include "tools/command/load.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/lang/diagnostic.h"
#include "engine/lang/json_rule.h"
#include "engine/rules/rule_files.h"
#include "ops/budget.h"
#include "tools/command/command_line.h"
#include "transforms/derived_rules.h"
#include "transforms/shipped_rules/shipped_rules.h"

namespace cleave {
namespace {

namespace fs = std::filesystem;

// Paths below the working directory are shown relative to it, links and all.
std::string ShownPath(const std::string& path) {
  std::error_code error;
  const fs::path relative = fs::absolute(path, error)
                                .lexically_normal()
                                .lexically_relative(fs::current_path(error));
  if (error || relative.empty() || *relative.begin() == "..") return path;
  return relative.string();
}

std::string Canonical(const std::string& path) {
  std::error_code error;
  return fs::weakly_canonical(path, error).string();
}

}  // namespace

int Complain(absl::string_view message) {
  ShowProgress("");
  std::cerr << "cleave: " << message << "\n";
  return kExitUsage;
}

int Complain(const absl::Status& status) { return Complain(status.message()); }

std::string DidYouMean(absl::string_view name,
                       const std::vector<std::string>& candidates) {
  const std::string closest = ClosestName(name, candidates);
  return closest.empty() ? ""
                         : absl::StrCat(" (did you mean `", closest, "`?)");
}

std::optional<std::vector<std::string>> OpNames(
    const RuleSet& rules, const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (ItemKind kind : {ItemKind::kOp, ItemKind::kAten, ItemKind::kOnnx}) {
    for (std::string& name : rules.Names(kind)) all.push_back(std::move(name));
  }
  for (const std::string& name : names) {
    if (std::find(all.begin(), all.end(), name) == all.end()) {
      Complain(
          absl::StrCat("there is no op `", name, "`", DidYouMean(name, all)));
      return std::nullopt;
    }
  }
  return names.empty() ? all : names;
}

absl::StatusOr<Graph> DeclaredFunction(const RuleSet& rules,
                                       absl::string_view name) {
  absl::StatusOr<Graph> graph = rules.Function(name);
  if (!absl::IsNotFound(graph.status())) return graph;
  return absl::NotFoundError(absl::StrCat(
      graph.status().message(), DidYouMean(name, rules.Names(ItemKind::kFn))));
}

void ShowProgress(absl::string_view line) {
  static const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal) std::cerr << "\r\033[K" << line << std::flush;
}

ParseResult ParseAny(const Source& source) {
  return absl::EndsWith(source.name(), ".json") ? ParseJsonRules(source)
                                                : ParseRules(source);
}

bool LoadedRules::Gives(absl::string_view op) const {
  std::vector<const Item*> items = rules->Overrides(op);
  items.push_back(rules->Find(op));
  return std::any_of(items.begin(), items.end(), [&](const Item* item) {
    return item != nullptr && sources.count(rules->SourceOf(*item).name()) != 0;
  });
}

std::optional<LoadedRules> LoadRulePaths(const std::vector<std::string>& paths,
                                         const std::vector<std::string>& uses) {
  // Null: those of the program.
  const char* const folder = std::getenv("CLEAVE_RULES");
  std::vector<std::string> shipped_paths;
  if (folder != nullptr && *folder != '\0') shipped_paths = {folder};
  absl::StatusOr<std::vector<NamedSource>> shipped =
      folder == nullptr ? EmbeddedRules() : ReadRuleFiles(shipped_paths);
  absl::StatusOr<std::vector<NamedSource>> given = ReadRuleFiles(paths);
  absl::StatusOr<std::vector<NamedSource>> used = ReadRuleFiles(uses);
  for (const auto* sources : {&given, &used, &shipped}) {
    if (sources->ok()) continue;
    Complain(sources->status());
    return std::nullopt;
  }
  LoadedRules loaded;
  // Files of both are loaded once, as shipped ones by the names given here;
  // those of the program have no path, and are known by their texts.
  std::map<std::string, NamedSource*> by_identity;
  for (NamedSource& source : *shipped) {
    source.shipped = true;
    by_identity[folder == nullptr ? source.text : Canonical(source.name)] =
        &source;
    if (folder != nullptr) source.name = ShownPath(source.name);
  }
  std::vector<NamedSource> added;
  std::set<std::string> paths_added;
  const auto add = [&](NamedSource& source, bool is_given) {
    const auto it = by_identity.find(
        folder == nullptr ? source.text : Canonical(source.name));
    const std::string name = ShownPath(source.name);
    if (is_given) loaded.sources.insert(name);
    if (it != by_identity.end()) {
      it->second->name = name;
    } else if (paths_added.insert(Canonical(source.name)).second || is_given) {
      source.name = name;
      added.push_back(std::move(source));
    }
  };
  for (NamedSource& source : *given) add(source, true);
  for (NamedSource& source : *used) add(source, false);
  LoadOptions options = WithTransforms();
  options.trusted = WereCheckedByBuild(*shipped);
  LoadResult result = LoadRules(*shipped, std::make_shared<Context>(), options);
  loaded.texts = *shipped;
  loaded.texts.insert(loaded.texts.end(), added.begin(), added.end());
  if (result.rules != nullptr && !added.empty()) {
    result = ExtendRules(std::move(result.rules), added);
  }
  if (result.rules == nullptr) {
    ShowProgress("");
    if (!PollBudget().ok()) {
      Complain(PollBudget());
      return std::nullopt;
    }
    for (const std::string& diagnostic : result.diagnostics) {
      std::cerr << diagnostic;
    }
    std::cerr << "cleave: " << result.diagnostics.size()
              << (result.diagnostics.size() == 1 ? " mistake" : " mistakes")
              << " in the rules\n";
    return std::nullopt;
  }
  for (const std::string& note : result.notes) std::cerr << note;
  loaded.rules = std::move(result.rules);
  return loaded;
}

}  // namespace cleave
