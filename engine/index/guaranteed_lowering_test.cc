// Each guaranteed lowering of index notation, pinned by the structured
// primitives of the graph. Every expression is checked against nested loops,
// too.

#include <limits>
#include <string>
#include <vector>

#include "engine/index/index_testing.h"
#include "engine/index/lower_index.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

constexpr DType kF = DType::kF64;
constexpr DType kI = DType::kI64;

// Extents are variables unless the test says otherwise.
class Lowering : public ::testing::Test {
 protected:
  IndexTest t_{/*symbolic=*/true, /*seed=*/7};
  Dim a_ = t_.Extent("a", 2), b_ = t_.Extent("b", 3), c_ = t_.Extent("c", 4);
  Index i_{"i", a_}, j_{"j", b_}, k_{"k", c_};
};

TEST_F(Lowering, IdentityIsNothing) {
  const Array x = t_.Input("x", kF, {a_, b_});
  t_.Check({i_, j_}, x(i_, j_));
  EXPECT_EQ(t_.Structure(), "");
}

TEST_F(Lowering, PermutationIsATranspose) {
  const Array x = t_.Input("x", kF, {a_, b_});
  t_.Check({j_, i_}, x(i_, j_));
  EXPECT_EQ(t_.Structure(), "transpose");
}

TEST_F(Lowering, ConstantIndexIsASlice) {
  const Array x = t_.Input("x", kF, {a_, 3});
  t_.Check({i_}, x(i_, 1));
  EXPECT_EQ(t_.Structure(), "slice reshape");
}

TEST_F(Lowering, OffsetIsASlice) {
  const Array x = t_.Input("x", kF, {a_ + 2});
  t_.Check({i_}, x(i_ + 1));
  EXPECT_EQ(t_.Structure(), "slice");
}

TEST_F(Lowering, FewerIndicesThanTheAxisAreASlice) {
  const Array x = t_.Input("x", kF, {a_, c_});
  const Index k("k", 2);
  t_.Check({i_, k}, x(i_, k));
  EXPECT_EQ(t_.Structure(), "slice");
}

TEST_F(Lowering, NegativeStrideIsASliceReversed) {
  const Array x = t_.Input("x", kF, {a_ * 2 + 2});
  const Index i("i", a_ + 1);
  t_.Check({i}, x(Size(a_ * 2) + 1 - i * 2));
  EXPECT_EQ(t_.Structure(), "slice reverse");
}

TEST_F(Lowering, ShiftWithFillIsAPad) {
  const Array x = t_.Input("x", kF, {a_});
  t_.Check({i_}, x(i_ - 1).Or(0));
  EXPECT_EQ(t_.Structure(), "pad_general");
}

TEST_F(Lowering, FillThatIsNeverReadLeavesNothing) {
  const Array x = t_.Input("x", kF, {a_});
  t_.Check({i_}, x(i_).Or(5));
  EXPECT_EQ(t_.Structure(), "");
}

TEST_F(Lowering, DiagonalIsAGather) {
  const Array x = t_.Input("x", kF, {a_, a_});
  t_.Check({i_}, x(i_, i_));
  EXPECT_EQ(t_.Structure(), "reshape gather");
}

TEST_F(Lowering, ComputedIndexIsAGather) {
  const Array w = t_.Input("w", kF, {5, b_});
  const Array at = t_.Input("at", kI, {a_}, 0, 4);
  t_.Check({i_, j_}, w(at(i_), j_));
  EXPECT_EQ(t_.Structure(), "reshape gather");
}

TEST_F(Lowering, ComputedIndexOfEachRowIsABatchedGather) {
  const Array z = t_.Input("z", kF, {a_, 5});
  const Array at = t_.Input("at", kI, {a_}, 0, 4);
  t_.Check({i_}, z(i_, at(i_)).Or(0));
  EXPECT_EQ(t_.Structure(), "reshape gather");
}

