#include "testing/mutate/mutate.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/files/file.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "testing/mutate/allclose.h"
#include "testing/mutate/equivalence.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"

namespace cleave {
namespace {

std::vector<NamedSource> SourcesWith(const std::string& text) {
  std::vector<NamedSource> sources;
  for (const char* path :
       {"rules/derivative/arithmetic.rules",
        "rules/derivative/exponential.rules", "rules/derivative/special.rules",
        "rules/simplify/arithmetic.rules"}) {
    const absl::StatusOr<std::string> shipped = ReadFile(path);
    EXPECT_OK(shipped);
    sources.push_back({path, shipped.value_or(""), false});
  }
  sources.push_back({"test.rules", text, false});
  return sources;
}

std::shared_ptr<const RuleSet> Load(const std::string& text,
                                    std::shared_ptr<Context> context) {
  const LoadResult loaded =
      LoadRules(SourcesWith(text), std::move(context), WithTransforms());
  for (const std::string& diagnostic : loaded.diagnostics) {
    ADD_FAILURE() << diagnostic;
  }
  return loaded.rules;
}

MutationReport Mutate(const std::string& text, const std::string& ops,
                      int count = 0, int jobs = 1) {
  MutateOptions options;
  options.ops = ops;
  options.count = count;
  options.jobs = jobs;
  options.files = {"test.rules"};
  const absl::StatusOr<MutationReport> report =
      MutateRules(SourcesWith(text), options);
  EXPECT_OK(report);
  return report.ok() ? *report : MutationReport();
}

// A claim that leaves no room.
constexpr char kTight[] = R"(language 1

op excess(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = exp(x[s..]) - 1
  accuracy T within 1.5 ulp
  = expm1(x)
)";

TEST(Mutate, KillsAllMutantsOfATightRule) {
  const MutationReport report = Mutate(kTight, "excess");
  EXPECT_GT(report.Count(MutantFate::kKilled), 8) << report.ToString(80);
  EXPECT_EQ(report.Count(MutantFate::kSurvived), 0) << report.ToString(80);
  EXPECT_TRUE(report.Refuted().empty());
  for (const MutantReport& mutant : report.mutants) {
    EXPECT_TRUE(mutant.elementwise) << mutant.after;
    // The famous one, which random samples do not find.
    if (mutant.op == MutationOperator::kUnstableForm) {
      EXPECT_FALSE(mutant.allclose_kills);
    }
  }
}

// Nothing is claimed of `twice`, so that nothing is wrong with a mutant.
constexpr char kLoose[] = R"(language 1

op twice(x: f32[n]) -> f32[n] = x * 2
)";

TEST(Mutate, ReportsWhatSurvivesAsRuleText) {
  const MutationReport report = Mutate(kLoose, "twice");
  const auto survivor = std::find_if(
      report.mutants.begin(), report.mutants.end(),
      [](const MutantReport& mutant) { return mutant.after == "x + 2"; });
  ASSERT_NE(survivor, report.mutants.end()) << report.ToString(80);
  EXPECT_EQ(survivor->fate, MutantFate::kSurvived);
  EXPECT_EQ(survivor->text, "op twice(x: f32[n]) -> f32[n]\n  = x + 2\n");
  EXPECT_EQ(survivor->place, "test.rules:3:33");
  EXPECT_EQ(survivor->verdicts.at("twice L3"), "not checked: no spec");
  // It stands beside the rule as it was.
  EXPECT_TRUE(survivor->allclose_kills);
  EXPECT_TRUE(absl::StrContains(report.ToString(80), "= x + 2\n"));
}

// The default is what was given.
constexpr char kDefault[] = R"(language 1

op total(x: T[n]) -> T[1]
  where T: float
  spec y[j < 1] = sum[i](x[i])
  accuracy T within n eps * sum[i](abs(x[i]))
  = reduce_sum(x, axes: [0], keepdims: true)
)";

