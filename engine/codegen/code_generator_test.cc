#include "engine/codegen/code_generator.h"

#include <stdlib.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/codegen/compile_group.h"
#include "engine/codegen/fusion.h"
#include "engine/codegen/target_level.h"
#include "engine/files/process_testing.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/parse_typed_graph.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

constexpr char kVariable[] = "CLEAVE_CODEGEN";

bool HalideIsMapped() {
  std::ifstream maps("/proc/self/maps");
  std::ostringstream text;
  text << maps.rdbuf();
  return absl::StrContains(text.str(), "libHalide");
}

// The refusal of the code generator at `path`, in a process of its own; "" if
// there was none.
std::string RefusalOf(const std::string& path, absl::StatusCode code) {
  const std::string message = NewFolder() + "/message";
  const int status = RunInChild([&] {
    setenv(kVariable, path.c_str(), 1);
    const auto generator = LoadCodeGenerator();
    if (generator.ok() || generator.status().code() != code) return 1;
    std::ofstream(message) << generator.status().message();
    return HalideIsMapped() ? 2 : 0;
  });
  if (status != 0) return "";
  std::ostringstream text;
  text << std::ifstream(message).rdbuf();
  return text.str();
}

TEST(CodeGenerator, IsLoadedByTheFirstKernelThatIsCompiled) {
  EXPECT_FALSE(HalideIsMapped());
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       ParseGraph(R"(graph (%x: f32[d0]) -> (y: f32[d0]) {
  %1: f32[d0] = add(%x, %x)
  return y = %1
})",
                                  std::make_shared<Context>()));
  EXPECT_FALSE(CodeVersion(HostLevel()).empty());
  EXPECT_FALSE(HalideIsMapped());
  // A kernel and the runtime, in another process: this one stays without.
  EXPECT_EQ(RunInChild([&] {
              const auto kernel =
                  CompileGroup(graph, GroupKind::kPointwise, "f", HostLevel());
              if (!kernel.ok() || !absl::StartsWith(*kernel,
                                                    "\x7f"
                                                    "ELF")) {
                return 1;
              }
              const auto runtime = CompileRuntime(HostLevel());
              if (!runtime.ok() || !absl::StartsWith(*runtime,
                                                     "\x7f"
                                                     "ELF")) {
                return 2;
              }
              return HalideIsMapped() ? 0 : 3;
            }),
            0);
  EXPECT_FALSE(HalideIsMapped());
}

// LLVM 21 ends with an assertion here: it cannot encode the instructions that
// it chose for AVX-512.
TEST(CodeGenerator, TakesALowerLevelWhereLlvmFails) {
  ASSERT_OK_AND_ASSIGN(const Graph graph,
                       ParseTypedGraph(R"(
graph (%x: u64[d1, 33]) -> (y: u64[]) {
  %1: u64[] = constant(dtype: u64, value: 1.0)
  %2: i64[d0] = iota(size: d0)
  %3: i64[d0, 1] = reshape(%2, shape: [d0, 1])
  %4: u64[d0, 33] = pad_general(%x, %1, high: [d2, 0], interior: [0, 0], low: [0, 0])
  %5: u64[d0] = gather(%4, %3, %1, axes: [1], batch: 1, mode: "fill")
  %6: u64[1, d0] = pad_general(%x, %1, high: [d3, d4], interior: [0, 0], low: [-3, 0])
  %7: u64[d0] = reshape(%6, shape: [d0])
  %8: u64[d0] = mul(%7, %5)
  %9: u64[] = reduce_sum(%8, axes: [0])
  %10: u64[] = constant(dtype: u64, value: 4.0)
  %11: u64[] = shift_left(%10, %9)
  return y = %11
})",
                                       std::make_shared<Context>()));
  EXPECT_EQ(RunInChild([&] {
              for (int i = 0; i < 2; ++i) {
                const auto kernel = CompileGroup(graph, GroupKind::kReduction,
                                                 "f", TargetLevel::kAvx512);
                if (!kernel.ok()) return 1;
              }
              return 0;
            }),
            0);
}

// The graph crosses as text; what does not read is an error, not a crash.
TEST(CodeGenerator, SaysWhatItRefuses) {
  EXPECT_EQ(
      RunInChild([] {
        const auto generate = LoadCodeGenerator();
        if (!generate.ok()) return 1;
        const std::string text = "graph () -> (";
        const CleaveKernelSource kernel = {"f", text.data(), text.size(), 0};
        const CleaveCodeRequest request = {0, 0, 0, 1, &kernel};
        int32_t status = 0;
        (*generate)(
            &request,
            [](void* context, int32_t code, const char*, size_t) {
              *static_cast<int32_t*>(context) = code;
            },
            &status);
        return status ==
                       static_cast<int32_t>(absl::StatusCode::kInvalidArgument)
                   ? 0
                   : 2;
      }),
      0);
}

TEST(CodeGenerator, SaysWhyThereIsNone) {
  const absl::StatusCode none = absl::StatusCode::kUnavailable;
  EXPECT_EQ(RefusalOf("/nowhere/libcleave_codegen.so", none),
            "no code generator: $CLEAVE_CODEGEN is "
            "/nowhere/libcleave_codegen.so, which is no file");
  const std::string text = NewFolder() + "/libcleave_codegen.so";
  std::ofstream(text) << "no shared object";
  EXPECT_THAT(RefusalOf(text, none), ::testing::HasSubstr(text));
  const char* const runfiles = getenv("TEST_SRCDIR");
  ASSERT_NE(runfiles, nullptr);
  const std::string folder =
      absl::StrCat(runfiles, "/" CLEAVE_RUNFILES_FOLDER "/engine/codegen/");
  EXPECT_THAT(RefusalOf(folder + "no_functions_testing.so", none),
              ::testing::HasSubstr("does not have the functions of one"));
  EXPECT_THAT(RefusalOf(folder + "other_build_testing.so",
                        absl::StatusCode::kFailedPrecondition),
              ::testing::HasSubstr("is of another build: yesterdays, not "
                                   "lowering "));
}

}  // namespace
}  // namespace cleave
