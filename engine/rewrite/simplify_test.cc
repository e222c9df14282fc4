#include "engine/rewrite/simplify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/rewrite_rule.h"
#include "ops/budget.h"
#include "ops/tensor.h"
#include "testing/golden_file.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::IsEmpty;

// rules/simplify, and `extra`.
LoadResult Load(const std::shared_ptr<Context>& context,
                const std::string& extra) {
  std::map<std::string, std::string> texts;
  for (const auto& entry :
       std::filesystem::directory_iterator("rules/simplify")) {
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    texts[entry.path()] = text.str();
  }
  std::vector<NamedSource> sources;
  for (const auto& [path, text] : texts) sources.push_back({path, text});
  if (!extra.empty()) sources.push_back({"in.rules", extra});
  return LoadRules(sources, context);
}

std::shared_ptr<const RuleSet> Shipped() {
  LoadResult loaded = Load(std::make_shared<Context>(), "");
  EXPECT_THAT(loaded.diagnostics, IsEmpty());
  return loaded.rules;
}

// Nodes but inputs, constants and their broadcasts.
int64_t Operations(const Graph& graph) {
  int64_t count = 0;
  std::vector<bool> constant(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    const OpId op = graph.node(v).op;
    constant[id] = op == ToOpId(Primitive::kConstant) ||
                   (op == ToOpId(Primitive::kBroadcastInDim) &&
                    constant[graph.operands(v)[0].id]);
    count += !constant[id] && op != ToOpId(Primitive::kInput);
  }
  return count;
}

// In each case `f` is expanded and simplified; `// approx` allows rewrites that
// are true over the reals only.
TEST(Simplify, Golden) {
  TestGoldenFile(
      "engine/rewrite/testdata/simplify.golden", [](absl::string_view input) {
        const LoadResult loaded =
            Load(std::make_shared<Context>(), std::string(input));
        if (loaded.rules == nullptr) {
          std::string text;
          for (const std::string& d : loaded.diagnostics) text += d;
          return text;
        }
        const absl::StatusOr<Graph> calls = loaded.rules->Function("f");
        if (!calls.ok()) return calls.status().ToString();
        const absl::StatusOr<Graph> graph = Expand(*calls, *loaded.rules);
        if (!graph.ok()) return graph.status().ToString();
        SimplifyOptions options;
        options.approx = absl::StrContains(input, "// approx");
        const Graph simple = Simplify(*graph, *loaded.rules, options);
        EXPECT_OK(Verify(simple));
        EXPECT_LE(Operations(simple), Operations(*graph));
        PrintOptions print;
        print.provenance = true;
        return PrintGraph(simple, print);
      });
}

std::string Refusal(const std::string& rewrite) {
  const LoadResult loaded =
      LoadRules({{"in.rules", absl::StrCat("language 1\n\n", rewrite, "\n")}},
                std::make_shared<Context>());
  return loaded.diagnostics.empty() ? "accepted" : loaded.diagnostics[0];
}

TEST(Rewrite, RefusesWhatMayNotEnd) {
  for (const char* rewrite : {
           "rewrite r: x + y => y + x",
           "rewrite r: sin(x) => sin(x)",
           "rewrite r: exp(x) => exp(-(-x))",
           "rewrite r: sin(cos(exp(x))) => x * x",
           "rewrite r: exp(sin(x) * y) => sin(y) * y",
           // Where exp(x) has other users, it stays, and two more are made.
           "rewrite r: exp(x) * exp(y) => exp(x + y) real",
       }) {
    EXPECT_THAT(Refusal(rewrite), ::testing::HasSubstr("[not-smaller]"))
        << rewrite;
  }
  for (const char* rewrite : {
           "rewrite r: exp(-(-x)) => exp(x)",
           "rewrite r: log(exp(x)) => x real",
           "rewrite r: exp(x) * (1 - y) + exp(x) * y => exp(x) real",
           "rewrite r: sqrt(exp(x) * exp(x)) => exp(x) real",
           "rewrite r: sin(x) - sin(x) => 0 where x: float",
       }) {
    EXPECT_EQ(Refusal(rewrite), "accepted") << rewrite;
  }
}

TEST(Rewrite, SaysTheDTypesAtWhichItApplies) {
  const std::shared_ptr<const RuleSet> rules = Shipped();
  const Context& context = *rules->context();
  const Rewrite* times = rules->rewrites().Find("times_one");
  ASSERT_NE(times, nullptr);
  ASSERT_EQ(times->dtypes.size(), 1u);
  for (DType dtype : AllDTypes()) {
    EXPECT_EQ(times->Types(context, {dtype}), IsFloat(dtype) || IsInt(dtype))
        << DTypeName(dtype);
  }
  const Rewrite* exp = rules->rewrites().Find("log_exp");
  ASSERT_NE(exp, nullptr);
  EXPECT_TRUE(exp->real);
  for (DType dtype : AllDTypes()) {
    EXPECT_EQ(exp->Types(context, {dtype}), IsFloat(dtype)) << DTypeName(dtype);
  }
  EXPECT_EQ(rules->rewrites().Find("no_such"), nullptr);
}

