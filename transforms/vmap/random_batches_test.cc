// rules/core/random.rules: a batch of draws is the loop over the examples,
// however these get their keys.

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/expand.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/reference/reference.h"
#include "testing/status_matchers.h"
#include "transforms/testing/random_testing.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

constexpr char kFunctions[] = R"(
fn small_uniform(low: f32[2, 3], high: f32[3], key: key) -> f32[2, 3] = uniform(low, high, key)

fn small_normal(mean: f32[3], std: f32[2, 1], key: key) -> f32[2, 3] = normal(mean, std, key)

fn small_bernoulli(p: f64[3], key: key) -> bool[3] = bernoulli(p, key)

fn small_randint(low: i32[3], high: i32[], key: key) -> i32[3] = randint(low, high, key)

fn small_shuffle(x: f32[4, 2], key: key) -> f32[4, 2] = shuffle(x, key)

fn small_dropout(x: f32[3], key: key) -> f32[3] = dropout(x, key, p: 0.5)

fn small_exponential(rate: f32[3], key: key) -> f32[3] = exponential(rate, key)

fn small_gumbel(loc: f32[3], scale: f32[], key: key) -> f32[3] = gumbel(loc, scale, key)

fn small_categorical(logits: f32[4, 3], key: key) -> i64[3] = categorical(logits, key, axis: 0)

op walked(x: f32[], key: key) -> f32[]
{
  let r = scan(at = x) over k in random_split(key, count: 5) { (at = normal(at, 1, k)) }
  r.at
}

op drawn_either_way(x: f32[], key: key) -> f32[]
  = cond(x > 0.22) { normal(x, 1, key) } else { uniform(x, 1, key) }

fn small_walk(x: f32[], key: key) -> f32[] = walked(x, key)

fn small_choice(x: f32[], key: key) -> f32[] = drawn_either_way(x, key)

fn small_keys(k: key, i: i64[]) -> key[2] = random_split(random_fold_in(k, i), count: 2)

fn four(key: key) -> i64[4] = permutation(key, n: 4)
)";

class DrawsInBatchesTest : public RandomTest {
 protected:
  DrawsInBatchesTest() : RandomTest(kFunctions) {}
};

// Keys and numbers that all differ.
Tensor Drawn(const TensorType& type, const std::vector<int64_t>& lead,
             int64_t first) {
  std::vector<int64_t> shape = lead;
  for (const Dim& dim : type.shape) shape.push_back(*dim.Value());
  Tensor tensor(type.dtype, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (IsFloat(type.dtype)) {
      tensor.SetDouble(i, 0.05 * static_cast<double>(first + i));
    } else {
      tensor.SetInt(i, first + i);
    }
  }
  return tensor;
}

// Example `at` of axis 0.
Tensor Example(const Tensor& x, int64_t at) {
  Tensor y(x.dtype(),
           std::vector<int64_t>(x.shape().begin() + 1, x.shape().end()));
  std::memcpy(y.mutable_data(), x.data() + at * y.byte_size(), y.byte_size());
  return y;
}

constexpr const char* kSmall[] = {
    "small_uniform",
    "small_normal",
    "small_bernoulli",
    "small_randint",
    "small_shuffle",
    "small_dropout",
    "small_exponential",
    "small_gumbel",
    "small_categorical",
    "small_keys",
    "small_walk",
    "small_choice",
    "four",
};

// Every op, and all choices for all inputs: batched, shared, and, of the key,
// split. Each example draws, bit by bit, what the loop over the examples draws.
TEST_F(DrawsInBatchesTest, BatchesAreTheLoop) {
  constexpr int64_t kBatch = 3;
  for (const char* name : kSmall) {
    const Graph graph = Function(name);
    const int count = static_cast<int>(graph.inputs().size());
    int choices = 1;
    for (int i = 0; i < count; ++i) choices *= 3;
    for (int choice = 0; choice < choices; ++choice) {
      std::vector<int> in_axes;
      bool mapped = false;
      bool fits = true;
      for (int i = 0, rest = choice; i < count; ++i, rest /= 3) {
        const bool is_key =
            graph.type(graph.inputs()[i].value).dtype == DType::kKey;
        in_axes.push_back(rest % 3 == 0   ? kNotMapped
                          : rest % 3 == 1 ? 0
                                          : kSplit);
        mapped |= in_axes.back() != kNotMapped;
        fits &= is_key || in_axes.back() != kSplit;
      }
      if (!mapped || !fits) continue;
      SCOPED_TRACE(absl::StrCat(name, ", choice ", choice));
      ASSERT_OK_AND_ASSIGN(const Graph batched,
                           Vmap(graph, in_axes, Dim(kBatch), {0}, *rules_));
      std::vector<Tensor> inputs;
      std::vector<std::vector<Tensor>> examples(kBatch);
      for (int i = 0; i < count; ++i) {
        const TensorType& type = graph.type(graph.inputs()[i].value);
        std::vector<int64_t> lead;
        if (in_axes[i] == 0) lead.push_back(kBatch);
        inputs.push_back(Drawn(type, lead, 4 + 7 * i));
        Tensor each = inputs.back();
        if (in_axes[i] == kSplit) {
          ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> keys,
                               EvalReference(Primitive::kRandomSplit,
                                             {{"count", kBatch}}, {each}));
          each = keys[0];
        }
        for (int64_t b = 0; b < kBatch; ++b) {
          examples[b].push_back(in_axes[i] == kNotMapped ? each
                                                         : Example(each, b));
        }
      }
      const Tensor got = RunGraph(batched, inputs)[0];
      for (int64_t b = 0; b < kBatch; ++b) {
        const Tensor want = RunGraph(graph, examples[b])[0];
        EXPECT_TRUE(SameValue(Example(got, b), want))
            << "example " << b << ": " << Example(got, b).ToString() << ", not "
            << want.ToString() << "\n"
            << PrintGraph(batched);
      }
    }
  }
}

