// doc: the reference of the loaded ops, made from their declarations.

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/lang/ast.h"
#include "engine/lang/declaration_text.h"
#include "nlohmann/json.hpp"
#include "tools/command/command.h"
#include "tools/command/load.h"

namespace cleave {
namespace {

struct DocOptions {
  std::vector<std::string> ops;
  std::vector<std::string> paths;
  bool json = false;
};

nlohmann::json Entry(const RuleSet& rules, const Item& item) {
  return {{"doc", absl::StrJoin(item.docs, "\n")},
          {"file", rules.SourceOf(item).name()},
          {"declaration", DeclarationText(item)}};
}

void PrintEntry(const Item& item) {
  if (!item.docs.empty()) {
    std::cout << absl::StrJoin(item.docs, "\n") << "\n\n";
  }
  std::cout << "```rules\n" << DeclarationText(item) << "```\n\n";
}

int Doc(const DocOptions& options) {
  const auto loaded = LoadRulePaths(options.paths);
  if (!loaded) return kExitUsage;
  const auto names = OpNames(*loaded->rules, options.ops);
  if (!names) return kExitUsage;
  nlohmann::json json = nlohmann::json::array();
  for (const std::string& name : *names) {
    const RuleSet& rules = *loaded->rules;
    const std::vector<const Item*> overrides = rules.Overrides(name);
    if (options.json) {
      json.push_back(Entry(rules, *rules.Find(name)));
      json.back()["name"] = name;
      for (const Item* item : overrides) {
        json.back()["overrides"].push_back(Entry(rules, *item));
      }
      continue;
    }
    std::cout << "## " << name << "\n\n";
    PrintEntry(*rules.Find(name));
    for (const Item* item : overrides) {
      std::cout << "Overridden in " << rules.SourceOf(*item).name() << ":\n\n";
      PrintEntry(*item);
    }
  }
  if (options.json) std::cout << json.dump(2) << "\n";
  return kExitOk;
}

}  // namespace

void AddDoc(CommandLine& line) {
  Verb verb = line.AddVerb("doc", "Print the reference of ops, in Markdown.");
  auto options = std::make_shared<DocOptions>();
  verb.Add("OP", options->ops, "Ops by name (all of them)");
  verb.Add("--rules", options->paths, "Rule files beside the shipped ones");
  verb.AddFlag("--json", options->json, "As JSON");
  verb.Runs([options] { return Doc(*options); });
}

}  // namespace cleave
