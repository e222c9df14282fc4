#include "engine/ir/graph.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/substitute.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

Dim N() { return Dim::Variable("n"); }
TensorType F32(Shape shape) { return {DType::kF32, std::move(shape)}; }

class GraphTest : public ::testing::Test {
 protected:
  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  GraphBuilder b_{context_};
};

TEST(ContextTest, InternsEqualValuesOnce) {
  Context context;
  EXPECT_EQ(context.Intern(Attributes()), kNoAttributes);
  EXPECT_EQ(context.Intern(Provenance()), 0u);
  const Attributes a{{"axis", 1}, {"keep", true}};
  const Attributes same{{"keep", true}, {"axis", 1}};
  const Attributes real{{"axis", Exact(1)}, {"keep", true}};
  EXPECT_EQ(context.Intern(a), context.Intern(same));
  EXPECT_NE(context.Intern(a), context.Intern(real));
  EXPECT_EQ(context.Intern(F32({N(), 2})), context.Intern(F32({N(), 2})));
  EXPECT_NE(context.Intern(F32({N(), 2})), context.Intern(F32({2, N()})));
  EXPECT_EQ(context.InternOp("exp"), ToOpId(Primitive::kExp));
  const OpId softplus = context.InternOp("softplus");
  EXPECT_FALSE(IsPrimitive(softplus));
  EXPECT_EQ(context.InternOp("softplus"), softplus);
  EXPECT_NE(context.InternOp("softmax"), softplus);
  EXPECT_EQ(context.op_name(softplus), "softplus");
  EXPECT_EQ(context.op_name(ToOpId(Primitive::kExp)), "exp");
}

TEST(ContextTest, ConstantsThatAreNaNAreEqual) {
  Context context;
  EXPECT_EQ(context.Intern(Attributes{{"value", Exact::NaN()}}),
            context.Intern(Attributes{{"value", Exact::NaN()}}));
}

TEST(ContextTest, ConstantsAreToldApartByTheSignOfZero) {
  Context context;
  const Exact zero = Exact::FromDouble(-0.0);
  EXPECT_NE(context.Intern(Attributes{{"value", zero}}),
            context.Intern(Attributes{{"value", Exact(0)}}));
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kC64}) {
    EXPECT_NE(context.Intern(ConstantAttributes(zero, dtype)),
              context.Intern(ConstantAttributes(0, dtype)))
        << DTypeName(dtype);
  }
  // Integers and bools have one zero.
  for (const DType dtype : {DType::kI64, DType::kU8, DType::kBool}) {
    EXPECT_EQ(context.Intern(ConstantAttributes(zero, dtype)),
              context.Intern(ConstantAttributes(0, dtype)))
        << DTypeName(dtype);
  }
}

// A mistake in a call of the builder that returns no status: Build says it.
struct BuilderMistake {
  std::string says;
  std::function<Value(GraphBuilder&)> make;
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
};

