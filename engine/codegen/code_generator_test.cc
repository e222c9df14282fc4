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
