#include "transforms/vmap/vmap.h"

#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/golden_file.h"
#include "testing/status_matchers.h"
#include "transforms/table/rule_tables.h"
#include "transforms/testing/sample_nodes.h"
#include "transforms/testing/test_rules.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBatch = 3;

// The slice `at` of axis `axis`.
Tensor SliceOf(const Tensor& x, int axis, int64_t at) {
  std::vector<int64_t> shape = x.shape();
  const int64_t extent = shape[axis];
  shape.erase(shape.begin() + axis);
  Tensor y(x.dtype(), shape);
  int64_t inner = 1;
  for (size_t d = axis; d < shape.size(); ++d) inner *= shape[d];
  const int64_t outer = inner == 0 ? 0 : y.size() / inner;
  const int64_t bytes = ByteSize(x.dtype()) * inner;
  for (int64_t o = 0; o < outer; ++o) {
    std::memcpy(y.mutable_data() + o * bytes,
                x.data() + (o * extent + at) * bytes, bytes);
  }
  return y;
}

// Draws an argument per input, batched ones along in_axes, runs the batched
// graph, and compares each slice with the plain graph, bit by bit.
void ExpectStackedLoop(const SampleNode& sample, const Graph& graph,
                       const Graph& batched, const std::vector<int>& in_axes,
                       const std::vector<int>& out_axes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> arguments;
  for (size_t i = 0; i < in_axes.size(); ++i) {
    const TensorType& type = graph.type(graph.inputs()[i].value);
    std::vector<int64_t> shape = ConstantShape(type);
    if (in_axes[i] != kNotMapped) {
      shape.insert(shape.begin() + in_axes[i], kBatch);
    }
    arguments.push_back(DrawTensor(sample, type.dtype, shape, random));
  }
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> results,
                       Interpret(batched, arguments));
  for (int64_t n = 0; n < kBatch; ++n) {
    std::vector<Tensor> slices;
    for (size_t i = 0; i < in_axes.size(); ++i) {
      slices.push_back(in_axes[i] == kNotMapped
                           ? arguments[i]
                           : SliceOf(arguments[i], in_axes[i], n));
    }
    ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> expected,
                         Interpret(graph, slices));
    for (size_t j = 0; j < expected.size(); ++j) {
      const Tensor got = SliceOf(results[j], out_axes[j], n);
      EXPECT_TRUE(SameValue(got, expected[j]))
          << "example " << n << ", output " << j << ": " << got.ToString()
          << ", not " << expected[j].ToString() << "\n"
          << PrintGraph(batched);
    }
  }
}

class VmapTest : public ::testing::Test {
 protected:
  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_);
};

TEST_F(VmapTest, EveryPrimitiveHasASample) {
  // Leaves have no operands; a projection is part of its tuple's samples.
  std::set<std::string> missing;
  for (int p = 0; p < kNumPrimitives; ++p) {
    const Primitive primitive = static_cast<Primitive>(p);
    const PrimitiveClass primitive_class = ClassOf(primitive);
    if (primitive_class != PrimitiveClass::kLeaf &&
        primitive_class != PrimitiveClass::kProjection) {
      missing.insert(std::string(PrimitiveName(primitive)));
    }
  }
  for (const SampleNode& sample : SampleNodes(context_)) {
    missing.erase(std::string(PrimitiveName(sample.primitive)));
  }
  EXPECT_THAT(missing, ::testing::IsEmpty());
}

// Every primitive, every subset of batched operands, the batch at the front, at
// the end, known and unknown.
TEST_F(VmapTest, IsTheStackedLoop) {
  uint64_t seed = 20261121;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (sample.primitive == Primitive::kNonzero) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    const int count = static_cast<int>(graph.inputs().size());
    for (uint32_t mask = 1; mask < (1u << count); ++mask) {
      for (bool at_end : {false, true}) {
        SCOPED_TRACE(absl::StrCat("mask ", mask, at_end ? ", at the end" : ""));
        std::vector<int> in_axes(count, kNotMapped);
        for (int i = 0; i < count; ++i) {
          if ((mask >> i & 1) == 0) continue;
          in_axes[i] = at_end ? graph.type(graph.inputs()[i].value).rank() : 0;
        }
        std::vector<int> out_axes;
        for (const NamedValue& output : graph.outputs()) {
          out_axes.push_back(at_end ? graph.type(output.value).rank() : 0);
        }
        for (const Dim& batch : {Dim(kBatch), Dim::Variable("B")}) {
          ASSERT_OK_AND_ASSIGN(const Graph batched,
                               Vmap(graph, in_axes, batch, out_axes, *rules_));
          ASSERT_THAT(Verify(batched), IsOk());
          ExpectStackedLoop(sample, graph, batched, in_axes, out_axes, ++seed);
        }
      }
    }
  }
}

