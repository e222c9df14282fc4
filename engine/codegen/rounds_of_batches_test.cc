#include "engine/codegen/rounds_of_batches.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "engine/codegen/pass_testing.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// An attention of 2 x N heads, with a mask that all share, whose scores take
// 4 MiB a head.
constexpr char kAttention[] =
    R"(graph (%q: f32[2, N, 1024, 2], %k: f32[2, N, 1024, 2], %m: f32[1024, 1024]) -> (y: f32[2, N, 1024, 2]) {
  %1: f32[2, N, 1024, 1024] = dot_general(%q, %k, batch_a: [0, 1], batch_b: [0, 1], contract_a: [3], contract_b: [3])
  %2: f32[2, N, 1024, 1024] = broadcast_in_dim(%m, axes: [2, 3], shape: [2, N, 1024, 1024])
  %3: f32[2, N, 1024, 1024] = add(%1, %2)
  %4: f32[2, N, 1024] = reduce_max(%3, axes: [3], tie: "even")
  %5: f32[2, N, 1024, 1024] = broadcast_in_dim(%4, axes: [0, 1, 2], shape: [2, N, 1024, 1024])
  %6: f32[2, N, 1024, 1024] = sub(%3, %5)
  %7: f32[2, N, 1024, 2] = dot_general(%6, %k, batch_a: [0, 1], batch_b: [0, 1], contract_a: [3], contract_b: [2])
  return y = %7
}
)";

std::string Attention(const std::string& heads) {
  return absl::StrReplaceAll(kAttention, {{"N", heads}});
}

// Multiples of 1/16 from -1 to 1, and masks.
Tensor Sixteenths(const TensorType& type, int64_t /*input*/) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(*dim.Value());
  Tensor tensor(type.dtype, shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (tensor.dtype() == DType::kBool) {
      tensor.SetInt(i, i % 3 == 0);
    } else {
      tensor.SetDouble(i, static_cast<double>(i * 7 % 33) / 16 - 1);
    }
  }
  return tensor;
}

// The text in rounds, which have the values of the graph.
std::string InRounds(const std::string& text) {
  return CheckPass(text, RoundsOfBatches, Sixteenths);
}

// The text in rounds, and as it was.
struct Texts {
  std::string rounds, graph;
};
Texts Printed(const std::string& text) {
  const auto graph = ParseGraph(text, std::make_shared<Context>());
  EXPECT_TRUE(graph.ok()) << graph.status();
  if (!graph.ok()) return {};
  return {PrintGraph(RoundsOfBatches(*graph)), PrintGraph(*graph)};
}

void ExpectLeft(const std::string& text) {
  const Texts texts = Printed(text);
  EXPECT_FALSE(texts.graph.empty());
  EXPECT_EQ(texts.rounds, texts.graph);
}

TEST(RoundsOfBatches, HaveTheValuesOfAll) {
  const std::string text = InRounds(Attention("2"));
  EXPECT_THAT(text, HasSubstr("f32[1, 1024, 1024] = dot_general("));
  EXPECT_THAT(text, HasSubstr("length: 4"));
  EXPECT_THAT(text, Not(HasSubstr("f32[2, 2, 1024, 1024]")));
}

// Factors, as many as there are heads and rows, which are read as a whole and
// head by head: given, and computed.
TEST(RoundsOfBatches, ReadAsAWholeWhatOnlyLooksLikeTheBatch) {
  constexpr char kText[] =
      R"(graph (%q: f32[64, 64, 2], %k: f32[64, 1024, 2], %w: f32[64]) -> (y: f32[64, 64, 2]) {
  %1: f32[64] = neg(%w)
  %2: f32[64, 64, 1024] = dot_general(%q, %k, batch_a: [0], batch_b: [0], contract_a: [2], contract_b: [2])
  %3: f32[64, 64, 1024] = broadcast_in_dim(%FACTORS, axes: [1], shape: [64, 64, 1024])
  %4: f32[64, 64, 1024] = broadcast_in_dim(%FACTORS, axes: [0], shape: [64, 64, 1024])
  %5: f32[64, 64, 1024] = add(%2, %3)
  %6: f32[64, 64, 1024] = mul(%5, %4)
  %7: f32[64, 64, 2] = dot_general(%6, %k, batch_a: [0], batch_b: [0], contract_a: [2], contract_b: [1])
  return y = %7
}
)";
  for (const char* factors : {"w", "1"}) {
    const std::string text =
        InRounds(absl::StrReplaceAll(kText, {{"FACTORS", factors}}));
    // Computed ones leave the set of the products, and come back.
    const bool given = factors[0] == 'w';
    EXPECT_EQ(absl::StrContains(text, "scan("), given);
  }
}

