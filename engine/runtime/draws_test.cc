// Random numbers in kernels: what the shipped ops draw is what the interpreter
// draws, in one kernel with what uses it, and elements far along a key's stream
// are right.

#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/codegen/numerics.h"
#include "engine/ir/bind.h"
#include "engine/ir/interpreter.h"
#include "engine/rewrite/in_primitives.h"
#include "engine/rules/rule_files.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_cases_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/reference/philox.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::IsEmpty;

constexpr char kFunctions[] = R"(language 1

fn draws_dropped(x: f32[b, n], key: key) -> f32[b, n] = dropout(x, key, p: 0.3)
fn draws_dropped16(x: bf16[b, n], key: key) -> bf16[b, n] = dropout(x, key)
fn draws_behind(x: f32[b, n], c: f32[n], key: key) -> f32[b, n] = dropout(x + c, key)
fn draws_attended(x: f32[b, n], key: key) -> f32[b, n] = dropout(softmax(x), key)
fn draws_noisy(x: f32[b, n], key: key) -> f32[b, n] = normal(x, 2, key)
fn draws_noisy64(x: f64[b, n], key: key) -> f64[b, n] = normal(x, 2, key)
fn draws_between(x: f16[b, n], key: key) -> f16[b, n] = uniform(0, x, key)
fn draws_chosen(x: f32[b, n], key: key) -> bool[b, n] = bernoulli(x, key)
)";

constexpr int64_t kKey = 0x0123456789ABCDEF;

Tensor Key() { return Tensor::FromInts(DType::kKey, {}, {kKey}); }

TEST(Draws, AreThoseOfTheInterpreterInOneKernel) {
  auto sources = ReadRuleFiles({"rules"});
  ASSERT_OK(sources.status());
  sources->push_back({"functions.rules", kFunctions});
  const LoadResult loaded = LoadRules(*sources, std::make_shared<Context>());
  ASSERT_THAT(loaded.diagnostics, IsEmpty());
  std::mt19937_64 random(3);
  for (const char* name :
       {"draws_dropped", "draws_dropped16", "draws_behind", "draws_attended",
        "draws_noisy", "draws_noisy64", "draws_between", "draws_chosen"}) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND_ASSIGN(const Graph function, loaded.rules->Function(name));
    ASSERT_OK_AND_ASSIGN(const Graph graph,
                         InPrimitives(function, *loaded.rules));
    ASSERT_OK_AND_ASSIGN(const Graph arithmetic,
                         ApplyNumerics(graph, *loaded.rules));
    ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                         Compile(graph, *loaded.rules, CaseOptions()));
    EXPECT_EQ(kernel.compiled_groups(), 1);
    EXPECT_EQ(kernel.reference_groups(), 0);
    for (const int64_t n : {0, 1, 2, 31, 256, 1001}) {
      SCOPED_TRACE(absl::StrCat("n = ", n));
      const DimValues dims = {{"b", 5}, {"n", n}};
      std::vector<Tensor> inputs;
      for (const NamedValue& input : graph.inputs()) {
        const TensorType& type = graph.type(input.value);
        inputs.push_back(
            type.dtype == DType::kKey ? Key() : SampleCase(type, dims, random));
      }
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got, kernel.Run(inputs));
      ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> want,
                           Interpret(arithmetic, inputs));
      if (absl::string_view(name) != "draws_attended") {
        EXPECT_TRUE(SameValue(got[0], want[0]));
        continue;
      }
      // Its sums are rounded otherwise there; what is dropped is the same.
      for (int64_t i = 0; i < want[0].size(); ++i) {
        EXPECT_EQ(got[0].GetDouble(i) == 0, want[0].GetDouble(i) == 0) << i;
      }
    }
  }
}

// Eight elements of more than any memory has room for are computed: those of
// the blocks 9999999998 and 9999999999, whose numbers have more than 32 bits.
TEST(Draws, CountBlocksIn64Bits) {
  const Graph graph = ParseCase(R"(graph (%key: key) -> (y: u32[1, 8]) {
  %1: u32[200000, 200000] = random_bits(%key, shape: [200000, 200000], dtype: u32)
  %2: u32[1, 8] = slice(%1, start: [199999, 199992], size: [1, 8], stride: [1, 1])
  return y = %2
})");
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), CaseOptions()));
  ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> got, kernel.Run({Key()}));
  constexpr uint64_t kFirst = 9999999998;
  for (uint64_t i = 0; i < 8; ++i) {
    const uint64_t block = kFirst + i / 4;
    const std::array<uint32_t, 4> words =
        Philox4x32({static_cast<uint32_t>(block),
                    static_cast<uint32_t>(block >> 32), 0, 0},
                   {static_cast<uint32_t>(kKey),
                    static_cast<uint32_t>(uint64_t{kKey} >> 32)});
    EXPECT_EQ(got[0].GetInt(static_cast<int64_t>(i)), words[i % 4]) << i;
  }
}

}  // namespace
}  // namespace cleave
