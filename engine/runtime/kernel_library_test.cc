#include "engine/runtime/kernel_library.h"

#include <signal.h>
#include <stdlib.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "HalideBuffer.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/codegen/kernel_testing.h"
#include "engine/files/process_testing.h"
#include "engine/runtime/allocator.h"
#include "engine/runtime/kernel_call.h"
#include "engine/runtime/kernel_linker.h"
#include "engine/runtime/thread_pool.h"
#include "testing/skip.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using LibraryPointer = std::shared_ptr<const KernelLibrary>;
template <typename T>
using Buffer = Halide::Runtime::Buffer<T>;

absl::StatusOr<LibraryPointer> LinkAndLoad(const std::string& object) {
  absl::StatusOr<std::string> image = LinkKernelLibrary(object, TestRuntime());
  if (!image.ok()) return image.status();
  return KernelLibrary::Load(*image);
}

// All of the test's kernels.
const KernelLibrary& Kernels() {
  static const auto* const library =
      new LibraryPointer(LinkAndLoad(TestKernels()).value());
  return **library;
}

absl::Status Call(const char* name, KernelCall& call,
                  std::vector<void*> arguments) {
  arguments.insert(arguments.begin(), nullptr);
  return call.Run(Kernels().Find(name).value(), absl::MakeSpan(arguments));
}

uint64_t MarkOf(const KernelLibrary& library) {
  Buffer<uint64_t> out(3);
  void* arguments[] = {nullptr, out.raw_buffer()};
  KernelCall call;
  EXPECT_THAT(
      call.Run(library.Find("marked").value(), absl::MakeSpan(arguments)),
      IsOk());
  EXPECT_EQ(out(2), out(0) + 2);
  return out(0);
}