// Random graphs of what rewrites are about, on one shape, with constants.
class RandomGraph {
 public:
  RandomGraph(const std::shared_ptr<Context>& context, uint64_t seed)
      : builder_(context), random_(seed) {
    for (DType dtype : kDTypes) {
      for (int i = 0; i < 2; ++i) {
        values_[dtype].push_back(builder_.Input(
            absl::StrCat(DTypeName(dtype), i), TensorType{dtype, Shape()}));
      }
    }
  }

  Graph Make(int operations) {
    for (int i = 0; i < operations; ++i) {
      const DType dtype = kDTypes[Pick(std::size(kDTypes))];
      const Value made = dtype == DType::kBool ? Truth() : Number(dtype);
      values_[dtype].push_back(made);
    }
    std::vector<NamedValue> outputs;
    for (DType dtype : kDTypes) {
      for (size_t i = 0; i < 3; ++i) {
        outputs.push_back({absl::StrCat(DTypeName(dtype), "_out", i),
                           values_[dtype][values_[dtype].size() - 1 - i]});
      }
    }
    return *std::move(builder_).Build(std::move(outputs));
  }

  static std::vector<int64_t> Extents() { return {5, 7}; }

 private:
  static constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kI32,
                                      DType::kC64, DType::kBool};

  static cleave::Shape Shape() { return {Dim(5), Dim(7)}; }
  size_t Pick(size_t count) { return random_() % count; }

  // One of the last values: parts are shared, and rewrites meet.
  Value Some(DType dtype) {
    const std::vector<Value>& all = values_[dtype];
    const size_t recent = std::min<size_t>(all.size(), 6);
    return all[all.size() - 1 - Pick(recent)];
  }

  Value Constant(DType dtype) {
    return builder_.Constant(
        Exact(dtype == DType::kBool ? Pick(2) : Pick(3) - 1),
        TensorType{dtype, Shape()});
  }

  Value Operand(DType dtype) {
    return Pick(4) == 0 ? Constant(dtype) : Some(dtype);
  }

  Value Truth() {
    using P = Primitive;
    const DType dtype = kDTypes[Pick(3)];
    switch (Pick(6)) {
      case 0:
      case 1:
        return builder_.Apply(P::kNot, {Some(DType::kBool)});
      case 2:
        return builder_.Apply(Pick(2) == 0 ? P::kAnd : P::kOr,
                              {Some(DType::kBool), Some(DType::kBool)});
      case 3:
        return Moved(Some(DType::kBool));
      default: {
        const P compare[] = {P::kEq, P::kNe, P::kLt, P::kLe, P::kGt, P::kGe};
        return builder_.Apply(compare[Pick(6)],
                              {Operand(dtype), Operand(dtype)});
      }
    }
  }

  Value Number(DType dtype) {
    using P = Primitive;
    switch (Pick(8)) {
      case 0:
        return builder_.Apply(P::kNeg, {Operand(dtype)});
      case 1:
        if (dtype == DType::kC64) return Moved(Some(dtype));
        return builder_.Apply(P::kAbs, {Some(dtype)});
      case 2:
        return builder_.Apply(P::kSelect,
                              {Some(DType::kBool), Some(dtype), Some(dtype)});
      case 3:
        return Moved(Operand(dtype));
      case 4:
        if (dtype == DType::kC64) break;
        if (IsFloat(dtype)) {
          return builder_.Apply(Pick(2) == 0 ? P::kDiv : P::kPow,
                                {Some(dtype), Operand(dtype)});
        }
        return builder_.Apply(
            Pick(2) == 0 ? P::kFloorDiv : P::kFloorMod,
            {Some(dtype), builder_.Constant(Exact(Pick(2) + 1),
                                            TensorType{dtype, Shape()})});
      case 5:
        if (dtype == DType::kC64) break;
        return builder_.Apply(Pick(2) == 0 ? P::kMax : P::kMin,
                              {Some(dtype), Some(dtype)}, {{"tie", "even"}});
      default:
        break;
    }
    const P arithmetic[] = {P::kAdd, P::kSub, P::kMul};
    return builder_.Apply(arithmetic[Pick(3)],
                          {Operand(dtype), Operand(dtype)});
  }

  // Movement there and back, or that of a constant.
  Value Moved(Value x) {
    const std::vector<int> axes = {static_cast<int>(Pick(2))};
    switch (Pick(3)) {
      case 0:
        return builder_.Apply(Primitive::kReverse, {x},
                              {{"axes", StaticValue::Ints(axes)}});
      case 1:
        return builder_.Transpose(
            builder_.Apply(Primitive::kReverse, {builder_.Transpose(x, {1, 0})},
                           {{"axes", StaticValue::Ints(axes)}}),
            {1, 0});
      default:
        return builder_.Reshape(
            builder_.Apply(Primitive::kReverse,
                           {builder_.Reshape(x, {Dim(35)})},
                           {{"axes", StaticValue::Ints(std::vector<int>{0})}}),
            Shape());
    }
  }

  GraphBuilder builder_;
  std::mt19937_64 random_;
  std::map<DType, std::vector<Value>> values_;
};

