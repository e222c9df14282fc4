#include "engine/eager/call.h"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "engine/eager/functional_testing.h"
#include "engine/eager/tensor.h"
#include "engine/eager/trace_scope.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave::functional {
namespace {

using ::testing::HasSubstr;

class CallTest : public SessionTest {};

TEST_F(CallTest, TakesTensorsNumbersListsAndNothing) {
  const Tensor x = Floats({2}, {1, -2});
  ExpectValue(CallOne("clamp", {x, std::nullopt, Tensor(0)}),
              Floats({2}, {0, -2}));
  ExpectValue(CallOne("clamp", {x, std::optional<Tensor>(Tensor(0))}),
              Floats({2}, {1, 0}));
  ExpectValue(CallOne("cat", {std::vector<Tensor>{x, x}}, {{"axis", 0}}),
              Floats({4}, {1, -2, 1, -2}));
  // x[:, [0, 0]] by the rule: an element of the list may be absent.
  ExpectValue(CallOne("index", {Tensor(Floats({1, 2}, {3, 4})),
                                CallArgument::List{std::nullopt,
                                                   Tensor(Ints({2}, {0, 0}))}}),
              Floats({1, 2}, {3, 3}));
  // Primitives, with operands broadcast where they are pointwise.
  ExpectValue(CallOne("fma", {x, Tensor(2), Tensor(Floats({1}, {1}))}),
              Floats({2}, {3, -3}));
  ExpectValue(CallOne("select", {Tensor(Bools({2}, {1, 0})), x, Tensor(7)}),
              Floats({2}, {1, 7}));
  ExpectValue(CallOne("ldexp", {x, Tensor(3)}), Floats({2}, {8, -16}));
  ExpectValue(
      CallOne("concatenate", {std::vector<Tensor>{x, x}}, {{"axis", 0}}),
      Floats({4}, {1, -2, 1, -2}));
}

// A call that was made before is found by its numbers and attributes.
TEST_F(CallTest, TellsZerosApart) {
  const Tensor x = Floats({2}, {1, -2});
  for (const double zero : {0.0, -0.0, 0.0}) {
    SCOPED_TRACE(zero);
    const double sign = std::signbit(zero) ? -1 : 1;
    ExpectValue(CallOne("copysign", {x, Tensor(zero)}),
                Floats({2}, {sign, 2 * sign}));
    ExpectValue(
        CallOne("threshold", {x},
                {{"threshold", Exact(0)}, {"value", Exact::FromDouble(zero)}}),
        Floats({2}, {1, zero}));
    ExpectValue(
        CallOne("select", {Tensor(Bools({2}, {1, 0})), x, Tensor(zero)}),
        Floats({2}, {1, zero}));
    ExpectValue(Full(DType::kF32, {2}, Tensor(zero)),
                Floats({2}, {zero, zero}));
  }
}

TEST_F(CallTest, GivesOneTensorPerResultAndNulloptForAbsentOnes) {
  const Tensor x = Floats({2, 2}, {1, 3, 5, 7});
  ASSERT_OK_AND_ASSIGN(const auto parts, Call("max_at", {x}, {{"axis", 1}}));
  ASSERT_EQ(parts.size(), 2u);
  ExpectValue(*parts[0], Floats({2}, {3, 7}));
  ExpectValue(*parts[1], Ints({2}, {1, 1}));
  ASSERT_OK_AND_ASSIGN(const auto sorted,
                       Call("sort", {x}, {{"axis", 1}, {"descending", true}}));
  ASSERT_EQ(sorted.size(), 2u);
  ExpectValue(*sorted[0], Floats({2, 2}, {3, 1, 7, 5}));
  EXPECT_THAT(CallMany("max_at", 3, {x}, {{"axis", 1}})[2].status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("has 2 results, not 3")));
}

