#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/budget.h"
#include "ops/dtype.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"
#include "transforms/table/rule_tables.h"
#include "transforms/testing/test_rules.h"
#include "transforms/vmap/parallel_axis.h"
#include "transforms/vmap/unit_axes.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kOps[] = R"(language 1

op smooth(x: T[A.., n@axis, B..], *, axis: axis(x) = -1) -> T[A.., n, B..]
  where T: float
{
  let e = exp(x - nograd(reduce_max(x, axes: [axis])))
  e / reduce_sum(e, axes: [axis])
}

/// The axis is a number here as well: moved, it is another one.
op weighted(x: T[A.., n@axis, B..], *, axis: axis(x)) -> T[A.., n, B..]
  where T: float
  = x / reduce_sum(x, axes: [axis]) * (axis + 2)

op affine(x: T[B.., I], w: T[O, I], bias: T[O]?) -> T[B.., O]
  where T: float
{
  y[b.., o] = sum[i](x[b.., i] * w[o, i]) + (bias[o] ?? 0)
}

op mixed(a: T[S..], b: T[R..], t: T[Q..]) -> T[broadcast([S, R, Q])..]
  where T: float
  = a + t * (b - a)

op same_pack(a: T[S..], b: T[S..]) -> T[S..]
  where T: float
  = a * b - a

op shared_work(a: T[S..], b: T[S..]) -> T[S..]
  where T: float
  = a * exp(b)

op normed(x: T[B.., N..], w: T[N..]?, *, N: dim[]) -> T[B.., N..]
  where T: float
{
  let m[b..] = sum[n..](x[b.., n..]) / size(N)
  y[b.., n..] = (x[b.., n..] - m[b..]) * (w[n..] ?? 1)
}

/// Each n by itself: more of them are as many slices.
op pooled(x: T[N, C, S..], w: T[C]) -> T[N, C]
  where T: float
{
  y[n, c] = sum[s..](exp(x[n, c, s..])) * w[c]
}

op centred(x: T[N, C]) -> T[N, C]
  where T: float
{
  y[n, c] = x[n, c] - sum[m](x[m, c])
}

op numbered(x: T[N, C]) -> T[N, C]
  where T: float
{
  y[n, c] = x[n, c] * n
}

op counted(x: T[N, C]) -> T[N, C]
  where T: float
{
  y[n, c] = x[n, c] / N
}

op halved(x: T[N, C]) -> T[N, C]
  where T: float
  error shape "N must be even" if N % 2 != 0
  = x / 2

op bounded(x: T[S..], w: T[W..]) -> T[S..]
  where T: float
  error shape "w must be a number or a vector" if len(W) > 1
  = x * sum[i..](w[i..])

op products(xs[i]: T[S[i]..], *, equation: str) -> T[P.out..]
  where T: float
  let P = einsum_plan(equation, S)
  = fold(a = 1, s in P.steps) {
    c[u.. < s.out] = sum[v.. < s.summed](a[[(u ++ v)[l] for l in s.left]..]
      * xs[s.operand][[if l < 0 then 0 else (u ++ v)[l] for l in s.right]..])
  }

aten turned(Tensor self, int[] order) -> Tensor
  = transpose(self, axes: order)

aten flipped(Tensor self, int dim, bool twice=False) -> Tensor
  = if twice then self else reverse(self, axes: [dim])
)";

class IdentityTest : public ::testing::Test {
 protected:
  // `graph` with the inputs in `in_axes` batched, printed; each kept result is
  // run beside the loop and the expansion.
  std::string Batch(const std::string& text, const std::vector<int>& in_axes) {
    const absl::StatusOr<Graph> graph = ParseGraph(text, context_);
    EXPECT_THAT(graph, IsOk());
    if (!graph.ok()) return "";
    const std::vector<int> out_axes(graph->outputs().size(), 0);
    const absl::StatusOr<Graph> batched =
        Vmap(*graph, in_axes, Dim::Variable("B"), out_axes, *rules_);
    EXPECT_THAT(batched, IsOk());
    if (!batched.ok()) return "";
    EXPECT_THAT(Verify(*batched), IsOk());
    ExpectLoop(*graph, *batched, in_axes);
    return PrintGraph(*batched);
  }

