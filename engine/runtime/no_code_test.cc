// A process that may not make code, as some hardened systems have it: the
// interpreter computes. A program of its own, since it gives up that right.

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/ir/graph_text.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_library.h"
#include "engine/runtime/messages.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// From here on the system refuses mprotect(.., PROT_EXEC).
bool ForbidCode() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof(filter) / sizeof(filter[0]), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(NoCode, TheInterpreterComputesAndSaysSoOnce) {
  ASSERT_TRUE(ForbidCode()) << "the system takes no filter of calls";
  EXPECT_THAT(CodeStatus(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                     HasSubstr("no memory for code")));
  const auto context = std::make_shared<Context>();
  ASSERT_OK_AND_ASSIGN(const Graph graph, ParseGraph(R"(
      graph (%x: f32[n]) -> (y: f32[n]) {
        %1: f32[n] = neg(%x)
        %2: f32[n] = abs(%1)
        return y = %2
      })",
                                                     context));
  const LoadResult none = LoadRules({}, context);
  ASSERT_NE(none.rules, nullptr);
  std::vector<std::string> said;
  SetMessageSink(
      [](void* context, const char* message) {
        static_cast<std::vector<std::string>*>(context)->push_back(message);
      },
      &said);
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(const Kernel kernel, Compile(graph, *none.rules));
    EXPECT_EQ(kernel.compiled_groups(), 0);
    EXPECT_EQ(kernel.reference_groups(), 2);
    RunReport report;
    RunOptions options;
    options.report = &report;
    ASSERT_OK_AND_ASSIGN(
        const auto results,
        kernel.Run({Tensor::FromDoubles(DType::kF32, {3}, {1, -2, 3})},
                   options));
    EXPECT_EQ(results[0].ToString(),
              Tensor::FromDoubles(DType::kF32, {3}, {1, 2, 3}).ToString());
    EXPECT_THAT(report.steps[0].why, HasSubstr("no memory for code"));
  }
  EXPECT_THAT(said, ElementsAre(HasSubstr("the interpreter computes instead")));
  SetMessageSink(nullptr, nullptr);
  testing::internal::CaptureStderr();
  Say("two\nlines");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "cleave: two\nlines\n");
}

}  // namespace
}  // namespace cleave