TEST_F(CallTest, MistakesAreThoseOfArgumentsAndDeclarations) {
  const Tensor x = Floats({2}, {1, 2});
  const Tensor wrong = x[{7}];
  EXPECT_EQ(CallOne("relu", {wrong}).status(), wrong.status());
  EXPECT_EQ(CallOne("exp", {wrong}).status(), wrong.status());
  EXPECT_EQ(
      CallOne("cat", {std::vector<Tensor>{x, wrong}}, {{"axis", 0}}).status(),
      wrong.status());
  const auto invalid = [](const Tensor& y, const char* message) {
    EXPECT_THAT(y.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                     HasSubstr(message)));
  };
  invalid(CallOne("softmax", {x}, {{"axis", 4}}), "axis");
  invalid(CallOne("softmax", {x}, {{"axes", 0}}), "axes");
  invalid(CallOne("gelu", {Tensor(Ints({1}, {1}))}), "gelu");
  invalid(CallOne("exp", {StaticValue(1)}), "is no tensor");
  invalid(CallOne("concatenate", {CallArgument::List{x, std::nullopt}},
                  {{"axis", 0}}),
          "lacks an element");
  invalid(CallOne("add", {Tensor(1), Tensor(2)}), "tells its dtype");
  EXPECT_THAT(CallOne("aten.relu", {x}).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CallTest, MistakesSayWhereTheyWereMade) {
  const Tensor a = Zeros(DType::kF32, {4, 5});
  const Tensor b = Zeros(DType::kF32, {6, 7});
  const absl::Status eager = CallOne("matmul", {a, b}).status();
  const std::string message(eager.message());
  EXPECT_THAT(message, HasSubstr("matmul: f32[4, 5] by f32[6, 7]: the "
                                 "contracted extents differ (shape, "));
  EXPECT_THAT(message,
              testing::ContainsRegex("linear_algebra.rules:[0-9]+\\)"));
  EXPECT_EQ(eager.GetPayload("cleave.error_clause"), absl::Cord("shape"));
  EXPECT_TRUE(eager.GetPayload("cleave.error_place").has_value());
  // The mistakes of primitives, too.
  EXPECT_THAT(std::string(CallOne("dot_general", {a, b}).status().message()),
              HasSubstr("dot_general: f32[4, 5] by f32[6, 7]: "));
  TraceScope trace(SharedRules());
  const Tensor x = trace.Input("x", {DType::kF32, {4, 5}});
  Tensor y = x;
  for (int i = 0; i < 36; ++i) y = CallOne("sin", {y});
  const Tensor wrong = CallOne("matmul", {y, b});
  EXPECT_THAT(std::string(wrong.status().message()),
              HasSubstr("matmul, call 37 of the trace: f32[4, 5] by f32[6, 7]: "
                        "the contracted extents differ (shape, "));
  // A value computed from it is the same mistake, and the trace has it.
  EXPECT_EQ(CallOne("exp", {wrong}).status(), wrong.status());
  EXPECT_EQ(trace.status(), wrong.status());
}

TEST_F(CallTest, UnderATraceACompositeStaysACall) {
  TraceScope trace(SharedRules());
  const Tensor x = trace.Input("x", {DType::kF32, {Dim::Variable("n"), 4}});
  const Tensor y = CallOne("softmax", {x}, {{"axis", 1}});
  EXPECT_EQ(y.type(), x.type());
  ASSERT_OK_AND_ASSIGN(const Value out, trace.Read(y));
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       std::move(trace).Finish({{"y", out}}));
  EXPECT_EQ(PrintGraph(graph),
            "graph (%x: f32[n, 4]) -> (y: f32[n, 4]) {\n"
            "  %1: f32[n, 4] = softmax(%x, axis: 1)\n"
            "  return y = %1\n"
            "}\n");
  EXPECT_EQ(session_.statistics().ops, 0);
}

TEST_F(CallTest, WithoutRulesThereArePrimitivesAlone) {
  TraceScope trace(std::make_shared<Context>());
  const Tensor x = trace.Input("x", {DType::kF32, {4}});
  EXPECT_TRUE(CallOne("exp", {x}).valid());
  EXPECT_THAT(CallOne("softmax", {x}).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace cleave::functional
