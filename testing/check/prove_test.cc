// Proofs by enclosures of a reference, and a rule that agrees with a reference
// of 256 bits and is wrong.

#include "testing/check/reference/prove.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/check_testing.h"

namespace cleave {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

// Encloses 1 in [1 - 2^-known, 1 + 2^-known].
EncloseAt One(int known_of_256) {
  return [known_of_256](int bits) {
    IntervalTensor tensor;
    tensor.shape = {1};
    RealInterval& one = tensor.intervals.emplace_back(1.0, bits);
    const int known = known_of_256 * bits / 256;
    Real width(bits);
    mpfr_set_ui_2exp(width.get(), 1, -known, MPFR_RNDN);
    mpfr_sub(one.low(), one.low(), width.get(), MPFR_RNDD);
    mpfr_add(one.high(), one.high(), width.get(), MPFR_RNDU);
    return std::vector<IntervalTensor>{tensor};
  };
}

Proved ProveWithin(const EncloseAt& enclose, double got, double bound) {
  const auto error = [got](const Real& want) {
    return std::abs(want.ToDouble() - got);
  };
  return ProveError(enclose, {256, 1024}, 0, 0, error, got, bound);
}

TEST(Prove, DecidesWhereAllOfTheEnclosureAgrees) {
  EXPECT_EQ(ProveWithin(One(200), 1.5, 1).proof, Proof::kAgrees);
  EXPECT_EQ(ProveWithin(One(200), 1.5, 0.25).proof, Proof::kDiffers);
  // 20 bits of 256, 80 of 1024: the second precision decides.
  EXPECT_EQ(ProveWithin(One(20), 1.5, 0.25).proof, Proof::kDiffers);
  const Proved wide = ProveWithin(One(5), 1.5, 0.25);
  EXPECT_EQ(wide.proof, Proof::kOpen);
  EXPECT_EQ(wide.why, "an enclosure is too wide");
}

TEST(Prove, SaysWhatLeavesItOpen) {
  const auto undecided = [](int) {
    return absl::StatusOr<std::vector<IntervalTensor>>(
        UndecidedError("an order of what overlaps"));
  };
  const Proved order = ProveWithin(undecided, 1, 1);
  EXPECT_EQ(order.proof, Proof::kOpen);
  EXPECT_EQ(order.why, "an order of what overlaps");
  const auto element = [](int bits) {
    IntervalTensor tensor;
    tensor.shape = {1};
    tensor.intervals.push_back(RealInterval::Undecided("a pole", bits));
    return std::vector<IntervalTensor>{tensor};
  };
  EXPECT_EQ(ProveWithin(element, 1, 1).why, "a pole");
}

Verdict RoundingOf(const std::string& text, const std::string& op) {
  CheckOptions options;
  options.ops = op;
  options.layers = {Layer::kRounding};
  const CheckReport report = CheckedRules(
      LoadText("test.rules", absl::StrCat("language 1\n\n", text)), options);
  EXPECT_EQ(report.ops.size(), 1u);
  return report.ops.empty() ? Verdict()
                            : report.ops[0].layers.at(Layer::kRounding);
}

TEST(Prove, NotesHowManyWorstPointsAreProved) {
  const Verdict verdict = RoundingOf(R"(
op twice_exp(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = 2 * exp(x[s..])
  accuracy T within 2 ulp
{
  2 * exp(x)
}
)",
                                     "twice_exp");
  EXPECT_EQ(verdict.kind, VerdictKind::kAgrees) << verdict.ToString();
  EXPECT_THAT(verdict.notes,
              Contains("reference proved by intervals at 4 of 4 worst points"));
}

TEST(Prove, ProvesARefutation) {
  const Verdict verdict = RoundingOf(R"(
op off_log1p(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = log(1 + x[s..])
  accuracy T within 4 ulp
{
  log(1 + x)
}
)",
                                     "off_log1p");
  EXPECT_EQ(verdict.kind, VerdictKind::kDisagrees) << verdict.ToString();
  EXPECT_THAT(verdict.notes, Each(Not(HasSubstr("not proved"))));
}

// At 256 bits the spec is a multiple of 1024, to which the body is near: points
// agree, and both are wrong.
TEST(Prove, RefutesAnAgreementWithAWrongReference) {
  const Verdict verdict = RoundingOf(R"(
op stepped(x: T[S..]) -> T[S..]
  where T: float
  spec y[s..] = (x[s..] + 1e80) - 1e80
  accuracy T within 8 ulp
{
  let steps = round_nearest_even(x / 1024) * 1024 * 1.0000000000000009
  select(abs(x) > 600, select(abs(x) < 10000, steps, x), x)
}
)",
                                     "stepped");
  ASSERT_EQ(verdict.kind, VerdictKind::kDisagrees) << verdict.ToString();
  EXPECT_GT(verdict.counterexample->ulp, 8);
  EXPECT_THAT(verdict.counterexample->inputs, HasSubstr("x = "));
}

// Constants are as long as the reference: a rounded pi is no multiple of pi,
// whose sine is 0. A difference stays at every precision.
TEST(Prove, TakesConstantsAtEachPrecision) {
  const auto reals = [](const char* body) {
    const CheckReport report = CheckText("test.rules",
                                         absl::Substitute(R"(language 1

op checked(x: T[n]) -> T[n]
  where T: float
  domain abs(x) < 100
  spec y[i] = 0 * x[i]
  accuracy T within 100 eps * 100
  = $0
)",
                                                          body),
                                         "checked");
    EXPECT_EQ(report.ops.size(), 1u);
    return report.ops.empty() ? VerdictKind::kNotChecked
                              : report.ops[0].layers.at(Layer::kReals).kind;
  };
  for (const char* body :
       {"sin(pi * floor(x))", "cos(pi * (floor(x) + 1 / 2))", "x * sin(2 * pi)",
        "x * (sqrt(2) * sqrt(3) - sqrt(6))"}) {
    EXPECT_EQ(reals(body), VerdictKind::kAgrees) << body;
  }
  for (const char* body :
       {"sin(pi * floor(x)) + 1e-80 * x", "x * (sin(2 * pi) + 1e-80)",
        "sin(floor(x) * "
        "3.14159265358979323846264338327950288419716939937510582097494459)"}) {
    EXPECT_EQ(reals(body), VerdictKind::kDisagrees) << body;
  }
}

// exp(1e10 x) is beyond all exponents, and the quotient is e.
TEST(Prove, LeavesOpenWhereTheReferenceLeavesItsRange) {
  const CheckReport report = CheckText("test.rules", R"(language 1

op checked(x: T[n]) -> T[n]
  where T: float
  domain abs(x) < 100
  spec y[i] = exp(1e10 * x[i] + 1) / exp(1e10 * x[i])
  accuracy T within 2 ulp
  = exp(1 + 0 * x)
)",
                                       "checked");
  ASSERT_EQ(report.ops.size(), 1u);
  EXPECT_NE(report.ops[0].layers.at(Layer::kReals).kind,
            VerdictKind::kDisagrees)
      << report.ToString();
}

}  // namespace
}  // namespace cleave
