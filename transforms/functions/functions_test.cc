// Transformed functions against finite differences, loops of single calls, and
// each other.

#include "transforms/functions/functions.h"

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/eager/atomic.h"
#include "engine/eager/call.h"
#include "engine/eager/core_ops.h"
#include "engine/eager/functional_testing.h"
#include "engine/eager/lift.h"
#include "engine/eager/trace_scope.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/aot/aot_function.h"
#include "transforms/functions/derived_graphs.h"

namespace cleave::functional {

struct Layer {
  Tensor weight;
  Tensor bias;
};
CLEAVE_TREE(Layer, weight, bias);

namespace {

using ::testing::HasSubstr;

Tensor Doubles(std::vector<int64_t> shape, const std::vector<double>& values) {
  return cleave::Tensor::FromDoubles(DType::kF64, std::move(shape), values);
}
Tensor Scalar(double value) { return Doubles({}, {value}); }

std::vector<double> ValuesOf(const Tensor& x) {
  const absl::StatusOr<cleave::Tensor> value = x.Concrete();
  EXPECT_OK(value);
  std::vector<double> values;
  for (int64_t i = 0; value.ok() && i < value->size(); ++i) {
    values.push_back(value->GetDouble(i));
  }
  return values;
}

void ExpectNear(const Tensor& x, const Tensor& wanted,
                double tolerance = 1e-12) {
  ASSERT_OK(x.status());
  ASSERT_OK(wanted.status());
  ASSERT_EQ(x.type(), wanted.type());
  const std::vector<double> have = ValuesOf(x);
  const std::vector<double> want = ValuesOf(wanted);
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(have[i], want[i], tolerance * (1 + std::abs(want[i])))
        << "element " << i;
  }
}

// The gradient of a scalar function by central differences.
Tensor Differences(const std::function<Tensor(const Tensor&)>& f,
                   const Tensor& x) {
  constexpr double kStep = 1e-5;
  const cleave::Tensor at = *x.Concrete();
  std::vector<double> gradient;
  for (int64_t i = 0; i < at.size(); ++i) {
    double sides[2];
    for (const int side : {0, 1}) {
      std::vector<double> values = ValuesOf(x);
      values[i] += side == 0 ? -kStep : kStep;
      sides[side] = *f(Doubles(at.shape(), values)).Item();
    }
    gradient.push_back((sides[1] - sides[0]) / (2 * kStep));
  }
  return Doubles(at.shape(), gradient);
}

// Not symmetric in anything.
Tensor Energy(const Tensor& x, const Tensor& w) {
  return Sum(Sin(Matmul(x, w)) * Matmul(x, w)) + Sum(w * w * w);
}
Tensor Wave(const Tensor& x) { return Sin(x) * x * x * x; }

const Tensor& X() {
  static const auto* const x =
      new Tensor(Doubles({2, 3}, {0.5, -1, 2, 0.25, 1.5, -0.75}));
  return *x;
}
const Tensor& W() {
  static const auto* const w = new Tensor(Doubles({3}, {0.3, -0.6, 1.1}));
  return *w;
}

class FunctionsTest : public SessionTest {};

TEST_F(FunctionsTest, TheHeadersExample) {
  const auto loss = [](const Tensor& w, const Tensor& x) {
    return Sum(Sin(Matmul(x, w)));
  };
  const Tensor w = Doubles({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor xs = Doubles({4, 2, 3}, {1, 0, 2, 1, 1, 0, 0, 1, 2, 2, 1, 1,  //
                                        1, 1, 1, 0, 0, 2, 2, 0, 1, 1, 0, 0});
  const Tensor x = xs[{0}].Clone();
  const Tensor dw = Grad(loss)(w, x);
  ExpectNear(dw, Differences([&](const Tensor& at) { return loss(at, x); }, w),
             1e-7);
  const Tensor each = Vmap(Grad(loss), {kNotMapped, 0})(w, xs);
  ASSERT_OK(each.status());
  for (int i = 0; i < 4; ++i) {
    ExpectNear(each[{i}].Clone(), Grad(loss)(w, xs[{i}].Clone()));
  }
  const auto [y, dy] =
      Jvp(loss)(w, x, Ones(DType::kF64, {3, 2}), Zeros(DType::kF64, {2, 3}));
  ExpectNear(y, loss(w, x));
  ExpectNear(dy, Sum(dw));
}

TEST_F(FunctionsTest, GradIsWhatDifferencesSay) {
  const Tensor dx =
      Differences([](const Tensor& x) { return Energy(x, W()); }, X());
  const Tensor dw =
      Differences([](const Tensor& w) { return Energy(X(), w); }, W());
  ExpectNear(Grad(Energy)(X(), W()), dx, 1e-7);
  ExpectNear(Grad<1>(Energy)(X(), W()), dw, 1e-7);
  const auto [in_w, in_x] = Grad<1, 0>(Energy)(X(), W());
  ExpectNear(in_w, dw, 1e-7);
  ExpectNear(in_x, dx, 1e-7);
  const auto [value, gradient] = ValueAndGrad<1>(Energy)(X(), W());
  ExpectNear(value, Energy(X(), W()));
  ExpectNear(gradient, dw, 1e-7);
  const auto both = ValueAndGrad<0, 1>(Energy)(X(), W());
  ASSERT_OK(both);
  ExpectNear(both->first, value);
  ExpectNear(std::get<0>(both->second), dx, 1e-7);
}

TEST_F(FunctionsTest, GradientsHaveTheArgumentsStructure) {
  const auto loss = [](const Layer& layer,
                       const std::map<std::string, Tensor>& in) {
    return Sum(Sin(Matmul(in.at("x"), layer.weight) + layer.bias));
  };
  const Layer layer{W(), Doubles({2}, {0.1, 0.2})};
  const std::map<std::string, Tensor> in = {{"x", X()},
                                            {"step", Ints({}, {3})}};
  const absl::StatusOr<Layer> gradient = Grad(loss)(layer, in);
  ASSERT_OK(gradient);
  ExpectNear(gradient->weight,
             Differences(
                 [&](const Tensor& w) {
                   return loss(Layer{w, layer.bias}, in);
                 },
                 W()),
             1e-7);
  ExpectNear(gradient->bias, Cos(Matmul(X(), W()) + layer.bias));
  // A leaf of an exact dtype has none.
  const auto of_map = Grad<1>(loss)(layer, in);
  ASSERT_OK(of_map);
  EXPECT_FALSE(of_map->at("step").valid());
  EXPECT_EQ(of_map->at("x").type(), X().type());
}

TEST_F(FunctionsTest, VmapIsTheLoop) {
  const auto f = [](const Tensor& x, const Tensor& w) {
    return std::make_pair(Sin(x) * w, Sum(x));
  };
  const Tensor ws = Doubles({3, 2}, {1, 2, 3, 4, 5, 6});
  const auto both = Vmap(f, {0, 1}, {1, 0})(X(), ws);
  ASSERT_OK(both.first.status());
  EXPECT_EQ(both.first.shape(), (Shape{3, 2}));
  for (int i = 0; i < 2; ++i) {
    const auto one = f(X()[{i}], ws[{kAll, i}]);
    ExpectNear(both.first[{kAll, i}].Clone(), one.first);
    ExpectNear(both.second[{i}].Clone(), one.second);
  }
  // One that no example changes is repeated, unless it is said not to be.
  const auto constant = [](const Tensor& x, const Tensor& w) {
    return std::make_pair(x, Cos(w));
  };
  const auto kept = Vmap(constant, {0, kNotMapped}, {0, kNotMapped})(X(), W());
  ExpectNear(kept.second, Cos(W()));
  const auto repeated = Vmap(constant, {0, kNotMapped})(X(), W());
  EXPECT_EQ(repeated.second.shape(), (Shape{2, 3}));
  // Trees of axes.
  const auto of_layer = [](const Layer& layer, const std::vector<Tensor>& xs) {
    return xs[0] * layer.weight + layer.bias + xs[1];
  };
  const Tensor biases = Doubles({2}, {10, 20});
  const Tensor deep = Vmap(of_layer, {{kNotMapped, 0}, {0, kNotMapped}})(
      Layer{W(), biases}, std::vector<Tensor>{X(), W()});
  for (int i = 0; i < 2; ++i) {
    ExpectNear(deep[{i}].Clone(),
               of_layer(Layer{W(), biases[{i}]}, {X()[{i}], W()}));
  }
  // Nested.
  const Tensor outer =
      Vmap(Vmap([](const Tensor& a, const Tensor& b) { return a * b; },
                {kNotMapped, 0}),
           {0, kNotMapped})(W(), Doubles({2}, {2, 5}));
  EXPECT_EQ(outer.shape(), (Shape{3, 2}));
  ExpectNear(outer[{1, 1}].Clone(), Scalar(-3));
}

TEST_F(FunctionsTest, VmapSplitsKeys) {
  const auto draw = [](const Tensor& key, const Tensor& x) {
    return x * CallOne("random_uniform", {key},
                       {{"shape", StaticValue::Dims({Dim(3)})},
                        {"dtype", DType::kF64}});
  };
  const Tensor key = cleave::Tensor::FromInts(DType::kKey, {}, {42});
  const Tensor ones = Ones(DType::kF64, {2, 3});
  const Tensor split = Vmap(draw, {kSplit, 0})(key, ones);
  const Tensor shared = Vmap(draw, {kNotMapped, 0})(key, ones);
  ASSERT_OK(split.status());
  EXPECT_NE(ValuesOf(split[{0}]), ValuesOf(split[{1}]));
  EXPECT_EQ(ValuesOf(shared[{0}]), ValuesOf(shared[{1}]));
}

TEST_F(FunctionsTest, JvpIsTheDirectionalDerivative) {
  const Tensor direction = Doubles({3}, {1, -2, 0.5});
  const auto [y, dy] = Jvp(Energy)(X(), W(), Tensor(), direction);
  ExpectNear(y, Energy(X(), W()));
  ExpectNear(dy, Sum(Grad<1>(Energy)(X(), W()) * direction));
  // Exact results have no tangent, and those that nothing reaches are zeros.
  const auto f = [](const Tensor& x) {
    return std::make_tuple(x > 0, Sin(x), Zeros(DType::kF64, {2}));
  };
  const auto both = Jvp(f)(W(), direction);
  ASSERT_OK(both);
  EXPECT_FALSE(std::get<0>(both->second).valid());
  ExpectNear(std::get<1>(both->second), Cos(W()) * direction);
  ExpectNear(std::get<2>(both->second), Zeros(DType::kF64, {2}));
}

TEST_F(FunctionsTest, VjpKeepsWhatItsPullbackNeeds) {
  const auto f = [](const Tensor& x, const Tensor& w) {
    return Sin(Matmul(x, w)) * 2;
  };
  const auto y = Vjp(f)(X(), W());
  ASSERT_OK(y);
  ExpectNear(y->value, f(X(), W()));
  const Tensor cotangent = Doubles({2}, {1, -3});
  for (int i = 0; i < 2; ++i) {
    const auto [dx, dw] = y->pullback(cotangent);
    const auto weighted = [&](const Tensor& a, const Tensor& b) {
      return Sum(f(a, b) * cotangent);
    };
    ExpectNear(dx, Grad(weighted)(X(), W()));
    ExpectNear(dw, Grad<1>(weighted)(X(), W()));
  }
  // One argument stands alone; absent cotangents are zeros.
  const auto pair =
      Vjp([](const Tensor& x) { return std::make_pair(x * x, Cos(x)); })(W());
  ASSERT_OK(pair);
  ExpectNear(pair->pullback({Ones(DType::kF64, {3}), Tensor()}), W() * 2);
}

TEST_F(FunctionsTest, NestsToThirdOrder) {
  // f = x^3 sin x.
  const double x = 0.7;
  const double s = std::sin(x);
  const double c = std::cos(x);
  const Tensor at = Scalar(x);
  ExpectNear(Grad(Wave)(at), Scalar(3 * x * x * s + x * x * x * c));
  ExpectNear(Grad(Grad(Wave))(at),
             Scalar(6 * x * s + 6 * x * x * c - x * x * x * s));
  const double third = 6 * s + 18 * x * c - 9 * x * x * s - x * x * x * c;
  ExpectNear(Grad(Grad(Grad(Wave)))(at), Scalar(third));
  const Tensor one = Scalar(1);
  // Each other way to the same.
  const auto forward = [&](const Tensor& v) {
    return Jvp(Wave)(v, one).second;
  };
  const auto twice = [&](const Tensor& v) {
    return Jvp(forward)(v, one).second;
  };
  ExpectNear(Jvp(twice)(at, one).second, Scalar(third));
  ExpectNear(Grad(twice)(at), Scalar(third));
  ExpectNear(Jvp(Grad(Grad(Wave)))(at, one).second, Scalar(third));
  const auto pulled = [&](const Tensor& v) -> absl::StatusOr<Tensor> {
    CLEAVE_ASSIGN_OR_RETURN(const auto y, Vjp(Grad(Wave))(v));
    return y.pullback(one);
  };
  ExpectNear(Grad(pulled)(at), Scalar(third));
}

TEST_F(FunctionsTest, TransformsNestInAnyOrder) {
  const auto row = [](const Tensor& x) { return Sum(Wave(x)); };
  const Tensor ones = Ones(DType::kF64, {2, 3});
  const Tensor each = Vmap(Grad(row))(X());
  for (int i = 0; i < 2; ++i) {
    ExpectNear(each[{i}].Clone(), Grad(row)(X()[{i}].Clone()));
  }
  const auto total = [&](const Tensor& x) { return Sum(Vmap(row)(x)); };
  ExpectNear(Grad(total)(X()), each);
  ExpectNear(Jvp(Vmap(row))(X(), ones).second, Vmap([&](const Tensor& x) {
               return Jvp(row)(x, Ones(DType::kF64, {3})).second;
             })(X()));
  // A Hessian by columns, against differences of gradients.
  const auto energy = [](const Tensor& w) { return Energy(X(), w); };
  const Tensor basis = Doubles({3, 3}, {1, 0, 0, 0, 1, 0, 0, 0, 1});
  const Tensor hessian = Vmap([&](const Tensor& direction) {
    return Jvp(Grad(energy))(W(), direction).second;
  })(basis);
  ASSERT_OK(hessian.status());
  for (int i = 0; i < 3; ++i) {
    const Tensor differences =
        Differences([&](const Tensor& w) { return Grad(energy)(w)[{i}]; }, W());
    ExpectNear(hessian[{i}].Clone(), differences, 1e-7);
    ExpectNear(hessian[{kAll, i}].Clone(), differences, 1e-7);
  }
  // And by reverse mode over reverse mode, batched.
  const Tensor reversed = Vmap([&](const Tensor& cotangent) {
    const auto y = Vjp(Grad(energy))(W());
    return y.ok() ? y->pullback(cotangent) : Tensor::Invalid(y.status());
  })(basis);
  ExpectNear(reversed, hessian);
}

TEST_F(FunctionsTest, CapturedTensorsAreVariablesOfTransformsAround) {
  // d2/dxdy of x^2 y^3.
  const Tensor x = Scalar(2);
  const auto in_y = [&](const Tensor& y) {
    return Grad([&](const Tensor& v) { return v * v * y * y * y; })(x);
  };
  ExpectNear(in_y(Scalar(3)), Scalar(108));
  ExpectNear(Grad(in_y)(Scalar(3)), Scalar(108));
  ExpectNear(Vmap(Grad(in_y))(Doubles({2}, {3, 1})), Doubles({2}, {108, 12}));
  // A captured tensor is read at each call.
  Tensor scale = Scalar(2);
  const auto scaled = Grad([&](const Tensor& v) { return v * v * scale; });
  ExpectNear(scaled(x), Scalar(8));
  scale = Scalar(5);
  ExpectNear(scaled(x), Scalar(20));
  scale += 1;
  ExpectNear(scaled(x), Scalar(24));
}

TEST_F(FunctionsTest, ComposesWithLiftAtomicAndAotFunctions) {
  const auto lifted =
      Lift([](const TracedValue& x) { return trace::Sin(x) * x * x * x; });
  const Tensor at = Scalar(0.7);
  ExpectNear(Grad(lifted)(at), Grad(Wave)(at));
  ExpectNear(Grad(Grad(lifted))(at), Grad(Grad(Wave))(at));
  ExpectNear(Vmap(lifted)(W()), Wave(W()));
  const auto atomic = Atomic([](const Tensor& x) { return Wave(x); });
  ExpectNear(Grad(atomic)(at), Grad(Wave)(at));
  const Tensor within = Atomic(
      [](const Tensor& x) { return Grad(Wave)(x) + Grad(Grad(Wave))(x); })(at);
  ExpectNear(within, Grad(Wave)(at) + Grad(Grad(Wave))(at));
  // An AotFunction within.
  const auto compiled = aot::AotFunction::Make(
      Wave, aot::InterpretCompiler(SharedRules()), SharedRules());
  ASSERT_OK(compiled);
  const auto call = [&](const Tensor& x) -> absl::StatusOr<Tensor> {
    CLEAVE_ASSIGN_OR_RETURN(const aot::AotResult y, (*compiled)(x));
    return y.outputs.leaves()[0];
  };
  ExpectNear(Grad(Grad(call))(at), Grad(Grad(Wave))(at));
  ExpectNear(Vmap(Grad(call))(W()), Vmap(Grad(Wave))(W()));
  // And around.
  const auto gradient = aot::AotFunction::Make(
      Vmap(Grad(Wave)), aot::InterpretCompiler(SharedRules()), SharedRules());
  ASSERT_OK(gradient);
  const auto dy = (*gradient)(W());
  ASSERT_OK(dy);
  ExpectNear(dy->outputs.leaves()[0], Vmap(Grad(Wave))(W()));
  const auto second = dy->backward(Ones(DType::kF64, {3}));
  ASSERT_OK(second);
  ExpectNear(second->outputs.leaves()[0], Vmap(Grad(Grad(Wave)))(W()));
}

TEST_F(FunctionsTest, RunsAsOneGraphThatIsMadeOnce) {
  const auto gradient = Vmap(Grad(Wave));
  DerivedGraphs& derived = DerivedGraphs::Of(SharedRules());
  ASSERT_OK(gradient(W()).status());
  const int64_t made = derived.made();
  session_.ResetStatistics();
  for (int i = 0; i < 3; ++i) ASSERT_OK(gradient(W() * Scalar(i)).status());
  EXPECT_EQ(derived.made(), made);
  // A run for each product, and for each gradient.
  EXPECT_EQ(session_.statistics().graphs_run, 6);
  EXPECT_LE(session_.statistics().graphs_compiled, 1);  // the product
  // Another function of the same structure finds its graphs.
  ASSERT_OK(Vmap(Grad([](const Tensor& v) { return Wave(v); }))(W()).status());
  EXPECT_EQ(derived.made(), made);
  // Another type is another graph; what is kept is bounded.
  for (int64_t n = 1; n <= 300; ++n) {
    TraceScope trace(SharedRules());
    ASSERT_OK(gradient(trace.Input("x", {DType::kF64, {Dim(n)}})).status());
  }
  EXPECT_GT(derived.made(), made);
  EXPECT_LE(derived.size(), DerivedGraphs::kMaxGraphs);
}

TEST_F(FunctionsTest, JoinsATraceAlsoWithSymbolicExtents) {
  TraceScope trace(SharedRules());
  const Tensor x = trace.Input("x", {DType::kF64, {Dim::Variable("n")}});
  const Tensor y = Vmap(Grad(Wave))(x);
  ASSERT_OK(y.status());
  EXPECT_EQ(y.type(), x.type());
  ASSERT_OK_AND_ASSIGN(const cleave::Value value, trace.Read(y));
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       std::move(trace).Finish({{"y", value}}));
  EXPECT_THAT(PrintGraph(graph), HasSubstr("cos("));
}

std::string MistakeOf(const Tensor& x) {
  return std::string(x.status().message());
}

TEST_F(FunctionsTest, MistakesAreStatuses) {
  const auto id = [](const Tensor& x) { return x; };
  const auto add = [](const Tensor& a, const Tensor& b) { return a + b; };
  EXPECT_THAT(MistakeOf(Vmap(id, 2)(X())), HasSubstr("in_axes has axis 2 for"));
  EXPECT_THAT(MistakeOf(Vmap(id, -3)(X())), HasSubstr("axes count from 0"));
  EXPECT_THAT(MistakeOf(Vmap(id, kNotMapped)(X())),
              HasSubstr("in_axes names no axis"));
  EXPECT_THAT(MistakeOf(Vmap(id, {0, 0})(X())), HasSubstr("in_axes has 2"));
  EXPECT_THAT(MistakeOf(Vmap(id, 0, 7)(X())), HasSubstr("out_axes[0] is 7"));
  EXPECT_THAT(MistakeOf(Vmap(id, 0, kNotMapped)(X())),
              HasSubstr("depends on the batch"));
  EXPECT_THAT(MistakeOf(Vmap(id, kSplit)(X())), HasSubstr("in_axes names no"));
  EXPECT_THAT(MistakeOf(Vmap(add)(X(), W())),
              HasSubstr("argument 1 has 3 examples, argument 0 has 2"));
  EXPECT_THAT(MistakeOf(Grad(id)(X())),
              HasSubstr("one real float scalar, and the function gives "
                        "f64[2, 3]"));
  EXPECT_THAT(MistakeOf(Grad(id)(Ints({}, {3}))),
              HasSubstr("argument 0 has no tensor with a gradient: it is i64"));
  EXPECT_THAT(MistakeOf(Grad(id)(2.0)),
              HasSubstr("argument 0 is a number without a dtype"));
  EXPECT_THAT(MistakeOf(Jvp(id)(X(), W()).second),
              HasSubstr("tangent 0 is f64[3], its value f64[2, 3]"));
  EXPECT_THAT(MistakeOf(Jvp(id)(Ints({}, {3}), Ints({}, {3})).first),
              HasSubstr("which has none"));
  const auto y = Vjp(id)(W());
  ASSERT_OK(y);
  EXPECT_THAT(MistakeOf(y->pullback(X())),
              HasSubstr("cotangent 0 is f64[2, 3], its value f64[3]"));
  // The function's own, with their place.
  const auto wrong = [](const Tensor& x) {
    return Sum(Matmul(Sin(x), Cos(x)));
  };
  EXPECT_THAT(MistakeOf(Grad(wrong)(X())),
              HasSubstr("matmul, call 3 of the trace: f64[2, 3] by f64[2, 3]"));
  EXPECT_THAT(MistakeOf(Vmap(Grad(wrong))(Ones(DType::kF64, {4, 2, 3}))),
              HasSubstr("matmul, call 3 of the trace"));
  const auto writes = [](Tensor x) {
    x += 1;
    return Sum(x);
  };
  const Tensor kept = W().Clone();
  EXPECT_THAT(MistakeOf(Grad(writes)(kept)),
              HasSubstr("writes its argument 0: it can write a Clone()"));
  ExpectValue(kept, W());
  const auto fails = [](const Tensor&) -> absl::StatusOr<Tensor> {
    return absl::NotFoundError("nothing there");
  };
  EXPECT_EQ(Grad(fails)(W()).status().code(), absl::StatusCode::kNotFound);
  // A value computed from a mistake is that mistake.
  EXPECT_THAT(MistakeOf(Grad(wrong)(Vmap(id, 2)(X()))),
              HasSubstr("in_axes has axis 2"));
  const Layer layer{W(), X()};
  EXPECT_FALSE(Vmap([](const Layer& l) { return l; }, {{0, 1, 0}})(layer).ok());
}

TEST(FunctionsWithoutASession, SayThatThereIsNone) {
  EXPECT_THAT(MistakeOf(Grad(Wave)(Scalar(1))),
              HasSubstr("there is no session on this thread"));
}

}  // namespace
}  // namespace cleave::functional
