#include "engine/ir/trace.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

Dim N() { return Dim::Variable("n"); }
TensorType F32(Shape shape) { return {DType::kF32, std::move(shape)}; }

// The text of the traced graph, which must verify.
template <typename Fn>
std::string TextOf(const Fn& fn, const std::vector<TensorType>& types,
                   const TraceNames& names = {}) {
  absl::StatusOr<Graph> graph =
      Trace(std::make_shared<Context>(), fn, types, names);
  EXPECT_THAT(graph, IsOk());
  if (!graph.ok()) return "";
  EXPECT_THAT(Verify(*graph), IsOk());
  return PrintGraph(*graph);
}

template <typename Fn>
absl::Status ErrorOf(const Fn& fn, const std::vector<TensorType>& types,
                     const TraceNames& names = {}) {
  return Trace(std::make_shared<Context>(), fn, types, names).status();
}

TEST(Trace, RecordsOperatorsNumbersAndBroadcasting) {
  EXPECT_EQ(TextOf(
                [](TracedValue x, TracedValue y) {
                  TracedValue e =
                      trace::Exp(x - trace::ReduceMax(x, {-1}, true));
                  TracedValue softmax = e / trace::ReduceSum(e, {1}, true);
                  return softmax + 0.5 * y;
                },
                {F32({N(), 10}), F32({10})}),
            R"(graph (%x0: f32[n, 10], %x1: f32[10]) -> (y: f32[n, 10]) {
  %1: f32[n] = reduce_max(%x0, axes: [1])
  %2: f32[n, 1] = reshape(%1, shape: [n, 1])
  %3: f32[n, 10] = broadcast_in_dim(%2, axes: [0, 1], shape: [n, 10])
  %4: f32[n, 10] = sub(%x0, %3)
  %5: f32[n, 10] = exp(%4)
  %6: f32[n] = reduce_sum(%5, axes: [1])
  %7: f32[n, 1] = reshape(%6, shape: [n, 1])
  %8: f32[n, 10] = broadcast_in_dim(%7, axes: [0, 1], shape: [n, 10])
  %9: f32[n, 10] = div(%5, %8)
  %10: f32[] = constant(dtype: f32, value: 0.5)
  %11: f32[10] = broadcast_in_dim(%10, axes: [], shape: [10])
  %12: f32[10] = mul(%11, %x1)
  %13: f32[n, 10] = broadcast_in_dim(%12, axes: [1], shape: [n, 10])
  %14: f32[n, 10] = add(%9, %13)
  return y = %14
}
)");
}

TEST(Trace, NumbersTakeTheDTypeOfWhatTheyMeet) {
  EXPECT_EQ(TextOf(
                [](TracedValue c, TracedValue i) {
                  const TracedValue two = TracedValue(1) + 1;
                  const TracedValue both = trace::And(c, true);
                  return trace::Select(both, i * two, -1);
                },
                {{DType::kBool, {}}, {DType::kI32, {}}}),
            R"(graph (%x0: bool[], %x1: i32[]) -> (y: i32[]) {
  %1: bool[] = constant(dtype: bool, value: true)
  %2: bool[] = and(%x0, %1)
  %3: i32[] = constant(dtype: i32, value: 2.0)
  %4: i32[] = mul(%x1, %3)
  %5: i32[] = constant(dtype: i32, value: -1.0)
  %6: i32[] = select(%2, %4, %5)
  return y = %6
}
)");
}

TEST(Trace, NamesInputsAndOutputs) {
  EXPECT_EQ(TextOf(
                [](const std::vector<TracedValue>& in) {
                  return std::vector<TracedValue>{in[1], in[0]};
                },
                {F32({}), F32({2})}, {{"a", "b"}, {"c", "d"}}),
            R"(graph (%a: f32[], %b: f32[2]) -> (c: f32[2], d: f32[]) {
  return c = %b, d = %a
}
)");
}

TEST(Trace, RecordsStructuredPrimitives) {
  const std::string text = TextOf(
      [](TracedValue x) {
        TracedValue y = trace::Transpose(x, {1, -2});
        y = trace::MatMul(x, y);
        y = trace::Pad(y, 0, {1, 0}, {0, 0}, {0, 0});
        y = trace::Slice(y, {1, 0}, {2, 2}, {1, 1});
        y = trace::Concatenate({y, trace::Reverse(y, {0})}, 0);
        y = trace::LinearScan(y, 1, 0.5, -2);
        const trace::Sorted sorted = trace::Sort(y, -1, true);
        y = sorted.values + trace::Convert(sorted.indices, DType::kF32);
        y = trace::BroadcastTo(trace::Reshape(y, {8}), {3, 8});
        return trace::Ldexp(trace::Max(y, 0, "second"), 2);
      },
      {F32({2, 3})});
  for (const char* op :
       {"transpose(%x, axes: [1, 0])", "dot_general", "pad_general", "slice",
        "reverse", "concatenate", "linear_scan", "sort", "convert",
        "tie: \"second\"", "ldexp"}) {
    EXPECT_THAT(text, HasSubstr(op));
  }
}

