#include "testing/check/check_testing.h"

#include <memory>
#include <utility>
#include <vector>

#include "engine/files/file.h"
#include "gtest/gtest.h"
#include "testing/check/layers/check_kernels.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"

namespace cleave {

std::shared_ptr<const RuleSet> LoadText(const std::string& name,
                                        const std::string& text) {
  std::vector<NamedSource> sources;
  for (const char* path :
       {"rules/derivative/arithmetic.rules",
        "rules/derivative/exponential.rules", "rules/derivative/special.rules",
        "rules/numerics/bits.rules", "rules/numerics/exponential.rules"}) {
    const absl::StatusOr<std::string> shipped = ReadFile(path);
    EXPECT_OK(shipped);
    sources.push_back({path, shipped.value_or(""), false});
  }
  sources.push_back({name, text, false});
  const LoadResult loaded =
      LoadRules(sources, std::make_shared<Context>(), WithTransforms());
  for (const std::string& diagnostic : loaded.diagnostics) {
    ADD_FAILURE() << diagnostic;
  }
  return loaded.rules;
}

CheckReport CheckedRules(std::shared_ptr<const RuleSet> rules,
                         const CheckOptions& options) {
  absl::StatusOr<CheckReport> report = CheckRules(std::move(rules), options);
  EXPECT_OK(report);
  return report.ok() ? *std::move(report) : CheckReport();
}

CheckReport CheckText(const std::string& name, const std::string& text,
                      const std::string& ops, bool kernels) {
  const std::shared_ptr<const RuleSet> rules = LoadText(name, text);
  CheckOptions options;
  options.ops = ops;
  if (kernels) options.kernels = CheckKernels;
  return rules == nullptr ? CheckReport() : CheckedRules(rules, options);
}

CheckReport CheckTextAt(const std::string& name, const std::string& text,
                        const std::string& ops, uint64_t seed) {
  const std::shared_ptr<const RuleSet> rules = LoadText(name, text);
  CheckOptions options;
  options.ops = ops;
  options.seed = seed;
  options.seconds_per_op = 3600;
  return rules == nullptr ? CheckReport() : CheckedRules(rules, options);
}

}  // namespace cleave