TEST_F(DrawsInBatchesTest, SharedKeysDrawTheSameAndSplitOnesDoNot) {
  const Graph graph = Function("small_dropout");
  const Tensor ones =
      Tensor::FromDoubles(DType::kF32, {16, 3}, std::vector<double>(48, 1));
  std::set<std::string> drawn[2];
  for (const int choice : {kNotMapped, kSplit}) {
    ASSERT_OK_AND_ASSIGN(
        const Graph batched,
        Vmap(graph, {0, choice}, Dim::Variable("B"), {0}, *rules_));
    const Tensor y = RunGraph(batched, {ones, Key(20)})[0];
    for (int64_t b = 0; b < 16; ++b) {
      drawn[choice == kSplit].insert(Example(y, b).ToString());
    }
  }
  EXPECT_EQ(drawn[0].size(), 1);
  EXPECT_GT(drawn[1].size(), 4);
}

// The outer batch splits the key, the inner one each of those.
TEST_F(DrawsInBatchesTest, NestedBatchesSplitAgain) {
  ASSERT_OK_AND_ASSIGN(
      const Graph inner,
      Vmap(Function("small_dropout"), {0, kSplit}, Dim(2), {0}, *rules_));
  ASSERT_OK_AND_ASSIGN(const Graph outer,
                       Vmap(inner, {0, kSplit}, Dim(4), {0}, *rules_));
  const Tensor ones =
      Tensor::FromDoubles(DType::kF32, {4, 2, 3}, std::vector<double>(24, 1));
  const Tensor y = RunGraph(outer, {ones, Key(21)})[0];
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> keys,
      EvalReference(Primitive::kRandomSplit, {{"count", 4}}, {Key(21)}));
  for (int64_t b = 0; b < 4; ++b) {
    const Tensor want =
        RunGraph(inner, {Example(ones, b), Example(keys[0], b)})[0];
    EXPECT_TRUE(SameValue(Example(y, b), want));
  }
}

TEST_F(DrawsInBatchesTest, OnlyKeysAreSplit) {
  const absl::StatusOr<Graph> batched =
      Vmap(Function("small_dropout"), {kSplit, 0}, Dim(2), {0}, *rules_);
  EXPECT_THAT(batched,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("in_axes[0] splits a key, but `x` is f32")));
  // Every key of a field of keys is split; the batch leads.
  ASSERT_OK_AND_ASSIGN(const Graph field, ParseGraph(R"(
graph (%k: key[3]) -> (y: u32[3, 2]) {
  %1: u32[3, 2] = random_bits(%k, dtype: u32, shape: [2])
  return y = %1
}
)",
                                                     context_));
  ASSERT_OK_AND_ASSIGN(const Graph split,
                       Vmap(field, {kSplit}, Dim(2), {0}, *rules_));
  const Tensor keys = Tensor::FromInts(DType::kKey, {3}, {1, 2, 3});
  const Tensor y = RunGraph(split, {keys})[0];
  ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> each,
      EvalReference(Primitive::kRandomSplit, {{"count", 2}}, {keys}));
  for (int64_t b = 0; b < 2; ++b) {
    Tensor own(DType::kKey, {3});
    for (int i = 0; i < 3; ++i) own.SetInt(i, each[0].GetInt(2 * i + b));
    EXPECT_TRUE(SameValue(Example(y, b), RunGraph(field, {own})[0]));
  }
  // No input says how large a batch of split keys is.
  ASSERT_OK_AND_ASSIGN(
      const Graph unknown,
      Vmap(Function("four"), {kSplit}, Dim::Variable("B"), {0}, *rules_));
  ASSERT_OK_AND_ASSIGN(const Graph expanded, Expand(unknown, *rules_));
  EXPECT_THAT(Interpret(expanded, {Key(1)}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("B")));
}

}  // namespace
}  // namespace cleave