  // The reason why the only call of the graph was kept or not.
  std::string Why(const std::string& text, const std::vector<bool>& batched) {
    const absl::StatusOr<Graph> graph = ParseGraph(text, context_);
    EXPECT_THAT(graph, IsOk());
    if (!graph.ok()) return "";
    const absl::StatusOr<RuleTable*> table = TableOf(*rules_);
    EXPECT_THAT(table, IsOk());
    if (!table.ok()) return "";
    const auto rule = (*table)->Batch(
        *graph, Value{static_cast<uint32_t>(batched.size())},
        absl::InlinedVector<bool, 8>(batched.begin(), batched.end()),
        (*table)->BatchId(Dim::Variable("B")));
    EXPECT_THAT(rule, IsOk());
    if (!rule.ok()) return "";
    EXPECT_EQ((*rule)->kind, BatchRule::Kind::kDerived);
    return (*rule)->how;
  }

  // Extents 2, 4, 6, .. for n, m, .. in the order of their names; B is 3.
  void ExpectLoop(const Graph& graph, const Graph& batched,
                  const std::vector<int>& in_axes) {
    const absl::StatusOr<Graph> one = Expand(graph, *rules_);
    const absl::StatusOr<Graph> many = Expand(batched, *rules_);
    ASSERT_THAT(one, IsOk());
    ASSERT_THAT(many, IsOk());
    std::map<std::string, int64_t> extents;
    for (const NamedValue& input : graph.inputs()) {
      for (const Dim& d : graph.type(input.value).shape) {
        for (const std::string& name : d.Variables()) extents[name] = 0;
      }
    }
    int64_t next = 0;
    for (auto& [name, extent] : extents) extent = next += 2;
    std::mt19937_64 random(7);
    std::normal_distribution<double> normal;
    std::vector<Tensor> arguments;
    for (size_t i = 0; i < in_axes.size(); ++i) {
      const TensorType& type = graph.type(graph.inputs()[i].value);
      std::vector<int64_t> shape;
      if (in_axes[i] == 0) shape.push_back(kExamples);
      for (const Dim& d : type.shape) {
        const absl::StatusOr<int64_t> extent = d.Evaluate(extents);
        ASSERT_THAT(extent, IsOk());
        shape.push_back(*extent);
      }
      int64_t size = 1;
      for (int64_t extent : shape) size *= extent;
      std::vector<double> values(size);
      for (double& value : values) value = normal(random);
      arguments.push_back(Tensor::FromDoubles(type.dtype, shape, values));
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> all,
                         Interpret(*many, arguments));
    for (int64_t n = 0; n < kExamples; ++n) {
      std::vector<Tensor> slices;
      for (size_t i = 0; i < in_axes.size(); ++i) {
        slices.push_back(in_axes[i] == 0 ? Slice(arguments[i], n)
                                         : arguments[i]);
      }
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                           Interpret(*one, slices));
      for (size_t j = 0; j < expected.size(); ++j) {
        EXPECT_TRUE(SameValue(Slice(all[j], n), expected[j]))
            << "example " << n << "\n"
            << PrintGraph(batched);
      }
    }
  }

  static Tensor Slice(const Tensor& x, int64_t n) {
    Tensor y(x.dtype(), {x.shape().begin() + 1, x.shape().end()});
    if (y.size() > 0) {
      std::memcpy(y.mutable_data(), x.data() + n * y.byte_size(),
                  y.byte_size());
    }
    return y;
  }

  static constexpr int64_t kExamples = 3;
  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_, kOps);
};

// A kept call is proved from the kept calls in the op's body. Expanding each op
// of the chain would make half a million nodes, of which every 1,024 of one
// graph are counted.
TEST_F(IdentityTest, ChainsCostAStepForEachCall) {
  constexpr int kLength = 1100;
  const auto declare = [](int i, const std::string& body) {
    return absl::StrCat("\nop chain", i,
                        "(x: T[S..]) -> T[S..]\n  where T: float\n  = ", body,
                        "\n");
  };
  std::string ops = absl::StrCat("language 1\n", declare(0, "sin(x)"));
  for (int i = 1; i < kLength; ++i) {
    ops += declare(i, absl::StrCat("sin(cos(chain", i - 1, "(x)))"));
  }
  rules_ = LoadTestRules(context_, ops);
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(
graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = chain1099(%x)
  return y = %1
}
)",
                                                     context_));
  Limits limits;
  limits.nodes = 10'000;
  const BudgetScope scope(limits);
  ASSERT_OK_AND_ASSIGN(const Graph batched,
                       Vmap(graph, {0}, Dim::Variable("B"), {0}, *rules_));
  EXPECT_EQ(PrintGraph(batched),
            R"(graph (%x: f32[B, n]) -> (y: f32[B, n]) {
  %1: f32[B, n] = chain1099(%x)
  return y = %1
}
)");
}