TEST_F(Lowering, SeveralComputedIndicesAreOneGather) {
  const Array x = t_.Input("x", kF, {5, 5, b_});
  const Array p = t_.Input("p", kI, {a_}, 0, 4);
  const Array q = t_.Input("q", kI, {a_}, 0, 4);
  t_.Check({i_, j_}, x(p(i_), q(i_), j_));
  EXPECT_EQ(t_.Structure(), "reshape reshape concatenate gather");
}

// No check is left where a computed index is proved to be in range.
TEST_F(Lowering, GatherAtARemainderNeedsNoCheck) {
  const Array x = t_.Input("x", kF, {c_});
  const Index i("i", c_ + 3);
  t_.Check({i}, x((i - 2) % c_));
  EXPECT_THAT(t_.Structure(), ::testing::EndsWith("reshape gather"));
  EXPECT_THAT(t_.GraphText(), ::testing::HasSubstr("mode: \"fill\""));
}

TEST_F(Lowering, GatherAtAMaximumNeedsNoCheck) {
  const Array x = t_.Input("x", kF, {a_, 3});
  const Index i("i", a_), j("j", 3);
  const Array at = Comprehension(
      {i_}, Reduce(Reduction::kArgmax, {j}, x(i_, j), std::nullopt));
  t_.Check({i}, x(i, at(i)));
  EXPECT_EQ(t_.Structure(), "argmax reshape gather");
  EXPECT_THAT(t_.GraphText(), ::testing::HasSubstr("mode: \"fill\""));
}

TEST_F(Lowering, SumIsAReduction) {
  const Array x = t_.Input("x", kF, {a_, b_, c_});
  t_.Check({j_}, Sum({i_, k_}, x(i_, j_, k_)));
  EXPECT_EQ(t_.Structure(), "reduce_sum");
}

TEST_F(Lowering, SumOfProductIsAContraction) {
  const Array x = t_.Input("x", kF, {a_, b_}), y = t_.Input("y", kF, {b_, c_});
  t_.Check({i_, k_}, Sum({j_}, x(i_, j_) * y(j_, k_)));
  EXPECT_EQ(t_.Structure(), "dot_general");
}

TEST_F(Lowering, SharedOuterIndexIsABatchAxis) {
  const Array x = t_.Input("x", kF, {a_, b_}), y = t_.Input("y", kF, {b_, a_});
  t_.Check({i_}, Sum({j_}, x(i_, j_) * y(j_, i_)));
  EXPECT_EQ(t_.Structure(), "dot_general");
}

TEST_F(Lowering, FactorOfOneIsLeftOut) {
  const Array x = t_.Input("x", kF, {a_}), y = t_.Input("y", kF, {a_});
  t_.Check({}, Sum({i_}, Num(1, kF) * x(i_) * y(i_)));
  EXPECT_EQ(t_.Structure(), "dot_general");
}

TEST_F(Lowering, SquareIsNoContraction) {
  const Array x = t_.Input("x", kF, {a_, b_});
  const Elem e = x(i_, j_);
  t_.Check({i_}, Sum({j_}, e * e));
  EXPECT_EQ(t_.Structure(), "reduce_sum");
}

// Scaled before or after the sum: floats are strict, so where it is written.
TEST_F(Lowering, ScaleStaysWhereItIsWritten) {
  const Array x = t_.Input("x", kF, {a_, b_}), s = t_.Input("s", kF, {a_});
  t_.Check({i_}, Sum({j_}, x(i_, j_) * s(i_)));
  EXPECT_EQ(t_.Structure(), "broadcast_in_dim reduce_sum");
}

TEST_F(Lowering, GroupsAreABatchAxisOfAContraction) {
  const Dim e = 5;  // h < 6 in groups of 3
  const Array q = t_.Input("q", kF, {6, a_, e});
  const Array k = t_.Input("k", kF, {2, b_, e});
  const Index h("h", 6), ie("e", e);
  t_.Check({h, i_, j_}, Sum({ie}, q(h, i_, ie) * k(h / 3, j_, ie)));
  // Split into (group, share), contracted, and joined again.
  EXPECT_EQ(t_.Structure(), "reshape dot_general reshape");
}

