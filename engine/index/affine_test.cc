#include "engine/index/affine.h"

#include "engine/index/index_testing.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

class AffineTest : public ::testing::Test {
 protected:
  Dim n_ = Dim::Variable("n");
  Index i_{"i", n_}, g_{"g", 3}, k_{"k", 4};
};

TEST_F(AffineTest, ReadsStridesAndOffsets) {
  const auto a = ToAffine(*(i_ * 2 + k_ * 3 - n_ + 1).term);
  ASSERT_TRUE(a.has_value());
  EXPECT_EQ(a->constant, Dim(1) - n_);
  EXPECT_EQ(a->CoefficientOf(i_.index.get()), Dim(2));
  EXPECT_EQ(a->CoefficientOf(k_.index.get()), Dim(3));
  EXPECT_EQ(a->CoefficientOf(g_.index.get()), Dim(0));
  EXPECT_EQ(LeastValue(*a), Dim(1) - n_);
  EXPECT_EQ(GreatestValue(*a), n_ + 8);
}

TEST_F(AffineTest, QuotientsAndRemaindersThatRangesDecide) {
  const Elem whole = g_ * 4 + k_;
  const auto quotient = ToAffine(*(whole / 4).term);
  ASSERT_TRUE(quotient.has_value());
  EXPECT_EQ(quotient->terms.size(), 1);
  EXPECT_EQ(quotient->CoefficientOf(g_.index.get()), Dim(1));
  const auto rest = ToAffine(*(whole % 4).term);
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(rest->CoefficientOf(k_.index.get()), Dim(1));
  EXPECT_FALSE(ToAffine(*(whole / 3).term).has_value());
  EXPECT_FALSE(ToAffine(*(i_ % 4).term).has_value());
}

TEST_F(AffineTest, ProductsOfIndicesAreNone) {
  EXPECT_FALSE(ToAffine(*(i_ * k_).term).has_value());
}

TEST_F(AffineTest, ReadsThroughComprehensions) {
  const Index p("p", n_);
  const Array twice = Comprehension({p}, p * 2);
  const auto a = ToAffine(*twice(i_).term);
  ASSERT_TRUE(a.has_value());
  EXPECT_EQ(a->CoefficientOf(i_.index.get()), Dim(2));
  // Out of range it has no value.
  EXPECT_FALSE(ToAffine(*twice(i_ + 1).term).has_value());
}

TEST_F(AffineTest, DecidesComparisons) {
  EXPECT_EQ(Decide(*(i_ < n_).term), Truth::kTrue);
  EXPECT_EQ(Decide(*(i_ + k_ >= 0).term), Truth::kTrue);
  EXPECT_EQ(Decide(*(k_ > 3).term), Truth::kFalse);
  EXPECT_EQ(Decide(*(k_ == 3).term), Truth::kUnknown);
  EXPECT_EQ(Decide(*(k_ != 4).term), Truth::kTrue);
  EXPECT_EQ(Decide(*(k_ > 3 || i_ >= 0).term), Truth::kTrue);
  EXPECT_EQ(Decide(*(k_ > 2 && i_ < 0).term), Truth::kFalse);
}

TEST_F(AffineTest, FactsProveWhatTheyImply) {
  const Elem shifted = i_ - k_;
  const auto a = ToAffine(*shifted.term);
  ASSERT_TRUE(a.has_value());
  EXPECT_FALSE(ProvedNonNegative(*a));
  EXPECT_TRUE(ProvedNonNegative(*a, FactsOf(*(shifted >= 0).term)));
  EXPECT_TRUE(ProvedNonNegative(*a, FactsOf(*(k_ < i_).term)));
  EXPECT_FALSE(ProvedNonNegative(*a, FactsOf(*(i_ <= k_).term)));
}

TEST_F(AffineTest, ProvesRangesOfComputedElements) {
  IndexTest t(/*symbolic=*/true, 1);
  const Array at = t.Input("at", DType::kI64, {t.Extent("n", 3)});
  const Elem place = at(i_);
  const auto in_range = [](const Elem& element, const Dim& extent) {
    const RangeProof proof = ProveRange(*element.term, extent);
    return proof.not_below && proof.not_above;
  };
  EXPECT_TRUE(in_range(place % n_, n_));
  EXPECT_TRUE(in_range(place % 3, 4));
  EXPECT_FALSE(in_range(place % 4, 3));
  EXPECT_FALSE(in_range(place, n_));
  EXPECT_TRUE(in_range(Select(place < 0, place % 3, k_), 4));
}

TEST_F(AffineTest, BeyondTheLimitsNothingIsKnown) {
  Elem e = i_;
  for (int d = 0; d < 4; ++d) e = e * (int{1} << 30);
  EXPECT_FALSE(ToAffine(*e.term).has_value());
}

// Terms share subterms: 2^60 paths, 60 terms.
TEST_F(AffineTest, SharedTermsAreReadOnce) {
  Elem e = k_;
  Elem c = k_ < i_;
  for (int d = 0; d < 60; ++d) {
    e = e - e + k_;
    c = c && c;
  }
  const auto a = ToAffine(*e.term);
  ASSERT_TRUE(a.has_value());
  EXPECT_EQ(a->CoefficientOf(k_.index.get()), Dim(1));
  EXPECT_EQ(Conjuncts(c.term).size(), 1);
  EXPECT_EQ(Decide(*c.term), Truth::kUnknown);
}

}  // namespace
}  // namespace cleave