TEST_F(GraphTest, MistakesEndNothingAndBuildSaysThem) {
  auto elsewhere = std::make_shared<Context>();
  GraphBuilder other(elsewhere);
  const Value z = other.Input("z", F32({3}));
  ASSERT_OK_AND_ASSIGN(const Graph of_another_context,
                       std::move(other).Build({{"z", z}}));
  GraphBuilder second(context_);
  const Value w = second.Input("w", F32({3}));
  ASSERT_OK_AND_ASSIGN(const Graph one_input,
                       std::move(second).Build({{"w", w}}));
  const Dim huge = Dim(int64_t{1} << 62) * N() * 4;
  const std::vector<BuilderMistake> mistakes = {
      {"two inputs are named x",
       [](GraphBuilder& b) { return b.Input("x", F32({3})); }},
      {"64 bits", [&](GraphBuilder& b) { return b.Input("y", F32({huge})); },
       absl::StatusCode::kResourceExhausted},
      {"64 bits",
       [&](GraphBuilder& b) {
         return b.Reshape(b.Input("y", F32({N()})), {huge});
       },
       absl::StatusCode::kResourceExhausted},
      {"more axes than [3]",
       [](GraphBuilder& b) {
         return b.BroadcastTo(b.Input("y", F32({3, 3})), {3});
       }},
      {"transpose",
       [](GraphBuilder& b) {
         return b.Transpose(Value{0}, {0, 1, 7});
       }},
      {"operand",
       [](GraphBuilder& b) {
         return b.Apply(Primitive::kAdd, {Value{0}, Value{1000}});
       }},
      {"`result`", [](GraphBuilder& b) { return b.Result(Value{0}, 5); }},
      {"another context",
       [&](GraphBuilder& b) {
         return b.Inline(of_another_context, {Value{0}})[0];
       }},
      {"0 arguments for 1 inputs",
       [&](GraphBuilder& b) { return b.Inline(one_input, {})[0]; }},
      {"is f32[2, n], not f32[3]",
       [&](GraphBuilder& b) { return b.Inline(one_input, {Value{0}})[0]; }},
      {"the argument for w is no node",
       [&](GraphBuilder& b) { return b.Inline(one_input, {Value{77}})[0]; }},
      {"the output y is no node", [](GraphBuilder&) { return Value{99}; }},
  };
  for (const BuilderMistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.says);
    GraphBuilder b(context_);
    b.Input("x", F32({2, N()}));
    Value y = mistake.make(b);
    // Whoever does not look goes on.
    if (y.id < b.graph().size()) y = b.Apply(Primitive::kNeg, {y});
    EXPECT_THAT(std::move(b).Build({{"y", y}}),
                StatusIs(mistake.code, HasSubstr(mistake.says)));
  }
  EXPECT_THAT(GraphBuilder(nullptr).Build({}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("a builder needs a context")));
}

TEST_F(GraphTest, EqualNodesAreOne) {
  const Value x = b_.Input("x", F32({N()}));
  const Value y = b_.Input("y", F32({N()}));
  const Value sum = b_.Apply(Primitive::kAdd, {x, y});
  EXPECT_EQ(b_.Apply(Primitive::kAdd, {x, y}), sum);
  EXPECT_NE(b_.Apply(Primitive::kAdd, {y, x}), sum);
  EXPECT_NE(b_.Apply(Primitive::kMul, {x, y}), sum);
  EXPECT_EQ(b_.Constant(Exact(1), F32({N()})),
            b_.Constant(Exact(1), F32({N()})));
  EXPECT_NE(b_.Constant(Exact(1), DType::kF32),
            b_.Constant(Exact(1), DType::kF64));
}

// Enough nodes that the table grows many times and probes collide.
TEST_F(GraphTest, FindsEveryNodeAgain) {
  const TypeId type = context_->Intern(F32({}));
  const Value x = b_.Input("x", F32({}));
  auto build = [&] {
    std::vector<Value> nodes = {x};
    for (uint32_t i = 1; i < 5000; ++i) {
      nodes.push_back(b_.AddTyped(ToOpId(Primitive::kAdd), kNoAttributes, type,
                                  {nodes[i - 1], nodes[i / 2]}, 0));
    }
    return nodes;
  };
  const std::vector<Value> first = build();
  const int64_t size = b_.graph().size();
  EXPECT_EQ(size, 5000);
  EXPECT_EQ(build(), first);
  EXPECT_EQ(b_.graph().size(), size);
}

TEST_F(GraphTest, OperandsMayLieInTheGraph) {
  const TypeId type = context_->Intern(F32({}));
  Value last = b_.Input("x", F32({}));
  last = b_.AddTyped(ToOpId(Primitive::kAdd), kNoAttributes, type, {last, last},
                     0);
  for (OpId op = kNumPrimitives; op < kNumPrimitives + 1000; ++op) {
    const Value next =
        b_.AddTyped(op, kNoAttributes, type, b_.graph().operands(last), 0);
    ASSERT_EQ(b_.graph().operands(next), b_.graph().operands(last));
    last = next;
  }
}

TEST_F(GraphTest, TheFirstProvenanceStays) {
  const Value x = b_.Input("x", F32({}));
  const ProvenanceId rule = context_->Intern(Provenance{"rule", "file", 1});
  b_.SetProvenance(rule);
  const Value y = b_.Apply(Primitive::kExp, {x});
  b_.SetProvenance(0);
  EXPECT_EQ(b_.Apply(Primitive::kExp, {x}), y);
  EXPECT_EQ(b_.graph().node(y).provenance, rule);
}