TEST_F(IdentityTest, ShiftsAxes) {
  EXPECT_EQ(Batch(R"(
graph (%x: f32[n, m]) -> (y: f32[n, m]) {
  %1: f32[n, m] = smooth(%x, axis: 0)
  return y = %1
}
)",
                  {0}),
            R"(graph (%x: f32[B, n, m]) -> (y: f32[B, n, m]) {
  %1: f32[B, n, m] = smooth(%x, axis: 1)
  return y = %1
}
)");
}

TEST_F(IdentityTest, ExpandsWhereTheAxisMeansMore) {
  const std::string text = R"(
graph (%x: f32[n, m]) -> (y: f32[n, m]) {
  %1: f32[n, m] = weighted(%x, axis: 0)
  return y = %1
}
)";
  EXPECT_THAT(Batch(text, {0}), HasSubstr("reduce_sum(%x, axes: [1])"));
  EXPECT_THAT(Why(text, {true}), HasSubstr("which no example does"));
}

TEST_F(IdentityTest, IsKeptForSomeSubsets) {
  const std::string text = R"(
graph (%x: f32[n], %w: f32[k, n], %b: f32[k]) -> (y: f32[k]) {
  %1: f32[k] = affine(%x, %w, %b)
  return y = %1
}
)";
  EXPECT_THAT(Batch(text, {0, -1, -1}), HasSubstr("affine(%x, %w, %b)"));
  EXPECT_THAT(Batch(text, {-1, 0, -1}), HasSubstr("dot_general"));
  EXPECT_THAT(Batch(text, {0, 0, 0}), HasSubstr("dot_general"));
  EXPECT_THAT(Why(text, {false, true, false}), HasSubstr("w"));
}

TEST_F(IdentityTest, KeepsRightAlignedOperandsAligned) {
  EXPECT_EQ(Batch(R"(
graph (%a: f32[n], %b: f32[n], %t: f32[]) -> (y: f32[n]) {
  %1: f32[n] = mixed(%a, %b, %t)
  return y = %1
}
)",
                  {0, -1, 0}),
            R"(graph (%a: f32[B, n], %b: f32[n], %t: f32[B]) -> (y: f32[B, n]) {
  %1: f32[B, 1] = reshape(%t, shape: [B, 1])
  %2: f32[B, n] = mixed(%a, %b, %1)
  return y = %2
}
)");
}

TEST_F(IdentityTest, RepeatsWhatTheExpansionRepeats) {
  EXPECT_EQ(Batch(R"(
graph (%a: f32[n], %b: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = same_pack(%a, %b)
  return y = %1
}
)",
                  {0, -1}),
            R"(graph (%a: f32[B, n], %b: f32[n]) -> (y: f32[B, n]) {
  %1: f32[B, n] = broadcast_in_dim(%b, axes: [1], shape: [B, n])
  %2: f32[B, n] = same_pack(%a, %1)
  return y = %2
}
)");
  // All examples share one exp(b).
  const std::string text = R"(
graph (%a: f32[n], %b: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = shared_work(%a, %b)
  return y = %1
}
)";
  EXPECT_THAT(Batch(text, {0, -1}), HasSubstr("f32[n] = exp(%b)"));
  EXPECT_THAT(Why(text, {true, false}),
              HasSubstr("compute `exp` of f32[B, n] for each example, which "
                        "they share"));
  EXPECT_THAT(Batch(text, {-1, 0}), HasSubstr("shared_work"));
}

TEST_F(IdentityTest, KeepsListsOfExtents) {
  const std::string text = R"(
graph (%x: f32[n, m], %w: f32[m]) -> (y: f32[n, m]) {
  %1: f32[n, m] = normed(%x, %w, N: [m])
  return y = %1
}
)";
  EXPECT_THAT(Batch(text, {0, -1}), HasSubstr("normed(%x, %w, N: [m])"));
  EXPECT_THAT(Batch(text, {0, 0}), HasSubstr("reduce_sum"));
}