// vmap of vmap: all operands batched twice, the inner batch behind the outer.
TEST_F(VmapTest, Nests) {
  uint64_t seed = 7;
  for (const SampleNode& sample : SampleNodes(context_)) {
    if (sample.primitive == Primitive::kNonzero) continue;
    SCOPED_TRACE(sample.name);
    ASSERT_OK_AND_ASSIGN(const Graph graph, SampleGraph(sample, context_));
    const size_t count = graph.inputs().size();
    for (size_t outer = 0; outer < count; ++outer) {
      for (size_t inner = 0; inner < count; ++inner) {
        SCOPED_TRACE(absl::StrCat("outer ", outer, ", inner ", inner));
        std::vector<int> inner_axes(count, kNotMapped);
        inner_axes[inner] = 0;
        std::vector<int> outer_axes(count, kNotMapped);
        outer_axes[outer] = 0;
        const std::vector<int> out_axes(graph.outputs().size(), 0);
        ASSERT_OK_AND_ASSIGN(const Graph once, Vmap(graph, inner_axes, Dim(2),
                                                    out_axes, *rules_));
        ASSERT_OK_AND_ASSIGN(
            const Graph twice,
            Vmap(once, outer_axes, Dim::Variable("N"), out_axes, *rules_));
        ASSERT_THAT(Verify(twice), IsOk());
        ExpectStackedLoop(sample, once, twice, outer_axes, out_axes, ++seed);
      }
    }
  }
}

// `0 _` as {0, kNotMapped}.
std::vector<int> ParseAxes(absl::string_view text) {
  std::vector<int> axes;
  for (absl::string_view word :
       absl::StrSplit(text, ' ', absl::SkipWhitespace())) {
    int axis = kNotMapped;
    if (word != "_") CLEAVE_CHECK(absl::SimpleAtoi(word, &axis)) << word;
    axes.push_back(axis);
  }
  return axes;
}

TEST_F(VmapTest, Golden) {
  TestGoldenFile(
      "transforms/vmap/testdata/vmap.golden",
      [this](absl::string_view input) -> std::string {
        const size_t end = input.find('\n');
        const size_t out = input.find(" out ");
        const size_t batch = input.find(" batch ");
        absl::StatusOr<Dim> extent =
            Dim::Parse(input.substr(batch + 7, end - batch - 7));
        absl::StatusOr<Graph> graph = ParseGraph(input.substr(end), context_);
        EXPECT_THAT(extent, IsOk());
        EXPECT_THAT(graph, IsOk());
        if (!extent.ok() || !graph.ok()) return "";
        absl::StatusOr<Graph> batched =
            Vmap(*graph, ParseAxes(input.substr(3, out - 3)), *extent,
                 ParseAxes(input.substr(out + 5, batch - out - 5)), *rules_);
        EXPECT_THAT(batched, IsOk());
        if (!batched.ok()) return "";
        EXPECT_THAT(Verify(*batched), IsOk());
        return PrintGraph(*batched);
      });
}

constexpr char kComposites[] = R"(language 1

op softmax(x: T[A.., n@axis, B..], *, axis: axis(x) = -1) -> T[A.., n, B..]
  where T: float
  compute acc
{
  let e = exp(x - nograd(reduce_max(x, axes: [axis])))
  e / reduce_sum(e, axes: [axis])
}

op lerp(a: T[S..], b: T[R..], weight: T[Q..]) -> T[broadcast([S, R, Q])..]
  where T: inexact
  = select(abs(weight) < 1 / 2, a + weight * (b - a), b - (b - a) * (1 - weight))

/// Its sum is over all axes: of one example it is another one.
op normalized(x: T[S..]) -> T[S..]
  where T: float
  = x / reduce_sum(x, axes: 0..len(S))

op given(x: T[S..], w: T[S..]) -> T[S..]
  where T: float
{
  x * w
  vmap (x, w@_) = w * x
}
)";

std::string PrintVmap(const std::string& text, const std::vector<int>& in_axes,
                      const std::shared_ptr<Context>& context,
                      const RuleSet& rules) {
  const absl::StatusOr<Graph> graph = ParseGraph(text, context);
  EXPECT_THAT(graph, IsOk());
  if (!graph.ok()) return "";
  const absl::StatusOr<Graph> batched =
      Vmap(*graph, in_axes, Dim::Variable("B"), {0}, rules);
  EXPECT_THAT(batched, IsOk());
  return batched.ok() ? PrintGraph(*batched) : "";
}

// vmap of softmax(axis) is softmax(axis + 1).
TEST_F(VmapTest, KeepsTheIdentityOfComposites) {
  const auto rules = LoadTestRules(context_, kComposites);
  EXPECT_EQ(PrintVmap(R"(
graph (%x: bf16[n, m]) -> (y: bf16[n, m]) {
  %1: bf16[n, m] = softmax(%x, axis: 0)
  return y = %1
}
)",
                      {0}, context_, *rules),
            R"(graph (%x: bf16[B, n, m]) -> (y: bf16[B, n, m]) {
  %1: bf16[B, n, m] = softmax(%x, axis: 1)
  return y = %1
}
)");
  EXPECT_EQ(PrintVmap(R"(
graph (%a: f32[n], %b: f32[n], %w: f32[]) -> (y: f32[n]) {
  %1: f32[n] = lerp(%a, %b, %w)
  return y = %1
}
)",
                      {0, kNotMapped, kNotMapped}, context_, *rules),
            R"(graph (%a: f32[B, n], %b: f32[n], %w: f32[]) -> (y: f32[B, n]) {
  %1: f32[B, n] = lerp(%a, %b, %w)
  return y = %1
}
)");
}