TEST_F(GraphTest, MovementThatMovesNothingIsItsOperand) {
  const Value x = b_.Input("x", F32({N(), 3, 4}));
  const std::vector<Dim> zeros(3, Dim(0));
  EXPECT_EQ(b_.Transpose(x, {0, 1, 2}), x);
  EXPECT_EQ(b_.Reshape(x, {N(), 3, 4}), x);
  EXPECT_EQ(b_.BroadcastTo(x, {N(), 3, 4}), x);
  EXPECT_EQ(b_.Apply(Primitive::kConvert, {x}, {{"dtype", DType::kF32}}), x);
  EXPECT_EQ(b_.Apply(Primitive::kReverse, {x}, {{"axes", StaticValue::List()}}),
            x);
  EXPECT_EQ(b_.Apply(Primitive::kConcatenate, {x}, {{"axis", 1}}), x);
  EXPECT_EQ(
      b_.Apply(Primitive::kSlice, {x},
               {{"start", StaticValue::Dims(zeros)},
                {"size", StaticValue::Dims({N(), 3, 4})},
                {"stride", StaticValue::Ints(std::vector<int>{1, 1, 1})}}),
      x);
  EXPECT_EQ(b_.Apply(Primitive::kPad, {x, b_.Constant(Exact(0), DType::kF32)},
                     {{"low", StaticValue::Dims(zeros)},
                      {"high", StaticValue::Dims(zeros)},
                      {"interior", StaticValue::Dims(zeros)}}),
            x);
  EXPECT_EQ(b_.Result(x, 0), x);
  // A transpose that moves an axis is no identity.
  EXPECT_NE(b_.Transpose(x, {0, 2, 1}), x);
  EXPECT_NE(b_.Reshape(x, {N(), 12}), x);
  EXPECT_NE(b_.Apply(Primitive::kReverse, {x},
                     {{"axes", StaticValue::Ints(std::vector<int>{0})}}),
            x);
  const Value square = b_.Input("square", F32({3, 3}));
  EXPECT_NE(b_.Transpose(square, {1, 0}), square);
  EXPECT_NE(b_.Apply(Primitive::kNograd, {x}), x);
}

TEST_F(GraphTest, MovementsOfOneKindCollapse) {
  const Value x = b_.Input("x", F32({2, 3, 4}));
  const Value t = b_.Transpose(x, {1, 2, 0});
  EXPECT_EQ(b_.Transpose(t, {2, 0, 1}), x);
  EXPECT_EQ(b_.Transpose(t, {1, 2, 0}), b_.Transpose(x, {2, 0, 1}));
  EXPECT_EQ(b_.type(b_.Transpose(t, {1, 2, 0})), F32({4, 2, 3}));
  const Value r = b_.Reshape(x, {6, 4});
  EXPECT_EQ(b_.Reshape(r, {24}), b_.Reshape(x, {24}));
  EXPECT_EQ(b_.Reshape(r, {2, 3, 4}), x);
}

