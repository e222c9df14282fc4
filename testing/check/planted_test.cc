// The checker refutes rules that are wrong in famous ways, in the layer that
// each is wrong in, and accepts their stable forms.

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"

namespace cleave {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The report on the only op of a planted file.
CheckReport CheckPlanted(const std::string& name) {
  std::vector<NamedSource> sources;
  for (const std::string& path :
       {std::string("rules/derivative/arithmetic.rules"),
        std::string("rules/derivative/exponential.rules"),
        std::string("rules/derivative/special.rules"),
        absl::StrCat("testing/planted/", name, ".rules")}) {
    sources.push_back({path, ReadText(path), false});
  }
  const LoadResult loaded = LoadRules(sources, std::make_shared<Context>());
  for (const std::string& diagnostic : loaded.diagnostics) {
    ADD_FAILURE() << diagnostic;
  }
  CheckOptions options;
  options.ops = "planted_*";
  options.seconds_per_op = 3600;  // the test's own limit comes first
  return loaded.rules == nullptr ? CheckReport()
                                 : CheckRules(loaded.rules, options);
}

struct Planted {
  const char* name;
  Layer layer;  // that refutes it
};

class PlantedTest : public testing::TestWithParam<Planted> {};

TEST_P(PlantedTest, IsRefuted) {
  const CheckReport report = CheckPlanted(GetParam().name);
  ASSERT_EQ(report.ops.size(), 1u);
  const Verdict& verdict = report.ops[0].layers.at(GetParam().layer);
  EXPECT_EQ(verdict.kind, VerdictKind::kDisagrees) << report.ToString();
  ASSERT_TRUE(verdict.counterexample.has_value());
  EXPECT_THAT(verdict.counterexample->place,
              testing::HasSubstr(GetParam().name));
  EXPECT_THAT(verdict.counterexample->replay, testing::HasSubstr("--seed 1"));
  EXPECT_EQ(report.ExitStatus(), 1);
}

TEST_P(PlantedTest, StableFormAgrees) {
  const CheckReport report =
      CheckPlanted(absl::StrCat(GetParam().name, "_stable"));
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_EQ(report.ExitStatus(), 0) << report.ToString();
  EXPECT_EQ(report.Count(VerdictKind::kInconclusive), 0) << report.ToString();
  EXPECT_EQ(report.ops[0].layers.at(GetParam().layer).kind,
            VerdictKind::kAgrees)
      << report.ToString();
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedTest,
    testing::Values(Planted{"log1p", Layer::kRounding},
                    Planted{"softplus", Layer::kRounding},
                    Planted{"sigmoid", Layer::kRounding},
                    Planted{"softmax", Layer::kRounding},
                    Planted{"variance", Layer::kRounding},
                    Planted{"jvp_factor", Layer::kTransforms},
                    Planted{"vmap_slices", Layer::kTransforms},
                    Planted{"gelu", Layer::kReals},
                    Planted{"hardswish", Layer::kRounding}),
    [](const testing::TestParamInfo<Planted>& info) {
      return std::string(info.param.name);
    });

}  // namespace
}  // namespace cleave