TEST_F(IdentityTest, PutsTheBatchIntoListsOfAxes) {
  EXPECT_THAT(Batch(R"(
graph (%x: f32[n, m]) -> (y: f32[m, n]) {
  %1: f32[m, n] = aten.turned(%x, order: [1, 0])
  return y = %1
}
)",
                    {0}),
              HasSubstr("aten.turned(%x, order: [0, 2, 1])"));
}

TEST_F(IdentityTest, GivesEquationsALetter) {
  const std::string text = R"(
graph (%a: f32[n, m], %b: f32[m, k]) -> (y: f32[n, k]) {
  %1: f32[n, k] = products(%a, %b, equation: "ab,bc->ac", call.layout: [[true, true]])
  return y = %1
}
)";
  EXPECT_THAT(Batch(text, {0, 0}), HasSubstr("\"dab,dbc->dac\""));
  EXPECT_THAT(Batch(text, {0, -1}), HasSubstr("\"dab,bc->dac\""));
}

// A host's axis is an integer, which may count from the end.
TEST_F(IdentityTest, TriesIntegersAsAxes) {
  EXPECT_THAT(Batch(R"(
graph (%x: f32[n, m]) -> (y: f32[n, m]) {
  %1: f32[n, m] = aten.flipped(%x, dim: 0, twice: false)
  return y = %1
}
)",
                    {0}),
              HasSubstr("aten.flipped(%x, dim: 1"));
}

TEST_F(IdentityTest, MergesTheBatchIntoAParallelAxis) {
  EXPECT_EQ(Batch(R"(
graph (%x: f32[n, m, k], %w: f32[m]) -> (y: f32[n, m]) {
  %1: f32[n, m] = pooled(%x, %w)
  return y = %1
}
)",
                  {0, -1}),
            R"(graph (%x: f32[B, n, m, k], %w: f32[m]) -> (y: f32[B, n, m]) {
  %1: f32[B*n, m, k] = reshape(%x, shape: [B*n, m, k])
  %2: f32[B*n, m] = pooled(%1, %w)
  %3: f32[B, n, m] = reshape(%2, shape: [B, n, m])
  return y = %3
}
)");
}

TEST_F(IdentityTest, MergesNothingElse) {
  for (const char* op : {"centred", "numbered", "counted", "halved"}) {
    const std::string text = absl::StrCat(R"(
graph (%x: f32[n, m]) -> (y: f32[n, m]) {
  %1: f32[n, m] = )",
                                          op, R"((%x)
  return y = %1
}
)");
    EXPECT_THAT(Batch(text, {0}), ::testing::Not(HasSubstr("B*n"))) << op;
  }
}

// An error that the declaration states is one of the batched call, too.
TEST_F(IdentityTest, HeedsErrors) {
  const std::string text = R"(
graph (%x: f32[n], %w: f32[m]) -> (y: f32[n]) {
  %1: f32[n] = bounded(%x, %w)
  return y = %1
}
)";
  EXPECT_THAT(Batch(text, {0, -1}), HasSubstr("bounded(%x, %w)"));
  EXPECT_THAT(Batch(text, {-1, 0}), ::testing::Not(HasSubstr("bounded")));
  EXPECT_THAT(Why(text, {true, true}),
              HasSubstr("w must be a number or a vector"));
}

TEST_F(IdentityTest, KeepsNothingWhereToldSo) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(
graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = smooth(%x, axis: 0)
  return y = %1
}
)",
                                                     context_));
  ASSERT_OK_AND_ASSIGN(const Graph batched,
                       Vmap(graph, {0}, Dim::Variable("B"), {0}, *rules_,
                            {/*keep_identity=*/false}));
  EXPECT_THAT(PrintGraph(batched), HasSubstr("reduce_max"));
}

std::vector<Value> Normal(GraphBuilder& builder, const std::string& text) {
  const absl::StatusOr<Graph> graph = ParseGraph(text, builder.context());
  EXPECT_THAT(graph, IsOk());
  std::vector<Value> inputs;
  for (const NamedValue& input : graph->inputs()) {
    inputs.push_back(
        builder.Input(absl::StrCat(input.name, builder.graph().inputs().size()),
                      graph->type(input.value)));
  }
  return InlineWithoutUnitAxes(builder, *graph, inputs);
}