// An attention of one head, whose scores take L x 4 KiB: with a mask of the
// rows, a bias of the columns, and one of each.
constexpr char kRows[] =
    R"(graph (%q: f32[1, 1, L, 2], %k: f32[1, 1, 1024, 2], %m: bool[L, 1024], %b: f32[1, 1, 1024], %r: f32[L]) -> (y: f32[1, 1, L, 2]) {
  %1: f32[1, 1, L, 1024] = dot_general(%q, %k, batch_a: [0, 1], batch_b: [0, 1], contract_a: [3], contract_b: [3])
  %2: bool[1, 1, L, 1024] = broadcast_in_dim(%m, axes: [2, 3], shape: [1, 1, L, 1024])
  %3: f32[1, 1, L, 1024] = broadcast_in_dim(%b, axes: [0, 1, 3], shape: [1, 1, L, 1024])
  %4: f32[1, 1, L, 1024] = broadcast_in_dim(%r, axes: [2], shape: [1, 1, L, 1024])
  %5: f32[1, 1, L, 1024] = add(%1, %3)
  %6: f32[1, 1, L, 1024] = select(%2, %5, %4)
  %7: f32[1, 1, L] = reduce_max(%6, axes: [3], tie: "even")
  %8: f32[1, 1, L, 1024] = broadcast_in_dim(%7, axes: [0, 1, 2], shape: [1, 1, L, 1024])
  %9: f32[1, 1, L, 1024] = sub(%6, %8)
  %10: f32[1, 1, L, 2] = dot_general(%9, %k, batch_a: [0, 1], batch_b: [0, 1], contract_a: [3], contract_b: [2])
  return y = %10
}
)";

TEST(RoundsOfBatches, TakeRowsOfOneMatrix) {
  const std::string text =
      InRounds(absl::StrReplaceAll(kRows, {{"L", "2304"}}));
  EXPECT_THAT(text, HasSubstr("f32[128, 1024] = dot_general("));
  EXPECT_THAT(text, HasSubstr("length: 18"));
  EXPECT_THAT(text, Not(HasSubstr("f32[1, 1, 2304, 1024]")));
  // The keys are stored in panels, which all rounds read.
  EXPECT_THAT(text, HasSubstr("%c0: f32[16, 2, 64]"));
}

// Rounds that read many keys have as many rows as that is worth.
TEST(RoundsOfBatches, TakeMoreRowsBesideLargeMatrices) {
  const std::string text =
      InRounds(absl::StrReplaceAll(kRows, {{"L", "2304"},
                                           {"1, 1024, 2]", "1, 1024, 160]"},
                                           {"L, 2]", "2304, 160]"}}));
  EXPECT_THAT(text, HasSubstr("f32[384, 1024] = dot_general("));
  EXPECT_THAT(text, HasSubstr("length: 6"));
}

// The mask of a matrix without a batch, by its places; and the square of a
// matrix, whose rows and columns are read.
TEST(RoundsOfBatches, TakeRowsByTheirNumbers) {
  constexpr char kText[] =
      R"(graph (%q: f32[2048, 2], %k: f32[2048, 2]) -> (y: f32[2048, 2]) {
  %1: i64[2048] = iota(size: 2048)
  %2: i64[2048, 2048] = broadcast_in_dim(%1, axes: [0], shape: [2048, 2048])
  %3: i64[2048, 2048] = broadcast_in_dim(%1, axes: [1], shape: [2048, 2048])
  %4: bool[2048, 2048] = le(%3, %2)
  %5: f32[2048, 2] = neg(%RIGHT)
  %6: f32[2048, 2048] = dot_general(%q, %5, batch_a: [], batch_b: [], contract_a: [1], contract_b: [1])
  %7: f32[2048, 2048] = neg(%6)
  %8: f32[2048, 2048] = select(%4, %6, %7)
  %9: f32[2048, 2] = dot_general(%8, %5, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  return y = %9
}
)";
  for (const char* right : {"k", "q"}) {
    const std::string text =
        InRounds(absl::StrReplaceAll(kText, {{"RIGHT", right}}));
    EXPECT_THAT(text, HasSubstr("f32[64, 2048] = dot_general("));
    EXPECT_THAT(text, Not(HasSubstr("i64[2048, 2048]")));
  }
}

