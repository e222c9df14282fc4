#include "ops/static_value.h"

#include "absl/hash/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

TEST(StaticValue, KindsAreDistinct) {
  const std::vector<StaticValue> values = {
      StaticValue(),
      true,
      1,
      StaticValue(Exact(1)),
      "f32",
      DType::kF32,
      StaticValue::Ints(std::vector<int>{1}),
      StaticValue(StaticValue::Record{{"a", 1}}),
      StaticValue(Region{nullptr, "r"})};
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(values[i].kind()), i);
    for (size_t j = 0; j < values.size(); ++j) {
      EXPECT_EQ(values[i] == values[j], i == j) << i << " " << j;
    }
  }
}

TEST(StaticValue, RealZerosAreDistinct) {
  const StaticValue zero(Exact::FromDouble(-0.0));
  EXPECT_EQ(zero, StaticValue(*Exact::Parse("-0.0")));
  EXPECT_NE(zero, StaticValue(Exact(0)));
  EXPECT_NE(zero.Hash(), StaticValue(Exact(0)).Hash());
  EXPECT_EQ(zero.ToString(), "-0.0");
  EXPECT_EQ(StaticValue(Exact(0)).ToString(), "0.0");
  EXPECT_NE(StaticValue(StaticValue::List{zero}),
            StaticValue(StaticValue::List{Exact(0)}));
}

TEST(StaticValue, EqualValuesHashAlike) {
  const Dim n = Dim::Variable("n");
  const std::pair<StaticValue, StaticValue> kPairs[] = {
      {StaticValue(Dim(n + n)), StaticValue(Dim(n * 2))},
      {StaticValue(Exact(1) / Exact(2)), StaticValue(Exact::FromDouble(0.5))},
      {StaticValue(Exact::NaN()), StaticValue(Exact::NaN())},
      {StaticValue::Dims({n, 2}), StaticValue::Dims({n, 2})},
      {StaticValue(Region{nullptr, "r"}), StaticValue(Region{nullptr, "r"})}};
  for (const auto& [a, b] : kPairs) {
    EXPECT_EQ(a, b) << a.ToString();
    EXPECT_EQ(a.Hash(), b.Hash()) << a.ToString();
  }
  EXPECT_NE(StaticValue(1).Hash(), StaticValue(Exact(1)).Hash());
}

TEST(StaticValue, Text) {
  const Dim n = Dim::Variable("n");
  EXPECT_EQ(StaticValue().ToString(), "none");
  EXPECT_EQ(StaticValue(3).ToString(), "3");
  EXPECT_EQ(StaticValue(Exact(3)).ToString(), "3.0");
  EXPECT_EQ(StaticValue(*Exact::Parse("0.1")).ToString(), "0.1");
  EXPECT_EQ(StaticValue(-Exact::Infinity()).ToString(), "-inf");
  EXPECT_EQ(StaticValue("a\"b").ToString(), "\"a\\\"b\"");
  EXPECT_EQ(StaticValue(true).ToString(), "true");
  EXPECT_EQ(StaticValue(DType::kBF16).ToString(), "bf16");
  EXPECT_EQ(StaticValue::Dims({1, n}).ToString(), "[1, n]");
  EXPECT_EQ(StaticValue(StaticValue::Record{{"a", 1}, {"b", n}}).ToString(),
            "(a = 1, b = n)");
}

TEST(StaticValue, Conversions) {
  const Dim n = Dim::Variable("n");
  EXPECT_EQ(*StaticValue(3).ToInt(), 3);
  EXPECT_FALSE(StaticValue(n).ToInt().ok());
  EXPECT_FALSE(StaticValue(Exact(3)).ToInt().ok());
  EXPECT_EQ(*StaticValue::Ints(std::vector<int>{1, 2}).ToInts(),
            (std::vector<int64_t>{1, 2}));
  EXPECT_FALSE(StaticValue::Dims({n}).ToInts().ok());
  EXPECT_EQ(*StaticValue::Dims({n, 2}).ToDims(), (std::vector<Dim>{n, 2}));
  EXPECT_FALSE(StaticValue("x").ToDims().ok());
  EXPECT_DEATH(StaticValue(3).AsBool(), "found an integer");
}

TEST(Attributes, AreSortedAndUnique) {
  Attributes a = {{"keepdims", true}, {"axis", 1}};
  EXPECT_EQ(a.ToString(), "axis: 1, keepdims: true");
  a.Set("axis", 2);
  EXPECT_EQ(a.values().size(), 2u);
  EXPECT_EQ(a.GetInt("axis"), 2);
  EXPECT_TRUE(a.GetBool("keepdims"));
  EXPECT_EQ(a.Find("axes"), nullptr);
  EXPECT_DEATH(a.Get("axes"), "no attribute `axes`");
  EXPECT_EQ(a, (Attributes{{"axis", 2}, {"keepdims", true}}));
  EXPECT_EQ(absl::HashOf(a),
            absl::HashOf(Attributes{{"axis", 2}, {"keepdims", true}}));
}

}  // namespace
}  // namespace cleave
