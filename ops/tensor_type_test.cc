#include "ops/tensor_type.h"

#include "absl/hash/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

TEST(TensorType, TextReadsBack) {
  const std::pair<const char*, const char*> kTexts[] = {
      {"f32[2, n + 1]", "f32[2, n + 1]"},
      {"f32", "f32[]"},
      {" i64 [ ] ", "i64[]"},
      {"bf16[B, n*2]", "bf16[B, 2*n]"},
      {"f16[min(n, m), 0]", "f16[min(m, n), 0]"}};
  for (const auto& [text, canonical] : kTexts) {
    auto type = ParseTensorType(text);
    ASSERT_TRUE(type.ok()) << type.status();
    EXPECT_EQ(type->ToString(), canonical);
    EXPECT_EQ(*ParseTensorType(canonical), *type);
    EXPECT_EQ(absl::HashOf(*ParseTensorType(canonical)), absl::HashOf(*type));
  }
}

TEST(TensorType, BadTextIsRejected) {
  for (const char* text : {"", "f33[2]", "f32[2", "f32[2]]", "f32[,]",
                           "f32[-1]", "f32[2,]", "f32]"}) {
    EXPECT_EQ(ParseTensorType(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

TEST(TensorType, NumElements) {
  EXPECT_EQ(*NumElements({}), Dim(1));
  const Dim n = Dim::Variable("n");
  EXPECT_EQ(*NumElements({2, n, 3}), n * 6);
  const Dim huge = int64_t{1} << 62;
  EXPECT_EQ(*NumElements({huge, 4, 0}), Dim(0));
  EXPECT_EQ(NumElements({huge, 4}).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST(TensorType, Broadcasting) {
  const Dim n = Dim::Variable("n"), m = Dim::Variable("m");
  EXPECT_EQ(*BroadcastShapes({{n, 1}, {3}}), (Shape{n, 3}));
  EXPECT_EQ(*BroadcastShapes({{}, {2, 1}, {1, n}}), (Shape{2, n}));
  EXPECT_EQ(*BroadcastShapes({}), Shape{});
  // Zero is an extent like any other.
  EXPECT_EQ(*BroadcastShapes({{0}, {1}}), Shape{0});
  EXPECT_THAT(std::string(BroadcastShapes({{2}, {3}}).status().message()),
              HasSubstr("cannot broadcast 2 and 3 (axis 0 of [2], [3])"));
  EXPECT_THAT(std::string(BroadcastShapes({{n}, {m}}).status().message()),
              HasSubstr("it needs m - n == 0"));
  EXPECT_FALSE(BroadcastShapes({{0}, {2}}).ok());
}

}  // namespace
}  // namespace cleave