TEST(Trace, AppliesAnyPrimitive) {
  auto context = std::make_shared<Context>();
  absl::StatusOr<Graph> body =
      Trace(context,
            [](TracedValue c, TracedValue x) {
              return std::vector<TracedValue>{c + x, c * x};
            },
            {F32({}), F32({})});
  ASSERT_THAT(body, IsOk());
  const Region region = MakeRegion(*std::move(body));
  absl::StatusOr<Graph> graph =
      Trace(context,
            [&](TracedValue c, TracedValue xs) {
              return trace::Apply(Primitive::kScan, {c, xs},
                                  {{"body", region},
                                   {"consts", 0},
                                   {"carries", 1},
                                   {"length", N()},
                                   {"reverse", false}});
            },
            {F32({}), F32({N()})});
  ASSERT_THAT(graph, IsOk());
  EXPECT_THAT(Verify(*graph), IsOk());
  EXPECT_EQ(graph->type(graph->outputs()[1].value), F32({N()}));
}

TEST(Trace, ExtensionsAddTheirOwnNodes) {
  EXPECT_THAT(TextOf(
                  [](TracedValue x) {
                    GraphBuilder& b = x.builder();
                    const TypeId type = b.graph().node(x.value()).type;
                    return trace::Wrap(
                        x, b.AddTyped(b.context()->InternOp("softplus"),
                                      kNoAttributes, type, {x.value()}, 0));
                  },
                  {F32({N()})}),
              HasSubstr("%1: f32[n] = softplus(%x)"));
}

TEST(Trace, ReportsTheFirstMistake) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ErrorOf([](TracedValue x, TracedValue y) { return x + y; },
                      {F32({2}), F32({3})}),
              StatusIs(invalid));
  EXPECT_THAT(ErrorOf(
                  [](TracedValue x, TracedValue y) {
                    const TracedValue sum = x + y;
                    return trace::Exp(sum) * 2 - trace::ReduceSum(x, {7});
                  },
                  {F32({}), TensorType{DType::kF64, {}}}),
              StatusIs(invalid, HasSubstr("dtypes f32 and f64")));
  EXPECT_THAT(ErrorOf([](TracedValue x) { return x + 0.5; },
                      {TensorType{DType::kI32, {}}}),
              StatusIs(invalid, HasSubstr("0.5")));
  EXPECT_THAT(ErrorOf([](TracedValue x) { return trace::ReduceSum(x, {2}); },
                      {F32({2})}),
              StatusIs(invalid, HasSubstr("axis 2")));
  // It says which op it was.
  EXPECT_THAT(ErrorOf(
                  [](TracedValue x) {
                    const TracedValue y = trace::Exp(trace::Sin(x));
                    return trace::Cos(trace::ReduceSum(y, {2}));
                  },
                  {F32({2})}),
              StatusIs(invalid, HasSubstr("op 3 of the trace: ")));
  EXPECT_THAT(ErrorOf([](TracedValue x) { return trace::BroadcastTo(x, {}); },
                      {F32({2})}),
              StatusIs(invalid));
  EXPECT_THAT(ErrorOf([](TracedValue x) { return TracedValue(1); }, {F32({})}),
              StatusIs(invalid, HasSubstr("no value of this trace")));
  EXPECT_THAT(ErrorOf([](TracedValue x) { return TracedValue(); }, {F32({})}),
              StatusIs(invalid));
  EXPECT_THAT(ErrorOf([](TracedValue x) { return trace::Exp(1); }, {F32({})}),
              StatusIs(invalid, HasSubstr("numbers alone")));
  EXPECT_THAT(ErrorOf([](TracedValue x) { return x; }, {F32({}), F32({})}),
              StatusIs(invalid, HasSubstr("another number of arguments")));
  EXPECT_THAT(
      ErrorOf([](TracedValue x) { return x; }, {F32({})}, {{"a", "b"}, {}}),
      StatusIs(invalid, HasSubstr("2 names")));
  EXPECT_THAT(ErrorOf([](TracedValue x, TracedValue y) { return x; },
                      {F32({}), F32({})}, {{"a", "a"}, {}}),
              StatusIs(invalid, HasSubstr("two values are named a")));
}

TEST(Trace, ValuesOfTwoTracesDoNotMeet) {
  TracedValue kept;
  auto context = std::make_shared<Context>();
  ASSERT_THAT(Trace(context,
                    [&](TracedValue x) {
                      kept = x;
                      return x;
                    },
                    {F32({})}),
              IsOk());
  EXPECT_FALSE((kept + 1).valid());
  EXPECT_THAT((kept + 1).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(
      Trace(context, [&](TracedValue x) { return x + kept; }, {F32({})}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("two traces")));
}

// The functions of ops/primitive.def and those that trace.h writes out.
TEST(Trace, HasAFunctionForEveryPointwisePrimitive) {
  std::set<Primitive> listed = {Primitive::kConvert, Primitive::kBitcastConvert,
                                Primitive::kMax,     Primitive::kMin,
                                Primitive::kSelect,  Primitive::kLdexp};
#define PRIMITIVE(...)
#define UNARY(function, ...) listed.insert(Primitive::k##function);
#define BINARY UNARY
#define TERNARY UNARY
#include "ops/primitive.def"
  for (int i = 0; i < kNumPrimitives; ++i) {
    const Primitive primitive = static_cast<Primitive>(i);
    EXPECT_EQ(listed.count(primitive) > 0,
              ClassOf(primitive) == PrimitiveClass::kPointwise)
        << PrimitiveName(primitive);
  }
}

}  // namespace
}  // namespace cleave
