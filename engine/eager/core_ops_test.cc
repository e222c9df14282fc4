#include "engine/eager/core_ops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/eager/atomic.h"
#include "engine/eager/core_op_table.h"
#include "engine/eager/functional_testing.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/samples/sampled_call.h"
#include "testing/check/samples/signature_sampler.h"
#include "testing/check/samples/value_sampler.h"
#include "testing/status_matchers.h"
#include "transforms/testing/sample_nodes.h"

namespace cleave::functional {
namespace {

using ::testing::HasSubstr;

class CoreOpsTest : public SessionTest {};

TEST_F(CoreOpsTest, EveryOpAndPrimitiveHasAFunctionOrAReason) {
  std::set<std::string> expected;
  for (const std::string& name : SharedRules()->Names(ItemKind::kOp)) {
    expected.insert(name);
  }
  EXPECT_GT(expected.size(), 100u);
  for (int i = 0; i < kNumPrimitives; ++i) {
    expected.insert(std::string(PrimitiveName(static_cast<Primitive>(i))));
  }
  std::set<std::string> found;
  for (const GeneratedOp& op : GeneratedOps()) {
    EXPECT_TRUE(found.insert(std::string(op.name)).second) << op.name;
    EXPECT_EQ(op.is_primitive, FindPrimitive(op.name).has_value()) << op.name;
  }
  for (const OpWithoutFunction& op : OpsWithoutFunctions()) {
    EXPECT_FALSE(op.why.empty());
    EXPECT_TRUE(found.insert(std::string(op.name)).second) << op.name;
  }
  EXPECT_EQ(found, expected);
}

// The largest difference relative to the largest magnitude; NaN equals NaN.
void ExpectClose(const cleave::Tensor& got, const cleave::Tensor& want) {
  ASSERT_EQ(got.type(), want.type());
  if (!IsFloat(want.dtype()) && !IsComplex(want.dtype())) {
    EXPECT_TRUE(SameValue(got, want))
        << got.ToString() << " is not " << want.ToString();
    return;
  }
  double magnitude = 0;
  for (int64_t i = 0; i < want.size(); ++i) {
    const double size = std::abs(want.GetComplex(i));
    if (std::isfinite(size)) magnitude = std::max(magnitude, size);
  }
  const double tolerance =
      (want.dtype() == DType::kF32 || want.dtype() == DType::kC64 ? 1e-5
                                                                  : 1e-12) *
      (1 + magnitude);
  for (int64_t i = 0; i < want.size(); ++i) {
    const std::complex<double> a = got.GetComplex(i);
    const std::complex<double> b = want.GetComplex(i);
    const auto close = [&](double x, double y) {
      return (std::isnan(x) && std::isnan(y)) || x == y ||
             std::abs(x - y) <= tolerance;
    };
    ASSERT_TRUE(close(a.real(), b.real()) && close(a.imag(), b.imag()))
        << "element " << i << ": " << got.ToString() << " is not "
        << want.ToString();
  }
}

void ExpectAllClose(const std::vector<std::optional<Tensor>>& got,
                    const std::vector<cleave::Tensor>& want) {
  size_t next = 0;
  for (const std::optional<Tensor>& result : got) {
    if (!result.has_value()) continue;
    ASSERT_LT(next, want.size());
    ASSERT_OK_AND_ASSIGN(const cleave::Tensor value, result->Concrete());
    ExpectClose(value, want[next++]);
  }
  EXPECT_EQ(next, want.size());
}

// A call that the op accepts, and what the interpreter makes of it.
struct Sample {
  SampledCall call;
  std::vector<cleave::Tensor> operands;
  std::vector<cleave::Tensor> results;
};

// Calls that no sampler draws.
std::optional<SampledCall> CallOf(absl::string_view op) {
  const TensorType a{DType::kF64, {2, 3}};
  const TensorType b{DType::kF64, {3, 4}};
  SampledCall call;
  call.op = std::string(op);
  if (op == "einsum") {
    call.inputs = {{"xs", true, {a, b}, false}};
    call.attributes = {{"equation", "ij,jk->ki"}};
    return call;
  }
  return std::nullopt;
}

// Fills complex operands, for which the patterns of values have no numbers.
void FillComplex(std::vector<cleave::Tensor>& operands) {
  for (cleave::Tensor& x : operands) {
    if (!IsComplex(x.dtype())) continue;
    cleave::Tensor filled(x.dtype(), x.shape());
    for (int64_t i = 0; i < filled.size(); ++i) {
      filled.SetComplex(i, {0.25 * static_cast<double>(i % 7) - 1,
                            0.5 - 0.125 * static_cast<double>(i % 5)});
    }
    x = std::move(filled);
  }
}

std::optional<Sample> DrawSampleOf(const Item& item, DType dtype) {
  ValueSampler values(7);
  DrawOptions draw;
  draw.dtype = dtype;
  draw.nonempty = true;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    // The function's own defaults in the first draws.
    draw.vary_attributes = seed >= 20;
    SignatureSampler sampler(item, seed);
    absl::StatusOr<SampledCall> call = sampler.Draw(draw);
    if (std::optional<SampledCall> given = CallOf(item.name)) call = *given;
    if (!call.ok()) continue;
    const absl::StatusOr<Graph> graph = MakeCallGraph(*SharedRules(), *call);
    if (!graph.ok() || HasNegativeExtent(*graph)) continue;
    const absl::StatusOr<Graph> body = Expand(*graph, *SharedRules());
    if (!body.ok()) continue;
    Sample sample{*call, values.Tensors(*call, Pattern::kUnit), {}};
    FillComplex(sample.operands);
    absl::StatusOr<std::vector<cleave::Tensor>> results =
        Interpret(*body, sample.operands);
    if (!results.ok()) continue;
    sample.results = *std::move(results);
    return sample;
  }
  return std::nullopt;
}

// In complex numbers where the op takes no others.
std::optional<Sample> DrawSample(const Item& item, DType dtype = DType::kF64) {
  if (std::optional<Sample> sample = DrawSampleOf(item, dtype)) return sample;
  return DrawSampleOf(item, dtype == DType::kF32 ? DType::kC64 : DType::kC128);
}

// The operands as the function's arguments, `of` applied to each.
template <typename Fn>
std::vector<CallArgument> ArgumentsOf(const Sample& sample, const Fn& of) {
  std::vector<CallArgument> arguments;
  size_t next = 0;
  for (const SampledInput& input : sample.call.inputs) {
    CallArgument::List list;
    for (const std::optional<TensorType>& type : input.types) {
      list.push_back(type.has_value()
                         ? std::optional<Tensor>(of(sample.operands[next++]))
                         : std::nullopt);
    }
    if (input.variadic) {
      arguments.push_back(CallArgument(list));
    } else {
      arguments.push_back(list.empty() ? CallArgument(std::nullopt)
                                       : CallArgument(list[0]));
    }
  }
  return arguments;
}
std::vector<CallArgument> ArgumentsOf(const Sample& sample) {
  return ArgumentsOf(sample, [](const cleave::Tensor& x) { return Tensor(x); });
}

TEST_F(CoreOpsTest, EachOpRunsAsTheInterpreterDoes) {
  int run = 0;
  for (const GeneratedOp& op : GeneratedOps()) {
    if (op.is_primitive) continue;
    const Item* item = SharedRules()->Find(op.name);
    ASSERT_NE(item, nullptr) << op.name;
    const std::optional<Sample> sample = DrawSample(*item);
    EXPECT_TRUE(sample.has_value()) << "no sample of " << op.name;
    if (!sample.has_value()) continue;
    SCOPED_TRACE(sample->call.ToString());
    const std::vector<CallArgument> arguments = ArgumentsOf(*sample);
    ExpectAllClose(op.call(arguments, sample->call.attributes),
                   sample->results);
    ++run;
  }
  EXPECT_GT(run, 100);
}

// With a producer and a consumer that fuse: an atomic scope says when ops run,
// and changes no bit of what they compute.
TEST_F(CoreOpsTest, EachOpIsTheSameToTheBitAmongOthersInAnAtomicScope) {
  const auto scaled = [](const Tensor& x) {
    return x.valid() && IsFloat(x.dtype()) ? x * 0.75 : x;
  };
  for (const GeneratedOp& op : GeneratedOps()) {
    if (op.is_primitive) continue;
    const std::optional<Sample> sample =
        DrawSample(*SharedRules()->Find(op.name), DType::kF32);
    EXPECT_TRUE(sample.has_value()) << "no sample of " << op.name;
    if (!sample.has_value()) continue;
    SCOPED_TRACE(sample->call.ToString());
    const auto run = [&]() {
      std::vector<std::optional<Tensor>> results = op.call(
          ArgumentsOf(
              *sample,
              [&](const cleave::Tensor& x) { return scaled(Tensor(x)); }),
          sample->call.attributes);
      for (std::optional<Tensor>& result : results) {
        if (result.has_value()) result = scaled(*result);
      }
      return results;
    };
    const std::vector<std::optional<Tensor>> apart = run();
    const std::vector<std::optional<Tensor>> together = Atomic(run)();
    ASSERT_EQ(apart.size(), together.size());
    for (size_t i = 0; i < apart.size(); ++i) {
      ASSERT_EQ(apart[i].has_value(), together[i].has_value());
      if (!apart[i].has_value()) continue;
      const absl::StatusOr<cleave::Tensor> want = apart[i]->Concrete();
      // An op that rejects the scaled operands rejects them in both.
      if (!want.ok()) {
        EXPECT_EQ(together[i]->Concrete().status().code(),
                  want.status().code());
        continue;
      }
      ExpectValue(*together[i], *want);
    }
  }
}

TEST_F(CoreOpsTest, EachPrimitiveRunsAsTheInterpreterDoes) {
  const std::shared_ptr<Context>& context = SharedRules()->context();
  std::map<Primitive, SampleNode> samples;
  for (const SampleNode& sample : SampleNodes(context)) {
    samples.emplace(sample.primitive, sample);
  }
  for (const GeneratedOp& op : GeneratedOps()) {
    if (!op.is_primitive) continue;
    const auto found = samples.find(*FindPrimitive(op.name));
    EXPECT_NE(found, samples.end()) << "no sample of " << op.name;
    if (found == samples.end()) continue;
    const SampleNode& sample = found->second;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context));
    std::mt19937_64 random(5);
    std::vector<cleave::Tensor> operands;
    std::vector<CallArgument> arguments;
    CallArgument::List list;
    for (const NamedValue& input : graph.inputs()) {
      const TensorType& type = graph.type(input.value);
      operands.push_back(
          DrawTensor(sample, type.dtype, ConstantShape(type), random));
      list.push_back(operands.back());
      arguments.push_back(Tensor(operands.back()));
    }
    if (OperandCount(sample.primitive) < 0) arguments = {CallArgument(list)};
    ASSERT_OK_AND_ASSIGN(const std::vector<cleave::Tensor> results,
                         Interpret(graph, operands));
    ExpectAllClose(op.call(arguments, sample.attributes), results);
  }
}

