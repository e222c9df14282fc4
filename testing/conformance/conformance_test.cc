// The rules against the carried suites, and the comparison against itself.

#include "testing/conformance/conformance.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/rules/rule_files.h"
#include "engine/runtime/safetensors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/golden_file.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const RuleSet> ShippedRules() {
  static const auto* const rules = [] {
    auto sources = ReadRuleFiles({"rules"});
    EXPECT_OK(sources);
    LoadResult loaded =
        LoadRules(*sources, std::make_shared<Context>(), WithTransforms());
    EXPECT_EQ(absl::StrJoin(loaded.diagnostics, "\n"), "");
    return new std::shared_ptr<const RuleSet>(std::move(loaded.rules));
  }();
  return *rules;
}

std::string Folder(absl::string_view suite) {
  return absl::StrCat("testing/cases/", suite);
}

ConformanceReport RunSuites(const std::vector<std::string>& folders,
                            const ConformanceOptions& options = {}) {
  auto report =
      RunConformance(folders, *ShippedRules(), KnownHostDefects(), options);
  EXPECT_OK(report);
  return *std::move(report);
}

std::string Failures(const ConformanceReport& report) {
  std::string text;
  for (const ConformanceFailure& failure : report.failures) {
    absl::StrAppend(&text, failure.op, " ", failure.id, " ", failure.section,
                    ": ", failure.message, "\n");
  }
  return text;
}

// Input: a suite. Output: how many of its ops have rules, and what passes in
// each section. A count that sinks is a loss; one that rises is written anew.
TEST(Conformance, CarriedSuites) {
  TestGoldenFile(
      "testing/conformance/testdata/counts.golden",
      [](absl::string_view suite) {
        suite.remove_suffix(1);  // the line end
        const ConformanceReport report = RunSuites({Folder(suite)});
        EXPECT_EQ(Failures(report), "");
        int ops = 0;
        std::map<std::string, SectionCounts> sections;
        for (const auto& [op, counts] : report.ops) {
          if (ShippedRules()->Find(op) != nullptr) ++ops;
          for (const auto& [section, c] : counts) {
            sections[section].passed += c.passed;
            sections[section].failed += c.failed;
            sections[section].unsupported += c.unsupported;
          }
        }
        std::string text =
            absl::StrCat(ops, " of ", report.ops.size(), " ops have rules\n");
        for (const auto& [section, c] : sections) {
          absl::StrAppend(&text, section, ": ", c.passed, " passed, ",
                          c.unsupported, " unsupported\n");
        }
        return text;
      });
}

// A case that is named as a defect of its host must be there, and differ.
TEST(Conformance, EveryHostDefectIsMet) {
  const ConformanceReport report = RunSuites({Folder("aten"), Folder("onnx")});
  EXPECT_EQ(report.host_defects, static_cast<int>(KnownHostDefects().size()));
  for (const HostDefect& defect : KnownHostDefects()) {
    EXPECT_FALSE(defect.reason.empty()) << defect.op << " " << defect.id;
  }
}

