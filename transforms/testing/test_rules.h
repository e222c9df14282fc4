// The shipped derivatives of primitives and rewrites, loaded for tests.

#ifndef CLEAVE_TRANSFORMS_TESTING_TEST_RULES_H_
#define CLEAVE_TRANSFORMS_TESTING_TEST_RULES_H_

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/rules/rule_set.h"
#include "ops/check.h"
#include "transforms/derived_rules.h"

namespace cleave {

inline std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  CLEAVE_CHECK(file.good()) << "cannot read " << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// rules/derivative, rules/simplify and the other `folders` of rules/, and
// `extra` behind them.
inline std::shared_ptr<const RuleSet> LoadTestRules(
    const std::shared_ptr<Context>& context, const std::string& extra = "",
    std::vector<std::string> folders = {}) {
  folders.insert(folders.begin(), {"derivative", "simplify"});
  std::vector<NamedSource> sources;
  for (const std::string& folder : folders) {
    std::vector<std::string> paths;
    for (const auto& entry :
         std::filesystem::directory_iterator("rules/" + folder)) {
      if (entry.path().extension() == ".rules") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
      sources.push_back({path, ReadText(path)});
    }
  }
  if (!extra.empty()) sources.push_back({"extra.rules", extra});
  LoadResult loaded = LoadRules(sources, context, WithTransforms());
  std::string all;
  for (const std::string& diagnostic : loaded.diagnostics) all += diagnostic;
  CLEAVE_CHECK(loaded.rules != nullptr) << all;
  return loaded.rules;
}

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_TESTING_TEST_RULES_H_