TEST(Mutate, ProvesThatAMutantIsTheSame) {
  const MutationReport report = Mutate(kDefault, "total");
  std::vector<std::string> equivalent;
  for (const MutantReport& mutant : report.mutants) {
    if (mutant.fate == MutantFate::kProvedEquivalent) {
      equivalent.push_back(mutant.after);
    }
  }
  // If there is one axis, the first is the last, and all.
  EXPECT_EQ(std::count(equivalent.begin(), equivalent.end(),
                       "reduce_sum(x, axes: [0])"),
            1)
      << report.ToString(80);
  EXPECT_GT(report.Count(MutantFate::kKilled), 0);
  const auto json = nlohmann::json::parse(report.ToJson());
  EXPECT_EQ(json["totals"]["proved_equivalent"], equivalent.size());
  EXPECT_EQ(json["proved_equivalent"].size(), equivalent.size());
}

// The fate of the mutant of `rule` that has `after` in it.
MutantFate FateOf(const MutationReport& report, const std::string& after) {
  for (const MutantReport& mutant : report.mutants) {
    if (mutant.after == after) return mutant.fate;
  }
  ADD_FAILURE() << "no mutant " << after << "\n" << report.ToString(80);
  return MutantFate::kRejected;
}

// A list of numbers has no end of values; a whole number has no slope.
TEST(Mutate, ProvesThatTiesOfWholeNumbersAreNone) {
  const MutationReport report = Mutate(R"(language 1

def behind(i, by) = max(i - by[0], 0)

op delayed(x: T[n], *, by: int[1]) -> T[n]
  where T: float
  error value "by is negative" if by[0] < 0
  spec y[i] = select(i < by[0], 0, x[max(i - by[0], 0)] ?? 0) + max(x[i], 0)
{
  y[i] = select(i < by[0], 0, x[behind(i, by)] ?? 0) + max(x[i], 0)
}
)",
                                       "*");
  EXPECT_EQ(FateOf(report, "max(i - by[0], 0) @tie(first)"),
            MutantFate::kProvedEquivalent);
  EXPECT_EQ(FateOf(report, "max(x[i], 0) @tie(first)"), MutantFate::kSurvived);
}

TEST(Mutate, ProvesThatPlacesHaveNoTies) {
  const MutationReport report = Mutate(R"(language 1

op held_back(x: T[n], at: i64[n]) -> T[n]
  where T: float
  spec y[i] = x[select(at[i] < i, at[i], i)] + max(x[i], 0)
{
  let low = min(at, iota(n))
  y[i] = x[low[i]] + max(x[i], 0)
}
)",
                                       "*");
  EXPECT_EQ(FateOf(report, "min(at, iota(n)) @tie(first)"),
            MutantFate::kProvedEquivalent);
  EXPECT_EQ(FateOf(report, "max(x[i], 0) @tie(first)"), MutantFate::kSurvived);
}