TEST_F(Lowering, QuotientsAndRemaindersThatDivideAreReshapes) {
  const Array x = t_.Input("x", kF, {a_, b_});
  const Array y = t_.Input("y", kF, {4});
  const Index i("i", a_ * 4);
  t_.Check({i, j_}, x(i / 4, j_) + y(i % 4));
  EXPECT_EQ(t_.Structure(), "broadcast_in_dim broadcast_in_dim reshape");
}

TEST_F(Lowering, RunningNumberIsAReshape) {
  const Array x = t_.Input("x", kF, {a_ * b_});
  t_.Input("y", kF, {a_, b_});
  t_.Check({j_, i_}, x(i_ * b_ + j_));
  EXPECT_EQ(t_.Structure(), "reshape transpose");
}

TEST_F(Lowering, PoolingIsWindows) {
  const Dim h = t_.Extent("h", 7);
  const Array x = t_.Input("x", kF, {a_, h});
  const Index p("p", Dim::FloorDiv(h - 1, 2) + 1), k("k", 3);
  t_.Check(
      {i_, p},
      Max({k},
          x(i_, p * 2 + k - 1).Or(-std::numeric_limits<double>::infinity())));
  EXPECT_EQ(t_.Structure(), "windows reduce_max");
}

// A read of the whole axis in steps of the window is a reshape; one that leaves
// a rest is windows.
TEST(NonOverlappingPooling, IsAReshapeOfAWholeAxis) {
  for (const int64_t h : {6, 7}) {
    IndexTest t(/*symbolic=*/false, 1);
    const Array x = t.Input("x", kF, {h});
    const Index p("p", 3), k("k", 2);
    t.Check({p}, Max({k}, x(p * 2 + k)));
    EXPECT_EQ(t.Structure(),
              h == 6 ? "reshape reduce_max" : "windows reduce_max");
  }
}

// The window is one index, taken apart by // and %.
TEST_F(Lowering, TwoDimensionalPoolingIsWindows) {
  const Dim h = t_.Extent("h", 4), w = t_.Extent("w", 5);
  const Array x = t_.Input("x", kF, {a_, h, w});
  const Index p("p", h - 1), q("q", w - 1), m("m", 4);
  t_.Check({i_, p, q}, Max({m}, x(i_, p + m / 2, q + m % 2)));
  EXPECT_EQ(t_.Structure(), "windows reduce_max");
}

// max_pool2d_with_indices: places through lets, under a condition.
TEST_F(Lowering, PoolingUnderAConditionIsWindows) {
  const Dim h = t_.Extent("h", 4);
  const Array x = t_.Input("x", kF, {a_, h});
  const Index rp("p", h), rm("m", 3), p("p", h), m("m", 3), op("p", h),
      om("m", 3);
  const Array r = Comprehension({rp, rm}, rp + rm - 1);
  const Array ok = Comprehension({op, om}, r(op, om) >= 0 && r(op, om) < h);
  t_.Check({i_, p}, Max({m}, x(i_, r(p, m)), ok(p, m)));
  const std::string structure = t_.Structure();
  EXPECT_THAT(structure, ::testing::HasSubstr("windows"));
  EXPECT_THAT(structure, ::testing::Not(::testing::HasSubstr("gather")));
}

TEST_F(Lowering, ProductWithWindowsIsAConvolution) {
  const Dim h = t_.Extent("h", 7);
  const Array x = t_.Input("x", kF, {a_, b_, h});
  const Array w = t_.Input("w", kF, {c_, b_, 3});
  const Index p("p", Dim::FloorDiv(h - 1, 2) + 1), q("q", 3);
  t_.Check({i_, k_, p},
           Sum({j_, q}, w(k_, j_, q) * x(i_, j_, p * 2 + q - 1).Or(0)));
  EXPECT_EQ(t_.Structure(), "conv");
}

