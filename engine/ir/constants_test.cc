#include "engine/ir/constants.h"

#include <memory>
#include <optional>

#include "engine/ir/graph.h"
#include "gtest/gtest.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/tensor_type.h"

namespace cleave {
namespace {

class ConstantsTest : public testing::Test {
 protected:
  Value Broadcast(int64_t value, DType dtype) {
    return builder_.Constant(Exact(value), TensorType{dtype, {Dim(2)}});
  }
  std::optional<bool> Compared(Primitive primitive, Value a, Value b) {
    return ComparedConstants(builder_.graph(), primitive, {a, b});
  }

  GraphBuilder builder_{std::make_shared<Context>()};
};

TEST_F(ConstantsTest, SeesThroughBroadcasts) {
  const Graph& graph = builder_.graph();
  EXPECT_EQ(IntegerConstant(graph, Broadcast(3, DType::kI32)), 3);
  EXPECT_EQ(IntegerConstant(graph, Broadcast(-3, DType::kF32)), -3);
  EXPECT_EQ(BoolConstant(graph, Broadcast(1, DType::kBool)), true);
  EXPECT_EQ(BoolConstant(graph, Broadcast(1, DType::kI32)), std::nullopt);
  const Value x = builder_.Input("x", TensorType{DType::kI32, {Dim(2)}});
  EXPECT_EQ(IntegerConstant(graph, x), std::nullopt);
  EXPECT_EQ(BoolConstant(graph, x), std::nullopt);
}

TEST_F(ConstantsTest, ComparesIntegers) {
  const Value two = Broadcast(2, DType::kI64);
  const Value three = Broadcast(3, DType::kI64);
  EXPECT_EQ(Compared(Primitive::kEq, two, three), false);
  EXPECT_EQ(Compared(Primitive::kNe, two, three), true);
  EXPECT_EQ(Compared(Primitive::kLt, two, three), true);
  EXPECT_EQ(Compared(Primitive::kLe, three, two), false);
  EXPECT_EQ(Compared(Primitive::kLe, two, two), true);
  EXPECT_EQ(Compared(Primitive::kGt, two, three), false);
  EXPECT_EQ(Compared(Primitive::kGe, three, three), true);
  EXPECT_EQ(Compared(Primitive::kAdd, two, three), std::nullopt);
  EXPECT_EQ(Compared(Primitive::kLt, Broadcast(2, DType::kF32),
                     Broadcast(3, DType::kF32)),
            std::nullopt);
}

}  // namespace
}  // namespace cleave
