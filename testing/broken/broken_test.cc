// The checker finds each primitive that is broken in one stage of the engine,
// by the shipped rules that use it.

#include "testing/broken/broken.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/rules/rule_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/layers/check_kernels.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"

namespace cleave {
namespace {

// Rules that are tried before a mistake counts as missed: quick ones first.
constexpr size_t kTried = 6;
constexpr size_t kTriedKernels = 8;

// Mistakes that no shipped rule shows, and why. One that is found is to leave
// the list.
const std::map<std::string, std::string>& Missed() {
  static const auto& missed = *new std::map<std::string, std::string>{
      {"interpreter extent", "calls are checked at known extents"},
      {"reals extent", "calls are checked at known extents"},
      {"reals nextafter", "a bit pattern has no meaning over the reals"},
      {"reals cumulative_max", "the spec of logcumsumexp has none"},
      {"batch reduce_any", "whether one is NaN seldom differs in a batch"},
      {"batch nonzero", "a batch of it is refused where its rows differ"},
      {"kernel extent", "kernels are checked at known extents"},
      {"kernel real",
       "no rule of complex numbers has a kernel that is checked"},
      {"kernel imag",
       "no rule of complex numbers has a kernel that is checked"},
      {"kernel polygamma", "derivatives alone use it; no kernel of those is"},
      {"kernel not", "not known why: no kernel of the rules tried shows it"},
      {"kernel reduce_all", "not known why: no kernel of the rules tried does"},
  };
  return missed;
}

// Functions of floats that the shipped rules use in few places, or in
// derivatives alone: an op for each.
constexpr const char* kUnaryProbes[] = {
    "erf",  "lgamma", "atan",  "ceil",
    "cbrt", "neg",    "sign",  "round_nearest_even",
    "cos",  "tan",    "asin",  "acos",
    "sinh", "cosh",   "asinh", "acosh"};
constexpr const char* kBinaryProbes[] = {"atan2", "copysign", "rem", "mul"};

std::string Probes() {
  std::string text = "language 1\n";
  const auto add = [&](const char* name, const char* declared,
                       const char* operands, const char* elements) {
    absl::StrAppend(&text, "\nop probe_", name, "(", declared,
                    ") -> T[S..]\n  where T: float\n  spec y[s..] = ", name,
                    "(", elements, ")\n  accuracy T within 4 ulp\n  = ", name,
                    "(", operands, ")\n");
  };
  for (const char* name : kUnaryProbes) add(name, "x: T[S..]", "x", "x[s..]");
  for (const char* name : kBinaryProbes) {
    add(name, "a: T[S..], b: T[S..]", "a, b", "a[s..], b[s..]");
  }
  return text;
}

const std::vector<NamedSource>& Sources() {
  static const auto& sources = *[] {
    auto* sources = new auto(ReadRuleFiles({"rules"}).value());
    sources->push_back({"probes.rules", Probes(), false});
    return sources;
  }();
  return sources;
}

// Anew: derived rules are kept with a rule set.
std::shared_ptr<const RuleSet> Load() {
  return LoadRules(Sources(), std::make_shared<Context>(), WithTransforms())
      .rules;
}

// The rules whose check goes through a primitive, the quick ones first.
using Users = std::map<std::pair<Stage, Primitive>, std::vector<std::string>>;

const Users& UsersOf() {
  static const Users& users = *[] {
    auto* users = new Users();
    std::map<std::string, double> seconds;
    CheckOptions options;
    options.threads = 1;
    options.progress = [&](const OpReport& op, int, int) {
      seconds[op.op] = op.seconds;
      for (const Stage stage : kStages) {
        for (const Primitive primitive : TakeSeen(stage)) {
          (*users)[{stage, primitive}].push_back(op.op);
        }
      }
    };
    const auto report = CheckRules(Load(), options);
    EXPECT_THAT(report, IsOk());
    EXPECT_EQ(report->ExitStatus({VerdictKind::kNotIndependent}), 0);
    for (auto& [at, ops] : *users) {
      std::sort(ops.begin(), ops.end(),
                [&](const std::string& a, const std::string& b) {
                  return seconds[a] < seconds[b];
                });
    }
    return users;
  }();
  return users;
}

bool Finds(Stage stage, Primitive primitive, const std::string& op) {
  CheckOptions options;
  options.ops = op;
  options.threads = 1;
  options.stop_at_refutation = true;
  if (stage == Stage::kKernel) {
    options.kernels = CheckKernels;
    options.layers = {Layer::kKernels};
  }
  const Broken broken(stage, primitive);
  const std::shared_ptr<const RuleSet> rules = Load();
  if (rules == nullptr) return true;  // refused
  const auto report = CheckRules(rules, options);
  return report.ok() && report->Count(VerdictKind::kDisagrees) > 0;
}

class BrokenTest : public testing::TestWithParam<Stage> {};

TEST_P(BrokenTest, IsFound) {
  const Stage stage = GetParam();
  // Kernels are compiled of what the interpreter evaluates.
  const Stage seen = stage == Stage::kKernel ? Stage::kInterpreter : stage;
  int found = 0;
  for (int i = 0; i < kNumPrimitives; ++i) {
    const Primitive primitive = static_cast<Primitive>(i);
    const auto users = UsersOf().find({seen, primitive});
    const std::string name =
        absl::StrCat(StageName(stage), " ", PrimitiveName(primitive));
    if (users == UsersOf().end()) continue;
    std::vector<std::string> ops = users->second;
    // Others may use it in derivatives alone, which have no kernels here.
    std::stable_partition(ops.begin(), ops.end(), [&](const std::string& op) {
      return op == absl::StrCat("probe_", PrimitiveName(primitive));
    });
    std::string tried;
    bool finds = false;
    size_t left = stage == Stage::kKernel ? kTriedKernels : kTried;
    for (const std::string& op : ops) {
      // Rewrites and derivatives of primitives have no kernels of their own.
      if (stage == Stage::kKernel && absl::StrContains(op, ' ')) continue;
      if (finds || left-- == 0) break;
      absl::StrAppend(&tried, tried.empty() ? "" : ", ", op);
      finds = Finds(stage, primitive, op);
    }
    found += finds ? 1 : 0;
    EXPECT_NE(finds, Missed().count(name) > 0)
        << name << (finds ? " is found: take it off Missed" : ": missed by ")
        << tried;
  }
  EXPECT_GT(found, 20);
}

INSTANTIATE_TEST_SUITE_P(Stages, BrokenTest, testing::ValuesIn(kStages),
                         [](const testing::TestParamInfo<Stage>& info) {
                           return std::string(StageName(info.param));
                         });

}  // namespace
}  // namespace cleave