TEST(Convolution, In2dWithGroups) {
  IndexTest t(/*symbolic=*/false, 3);
  const Array x = t.Input("x", kF, {2, 4, 5, 6});
  const Array w = t.Input("w", kF, {6, 2, 2, 3});
  const Index n("n", 2), o("o", 6), p("p", 2), q("q", 4), i("i", 2), k("k", 2),
      l("l", 3);
  t.Check(
      {n, o, p, q},
      Sum({i, k, l},
          w(o, i, k, l) * x(n, o / 3 * 2 + i, p * 2 + k, q * 2 + l - 2).Or(0)));
  // The splits into groups and back cancel.
  EXPECT_EQ(t.Structure(), "conv");
}

TEST_F(Lowering, EqualityWithAnOuterIndexIsAScatter) {
  const Array f = t_.Input("f", kI, {b_}, 0, 4);
  const Array x = t_.Input("x", kF, {b_, c_});
  const Index n("n", 5);
  t_.Check({n, k_}, Sum({j_}, x(j_, k_), f(j_) == n));
  EXPECT_EQ(t_.Structure(), "reshape broadcast_in_dim scatter");
}

TEST_F(Lowering, MaximumUnderAnEqualityIsAScatter) {
  const Array f = t_.Input("f", kI, {b_}, 0, 4);
  const Array x = t_.Input("x", kF, {b_});
  const Index n("n", 5);
  t_.Check({n}, Max({j_}, x(j_), n == f(j_) && x(j_) > 0));
  const std::string structure = t_.Structure();
  EXPECT_THAT(structure, ::testing::HasSubstr("scatter"));
  EXPECT_THAT(structure, ::testing::Not(::testing::HasSubstr("reduce")));
}

TEST_F(Lowering, CountOfEachClassIsAScatter) {
  const Array f = t_.Input("f", kI, {a_, b_}, 0, 4);
  const Index n("n", 5);
  t_.Check({n}, Sum({i_, j_}, Num(1, kI), f(i_, j_) == n));
  EXPECT_EQ(t_.Structure(),
            "reshape broadcast_in_dim broadcast_in_dim scatter");
}

struct ScanCase {
  Reduction reduction;
  const char* primitive;
};

class ScanLowering : public ::testing::TestWithParam<ScanCase> {};

TEST_P(ScanLowering, ReductionUpToAnOuterIndexIsAScan) {
  IndexTest t(/*symbolic=*/true, 5);
  const Dim a = t.Extent("a", 3), n = t.Extent("n", 4);
  const Array x = t.Input("x", kF, {a, n});
  const Index i("i", a), k("k", n), j("j", n);
  t.Check({i, k}, Reduce(GetParam().reduction, {j}, x(i, j), j <= k));
  const std::string structure = t.Structure();
  EXPECT_THAT(structure, ::testing::EndsWith(GetParam().primitive));
  EXPECT_THAT(structure, ::testing::Not(::testing::HasSubstr("reduce")));
}

TEST_P(ScanLowering, ExclusiveFromTheEndIsAScanShifted) {
  IndexTest t(/*symbolic=*/true, 5);
  const Dim n = t.Extent("n", 4);
  const Array x = t.Input("x", kF, {n});
  const Index k("k", n), j("j", n);
  t.Check({k}, Reduce(GetParam().reduction, {j}, x(j), j > k));
  const std::string structure = t.Structure();
  EXPECT_THAT(structure, ::testing::EndsWith(std::string(GetParam().primitive) +
                                             " pad_general"));
  EXPECT_THAT(structure, ::testing::Not(::testing::HasSubstr("reduce")));
}

INSTANTIATE_TEST_SUITE_P(
    Reductions, ScanLowering,
    ::testing::Values(ScanCase{Reduction::kSum, "linear_scan"},
                      ScanCase{Reduction::kProd, "linear_scan"},
                      ScanCase{Reduction::kMax, "cumulative_max"},
                      ScanCase{Reduction::kMin, "cumulative_min"}));

TEST_F(Lowering, DecidedConditionsLeaveNothing) {
  const Array x = t_.Input("x", kF, {a_, b_});
  t_.Check({i_}, Sum({j_}, x(i_, j_), j_ < b_ && i_ >= 0));
  EXPECT_EQ(t_.Structure(), "reduce_sum");
}

