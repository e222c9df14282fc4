#include "ops/refusal.h"

#include <optional>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

TEST(Refusal, IsReadFromItsStatus) {
  const absl::Status status = Impossible("ragged: axis ", 2);
  EXPECT_EQ(status, WithMessage(status, "impossible: ragged: axis 2"));
  EXPECT_TRUE(absl::IsUnimplemented(status));
  const std::optional<Refusal> refusal = RefusalOf(status);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->kind, RefusalKind::kImpossible);
  EXPECT_EQ(refusal->reason, "ragged: axis 2");
  EXPECT_EQ(refusal->place, "");
  EXPECT_EQ(RefusalOf(NotSupported("f8"))->kind, RefusalKind::kNotSupported);
}

TEST(Refusal, RemembersTheInnermostPlace) {
  const absl::Status status =
      AtPlace(AtPlace(Impossible("discrete"), "a.rules:3"), "b.rules:7");
  EXPECT_EQ(status.message(), "b.rules:7: a.rules:3: impossible: discrete");
  EXPECT_EQ(RefusalOf(status)->place, "a.rules:3");
  EXPECT_EQ(RefusalOf(status)->reason, "discrete");
}

TEST(Refusal, IsNoOtherError) {
  EXPECT_FALSE(RefusalOf(absl::OkStatus()).has_value());
  EXPECT_FALSE(
      RefusalOf(absl::UnimplementedError("impossible: by chance")).has_value());
  EXPECT_FALSE(
      RefusalOf(AtPlace(absl::InvalidArgumentError("x"), "a:1")).has_value());
}

}  // namespace
}  // namespace cleave