TEST_F(VmapTest, DecomposesWhereTheIdentityWouldBeWrong) {
  const auto rules = LoadTestRules(context_, kComposites);
  EXPECT_THAT(PrintVmap(R"(
graph (%x: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = normalized(%x)
  return y = %1
}
)",
                        {0}, context_, *rules),
              HasSubstr("reduce_sum(%x, axes: [1])"));
}

// lerp of one weight per example: right-aligned, it would meet the axis n.
TEST_F(VmapTest, KeepsOperandsAligned) {
  const auto rules = LoadTestRules(context_, kComposites);
  EXPECT_EQ(
      PrintVmap(R"(
graph (%a: f32[n], %b: f32[n], %w: f32[]) -> (y: f32[n]) {
  %1: f32[n] = lerp(%a, %b, %w)
  return y = %1
}
)",
                {0, 0, 0}, context_, *rules),
      R"(graph (%a: f32[B, n], %b: f32[B, n], %w: f32[B]) -> (y: f32[B, n]) {
  %1: f32[B, 1] = reshape(%w, shape: [B, 1])
  %2: f32[B, n] = lerp(%a, %b, %1)
  return y = %2
}
)");
}

TEST_F(VmapTest, OverridesComeFirst) {
  const auto rules = LoadTestRules(context_, kComposites);
  const std::string text = R"(
graph (%x: f32[n], %w: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = given(%x, %w)
  return y = %1
}
)";
  EXPECT_THAT(PrintVmap(text, {0, kNotMapped}, context_, *rules),
              HasSubstr("mul(%1, %x)"));
  // With another subset batched the call of the op is kept.
  EXPECT_THAT(PrintVmap(text, {0, 0}, context_, *rules),
              HasSubstr("given(%x, %w)"));
}

TEST_F(VmapTest, LeavesAloneWhatIsNotBatched) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(
graph (%x: f32[n], %w: f32[n]) -> (y: f32[n]) {
  %1: f32[n] = exp(%w)
  %2: f32[n] = mul(%x, %1)
  return y = %2
}
)",
                                                     context_));
  ASSERT_OK_AND_ASSIGN(
      const Graph batched,
      Vmap(graph, {1, kNotMapped}, Dim::Variable("B"), {0}, *rules_));
  EXPECT_THAT(PrintGraph(batched), HasSubstr("f32[n] = exp("));
}

TEST_F(VmapTest, SharesRules) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(
graph (%x: f32[4, n]) -> (y: f32[n]) {
  %1: f32[n] = reduce_sum(%x, axes: [0])
  return y = %1
}
)",
                                                     context_));
  ASSERT_THAT(Vmap(graph, {0}, Dim(8), {0}, *rules_), IsOk());
  ASSERT_OK_AND_ASSIGN(RuleTable * table, TableOf(*rules_));
  const int64_t size = table->size();
  EXPECT_GT(size, 0);
  ASSERT_THAT(Vmap(graph, {2}, Dim(8), {1}, *rules_), IsOk());
  EXPECT_EQ(table->size(), size);
}

TEST_F(VmapTest, RefusesRaggedResults) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(
graph (%x: bool[4]) -> (y: i64[count, 1]) {
  %1: i64[count, 1] = nonzero(%x, size: count)
  return y = %1
}
)",
                                                     context_));
  EXPECT_THAT(Vmap(graph, {0}, Dim(3), {0}, *rules_),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("impossible: ragged")));
}

TEST_F(VmapTest, RefusesAxesThatDoNotFit) {
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(
graph (%x: f32[4], %w: f32[4]) -> (y: f32[4], z: f32[4]) {
  %1: f32[4] = exp(%x)
  %2: f32[4] = exp(%w)
  return y = %1, z = %2
}
)",
                                                     context_));
  const auto refused = [&](std::vector<int> in, std::vector<int> out) {
    return Vmap(graph, in, Dim(3), out, *rules_).status();
  };
  const auto invalid = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(refused({0}, {0, 0}), invalid("1 in_axes for 2 inputs"));
  EXPECT_THAT(refused({0, 0}, {0}), invalid("1 out_axes for 2 outputs"));
  EXPECT_THAT(refused({2, 0}, {0, 0}), invalid("in_axes[0] is 2"));
  EXPECT_THAT(refused({0, 0}, {0, 2}), invalid("out_axes[1] is 2"));
  EXPECT_THAT(refused({kNotMapped, kNotMapped}, {0, 0}),
              invalid("no input is mapped"));
  EXPECT_THAT(refused({0, kNotMapped}, {kNotMapped, 0}),
              invalid("depends on the batch"));
  EXPECT_THAT(refused({0, kNotMapped}, {0, kNotMapped}), IsOk());
}

}  // namespace
}  // namespace cleave
