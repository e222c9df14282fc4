// An AotFunction keeps nothing of a call that is refused, and no more
// specializations than its options say.

#include <memory>
#include <string>
#include <vector>

#include "engine/eager/call.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/aot/aot_function.h"
#include "transforms/aot/aot_function_testing.h"

namespace cleave::aot {
namespace {

using functional::CallOne;
using ::testing::HasSubstr;

functional::Tensor Product(functional::Tensor x, functional::Tensor y) {
  return CallOne("matmul", {x, y});
}

class AotCacheTest : public AotFunctionTesting {
 protected:
  // Interprets, and counts what it compiles.
  GraphCompiler Counting() {
    return [this, next = Interpreting()](const Graph& graph,
                                         const ExampleInputs& examples) {
      ++compiled_;
      return next(graph, examples);
    };
  }

  int compiled_ = 0;
};

TEST_F(AotCacheTest, RefusedCallsLeaveNothingBehindUnderDynamic) {
  AotOptions options;
  options.dynamic = true;
  options.enable_log = true;
  const auto f = AotFunction::Make(Product, Counting(), rules(), options);
  ASSERT_OK(f);
  for (int64_t n = 0; n < 50; ++n) {
    const auto refused = (*f)(Matrix(3 + n, 60), Matrix(70 + n, 5));
    EXPECT_THAT(std::string(refused.status().message()),
                HasSubstr("the contracted extents differ"));
  }
  EXPECT_EQ(f->traces(), 0);
  EXPECT_EQ(f->specializations(), 0);
  EXPECT_EQ(compiled_, 0);
  EXPECT_TRUE(f->log().traces.empty());
  EXPECT_EQ(f->Guards(), "");
  EXPECT_EQ(f->last_program(), nullptr);
  // Nor do they harm what serves good calls.
  ASSERT_OK((*f)(Matrix(2, 3), Matrix(3, 4)));
  EXPECT_FALSE((*f)(Matrix(2, 3), Matrix(4, 4)).ok());
  const auto y = (*f)(Matrix(4, 2), Matrix(2, 3));
  ASSERT_OK(y);
  ExpectEqual(Leaf(y->outputs), Product(Matrix(4, 2), Matrix(2, 3)));
  EXPECT_EQ(f->traces(), 1);
  EXPECT_EQ(f->specializations(), 1);
  EXPECT_EQ(compiled_, 2);
}

TEST_F(AotCacheTest, RefusedCallsLeaveNothingBehindWithNumbers) {
  const auto f = AotFunction::Make(Product, Counting(), rules());
  ASSERT_OK(f);
  for (int64_t n = 0; n < 50; ++n) {
    EXPECT_FALSE((*f)(Matrix(3 + n, 60), Matrix(70 + n, 5)).ok());
  }
  EXPECT_EQ(f->traces(), 0);
  EXPECT_EQ(f->specializations(), 0);
  EXPECT_EQ(compiled_, 0);
}

TEST_F(AotCacheTest, CompilersThatRefuseLeaveNothingBehind) {
  const GraphCompiler refusing =
      [](const Graph&, const ExampleInputs&) -> absl::StatusOr<CompiledGraph> {
    return absl::UnimplementedError("not on this machine");
  };
  AotOptions options;
  options.bw_compiler = refusing;
  options.enable_log = true;
  const auto f = AotFunction::Make(Product, Counting(), rules(), options);
  ASSERT_OK(f);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT((*f)(Matrix(2, 3), Matrix(3, 4)).status().message(),
                HasSubstr("not on this machine"));
  }
  EXPECT_EQ(f->traces(), 0);
  EXPECT_EQ(f->specializations(), 0);
  EXPECT_TRUE(f->log().traces.empty());
}

TEST_F(AotCacheTest, TheLeastRecentlyUsedSpecializationGoes) {
  AotOptions options;
  options.max_specializations = 3;
  options.enable_log = true;
  const auto f = AotFunction::Make([](functional::Tensor x) { return Sin(x); },
                                   Counting(), rules(), options);
  ASSERT_OK(f);
  for (const int64_t n : {2, 3, 4}) ASSERT_OK((*f)(Iota(n)));
  EXPECT_EQ(f->traces(), 3);
  // 2 is used again, so 3 is the oldest when 5 comes.
  const auto kept = (*f)(Iota(2));
  ASSERT_OK(kept);
  const auto gone = (*f)(Iota(3));
  ASSERT_OK(gone);
  ASSERT_OK((*f)(Iota(2)));
  ASSERT_OK((*f)(Iota(4)));
  ASSERT_OK((*f)(Iota(5)));
  EXPECT_EQ(f->specializations(), 3);
  EXPECT_EQ(f->traces(), 4);
  for (const int64_t n : {5, 2, 4}) ASSERT_OK((*f)(Iota(n)));
  EXPECT_EQ(f->traces(), 4);
  EXPECT_EQ(f->Guards(), "x: f64[2]\nx: f64[4]\nx: f64[5]\n");
  EXPECT_EQ(f->log().traces.size(), 3);
  // The backward of a call outlives its trace.
  const auto gradient = gone->backward(Iota(3));
  ASSERT_OK(gradient);
  ExpectEqual(Leaf(gradient->outputs), Iota(3) * Cos(Iota(3)));
  ASSERT_OK((*f)(Iota(3)));
  EXPECT_EQ(f->traces(), 5);
}

TEST_F(AotCacheTest, SpecializationsAreBoundedByDefault) {
  const auto f = AotFunction::Make([](functional::Tensor x) { return Sin(x); },
                                   Counting(), rules());
  ASSERT_OK(f);
  for (int64_t n = 1; n <= 200; ++n) ASSERT_OK(f->Inference(Iota(n)));
  EXPECT_EQ(f->traces(), 200);
  EXPECT_EQ(f->specializations(), AotOptions().max_specializations);
}

TEST_F(AotCacheTest, WhatTellsCallsApartIsPartOfTheSignature) {
  const auto f = AotFunction::Make(
      [](functional::Tensor x, functional::Tensor y) {
        x += y;
        return x * y;
      },
      Counting(), rules());
  ASSERT_OK(f);
  AotCallOptions inference;
  inference.inference = true;
  const auto traces_of = [&](functional::Tensor x, functional::Tensor y) {
    const int64_t before = f->traces();
    EXPECT_OK(f->Call(AotFunction::ArgumentTree(x, y), inference));
    return f->traces() - before;
  };
  EXPECT_EQ(traces_of(Iota(4), Iota(4)), 1);
  EXPECT_EQ(traces_of(Iota(4), Iota(4)), 0);
  EXPECT_EQ(traces_of(Iota(4), Iota(1)), 1);
  functional::Tensor shared = Iota(4);
  EXPECT_EQ(traces_of(shared, shared), 1);
  EXPECT_EQ(traces_of(shared, shared.Clone()), 0);
  EXPECT_EQ(traces_of(shared, shared.Reverse({0})), 1);
  EXPECT_EQ(traces_of(shared, shared.Reverse({0})), 0);
  // Many leaves: the same pattern by another way.
  const auto many = AotFunction::Make(
      [](const std::vector<functional::Tensor>& xs) { return xs[0] + xs[10]; },
      Counting(), rules());
  ASSERT_OK(many);
  std::vector<functional::Tensor> xs;
  for (int i = 0; i < 20; ++i) xs.push_back(Iota(2));
  ASSERT_OK((*many)(xs));
  ASSERT_OK((*many)(xs));
  EXPECT_EQ(many->traces(), 1);
  xs[10] = xs[0];
  ASSERT_OK((*many)(xs));
  EXPECT_EQ(many->traces(), 2);
  ASSERT_OK((*many)(xs));
  EXPECT_EQ(many->traces(), 2);
}

TEST_F(AotCacheTest, ArgumentsOfATraceThatEndedAreRefused) {
  const auto f = AotFunction::Make([](functional::Tensor x) { return Sin(x); },
                                   Counting(), rules());
  ASSERT_OK(f);
  functional::Tensor escaped;
  const auto leaks = AotFunction::Make(
      [&](functional::Tensor x) {
        escaped = Cos(x);
        return escaped;
      },
      Interpreting(), rules());
  ASSERT_OK(leaks);
  ASSERT_OK((*leaks)(Iota(2)));
  EXPECT_THAT((*f)(escaped).status().message(),
              HasSubstr("argument x is a tensor of a trace"));
}

TEST_F(AotCacheTest, WhatCapturesATracedTensorIsTracedAgain) {
  functional::Tensor scale;
  const auto inner = AotFunction::Make(
      [&](functional::Tensor x) { return x * scale; }, Interpreting(), rules());
  ASSERT_OK(inner);
  const auto outer = AotFunction::Make(
      [&](functional::Tensor x) -> absl::StatusOr<Tree> {
        scale = Sin(x);
        CLEAVE_ASSIGN_OR_RETURN(AotResult y, (*inner)(x));
        return std::move(y.outputs);
      },
      Interpreting(), rules());
  ASSERT_OK(outer);
  for (const int64_t n : {2, 3, 2}) {
    const auto y = outer->Inference(Iota(n));
    ASSERT_OK(y);
    ExpectEqual(Leaf(*y), Iota(n) * Sin(Iota(n)));
    const auto with = (*outer)(Iota(n));
    ASSERT_OK(with);
    ExpectEqual(Leaf(with->outputs), Iota(n) * Sin(Iota(n)));
  }
}

// No session is open here.
TEST(AotFunctionWithoutASession, WritesItsArguments) {
  const auto rules = AotFunctionTesting::rules();
  const auto f = AotFunction::Make(
      [](functional::Tensor x, functional::Tensor dx) {
        x[{{1, 3}}] -= dx;
        return x * 2;
      },
      InterpretCompiler(rules), rules);
  ASSERT_OK(f);
  functional::Tensor x = Vector({1, 2, 3, 4});
  const functional::Tensor view = x.Reverse({0});
  for (int step = 1; step <= 2; ++step) {
    const auto y = f->Inference(x, Vector({1, 1}));
    ASSERT_OK(y);
    ExpectEqual(x, Vector({1, 2.0 - step, 3.0 - step, 4}));
    ExpectEqual(view, Vector({4, 3.0 - step, 2.0 - step, 1}));
    ExpectEqual(Leaf(*y), Vector({2, 4.0 - 2 * step, 6.0 - 2 * step, 8}));
  }
  // Through a view, too.
  functional::Tensor whole = Vector({0, 0, 0, 0, 0, 0, 0, 5});
  const auto y = f->Inference(whole.Slice({Dim(4)}, {Dim(4)}), Vector({1, 2}));
  ASSERT_OK(y);
  ExpectEqual(whole, Vector({0, 0, 0, 0, 0, -1, -2, 5}));
  EXPECT_EQ(functional::CurrentSession(), nullptr);
}

}  // namespace
}  // namespace cleave::aot