// A sum over one element is not that element where it is -0.
TEST(UnitAxes, StayWhereSomethingDependsOnThem) {
  GraphBuilder builder(std::make_shared<Context>());
  const std::vector<Value> summed = Normal(builder, R"(
graph (%x: f32[n, 1]) -> (y: f32[n]) {
  %1: f32[n] = reduce_sum(%x, axes: [1])
  return y = %1
}
)");
  EXPECT_EQ(builder.graph().node(summed[0]).op, ToOpId(Primitive::kReduceSum));
  const std::vector<Value> moved = Normal(builder, R"(
graph (%x: f32[n, 1]) -> (y: f32[1, n]) {
  %1: f32[1, n] = transpose(%x, axes: [1, 0])
  return y = %1
}
)");
  EXPECT_EQ(builder.type(moved[0]).ToString(), "f32[n]");
  EXPECT_EQ(builder.graph().node(moved[0]).op, ToOpId(Primitive::kReshape));
}

TEST(UnitAxes, ContractionsReadWhatIsTransposed) {
  GraphBuilder builder(std::make_shared<Context>());
  const auto read = [&](const std::string& axes, const std::string& type,
                        const std::string& contract) {
    const std::vector<Value> y = Normal(
        builder,
        absl::StrCat("\ngraph (%x: f32[n, m, k], %w: f32[k]) -> (y: f32",
                     type.substr(type.find("]") + 1), ") {\n  %1: f32",
                     type.substr(0, type.find("]") + 1),
                     " = transpose(%x, axes: ", axes, ")\n  %2: f32",
                     type.substr(type.find("]") + 1),
                     " = dot_general(%1, %w, batch_a: [], batch_b: [], "
                     "contract_a: [",
                     contract, "], contract_b: [0])\n  return y = %2\n}\n"));
    const Value x = builder.graph().operands(y[0])[0];
    return builder.graph().node(x).op == ToOpId(Primitive::kInput);
  };
  EXPECT_TRUE(read("[0, 2, 1]", "[n, k, m][n, m]", "1"));
  // The free axes would come out as [n, m].
  EXPECT_FALSE(read("[1, 0, 2]", "[m, n, k][m, n]", "2"));
}

std::vector<int> Parallel(const std::string& text) {
  const absl::StatusOr<Graph> graph =
      ParseGraph(text, std::make_shared<Context>());
  EXPECT_THAT(graph, IsOk());
  if (!graph.ok()) return {};
  return ParallelOutputs(*graph, Dim::Variable("p"))
      .value_or(std::vector<int>());
}

TEST(ParallelAxis, FollowsTheAxis) {
  EXPECT_EQ(Parallel(R"(
graph (%x: f32[p, n, m], %w: f32[m, k]) -> (y: f32[n, p, k], z: f32[n, p]) {
  %1: f32[p, n, k] = dot_general(%x, %w, batch_a: [], batch_b: [], contract_a: [2], contract_b: [0])
  %2: f32[n, p, k] = transpose(%1, axes: [1, 0, 2])
  %3: f32[k] = reduce_sum(%w, axes: [0])
  %4: f32[n, p, k] = broadcast_in_dim(%3, axes: [2], shape: [n, p, k])
  %5: f32[n, p, k] = add(%2, %4)
  %6: f32[n, p] = reduce_max(%5, axes: [2], tie: "even")
  return y = %5, z = %6
}
)"),
            (std::vector<int>{1, 1}));
}

TEST(ParallelAxis, RefusesWhatMixesSlices) {
  const auto refused = [](const std::string& node, const std::string& type) {
    return Parallel(absl::StrCat("\ngraph (%x: f32[p, n]) -> (y: ", type,
                                 ") {\n  %1: ", type, " = ", node,
                                 "\n  return y = %1\n}\n"));
  };
  EXPECT_THAT(refused("reduce_sum(%x, axes: [0])", "f32[n]"), IsEmpty());
  EXPECT_THAT(refused("reverse(%x, axes: [0])", "f32[p, n]"), IsEmpty());
  EXPECT_THAT(refused("reshape(%x, shape: [n*p])", "f32[n*p]"), IsEmpty());
  EXPECT_THAT(
      refused("cumulative_max(%x, axis: 0, reverse: false)", "f32[p, n]"),
      IsEmpty());
  EXPECT_THAT(refused("reverse(%x, axes: [1])", "f32[p, n]"),
              ::testing::ElementsAre(0));
}

}  // namespace
}  // namespace cleave
