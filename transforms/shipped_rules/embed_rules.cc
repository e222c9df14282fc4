// embed_rules OUT FILE...: checks rule files and writes them as C++, which
// defines what embedded_rules.h declares. Mistakes are printed, and noted in
// what is written: a program with such rules reports them when it loads them.

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/files/file.h"
#include "engine/rules/rule_files.h"
#include "engine/rules/rule_set.h"
#include "transforms/derived_rules.h"

namespace cleave {
namespace {

// "external/cleave/rules/core/loss.rules" is "rules/core/loss.rules".
std::string ShippedName(const std::string& path) {
  const size_t folder = path.rfind("/rules/");
  return folder == std::string::npos ? path : path.substr(folder + 1);
}

// As it stands between quotes. Two question marks may begin a trigraph.
std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(absl::CEscape(text), {{"?", "\\?"}});
}

// The text as literals, one a line.
std::string Literals(absl::string_view text) {
  std::string result;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const bool last = line.end() == text.end();
    if (last && line.empty() && !result.empty()) break;
    absl::StrAppend(&result, "\n    \"", Escaped(line), last ? "" : "\\n",
                    "\"");
  }
  return result;
}

std::string Written(const std::vector<NamedSource>& sources, bool checked) {
  std::string text =
      "// Written by embed_rules.\n\n"
      "#include \"transforms/shipped_rules/embedded_rules.h\"\n\n"
      "namespace cleave {\nnamespace internal_shipped_rules {\n\n"
      "const EmbeddedFile kFiles[] = {\n";
  for (const NamedSource& source : sources) {
    absl::StrAppend(&text, "  {\"", Escaped(source.name), "\",",
                    Literals(source.text), ",\n   ", source.text.size(),
                    "},\n");
  }
  absl::StrAppend(&text, "};\n\nconst size_t kFileCount = ", sources.size(),
                  ";\nconst bool kChecked = ", checked ? "true" : "false",
                  ";\n\n}  // namespace internal_shipped_rules\n"
                  "}  // namespace cleave\n");
  return text;
}

int Main(const std::string& out, const std::vector<std::string>& paths) {
  absl::StatusOr<std::vector<NamedSource>> sources = ReadRuleFiles(paths);
  if (!sources.ok()) {
    std::cerr << "embed_rules: " << sources.status().message() << "\n";
    return 1;
  }
  for (NamedSource& source : *sources) source.name = ShippedName(source.name);
  std::sort(sources->begin(), sources->end(),
            [](const NamedSource& a, const NamedSource& b) {
              return a.name < b.name;
            });
  LoadOptions options;
  options.derive = MakeDerivedRules;
  options.cache_folder = "";
  const LoadResult loaded =
      LoadRules(*sources, std::make_shared<Context>(), options);
  for (const std::string& diagnostic : loaded.diagnostics) {
    std::cerr << diagnostic;
  }
  const absl::Status written =
      WriteFileAtomically(out, Written(*sources, loaded.rules != nullptr));
  if (written.ok()) return 0;
  std::cerr << "embed_rules: " << written.message() << "\n";
  return 1;
}

}  // namespace
}  // namespace cleave

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: embed_rules OUT FILE...\n";
    return 1;
  }
  return cleave::Main(argv[1], {argv + 2, argv + argc});
}