// The branches of `far_or_near` are both right where they meet, those of
// `split` are not.
TEST(Mutate, ProvesThatAMutantIsRightWhereItDiffers) {
  constexpr char kText[] = R"(language 1

def far_or_near(x) = select(x > 2, exp(x) - 1, expm1(x))

op excess(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = exp(x[s..]) - 1
  accuracy T within 3 ulp
  = far_or_near(x)

op split(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = select(x[s..] > 2, 2 * x[s..], x[s..])
  = select(x > 2, 2 * x, x)
)";
  EXPECT_EQ(FateOf(Mutate(kText, "def far_or_near"), "x >= 2"),
            MutantFate::kProvedEquivalent);
  EXPECT_EQ(FateOf(Mutate(kText, "split"), "x >= 2"), MutantFate::kKilled);
}

TEST(Mutate, DependsOnTheSeedAndNotOnTheJobs) {
  const auto mutants = [](int jobs) {
    std::vector<std::string> list;
    for (const MutantReport& mutant : Mutate(kTight, "*", 6, jobs).mutants) {
      list.push_back(mutant.before + " -> " + mutant.after + " " + mutant.by);
    }
    return list;
  };
  const std::vector<std::string> alone = mutants(1);
  EXPECT_EQ(alone.size(), 6u);
  EXPECT_EQ(mutants(3), alone);
}

TEST(Mutate, HasShardsThatTogetherAreAll) {
  std::vector<std::string> parts;
  for (int shard = 0; shard < 3; ++shard) {
    MutateOptions options;
    options.ops = "excess";
    options.shard = shard;
    options.shards = 3;
    options.jobs = 1;
    const auto report = MutateRules(SourcesWith(kTight), options);
    ASSERT_OK(report);
    for (const MutantReport& mutant : report->mutants) {
      parts.push_back(mutant.before + " -> " + mutant.after);
    }
  }
  std::vector<std::string> all;
  for (const MutantReport& mutant : Mutate(kTight, "excess").mutants) {
    all.push_back(mutant.before + " -> " + mutant.after);
  }
  std::sort(parts.begin(), parts.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(parts, all);
}

// Its first derivative is right, and has none itself.
TEST(Mutate, KillsADerivativeThatIsConstant) {
  MutateOptions options;
  options.ops = "jvp sinh";
  options.jobs = 1;
  const auto report = MutateRules(SourcesWith(kTight), options);
  ASSERT_OK(report);
  const auto mutant =
      std::find_if(report->mutants.begin(), report->mutants.end(),
                   [](const MutantReport& m) {
                     return m.op == MutationOperator::kSecondOrder;
                   });
  ASSERT_NE(mutant, report->mutants.end()) << report->ToString(80);
  EXPECT_EQ(mutant->after, "dx * nograd(cosh(x))");
  EXPECT_EQ(mutant->fate, MutantFate::kKilled);
  EXPECT_EQ(mutant->by, "jvp sinh");
}

// A rule that fails as it is kills nothing.
constexpr char kWrong[] = R"(language 1

op wrong(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = x[s..] + 1
  accuracy T within 1 ulp
  = x - 1
)";

TEST(Mutate, DoesNotCountMutantsOfARefutedRule) {
  const MutationReport report = Mutate(kWrong, "wrong");
  EXPECT_EQ(report.Count(MutantFate::kKilled), 0) << report.ToString(80);
  EXPECT_EQ(report.Refuted(), std::vector<std::string>{"wrong"});
  EXPECT_TRUE(absl::StrContains(report.ToString(80), "wrong fails as it is"));
}

// `half` has no value of its own: it is seen in what uses it.
constexpr char kDef[] = R"(language 1

def half(e) = e / 2

op mean_of_two(a: T[S..], b: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = (a[s..] + b[s..]) / 2
  accuracy T within 1 ulp + 1 cond
  = half(a) + half(b)
)";

TEST(Mutate, ChecksADefWhereItIsUsed) {
  const MutationReport report = Mutate(kDef, "def half");
  EXPECT_GT(report.Count(MutantFate::kKilled), 3) << report.ToString(80);
  for (const MutantReport& mutant : report.mutants) {
    if (mutant.fate == MutantFate::kKilled) {
      EXPECT_EQ(mutant.by, "mean_of_two");
    }
  }
}

// A def that the spec uses changes with it: nothing could be judged.
TEST(Mutate, LeavesADefThatTheSpecUses) {
  MutateOptions options;
  options.ops = "def half";
  options.jobs = 1;
  const auto report = MutateRules(SourcesWith(R"(language 1

def half(e) = e / 2

op halved(x: f32[n]) -> f32[n]
  spec y[i] = half(x[i])
  = half(x)
)"),
                                  options);
  EXPECT_EQ(report.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Mutate, TablesFitTheirWidth) {
  const std::string text = Mutate(kTight, "excess").ToString(50);
  const std::string table = text.substr(0, text.find("\n\n"));
  for (const absl::string_view line : absl::StrSplit(table, '\n')) {
    EXPECT_LE(line.size(), 50u) << line;
  }
}

TEST(Allclose, TakesPyTorchsTolerance) {
  const auto of = [](double value) {
    return Tensor::FromDoubles(DType::kF64, {1}, {value});
  };
  EXPECT_TRUE(Allclose(of(1 + 1.1e-5), of(1)));
  EXPECT_FALSE(Allclose(of(1 + 1.2e-5), of(1)));
  EXPECT_TRUE(Allclose(of(1e6 + 1), of(1e6)));
  EXPECT_FALSE(Allclose(of(1e6 + 2), of(1e6)));
  EXPECT_TRUE(Allclose(of(NAN), of(NAN)));
  EXPECT_FALSE(Allclose(of(NAN), of(1)));
  EXPECT_FALSE(Allclose(of(INFINITY), of(1)));
  EXPECT_FALSE(Allclose(Tensor(DType::kF32, {2}), Tensor(DType::kF32, {1})));
}

// Whether the op `f` in one text is proved to be that in the other. The first
// statements of their bodies are what differs.
bool Proved(const std::string& original, const std::string& mutant) {
  const auto context = std::make_shared<Context>();
  const auto a = Load("language 1\n\n" + original, context);
  const auto b = Load("language 1\n\n" + mutant, context);
  if (a == nullptr || b == nullptr) return false;
  const auto changed = [](const RuleSet& rules) {
    return rules.Find("f")->body->statements[0].equation.value;
  };
  return ProveEquivalent(*a, *b, *a->Find("f"), {changed(*a), changed(*b)});
}

TEST(Equivalence, IsThatOfSimplifiedGraphs) {
  const std::string square = "op f(x: T[n]) -> T[n]\n  where T: float\n";
  EXPECT_TRUE(Proved(square + "  = x * x\n", square + "  = x * (x * 1)\n"));
  EXPECT_FALSE(Proved(square + "  = x * x\n", square + "  = x * x * x\n"));
}

// f32 stands for all floats where bodies are typed: here it does not.
TEST(Equivalence, HoldsInAllDTypes) {
  const std::string f = "op f(x: T[n]) -> T[n]\n  where T: float\n";
  EXPECT_FALSE(
      Proved(f + "  = x + x\n",
             f + "  = convert(convert(x + x, dtype: f32), dtype: T)\n"));
  EXPECT_FALSE(
      Proved(f + "  = x + x\n", f + "  = if T == f16 then x else x + x\n"));
}

TEST(Equivalence, HoldsForDerivatives) {
  const std::string f = "op f(x: T[n]) -> T[n]\n  where T: float\n";
  EXPECT_FALSE(
      Proved(f + "  = max(x, 0)\n", f + "  = max(x, 0) @tie(first)\n"));
}

// The slope of min(x, 1) is not that of x where x is a NaN; that of the
// exponential is one then, whatever it is multiplied by.
TEST(Equivalence, IsDecidedForNumbersAndForNaN) {
  const std::string f = "op f(x: T[n]) -> T[n]\n  where T: float\n";
  EXPECT_TRUE(Proved(f + "  = select(x > 0, x, expm1(min(x, 0) @tie(first)))\n",
                     f + "  = select(x > 0, x, expm1(min(x, 1)))\n"));
  EXPECT_FALSE(
      Proved(f + "  = select(x > 0, x, expm1(min(x, 0) @tie(first)))\n",
             f + "  = select(x > 0, x, expm1(min(x, -1)))\n"));
  EXPECT_FALSE(Proved(f + "  = select(x > 0, x, min(x, 1))\n",
                      f + "  = select(x > 0, x, select(x <= 0, x, 1))\n"));
  EXPECT_FALSE(Proved(f + "{\n  let a = select(x > 0, x, min(x, 1))\n  "
                          "reduce_sum(a, axes: [0], "
                          "keepdims: true) + x\n}\n",
                      f + "{\n  let a = select(x > 0, x, x)\n  reduce_sum(a, "
                          "axes: [0], keepdims: "
                          "true) + x\n}\n"));
}

// Where a maximum is of integers, or has a derivative of its own.
TEST(Equivalence, HoldsForTiesWithoutDerivatives) {
  const std::string f = "op f(x: T[n]) -> T[n]\n  where T: float\n";
  const auto with = [&](const std::string& tie) {
    return f + "{\n  max(x, 0)" + tie + "\n  jvp x = 2 * dx\n}\n";
  };
  EXPECT_TRUE(Proved(with(""), with(" @tie(first)")));
}

TEST(Equivalence, HasNoTiesOfIntegers) {
  const auto differ = [](const std::string& left, const std::string& right) {
    const std::string f =
        "language 1\n\nop f(x: T[n], i: i64[n], *, p: real = 1) -> T[n]\n"
        "  where T: float\n  = p * x * convert(1 + max(i, 1)";
    const auto context = std::make_shared<Context>();
    const auto a = Load(f + left + "\n", context);
    const auto b = Load(f + right + "\n", context);
    return a != nullptr && b != nullptr &&
           DifferInTiesWithoutSlopes(*a, *b, *a->Find("f"));
  };
  const std::string end = ", dtype: T)";
  EXPECT_TRUE(differ(end, " @tie(first)" + end));
  EXPECT_FALSE(differ(end, end));
  EXPECT_FALSE(differ(end + " * max(x, 1)", end + " * max(x, 1) @tie(first)"));
}

// A float that depends on no input has no slope, and one that a whole number is
// made of passes none on.
TEST(Equivalence, HasNoTiesWithoutSlopes) {
  const auto differ = [](const std::string& type, const std::string& body) {
    const auto text = [&](const std::string& tie) {
      return "language 1\n\nop f(x: T[n]) -> " + type +
             "[n]\n  where T: float\n  = " +
             absl::StrReplaceAll(body, {{"@", tie}}) + "\n";
    };
    const auto context = std::make_shared<Context>();
    const auto a = Load(text(""), context);
    const auto b = Load(text(" @tie(first)"), context);
    return a != nullptr && b != nullptr &&
           DifferInTiesWithoutSlopes(*a, *b, *a->Find("f"));
  };
  EXPECT_TRUE(differ("T", "x * max(convert(iota(n), dtype: T), 1)@"));
  EXPECT_TRUE(differ("i64", "convert(max(x, 1)@, dtype: i64)"));
  EXPECT_TRUE(differ("T", "x * nograd(max(x, 1)@)"));
  EXPECT_FALSE(differ("T", "x * max(x, 1)@"));
}

// At one number alone the two compare otherwise.
TEST(Equivalence, OfStrictnessIsDecidedAtTheNumber) {
  const auto equal = [](const std::string& more, const std::string& error) {
    const auto text = [&](const std::string& comparison) {
      return "language 1\n\nop f(x: T[n], *, p: real = 1" + more +
             ") -> T[n]\n  where T: float\n" + error + "  = if p " +
             comparison + " 0 then x else -x\n";
    };
    const auto context = std::make_shared<Context>();
    const auto a = Load(text(">"), context);
    const auto b = Load(text(">="), context);
    if (a == nullptr || b == nullptr) return false;
    const Item& f = *a->Find("f");
    return AreEqualAtNumber(*a, *b, f,
                            *f.body->statements[0].equation.value->children[0]);
  };
  const std::string refused = "  error value \"p is 0\" if p == 0\n";
  EXPECT_TRUE(equal("", refused));
  EXPECT_FALSE(equal("", ""));
  EXPECT_FALSE(equal(", q: real = 1",
                     "  error value \"p is 0\" if p == 0 and q == 1\n"));
}

// Whether a comparison or a maximum, the first in the body, is proved to be as
// good as the other.
bool AreEqualWhereCompared(const std::string& body, const std::string& other) {
  const std::string f =
      "language 1\n\nop f(x: T[n]) -> T[n]\n  where T: float\n";
  const auto context = std::make_shared<Context>();
  const auto a = Load(f + body, context);
  const auto b = Load(f + other, context);
  if (a == nullptr || b == nullptr) return false;
  const Item& item = *a->Find("f");
  ExprPtr compared = item.body->statements[0].equation.value;
  while (compared->kind == ExprKind::kCall && compared->text == "select") {
    compared = compared->children[0];
  }
  return AreEqualWhereSidesAre(*a, *b, item, *compared);
}

// Both branches are the same where the operand is the number.
TEST(Equivalence, OfStrictnessIsDecidedWhereTheSidesAreEqual) {
  // The slopes are 3 and 1.
  EXPECT_FALSE(AreEqualWhereCompared("  = select(x > 1, x * x * x, x)\n",
                                     "  = select(x >= 1, x * x * x, x)\n"));
  EXPECT_TRUE(AreEqualWhereCompared("  = select(x > 2, nograd(x), 2)\n",
                                    "  = select(x >= 2, nograd(x), 2)\n"));
  EXPECT_TRUE(AreEqualWhereCompared("  = select(abs(x) > 2, 4, 2 + 2)\n",
                                    "  = select(abs(x) >= 2, 4, 2 + 2)\n"));
  // -x differs at -2.
  EXPECT_FALSE(
      AreEqualWhereCompared("  = select(abs(x) > 2, nograd(x), 2)\n",
                            "  = select(abs(x) >= 2, nograd(x), 2)\n"));
  // The sign of a zero.
  EXPECT_FALSE(AreEqualWhereCompared("  = select(x > 0, 0, nograd(x))\n",
                                     "  = select(x >= 0, 0, nograd(x))\n"));
  EXPECT_FALSE(AreEqualWhereCompared("  = select(x > 0, x, -x)\n",
                                     "  = select(x >= 0, x, -x)\n"));
}

TEST(Equivalence, OfTiesIsDecidedWhereTheSidesAreEqual) {
  EXPECT_FALSE(
      AreEqualWhereCompared("  = max(x, 0)\n", "  = max(x, 0) @tie(first)\n"));
}

// Not all values of a number can be tried.
TEST(Equivalence, IsProvedWhereNumbersHaveNoPart) {
  const std::string f =
      "op f(x: T[n], *, p: real = 1) -> T[n]\n  where T: float\n";
  EXPECT_FALSE(Proved(f + "  = p * x\n", f + "  = p * (x * 1)\n"));
  const auto with = [&](const std::string& square) {
    return f + "{\n  let a = " + square +
           "\n  if p == 3 then a else p * a\n}\n";
  };
  EXPECT_TRUE(Proved(with("x * x"), with("x * (x * 1)")));
  EXPECT_FALSE(Proved(with("x * x"), with("x * x * x")));
  // Seen where p is 3 alone, which is tried since the rule asks for it.
  EXPECT_FALSE(Proved(f + "  = if p == 3 then x * x else x\n",
                      f + "  = if p == 3 then x * x * x else x\n"));
}

TEST(Equivalence, OfRewritesIsThatOfTheDTypesAtWhichTheyType) {
  const auto context = std::make_shared<Context>();
  const auto load = [&](const char* sides, const char* dtypes) {
    return Load(absl::StrCat("language 1\n\nrewrite mine: ", sides,
                             " where x: ", dtypes, "\n"),
                context);
  };
  const auto shifts = load("shift_left(x, 0) => x", "int");
  const Item& item = *shifts->FindRewrite("mine");
  // Nothing but integers is shifted.
  EXPECT_TRUE(AreEqualRewrites(*shifts,
                               *load("shift_left(x, 0) => x", "number"), item));
  EXPECT_FALSE(AreEqualRewrites(
      *shifts, *load("shift_left(x, 0) => 0", "number"), item));
  EXPECT_FALSE(AreEqualRewrites(*load("x * 1 => x", "int"),
                                *load("x * 1 => x", "number"), item));
}

TEST(Equivalence, HoldsForPrimitives) {
  const auto proved = [](const std::string& slope) {
    const auto context = std::make_shared<Context>();
    const auto load = [&](const std::string& text) {
      const std::string rules =
          "language 1\n\njvp sin(x) = " + text +
          "\n\njvp cos(x) = -dx * sin(x)\n\n"
          "jvp mul(a, b) = da * b + a * db\n\njvp neg(x) = -dx\n\n"
          "rewrite neg_neg: -(-x) => x\n";
      const LoadResult loaded =
          LoadRules({{"test.rules", rules}}, context, WithTransforms());
      for (const std::string& diagnostic : loaded.diagnostics) {
        ADD_FAILURE() << diagnostic;
      }
      return loaded.rules;
    };
    const auto a = load("dx * cos(x)");
    const auto b = load(slope);
    return a != nullptr && b != nullptr &&
           ProveEquivalent(*a, *b, *a->FindDerivative("sin"), {});
  };
  EXPECT_TRUE(proved("dx * cos(-(-x))"));
  EXPECT_FALSE(proved("dx * nograd(cos(x))"));
}

}  // namespace
}  // namespace cleave
