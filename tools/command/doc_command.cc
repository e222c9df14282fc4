// doc: the reference of the loaded ops, made from their declarations.

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/files/file.h"
#include "engine/lang/ast.h"
#include "engine/lang/declaration_text.h"
#include "nlohmann/json.hpp"
#include "ops/budget.h"
#include "testing/certificate/certificate.h"
#include "testing/certificate/rule_hashes.h"
#include "tools/command/certificate_files.h"
#include "tools/command/command.h"
#include "tools/command/load.h"
#include "tools/reference/reference_pages.h"

namespace cleave {
namespace {

struct DocOptions {
  std::vector<std::string> ops;
  std::vector<std::string> paths;
  bool json = false;
  std::string html;  // a folder
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

// Pages of the ops, with what the certificates of the shipped rules measured.
int WritePages(const DocOptions& options, const LoadedRules& loaded,
               const std::vector<std::string>& names) {
  const absl::Status made = MakeFolder(options.html);
  if (!made.ok()) return Complain(made);
  const absl::StatusOr<RuleHashes> hashes = RuleHashes::Make(loaded.texts);
  if (!hashes.ok()) return Complain(hashes.status());
  std::vector<std::string> folders = options.paths;
  if (const char* const shipped = std::getenv("CLEAVE_RULES")) {
    folders.emplace_back(shipped);
  }
  const auto certified = ReadShippedCertificates(folders);
  ReferenceOptions reference;
  reference.sources = loaded.texts;
  reference.ops = names;
  reference.measured = [&](absl::string_view op) -> const OpReport* {
    for (const auto& [name, file] : certified) {
      const auto it = file.certificates.find(std::string(op));
      // One of other rules says nothing of these.
      if (it != file.certificates.end() &&
          it->second.rule == hashes->Of(it->first)) {
        return &it->second.report;
      }
    }
    return nullptr;
  };
  reference.progress = [](absl::string_view page, size_t done, size_t all) {
    ShowProgress(absl::StrCat(done, " of ", all, " pages, ", page));
  };
  const std::vector<ReferencePage> pages =
      ReferencePages(*loaded.rules, reference);
  ShowProgress("");
  if (!PollBudget().ok()) return Complain(PollBudget());
  for (const ReferencePage& page : pages) {
    const absl::Status written = WriteFileAtomically(
        absl::StrCat(options.html, "/", page.name), page.html);
    if (!written.ok()) return Complain(written);
  }
  std::cout << options.html << "/" << pages[0].name << ": " << names.size()
            << (names.size() == 1 ? " op on " : " ops on ") << pages.size()
            << " pages\n";
  return kExitOk;
}

int Doc(const DocOptions& options) {
  const auto loaded = LoadRulePaths(options.paths);
  if (!loaded) return kExitUsage;
  const auto names = OpNames(*loaded->rules, options.ops);
  if (!names) return kExitUsage;
  if (!options.html.empty()) return WritePages(options, *loaded, *names);
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
  Verb verb = line.AddVerb("doc",
                           "Print the reference of ops, in Markdown, or "
                           "write it as pages.");
  auto options = std::make_shared<DocOptions>();
  verb.Add("OP", options->ops, "Ops by name (all of them)");
  verb.Add("--rules", options->paths, "Rule files beside the shipped ones");
  const Option& json = verb.AddFlag("--json", options->json, "As JSON");
  verb.Add("--html", options->html,
           "Write pages with formulas, drawings, accuracy and derived rules to "
           "this folder")
      .Excludes(json);
  verb.Runs([options] { return Doc(*options); });
}

}  // namespace cleave