// The gradients of an attention of one head: what is added up over rows is
// carried from round to round, and read behind the last.
TEST(RoundsOfBatches, AddUpTotalsOfRows) {
  constexpr char kText[] =
      R"(graph (%q: f32[1, 2048, 2], %k: f32[1, 1024, 2], %g: f32[1, 2048, 3]) -> (v: f32[1, 3, 1024], k: f32[1, 1024, 2], q: f32[1, 2048, 2]) {
  %1: f32[1, 2048, 1024] = dot_general(%q, %k, batch_a: [0], batch_b: [0], contract_a: [2], contract_b: [2])
  %2: f32[1, 2048, 1024] = neg(%1)
  %3: f32[1, 1024, 3] = dot_general(%2, %g, batch_a: [0], batch_b: [0], contract_a: [1], contract_b: [1])
  %4: f32[1, 3, 1024] = transpose(%3, axes: [0, 2, 1])
  %5: f32[1, 2048, 1024] = abs(%2)
  %6: f32[1, 1024, 2] = dot_general(%5, %q, batch_a: [0], batch_b: [0], contract_a: [1], contract_b: [1])
  %7: f32[1, 2048, 2] = dot_general(%5, %k, batch_a: [0], batch_b: [0], contract_a: [2], contract_b: [1])
  return v = %4, k = %6, q = %7
}
)";
  // Sums of small multiples of 2^-12 are exact in any order.
  const std::string text = InRounds(kText);
  EXPECT_THAT(text, HasSubstr("carries: 2, consts: 2, length: 16"));
  EXPECT_THAT(text, HasSubstr("f32[1024, 3] = dot_general("));
  EXPECT_THAT(text, Not(HasSubstr("f32[1, 2048, 1024]")));
  // A half would lose digits between rounds: others add up its rows.
  const std::string halves =
      absl::StrReplaceAll(kText, {{"f32[", "f16["}, {"2048", "8192"}});
  EXPECT_THAT(Printed(halves).rounds, HasSubstr("carries: 0"));
}

// Sums that their own rows read: these are not of the same rounds.
TEST(RoundsOfBatches, ReadTotalsBehind) {
  constexpr char kText[] =
      R"(graph (%q: f32[4096, 2], %k: f32[512, 2]) -> (y: f32[4096, 2]) {
  %1: f32[4096, 512] = dot_general(%q, %k, batch_a: [], batch_b: [], contract_a: [1], contract_b: [1])
  %2: f32[512, 2] = dot_general(%1, %q, batch_a: [], batch_b: [], contract_a: [0], contract_b: [0])
  %3: f32[4096, 512] = dot_general(%q, %2, batch_a: [], batch_b: [], contract_a: [1], contract_b: [1])
  %4: f32[4096, 512] = mul(%3, %3)
  %5: f32[4096, 2] = dot_general(%4, %2, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  return y = %5
}
)";
  const std::string text = InRounds(kText);
  EXPECT_THAT(text, HasSubstr("carries: 1, consts: 1, length: 16"));
  EXPECT_THAT(text, HasSubstr("carries: 0, consts: 2, length: 16"));
  EXPECT_THAT(text, Not(HasSubstr("f32[4096, 512]")));
}

// As many rows as no round divides.
TEST(RoundsOfBatches, LeaveAPrimeOfRows) {
  ExpectLeft(absl::StrReplaceAll(kRows, {{"L", "2309"}}));
}

// Batches of any size, and scores that are returned.
TEST(RoundsOfBatches, LeaveOthers) {
  ExpectLeft(Attention("h"));
  ExpectLeft(absl::StrReplaceAll(
      kAttention, {{"N", "2"},
                   {"(y: f32[2, N, 1024, 2])",
                    "(y: f32[2, 2, 1024, 2], s: f32[2, 2, 1024, 1024])"},
                   {"return y = %7", "return y = %7, s = %1"}}));
}

// A result that comes back by way of another operation: the product before it
// and the one behind it do not run in the same round.
TEST(RoundsOfBatches, TakeNoNodeBeforeItsOperands) {
  ExpectLeft(absl::StrReplaceAll(
      kAttention,
      {{"N", "2"},
       {"  %7:", R"(  %7: f32[2, 2, 1024, 1024] = reverse(%6, axes: [0])
  %8: f32[2, 2, 1024, 1024] = add(%6, %7)
  %9:)"},
       {"general(%6", "general(%8"},
       {"y = %7", "y = %9"}}));
}

}  // namespace
}  // namespace cleave
