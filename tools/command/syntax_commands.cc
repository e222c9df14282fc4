// fmt and convert: rule text and its JSON twin.

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "engine/lang/ast.h"
#include "engine/lang/json_rule.h"
#include "engine/rules/rule_files.h"
#include "tools/command/command.h"
#include "tools/command/load.h"

namespace cleave {
namespace {

// The parsed file; nullopt after printing what is wrong.
std::optional<RuleFile> ParseOrComplain(const Source& source) {
  ParseResult result = ParseAny(source);
  if (result.ok()) return std::move(result.file);
  std::cerr << Render(result.diagnostics, source);
  return std::nullopt;
}

struct FmtOptions {
  std::vector<std::string> paths;
  bool in_place = false;
  bool check = false;
};

int Fmt(const FmtOptions& options) {
  const auto files = ListRuleFiles(options.paths);
  if (!files.ok()) return Complain(files.status());
  int status = kExitOk;
  for (const std::string& path : *files) {
    auto text = ReadFile(path);
    if (!text.ok()) return Complain(text.status());
    const Source source(path, *std::move(text));
    const std::optional<RuleFile> file = ParseOrComplain(source);
    if (!file) {
      status = kExitUsage;
      continue;
    }
    const std::string canonical = absl::EndsWith(path, ".json")
                                      ? RulesToJson(*file)
                                      : PrintRuleFile(*file);
    if (options.check) {
      if (canonical == source.text()) continue;
      std::cout << path << "\n";
      if (status == kExitOk) status = kExitVerdict;
    } else if (options.in_place) {
      if (canonical == source.text()) continue;
      const absl::Status written = WriteFileAtomically(path, canonical);
      if (!written.ok()) return Complain(written);
    } else {
      std::cout << canonical;
    }
  }
  return status;
}

struct ConvertOptions {
  std::string path;
  std::string to;
};

int Convert(const ConvertOptions& options) {
  auto text = ReadFile(options.path);
  if (!text.ok()) return Complain(text.status());
  const Source source(options.path, *std::move(text));
  const std::optional<RuleFile> file = ParseOrComplain(source);
  if (!file) return kExitUsage;
  const bool from_json = absl::EndsWith(options.path, ".json");
  const bool to_json = options.to.empty() ? !from_json : options.to == "json";
  std::cout << (to_json ? RulesToJson(*file) : PrintRuleFile(*file));
  return kExitOk;
}

}  // namespace

void AddFmt(CommandLine& line) {
  Verb verb = line.AddVerb("fmt", "Print rule files in their canonical form.");
  auto options = std::make_shared<FmtOptions>();
  verb.Add("FILE", options->paths, "Rule files, or folders of them").Required();
  Option in_place =
      verb.AddFlag("-i,--in-place", options->in_place, "Rewrite the files");
  verb.AddFlag("--check", options->check,
               "Name the files that are not canonical and exit with 1")
      .Excludes(in_place);
  verb.Runs([options] { return Fmt(*options); });
}

void AddConvert(CommandLine& line) {
  Verb verb = line.AddVerb(
      "convert", "Print a rule file as JSON, or its JSON twin as rules.");
  auto options = std::make_shared<ConvertOptions>();
  verb.Add("FILE", options->path, "A .rules or .json file").Required();
  verb.Add("--to", options->to, "The form to print").OneOf({"json", "rules"});
  verb.Runs([options] { return Convert(*options); });
}

}  // namespace cleave
