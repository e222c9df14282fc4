// The checker refutes rules that are wrong in famous ways, in the layer that
// each is wrong in, and accepts their stable forms.

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

// The report on the only op of a planted file.
CheckReport CheckPlanted(const std::string& name) {
  const std::string path = absl::StrCat("testing/planted/", name, ".rules");
  const absl::StatusOr<std::string> text = ReadFile(path);
  EXPECT_OK(text);
  return CheckText(path, text.value_or(""), "planted_*");
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
  // Some forms are their specs; their derivatives are what is planted.
  EXPECT_EQ(report.ExitStatus({VerdictKind::kNotIndependent}), 0)
      << report.ToString();
  EXPECT_EQ(report.Count(VerdictKind::kInconclusive), 0) << report.ToString();
  EXPECT_EQ(report.ops[0].layers.at(GetParam().layer).kind,
            VerdictKind::kAgrees)
      << report.ToString();
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedTest,
    testing::Values(Planted{"single_element", Layer::kReals},
                    Planted{"log1p", Layer::kRounding},
                    Planted{"softplus", Layer::kRounding},
                    Planted{"sigmoid", Layer::kRounding},
                    Planted{"softmax", Layer::kRounding},
                    Planted{"variance", Layer::kRounding},
                    Planted{"jvp_factor", Layer::kTransforms},
                    Planted{"vjp_sum", Layer::kTransforms},
                    Planted{"vmap_slices", Layer::kTransforms},
                    Planted{"gelu", Layer::kReals},
                    Planted{"hardswish", Layer::kRounding},
                    Planted{"complex_value", Layer::kRounding},
                    Planted{"complex_slope", Layer::kTransforms},
                    Planted{"complex_adjoint", Layer::kTransforms},
                    Planted{"slope_beside", Layer::kTransforms},
                    Planted{"slope_at_index", Layer::kTransforms},
                    Planted{"slope_unsupported", Layer::kTransforms},
                    Planted{"rare_domain", Layer::kTransforms},
                    Planted{"slope_of_five", Layer::kTransforms},
                    Planted{"weight_size", Layer::kRounding},
                    Planted{"read_beyond", Layer::kExamples}),
    [](const testing::TestParamInfo<Planted>& info) {
      return std::string(info.param.name);
    });

}  // namespace
}  // namespace cleave
