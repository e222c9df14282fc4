#include "engine/c_library/c_interface.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/context.h"
#include "engine/ir/graph.h"
#include "engine/ir/graph_text.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Graph Parsed(absl::string_view text) {
  absl::StatusOr<Graph> graph = ParseGraph(text, std::make_shared<Context>());
  EXPECT_OK(graph.status());
  return *std::move(graph);
}

TEST(CInterface, HasASizePerVariableAndAnArrayPerTensor) {
  const Graph graph = Parsed(
      "graph (%w: f32[k, n], %x: f64[n, 2*k], %i: i64[]) -> (y: bf16[n]) {\n"
      "  %3: i64[n] = iota(size: n)\n"
      "  %4: bf16[n] = convert(%3, dtype: bf16)\n"
      "  return y = %4\n"
      "}\n");
  ASSERT_OK_AND_ASSIGN(const CInterface interface, MakeCInterface(graph, "f"));
  EXPECT_EQ(
      interface.Prototype(),
      "int f(int64_t k, int64_t n, const float *w, const double *x, const "
      "int64_t *i,\n      uint16_t *y)");
}

TEST(CInterface, ChangesNamesThatCDoesNotTake) {
  const Graph graph = Parsed(
      "graph (%int: f32[n], %int.tangent: f32[n], %n: bool[n], %size_t: u8[m.1]"
      ", %cleave_run: i8[m.1]) -> (int: f32[n], int.tangent: f32[n]) {\n"
      "  return int = %int, int.tangent = %int.tangent\n"
      "}\n");
  ASSERT_OK_AND_ASSIGN(const CInterface interface,
                       MakeCInterface(graph, "identity"));
  EXPECT_EQ(interface.Prototype(),
            "int identity(int64_t n_2, int64_t m_1, const float *p_int,\n"
            "             const float *int_tangent, const uint8_t *n,\n"
            "             const uint8_t *p_size_t_, const int8_t *p_cleave_run,"
            "\n             float *p_int_2, float *int_tangent_2)");
  const std::string header = CHeader(interface, {TargetLevel::kAvx2});
  EXPECT_THAT(header, HasSubstr("n_2       a size, `n`\n"));
  EXPECT_THAT(header, HasSubstr("p_int     input, f32[n_2], `int`\n"));
  EXPECT_THAT(header, HasSubstr("u8[m_1]"));
}

TEST(CInterface, RefusesNamesOfFunctions) {
  const Graph graph =
      Parsed("graph (%x: f32[]) -> (y: f32[]) {\n  return y = %x\n}\n");
  for (const char* name :
       {"", "2x", "a.b", "int", "class", "main", "_f", "cleave_f", "f_t", "exp",
        "gamma", "index", "malloc", "sigmoid+"}) {
    EXPECT_THAT(MakeCInterface(graph, name),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("cannot name a function in C")))
        << name;
  }
  EXPECT_OK(MakeCInterface(graph, "sigmoid"));
}

TEST(CInterface, RefusesDTypesThatCDoesNotHave) {
  for (const char* dtype : {"key", "c64", "c128"}) {
    const Graph graph =
        Parsed(absl::StrCat("graph (%x: ", dtype, "[n]) -> (y: ", dtype,
                            "[n]) {\n  return y = %x\n}\n"));
    EXPECT_THAT(
        MakeCInterface(graph, "f"),
        StatusIs(absl::StatusCode::kUnimplemented,
                 HasSubstr(absl::StrCat(
                     "not supported: the input `x` is of dtype ", dtype))));
  }
}

TEST(CInterface, ExampleFitsTheGuards) {
  const Graph graph = Parsed(
      "graph (%x: f32[n]) -> (y: f32[n]) {\n"
      "  guard n >= 6: \"a */ comment\"\n"
      "  return y = %x\n"
      "}\n");
  ASSERT_OK_AND_ASSIGN(const CInterface interface, MakeCInterface(graph, "f"));
  EXPECT_THAT(CExample(interface, graph), HasSubstr("f(6 /* n */, in_x"));
  const std::string header = CHeader(interface, {TargetLevel::kSse41});
  EXPECT_THAT(header, HasSubstr("n >= 6: a * / comment"));
  EXPECT_THAT(header, HasSubstr("For x86-64 with sse4.1."));
}

TEST(CInterface, CommentsEndWhereTheyShould) {
  EXPECT_THAT(CommentText("a */ b /* c\nd \\"), Not(HasSubstr("*/")));
}

}  // namespace
}  // namespace cleave
