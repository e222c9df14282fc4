// The shipped derivatives of primitives, loaded for tests.

#ifndef CLEAVE_TRANSFORMS_TEST_RULES_H_
#define CLEAVE_TRANSFORMS_TEST_RULES_H_

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/rewrite/rule_set.h"
#include "ops/check.h"
#include "transforms/derived_bodies.h"

namespace cleave {

inline std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  CLEAVE_CHECK(file.good()) << "cannot read " << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// rules/derivative, and `extra` behind it.
inline std::shared_ptr<const RuleSet> LoadTestRules(
    const std::shared_ptr<Context>& context, const std::string& extra = "") {
  std::vector<NamedSource> sources;
  for (const char* name : {"arithmetic", "exponential", "special"}) {
    const std::string path = std::string("rules/derivative/") + name + ".rules";
    sources.push_back({path, ReadText(path)});
  }
  if (!extra.empty()) sources.push_back({"extra.rules", extra});
  LoadResult loaded = LoadRules(sources, context, {MakeDerivedBodies()});
  std::string all;
  for (const std::string& diagnostic : loaded.diagnostics) all += diagnostic;
  CLEAVE_CHECK(loaded.rules != nullptr) << all;
  return loaded.rules;
}

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_TEST_RULES_H_