TEST_F(Lowering, ConditionThatNeverHoldsIsTheIdentity) {
  const Array x = t_.Input("x", kF, {a_, b_});
  t_.Check({i_}, Sum({j_}, x(i_, j_), j_ < 0));
  EXPECT_EQ(t_.Structure(), "broadcast_in_dim");
}

TEST_F(Lowering, OtherConditionsAreMasks) {
  const Array x = t_.Input("x", kF, {a_, b_}), y = t_.Input("y", kF, {b_});
  t_.Check({i_}, Sum({j_}, x(i_, j_), x(i_, j_) > y(j_)));
  EXPECT_EQ(t_.Structure(), "broadcast_in_dim broadcast_in_dim reduce_sum");
}

// Errors that extents decide are found without evaluating anything.
TEST(LoweringErrors, ReadThatIsNeverInRange) {
  IndexTest t(/*symbolic=*/false, 1);
  const Array x = t.Input("x", kF, {3});
  const Index i("i", 2);
  const absl::StatusOr<Tensor> y = t.Run(Comprehension({i}, x(i + 2)));
  EXPECT_EQ(y.status().code(), absl::StatusCode::kOutOfRange) << y.status();
  EXPECT_THAT(std::string(y.status().message()),
              ::testing::HasSubstr("axis 0 of extent 3 is read from 2 to 3"));
}

TEST(LoweringErrors, ArgmaxOfNothing) {
  IndexTest t(/*symbolic=*/false, 1);
  const Array x = t.Input("x", kF, {3, 0});
  const Index i("i", 3), j("j", 0);
  const absl::StatusOr<Tensor> y = t.Run(Comprehension(
      {i}, Reduce(Reduction::kArgmax, {j}, x(i, j), std::nullopt)));
  EXPECT_EQ(y.status().code(), absl::StatusCode::kOutOfRange) << y.status();
}

TEST(LoweringErrors, ReadUnderAFalseConditionIsNone) {
  for (const int64_t place : {1, 7}) {
    IndexTest t(/*symbolic=*/true, 1);
    const Dim n = t.Extent("n", 3);
    const Array x = t.Input("x", kF, {n});
    const Array at =
        t.Input("at", {n}, Tensor::FromInts(kI, {3}, {0, place, 9}));
    const Index j("j", n);
    const absl::StatusOr<Tensor> y =
        t.Run(Comprehension({}, Sum({j}, x(at(j)), at(j) != 9)));
    EXPECT_EQ(y.ok(), place == 1) << y.status();
    if (place == 7) {
      EXPECT_EQ(y.status().code(), absl::StatusCode::kOutOfRange);
    }
  }
}

// A check under the outer condition makes the inner element depend on what the
// inner scan or scatter would make.
TEST(LoweringErrors, ChecksOfNestedReductions) {
  for (const int64_t greatest : {2, 5}) {
    for (const bool scan : {false, true}) {
      IndexTest t(/*symbolic=*/true, 1);
      const Dim n = t.Extent("n", 3);
      const Array x = t.Input("x", kF, {n});
      const Array at = t.Input("at", kI, {n}, 0, greatest);
      const Array f = t.Input("f", kI, {n}, 0, 2);
      const Index i("i", n), j("j", n);
      const Elem inner = Sum({j}, x(at(j)), scan ? j <= i : f(j) == i);
      t.Check({}, Sum({i}, inner, f(i) > 0));
    }
  }
}

// Masked elements lose against the lowest value, and against NaN.
TEST(ConditionalArgmax, FindsWhatCounts) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>& values :
       {std::vector<double>{5, -inf, -inf}, std::vector<double>{5, 1, nan},
        std::vector<double>{nan, 2, 2}}) {
    IndexTest t(/*symbolic=*/true, 1);
    const Dim n = t.Extent("n", 3);
    const Array x = t.Input("x", {n}, Tensor::FromDoubles(kF, {3}, values));
    const Index j("j", n);
    t.Check({}, Reduce(Reduction::kArgmax, {j}, x(j), j > 0));
  }
}

}  // namespace
}  // namespace cleave