TEST_F(CoreOpsTest, FunctionsTakeWhatTheirDeclarationsSay) {
  const Tensor x = Floats({2, 2}, {0, 1, 2, 3});
  // A default of the rule; a decimal; a Dim; an enum; an absent result.
  ExpectValue(LeakyRelu(Floats({2}, {-1, 1})), Floats({2}, {-0.01f, 1}));
  ExpectValue(LeakyRelu(Floats({1}, {-1}), 0.5), Floats({1}, {-0.5}));
  ExpectValue(Softmax(Zeros(DType::kF32, {2, 2})),
              Full(DType::kF32, {2, 2}, 0.5));
  ExpectValue(Sum(x), Floats({}, {6}));
  ExpectValue(Sum(x, std::vector<Dim>{0}, true), Floats({1, 2}, {2, 4}));
  ExpectValue(Clamp(x, 1), Floats({2, 2}, {1, 1, 2, 3}));
  ExpectValue(Clamp(x, std::nullopt, 1), Floats({2, 2}, {0, 1, 1, 1}));
  ExpectValue(Where(x > 1, x, -1), Floats({2, 2}, {-1, -1, 2, 3}));
  ExpectValue(Cat({x, x}, 0), Floats({4, 2}, {0, 1, 2, 3, 0, 1, 2, 3}));
  ExpectValue(MseLoss(x, x + 1, "sum"), Floats({}, {4}));
  ExpectValue(Einsum({x, x}, "ij,jk->ik"), Matmul(x, x));
  ExpectValue(Convert(x, DType::kI64), Ints({2, 2}, {0, 1, 2, 3}));
  const auto top = Topk(x, 1);
  ExpectValue(top.values, Floats({2, 1}, {1, 3}));
  const auto norm = LayerNorm(x, std::nullopt, std::nullopt, {2});
  EXPECT_EQ(norm.mean.shape(), Shape{2});
  EXPECT_THAT(MseLoss(x, x, "median").status(),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const auto failed = LayerNorm(x, std::nullopt, std::nullopt, {3});
  EXPECT_EQ(failed.rstd.status(), failed.y.status());
  EXPECT_FALSE(failed.y.valid());
}

}  // namespace
}  // namespace cleave::functional