std::vector<Tensor> SpecialInputs(const Graph& graph, std::mt19937_64& random) {
  const double inf = std::numeric_limits<double>::infinity();
  const double floats[] = {0.0, -0.0,         1.0,  -1.0, inf,    -inf,
                           1.5, std::nan(""), 6e-8, 0.1,  -3.0e4, 65504};
  const int64_t ints[] = {0,
                          1,
                          -1,
                          2,
                          7,
                          std::numeric_limits<int32_t>::min(),
                          std::numeric_limits<int32_t>::max()};
  std::vector<Tensor> inputs;
  for (const NamedValue& input : graph.inputs()) {
    Tensor tensor(graph.type(input.value).dtype, RandomGraph::Extents());
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const DType dtype = tensor.dtype();
      if (IsBool(dtype)) {
        tensor.SetInt(i, random() % 2);
      } else if (IsInt(dtype)) {
        tensor.SetInt(i, ints[random() % std::size(ints)]);
      } else if (IsComplex(dtype)) {
        tensor.SetComplex(i, {floats[random() % std::size(floats)],
                              floats[random() % std::size(floats)]});
      } else {
        tensor.SetDouble(i, floats[random() % std::size(floats)]);
      }
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

TEST(Simplify, RandomGraphsKeepTheirBits) {
  const std::shared_ptr<const RuleSet> rules = Shipped();
  std::mt19937_64 random(7);
  int64_t before = 0;
  int64_t after = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Graph graph = RandomGraph(rules->context(), seed).Make(80);
    const Graph simple = Simplify(graph, *rules);
    ASSERT_OK(Verify(simple));
    before += Operations(graph);
    after += Operations(simple);
    ASSERT_LE(Operations(simple), Operations(graph));
    const std::vector<Tensor> inputs = SpecialInputs(graph, random);
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                         Interpret(graph, inputs));
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got,
                         Interpret(simple, inputs));
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_TRUE(SameValue(want[i], got[i]))
          << graph.outputs()[i].name << " of\n"
          << PrintGraph(graph) << "\nwith rewrites\n"
          << PrintGraph(simple);
    }
    // Nothing is left to do.
    EXPECT_EQ(PrintGraph(Simplify(simple, *rules)), PrintGraph(simple));
  }
  std::cout << before << " operations became " << after << "\n";
  EXPECT_LT(after, before * 9 / 10);
}

// Each prefix of a chain ends in a node that is rewritten from end to end: the
// bound keeps the pass linear, and leaves what is true.
TEST(Simplify, LongChainsTakeBoundedWork) {
  auto context = std::make_shared<Context>();
  const LoadResult loaded = Load(context,
                                 "language 1\n\n"
                                 "rewrite r: sin(cos(x)) => sin(x) real\n");
  ASSERT_NE(loaded.rules, nullptr);
  GraphBuilder b(context);
  Value x = b.Input("x", TensorType{DType::kF32, {}});
  for (int i = 0; i < 3 * kMaxRewritesPerNode; ++i) {
    x = b.Apply(Primitive::kCos, {x});
  }
  const Value y = b.Apply(Primitive::kSin, {x});
  const Graph graph = *std::move(b).Build({{"y", y}});
  SimplifyOptions approx;
  approx.approx = true;
  const Graph simple = Simplify(graph, *loaded.rules, approx);
  EXPECT_EQ(Operations(graph) - Operations(simple), kMaxRewritesPerNode);
  EXPECT_EQ(Operations(Simplify(graph, *loaded.rules)), Operations(graph));
}

// The rewrites are compiled for the rule set, not for the call that needs them
// first.
TEST(Simplify, CancelledCallCompilesRewrites) {
  auto context = std::make_shared<Context>();
  const LoadResult loaded =
      Load(context, "language 1\n\nrewrite r: sin(cos(x)) => sin(x) real\n");
  ASSERT_NE(loaded.rules, nullptr);
  GraphBuilder b(context);
  const Value x = b.Input("x", TensorType{DType::kF32, {}});
  const Value y = b.Apply(Primitive::kSin, {b.Apply(Primitive::kCos, {x})});
  const Graph graph = *std::move(b).Build({{"y", y}});
  const std::atomic<bool> cancelled{true};
  Limits limits;
  limits.cancelled = &cancelled;
  limits.expressions = 1;
  SimplifyOptions approx;
  approx.approx = true;
  {
    const BudgetScope scope(limits);
    Simplify(graph, *loaded.rules, approx);
  }
  EXPECT_EQ(Operations(Simplify(graph, *loaded.rules, approx)), 1);
}

}  // namespace
}  // namespace cleave
