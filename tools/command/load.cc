#include "tools/command/load.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/lang/diagnostic.h"
#include "engine/lang/json_rule.h"
#include "engine/runtime/rule_files.h"
#include "tools/command/command.h"
#include "transforms/derived_bodies.h"

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

std::optional<LoadedRules> LoadRulePaths(
    const std::vector<std::string>& paths) {
  std::vector<std::string> all;
  const char* shipped = std::getenv("CLEAVE_RULES");
  if (shipped == nullptr) {
    Complain(
        "CLEAVE_RULES is not set: it names the folder of the shipped rules "
        "(tools/cleave sets it)");
    return std::nullopt;
  }
  if (*shipped != '\0') all = {shipped};
  all.insert(all.end(), paths.begin(), paths.end());
  absl::StatusOr<std::vector<NamedSource>> sources = ReadRuleFiles(all);
  const auto given = ListRuleFiles(paths);
  if (!sources.ok() || !given.ok()) {
    Complain(given.ok() ? sources.status() : given.status());
    return std::nullopt;
  }
  std::set<std::string> named;
  for (const std::string& path : *given) named.insert(Canonical(path));
  LoadedRules loaded;
  for (NamedSource& source : *sources) {
    const bool given_here = named.count(Canonical(source.name)) != 0;
    source.name = ShownPath(source.name);
    if (given_here) loaded.sources.insert(source.name);
  }
  LoadResult result =
      LoadRules(*sources, std::make_shared<Context>(), {MakeDerivedBodies()});
  if (result.rules == nullptr) {
    ShowProgress("");
    for (const std::string& diagnostic : result.diagnostics) {
      std::cerr << diagnostic;
    }
    std::cerr << "cleave: " << result.diagnostics.size()
              << (result.diagnostics.size() == 1 ? " mistake" : " mistakes")
              << " in the rules\n";
    return std::nullopt;
  }
  loaded.rules = std::move(result.rules);
  return loaded;
}

}  // namespace cleave