// Corrupting expected tensors in a copy fails just the sections that use them.
TEST(Conformance, FindsEveryCorruption) {
  const std::string copy = absl::StrCat(::testing::TempDir(), "/corrupt_suite");
  std::filesystem::remove_all(copy);
  std::filesystem::create_directories(copy);
  // Sections that pass, each with an expected tensor that no other one uses.
  struct Target {
    std::string file, op, id, section, key;
  };
  std::vector<Target> targets;
  ASSERT_OK_AND_ASSIGN(const std::vector<std::string> files,
                       ListCaseFiles(Folder("aten")));
  ConformanceOptions options;
  options.sections = {"outputs", "jvp", "vmap"};
  for (const std::string& path : files) {
    ASSERT_OK_AND_ASSIGN(const CaseFile file, ReadCaseFile(path));
    if (ShippedRules()->Find(file.op) == nullptr) continue;
    options.ops = file.op;
    const ConformanceReport report = RunSuites({Folder("aten")}, options);
    if (report.totals.failed + report.totals.unsupported > 0) continue;
    const std::string stem = std::filesystem::path(path).stem().string();
    for (const char* end : {".json", ".safetensors"}) {
      std::filesystem::copy_file(absl::StrCat(Folder("aten"), "/", stem, end),
                                 absl::StrCat(copy, "/", stem, end));
    }
    for (const Case& c : file.cases) {
      for (const CaseSection& section : c.sections) {
        if (options.sections.count(section.name) == 0) continue;
        for (const auto& output : section.outputs) {
          if (!output || output->tensor.size() == 0 ||
              output->tensor.dtype() != DType::kF64) {
            continue;
          }
          std::string label = section.name;
          if (label == "vmap")
            absl::StrAppend(&label, "[", section.number, "]");
          targets.push_back({absl::StrCat(copy, "/", stem, ".safetensors"),
                             file.op, c.id, label, output->key});
          break;
        }
      }
    }
    if (targets.size() > 400) break;
  }
  ASSERT_GE(targets.size(), 200u);
  std::mt19937 random(20);
  std::shuffle(targets.begin(), targets.end(), random);
  targets.resize(20);
  std::set<std::string> want;
  for (const Target& target : targets) {
    ASSERT_OK_AND_ASSIGN(TensorMap tensors, ReadSafetensors(target.file));
    Tensor& tensor = tensors.at(target.key);
    const int64_t at = static_cast<int64_t>(random() % tensor.size());
    const double value = tensor.GetDouble(at);
    // A relative error of 1e-3, or a number in place of what is none.
    tensor.SetDouble(at, std::isfinite(value) ? value * 1.001 + 1e-3 : 1.0);
    ASSERT_OK(WriteSafetensors(target.file, tensors));
    want.insert(absl::StrCat(target.op, " ", target.id, " ", target.section));
  }
  ASSERT_EQ(want.size(), 20u);
  options.ops = "*";
  std::set<std::string> got;
  for (const ConformanceFailure& failure :
       RunSuites({copy}, options).failures) {
    got.insert(absl::StrCat(failure.op, " ", failure.id, " ", failure.section));
  }
  EXPECT_EQ(got, want);
}

TEST(Conformance, NamesWhatIsMissing) {
  ConformanceOptions options;
  options.ops = "aten.no_such_op";
  EXPECT_THAT(RunConformance({Folder("aten")}, *ShippedRules(), {}, options),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no_such_op")));
  EXPECT_THAT(RunConformance({"testing/cases/none"}, *ShippedRules(), {}, {}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

// A rule set without rules supports nothing, and fails nothing.
TEST(Conformance, WithoutRulesNothingIsSupported) {
  const LoadResult empty = LoadRules({}, std::make_shared<Context>());
  ASSERT_NE(empty.rules, nullptr);
  ConformanceOptions options;
  options.ops = "aten.softplus";
  ASSERT_OK_AND_ASSIGN(
      const ConformanceReport report,
      RunConformance({Folder("aten")}, *empty.rules, {}, options));
  EXPECT_EQ(report.totals.passed, 0);
  EXPECT_EQ(report.totals.failed, 0);
  EXPECT_GT(report.totals.unsupported, 0);
}

// A defect that is no defect fails.
TEST(Conformance, RefusesAStaleHostDefect) {
  ConformanceOptions options;
  options.ops = "aten.softplus";
  options.sections = {"outputs"};
  const std::vector<HostDefect> defects = {
      {"aten.softplus", "softplus#0", "outputs", "none", "none"}};
  ASSERT_OK_AND_ASSIGN(
      const ConformanceReport report,
      RunConformance({Folder("aten")}, *ShippedRules(), defects, options));
  EXPECT_EQ(report.host_defects, 0);
  EXPECT_THAT(Failures(report), HasSubstr("softplus#0 outputs: named as a"));
}

// A case that is named as a defect and differs in another way fails.
TEST(Conformance, HoldsAHostDefectToItsDifference) {
  ConformanceOptions options;
  options.ops = "aten.silu";
  options.sections = {"outputs"};
  const std::vector<HostDefect> defects = {
      {"aten.silu", "silu#6.special", "outputs",
       "output 0: 2 of 21 elements differ, first [3]: 0, want -nan", "none"}};
  ASSERT_OK_AND_ASSIGN(
      const ConformanceReport report,
      RunConformance({Folder("aten")}, *ShippedRules(), defects, options));
  EXPECT_EQ(report.host_defects, 0);
  EXPECT_THAT(Failures(report),
              HasSubstr("silu#6.special outputs: output 0: 1 of 21"));
}

}  // namespace
}  // namespace cleave
