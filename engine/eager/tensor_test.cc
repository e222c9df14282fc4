#include "engine/eager/tensor.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "engine/eager/call.h"
#include "engine/eager/functional_testing.h"
#include "engine/eager/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/budget.h"
#include "ops/dtype.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave::functional {
namespace {

using ::testing::HasSubstr;

class TensorTest : public SessionTest {};

TEST_F(TensorTest, ArithmeticBroadcastsAsNumPyDoes) {
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor row = Floats({3}, {10, 20, 30});
  const Tensor column = Floats({2, 1}, {100, 200});
  ExpectValue(x + row, Floats({2, 3}, {11, 22, 33, 14, 25, 36}));
  ExpectValue(column - x, Floats({2, 3}, {99, 98, 97, 196, 195, 194}));
  ExpectValue(row * column,
              Floats({2, 3}, {1000, 2000, 3000, 2000, 4000, 6000}));
  ExpectValue(x / 2, Floats({2, 3}, {0.5, 1, 1.5, 2, 2.5, 3}));
  ExpectValue(-x, Floats({2, 3}, {-1, -2, -3, -4, -5, -6}));
  ExpectValue(2 * x + 0.5, Floats({2, 3}, {2.5, 4.5, 6.5, 8.5, 10.5, 12.5}));
  ExpectValue(Ints({3}, {7, -7, 5}) % 3, Ints({3}, {1, 2, 2}));
}

TEST_F(TensorTest, ComparisonsAndLogicAreElementwise) {
  const Tensor x = Floats({3}, {1, 2, 3});
  ExpectValue(x < 2, Bools({3}, {1, 0, 0}));
  ExpectValue(x <= 2, Bools({3}, {1, 1, 0}));
  ExpectValue(x > 2, Bools({3}, {0, 0, 1}));
  ExpectValue(x >= 2, Bools({3}, {0, 1, 1}));
  ExpectValue(x == 2, Bools({3}, {0, 1, 0}));
  ExpectValue(x != 2, Bools({3}, {1, 0, 1}));
  ExpectValue((x > 1) & (x < 3), Bools({3}, {0, 1, 0}));
  ExpectValue((x == 1) | (x == 3), Bools({3}, {1, 0, 1}));
  ExpectValue((x > 1) ^ (x < 3), Bools({3}, {1, 0, 1}));
  ExpectValue(~(x == 2), Bools({3}, {1, 0, 1}));
  ExpectValue(Ints({2}, {6, 5}) & 3, Ints({2}, {2, 1}));
}

TEST_F(TensorTest, CopiesAreReferencesAndClonesAreNot) {
  Tensor x = Floats({3}, {1, 2, 3});
  const Tensor same = x;
  const Tensor clone = x.Clone();
  const Tensor doubled = x * 2;
  x += 10;
  EXPECT_TRUE(same.SharesStorage(x));
  EXPECT_FALSE(clone.SharesStorage(x));
  ExpectValue(same, Floats({3}, {11, 12, 13}));
  ExpectValue(clone, Floats({3}, {1, 2, 3}));
  ExpectValue(doubled, Floats({3}, {2, 4, 6}));
  EXPECT_EQ(x.version(), 1u);
}

TEST_F(TensorTest, InPlaceOperatorsWriteThroughViews) {
  Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor t = x.Transpose();
  t[{0}] += 10;                    // the first column of x
  x[{1, {kNone, kNone, 2}}] *= 2;  // elements 0 and 2 of row 1
  x.Reshape({-1})[{{4, 5}}] -= 100;
  x[{0}] /= 2;
  ExpectValue(x, Floats({2, 3}, {5.5, 1, 1.5, 28, -95, 12}));
  ExpectValue(t, Floats({3, 2}, {5.5, 28, 1, -95, 1.5, 12}));
  // A value that overlaps what it is written to is read before.
  Tensor y = Floats({4}, {1, 2, 3, 4});
  y[{{1, kNone}}] += y[{{kNone, -1}}];
  ExpectValue(y, Floats({4}, {1, 3, 5, 7}));
  ASSERT_OK(y[{{kNone, kNone, -1}}].Assign(y));
  ExpectValue(y, Floats({4}, {7, 5, 3, 1}));
}

TEST_F(TensorTest, AssignBroadcastsAndConvertsNumbersOnly) {
  Tensor x = Floats({2, 2}, {1, 2, 3, 4});
  ASSERT_OK(x.Assign(Floats({2}, {5, 6})));
  ExpectValue(x, Floats({2, 2}, {5, 6, 5, 6}));
  ASSERT_OK(x[{0}].Assign(0.5));
  ExpectValue(x, Floats({2, 2}, {0.5, 0.5, 5, 6}));
  EXPECT_THAT(x.Assign(Ints({2}, {1, 2})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("by Convert only")));
  EXPECT_THAT(x.Assign(Floats({3}, {1, 2, 3})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(x.BroadcastTo({3, 2, 2}).Assign(1),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("several places show one element")));
  ExpectValue(x, Floats({2, 2}, {0.5, 0.5, 5, 6}));
  EXPECT_EQ(x.version(), 2u);
}

TEST_F(TensorTest, MistakesPassThroughWhatIsComputed) {
  const Tensor x = Floats({3}, {1, 2, 3});
  const Tensor wrong = x + Floats({2}, {1, 2});
  EXPECT_FALSE(wrong.valid());
  const Tensor later = (wrong * 2).Reshape({-1})[{0}].Transpose();
  EXPECT_EQ(later.status(), wrong.status());
  EXPECT_THAT(later.Item(), StatusIs(wrong.status().code()));
  EXPECT_THAT(Tensor().Item(), StatusIs(absl::StatusCode::kInvalidArgument,
                                        HasSubstr("nothing was given")));
  EXPECT_THAT(x.Item(), StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr("f32[3]")));
  EXPECT_THAT((x + Ints({3}, {1, 2, 3})).status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_FALSE(x[{5}].valid());
  EXPECT_FALSE(x.Transpose({1}).valid());
  EXPECT_FALSE(x.Reshape({2, -1}).valid());
  EXPECT_FALSE(x.Slice({1}, {3}).valid());
  EXPECT_FALSE(x.Reverse({-2}).valid());
  EXPECT_FALSE((Ints({2}, {1, 2}) + 0.5).valid());
  EXPECT_FALSE((Tensor(1) + 2).valid());  // no dtype
  EXPECT_FALSE(Tensor(1).Transpose().valid());
  EXPECT_FALSE(Tensor(1)[{0}].valid());
  EXPECT_THAT(CallOne("no_such_op", {x}).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(TensorTest, ItemsAndText) {
  const Tensor x = Floats({2}, {0.5, 2});
  EXPECT_THAT(x[{1}].Item(), IsOkAndHolds(2));
  EXPECT_THAT(Ints({}, {-3}).IntItem(), IsOkAndHolds(-3));
  EXPECT_THAT(Ints({}, {-3}).Item(), IsOkAndHolds(-3));
  EXPECT_THAT(Bools({1}, {1}).IntItem(), IsOkAndHolds(1));
  EXPECT_THAT(x[{1}].IntItem(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("no integer")));
  std::ostringstream out;
  out << x << ", " << x[{0}];
  EXPECT_EQ(out.str(), "f32[2] [0.5, 2], f32[] [0.5]");
  EXPECT_EQ(Tensor(0.25).ToString(), "0.25");
}

TEST_F(TensorTest, NumbersTakeTheDTypeOfWhatTheyMeet) {
  EXPECT_EQ((Floats({1}, {1}) + 1).dtype(), DType::kF32);
  EXPECT_EQ((Ints({1}, {1}) * 3).dtype(), DType::kI64);
  // 0.1 is rounded once, from the double and from the decimal.
  const Tensor tenth = Zeros(DType::kF32, {}) + 0.1;
  EXPECT_THAT(tenth.Item(), IsOkAndHolds(static_cast<double>(0.1f)));
  const Tensor exact = Zeros(DType::kF64, {}) + *Exact::Parse("0.1");
  EXPECT_THAT(exact.Item(), IsOkAndHolds(0.1));
  // A composite: the dtype that another argument gives its dtype variable.
  const Tensor clamped =
      CallOne("clamp", {Floats({3}, {-1, 0.5, 9}), Tensor(0), Tensor(1)});
  ExpectValue(clamped, Floats({3}, {0, 0.5, 1}));
  const Tensor chosen =
      CallOne("where", {Bools({2}, {1, 0}), Floats({2}, {1, 2}), Tensor(-1)});
  ExpectValue(chosen, Floats({2}, {1, -1}));
  EXPECT_THAT(CallOne("relu", {Tensor(1)}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no other argument tells its dtype")));
}

TEST_F(TensorTest, NewTensors) {
  ExpectValue(Zeros(DType::kF32, {2, 0}), Floats({2, 0}, {}));
  ExpectValue(Ones(DType::kI64, {2}), Ints({2}, {1, 1}));
  ExpectValue(Full(DType::kF32, {2, 1}, 0.5), Floats({2, 1}, {0.5, 0.5}));
  ExpectValue(Full(DType::kBool, {2}, true), Bools({2}, {1, 1}));
  ExpectValue(Arange(3), Ints({3}, {0, 1, 2}));
  EXPECT_FALSE(Full(DType::kI64, {2}, 0.5).valid());
  EXPECT_FALSE(Full(DType::kU64, {2}, -1).valid());
  EXPECT_FALSE(Zeros(DType::kF32, {-1}).valid());
  EXPECT_FALSE(Zeros(DType::kKey, {1}).valid());
}

// Half of the memory, and no session counts it.
TEST_F(TensorTest, NewTensorsFitTheMemory) {
  const int64_t beyond = std::min(DefaultTensorBytes() / ByteSize(DType::kC128),
                                  kMaxTensorElements) +
                         1;
  for (const Tensor& x : {Zeros(DType::kC128, {beyond}),
                          Ones(DType::kC128, {beyond}), Arange(2 * beyond)}) {
    EXPECT_THAT(x.status(), StatusIs(absl::StatusCode::kResourceExhausted));
  }
}

TEST_F(TensorTest, ReshapeInfersOneExtent) {
  const Tensor x = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(x.Reshape({3, -1}).shape(), (Shape{3, 2}));
  EXPECT_EQ(x.Transpose().Reshape({-1}).shape(), (Shape{6}));
  // A view also where NumPy copies.
  EXPECT_TRUE(x.Transpose().Reshape({-1}).SharesStorage(x));
  ExpectValue(x.Transpose().Reshape({-1}), Floats({6}, {1, 4, 2, 5, 3, 6}));
  EXPECT_FALSE(x.Reshape({-1, -1}).valid());
  EXPECT_FALSE(Zeros(DType::kF32, {0, 3}).Reshape({0, -1}).valid());
}

TEST_F(TensorTest, ResultsWhoseSizeDependsOnValuesHaveIt) {
  const auto unique = Call("unique", {Ints({5}, {3, 1, 3, 1, 2})});
  ASSERT_OK(unique);
  ExpectValue(*(*unique)[0], Ints({3}, {1, 2, 3}));
  ExpectValue(*(*unique)[0] * 2, Ints({3}, {2, 4, 6}));
}

TEST(TensorWithoutSession, OpsNeedOne) {
  const Tensor x = cleave::Tensor::FromDoubles(DType::kF32, {2}, {1, 2});
  EXPECT_THAT((x + 1).status(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                         HasSubstr("open a SessionScope")));
  // Views, values and text need none.
  EXPECT_THAT(x[{1}].Item(), IsOkAndHolds(2));
  EXPECT_EQ(x.Reverse({0}).ToString(), "f32[2] [2, 1]");
  EXPECT_TRUE(x.Clone().valid());
}

}  // namespace
}  // namespace cleave::functional