TEST_F(GraphTest, ReportsWhatDoesNotType) {
  const Value x = b_.Input("x", F32({3}));
  const Value y = b_.Input("y", F32({4}));
  EXPECT_THAT(b_.Add(Primitive::kAdd, {}, {x, y}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("add")));
  EXPECT_THAT(b_.Add(Primitive::kExp, {}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(b_.Add(Primitive::kInput, {}, {}),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(b_.graph().size(), 2);
}

TEST_F(GraphTest, CollectsEachGuardOnce) {
  const Dim m = Dim::Variable("m");
  const Value x = b_.Input("x", F32({N()}));
  const Value y = b_.Input("y", F32({m}));
  b_.Apply(Primitive::kAdd, {x, y});
  b_.Apply(Primitive::kMul, {x, y});
  const Graph graph = *std::move(b_).Build({{"x", x}});
  ASSERT_EQ(graph.guards().size(), 1u);
  EXPECT_EQ(graph.guards()[0].op, CompareOp::kEq);
}

TEST_F(GraphTest, BuildDropsWhatNoOutputNeeds) {
  const Value x = b_.Input("x", F32({}));
  const Value dead = b_.Apply(Primitive::kLog, {x});
  b_.Apply(Primitive::kExp, {dead});
  b_.Input("unused", F32({2}));
  const Value y =
      b_.Apply(Primitive::kAdd, {x, b_.Apply(Primitive::kExp, {x})});
  const Graph graph = *std::move(b_).Build({{"y", y}, {"x", x}});
  EXPECT_EQ(PrintGraph(graph),
            "graph (%x: f32[], %unused: f32[2]) -> (y: f32[], x: f32[]) {\n"
            "  %1: f32[] = exp(%x)\n"
            "  %2: f32[] = add(%x, %1)\n"
            "  return y = %2, x = %x\n"
            "}\n");
  EXPECT_THAT(Verify(graph), IsOk());
}

TEST_F(GraphTest, InlineSubstitutesArguments) {
  const Value x = b_.Input("x", F32({N()}));
  const Value y = b_.Input("y", F32({N()}));
  const Value difference = b_.Apply(Primitive::kSub, {x, y});
  const Graph graph = *std::move(b_).Build({{"d", difference}, {"y", y}});

  GraphBuilder into(context_);
  const Value a = into.Input("a", F32({N()}));
  const Value e = into.Apply(Primitive::kExp, {a});
  const std::vector<Value> outputs = into.Inline(graph, {e, a});
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0], into.Apply(Primitive::kSub, {e, a}));
  EXPECT_EQ(outputs[1], a);
  EXPECT_EQ(into.Inline(graph, {e, a}), outputs);
}

// Two nonzeros of different operands have different sizes.
TEST_F(GraphTest, InlineRenamesSizesKnownAtRunTime) {
  const Dim found = Dim::Variable("found");
  const Value x = b_.Input("x", F32({N()}));
  const Value at = b_.Apply(Primitive::kNonzero, {x}, {{"size", found}});
  const Value doubled = b_.Apply(Primitive::kAdd, {at, at});
  const Graph graph = *std::move(b_).Build({{"at", doubled}});

  GraphBuilder into(context_);
  const Value a = into.Input("a", F32({N()}));
  const Value e = into.Input("e", F32({N()}));
  const Value first = into.Inline(graph, {a})[0];
  const Value second = into.Inline(graph, {e})[0];
  EXPECT_EQ(into.Inline(graph, {a})[0], first);
  EXPECT_EQ(into.Inline(graph, {e})[0], second);
  EXPECT_EQ(into.type(first), (TensorType{DType::kI64, {found, 1}}));
  EXPECT_NE(into.type(second), into.type(first));
  const Graph both = *std::move(into).Build({{"a", first}, {"b", second}});
  EXPECT_THAT(Verify(both), IsOk());
}

TEST_F(GraphTest, SubstitutesDims) {
  auto parsed = ParseGraph(R"(
graph (%x: f32[n, 2*n]) -> (y: f32[2*n*n], z: f32[n, 2*n]) {
  %1: f32[2*n*n] = reshape(%x, shape: [2*n*n])
  %2: f32[n, 2*n] = scan(%x, body: graph (%x: f32[2*n]) -> (y: f32[2*n]) {
    %1: f32[2*n] = reverse(%x, axes: [0])
    return y = %1
  }, consts: 0, carries: 0, length: n, reverse: false)
  guard n <= m: "why"
  return y = %1, z = %2
}
)",
                           context_);
  ASSERT_THAT(parsed, IsOk());
  const Graph fixed = *SubstituteDims(*parsed, {{"n", Dim(3)}});
  EXPECT_THAT(Verify(fixed), IsOk());
  EXPECT_EQ(PrintGraph(fixed),
            R"(graph (%x: f32[3, 6]) -> (y: f32[18], z: f32[3, 6]) {
  %1: f32[18] = reshape(%x, shape: [18])
  %2: f32[3, 6] = scan(%x, body: graph (%x: f32[6]) -> (y: f32[6]) {
    %1: f32[6] = reverse(%x, axes: [0])
    return y = %1
  }, carries: 0, consts: 0, length: 3, reverse: false)
  guard 3 <= m: "why"
  return y = %1, z = %2
}
)");
}

}  // namespace
}  // namespace cleave