TEST(KernelLibrary, FindsKernels) {
  EXPECT_THAT(Kernels().Find("smooth"), IsOk());
  EXPECT_THAT(Kernels().Find("none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("`none`")));
  // Only entries and what sets up the runtime are visible.
  EXPECT_EQ(Kernels().FindSymbol("smooth"), nullptr);
  EXPECT_EQ(Kernels().FindSymbol("halide_malloc"), nullptr);
  EXPECT_NE(Kernels().FindSymbol("halide_device_sync"), nullptr);
}

TEST(KernelLibrary, RefusesWhatIsNoLibrary) {
  EXPECT_THAT(KernelLibrary::Load(""),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(KernelLibrary::Load("something else"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(KernelLibrary::Load(TestKernels()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

// Two libraries, also of one name or where one follows the other, do not mix.
TEST(KernelLibrary, KeepsLibrariesApart) {
  std::vector<LibraryPointer> kept;
  for (uint64_t mark = 1; mark <= 6; ++mark) {
    ASSERT_OK_AND_ASSIGN(const LibraryPointer library,
                         LinkAndLoad(MarkedKernels(mark)));
    EXPECT_EQ(MarkOf(*library), mark);
    if (mark % 2 == 0) kept.push_back(library);
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(MarkOf(*kept[i]), 2 * i + 2);
  }
}

TEST(KernelLibrary, SharesLoopsAndScratchMemory) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(2);
  for (const int n : {1, 4, 63, 64, 65, 1000, 100000}) {
    Buffer<float> in(n + 2);
    for (int i = 0; i < n + 2; ++i) in(i) = static_cast<float>(i % 1000);
    for (const bool serial : {false, true}) {
      KernelCallOptions options;
      options.pool = pool.get();
      options.serial = serial;
      KernelCall call(options);
      Buffer<float> out(n);
      ASSERT_THAT(Call("smooth", call, {in.raw_buffer(), out.raw_buffer()}),
                  IsOk());
      for (int i = 0; i < n; ++i) {
        ASSERT_EQ(out(i), 2 * in(i) + 2 * in(i + 2)) << i;
      }
      const KernelCallReport report = call.report();
      const int blocks = (n + 63) / 64;
      EXPECT_EQ(report.parallel_tasks, blocks);
      EXPECT_EQ(report.parallel_loops, !serial && blocks > 1 ? 1 : 0);
      EXPECT_EQ(report.scratch_requests, blocks);
      // One block of memory for each thread, or two where threads meet.
      EXPECT_LE(report.allocations, serial ? 1 : 4);
    }
  }
}

TEST(KernelLibrary, NestsLoops) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(3);
  KernelCallOptions options;
  options.pool = pool.get();
  KernelCall call(options);
  int width = 20;
  int height = 30;
  Buffer<int32_t> out(width * height);
  ASSERT_THAT(Call("nested", call, {&width, &height, out.raw_buffer()}),
              IsOk());
  for (int i = 0; i < width * height; ++i) ASSERT_EQ(out(i), 3 * i);
  EXPECT_EQ(call.report().parallel_tasks, height + width * height);
}

// The runtime allocates its locks without a context.
TEST(KernelLibrary, LocksScatteredUpdates) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(3);
  KernelCallOptions options;
  options.pool = pool.get();
  KernelCall call(options);
  Buffer<int32_t> in(1001);
  int32_t sum = 0;
  for (int i = 0; i < 1001; ++i) sum += in(i) = 5 * i;
  Buffer<int32_t> out(2);
  ASSERT_THAT(Call("hidden_locks", call, {in.raw_buffer(), out.raw_buffer()}),
              IsOk());
  EXPECT_EQ(out(0), sum);
  EXPECT_EQ(out(1), 1001);
}

TEST(KernelLibrary, RefusesTasksThatWait) {
  KernelCall call;
  Buffer<float> in(10);
  in.fill(1);
  Buffer<float> out(10);
  EXPECT_THAT(
      Call("waiting", call, {in.raw_buffer(), out.raw_buffer()}),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("not supported")));
}

TEST(KernelLibrary, ReportsTheKernelsOwnErrors) {
  KernelCall call;
  Buffer<float> in(10);
  in.fill(1);
  Buffer<float> out(10);
  EXPECT_THAT(
      Call("smooth", call, {in.raw_buffer(), out.raw_buffer()}),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("accessed at 11")));
  EXPECT_EQ(call.report().bytes, 0);
}

// Refuses from the n-th call on.
class RefusingAllocator : public Allocator {
 public:
  explicit RefusingAllocator(int granted) : granted_(granted) {}
  ~RefusingAllocator() override { EXPECT_EQ(held_, 0); }
  void* Allocate(size_t bytes, size_t alignment) override {
    if (granted_.fetch_sub(1) <= 0) return nullptr;
    ++held_;
    return DefaultAllocator().Allocate(bytes, alignment);
  }
  void Free(void* address, size_t bytes) override {
    --held_;
    DefaultAllocator().Free(address, bytes);
  }

 private:
  std::atomic<int> granted_;
  std::atomic<int> held_{0};
};

TEST(KernelLibrary, FailsCleanlyForWantOfMemory) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(4);
  constexpr int kSize = 64 * 40;
  Buffer<float> in(kSize + 2);
  in.fill(3);
  int failures = 0;
  for (int granted = 0; granted < 8; ++granted) {
    for (const bool serial : {false, true}) {
      RefusingAllocator allocator(granted);
      KernelCallOptions options;
      options.pool = pool.get();
      options.allocator = &allocator;
      options.serial = serial;
      KernelCall call(options);
      Buffer<float> out(kSize);
      out.fill(0);
      const absl::Status status =
          Call("smooth", call, {in.raw_buffer(), out.raw_buffer()});
      if (status.ok()) {
        for (int i = 0; i < kSize; ++i) ASSERT_EQ(out(i), 12);
      } else {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
        ++failures;
      }
      if (granted == 0) {
        EXPECT_FALSE(status.ok());
      } else if (serial) {
        EXPECT_THAT(status, IsOk());
      }
    }
  }
  EXPECT_GE(failures, 2);
}

TEST(KernelLibrary, RunsOnManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      Buffer<float> in(502);
      Buffer<float> out(500);
      for (int round = 0; round < 200; ++round) {
        in.fill(static_cast<float>(t + round));
        KernelCall call;
        ASSERT_THAT(Call("smooth", call, {in.raw_buffer(), out.raw_buffer()}),
                    IsOk());
        for (int i = 0; i < 500; ++i) {
          ASSERT_EQ(out(i), 4.0f * static_cast<float>(t + round));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Sets an environment variable for a scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    const char* const old = std::getenv(name);
    if (old != nullptr) old_ = old;
    had_ = old != nullptr;
    setenv(name, value, 1);
  }
  ~ScopedVariable() {
    if (had_) {
      setenv(name_, old_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* const name_;
  std::string old_;
  bool had_ = false;
};

TEST(KernelLinker, UsesTheLinkerItIsTold) {
  for (const char* linker : {"ld", "cc", "g++", "/usr/bin/ld"}) {
    const ScopedVariable variable("CLEAVE_LINKER", linker);
    ASSERT_OK_AND_ASSIGN(const LibraryPointer library,
                         LinkAndLoad(MarkedKernels(4)));
    EXPECT_EQ(MarkOf(*library), 4u) << linker;
  }
}

// LLVM's linker writes its output another way; it need not be installed.
TEST(KernelLinker, ServesLlvmsLinker) {
  const ScopedVariable variable("CLEAVE_LINKER", "ld.lld");
  const absl::StatusOr<LibraryPointer> library = LinkAndLoad(MarkedKernels(5));
  if (absl::IsFailedPrecondition(library.status())) {
    CLEAVE_SKIP(kNoLlvmLinker);
  }
  ASSERT_THAT(library, IsOk());
  EXPECT_EQ(MarkOf(**library), 5u);
}

TEST(KernelLinker, SaysWhatIsMissing) {
  {
    const ScopedVariable path("PATH", "/nowhere");
    const ScopedVariable variable("CLEAVE_LINKER", "");
    EXPECT_THAT(LinkKernelLibrary(TestKernels(), TestRuntime()),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("apt-get install binutils")));
  }
  const ScopedVariable variable("CLEAVE_LINKER", "no-such-linker");
  EXPECT_THAT(LinkKernelLibrary(TestKernels(), TestRuntime()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("CLEAVE_LINKER=no-such-linker")));
}

TEST(KernelLinker, PassesOnItsWords) {
  EXPECT_THAT(LinkKernelLibrary("no object", TestRuntime()),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("exited with")));
  {
    const ScopedVariable variable("CLEAVE_LINKER", "/bin/true");
    EXPECT_THAT(
        LinkKernelLibrary(TestKernels(), TestRuntime()),
        StatusIs(absl::StatusCode::kInternal, HasSubstr("wrote no library")));
  }
}

// Then the system keeps no exit status.
TEST(KernelLinker, ServesHostsThatIgnoreTheirChildren) {
  MarkedKernels(6);
  TestRuntime();
  EXPECT_EQ(RunInChild([] {
              signal(SIGCHLD, SIG_IGN);
              const absl::StatusOr<LibraryPointer> library =
                  LinkAndLoad(MarkedKernels(6));
              if (!library.ok() || MarkOf(**library) != 6) return 1;
              return LinkKernelLibrary("no object", TestRuntime()).ok() ? 2 : 0;
            }),
            0);
}

TEST(KernelLibrary, WantsARuntime) {
  const std::string empty_archive = "!<arch>\n";
  ASSERT_OK_AND_ASSIGN(const std::string bare,
                       LinkKernelLibrary(TestKernels(), empty_archive));
  EXPECT_THAT(
      KernelLibrary::Load(bare),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("halide_")));
  ASSERT_OK_AND_ASSIGN(const std::string empty,
                       LinkKernelLibrary(empty_archive, empty_archive));
  EXPECT_THAT(KernelLibrary::Load(empty),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("no Halide runtime")));
}

}  // namespace
}  // namespace cleave
