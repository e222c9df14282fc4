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
#include "engine/codegen/halide/kernel_testing.h"
#include "engine/files/process_testing.h"
#include "engine/runtime/allocator.h"
#include "engine/runtime/kernel_call.h"
#include "engine/runtime/thread_pool.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;
using LibraryPointer = std::shared_ptr<const KernelLibrary>;
template <typename T>
using Buffer = Halide::Runtime::Buffer<T>;

std::shared_ptr<const KernelRuntime> Runtime() {
  static const auto* const runtime = new std::shared_ptr<const KernelRuntime>(
      KernelRuntime::Load(TestRuntime()).value());
  return *runtime;
}

absl::StatusOr<LibraryPointer> Load(absl::string_view object) {
  return KernelLibrary::Load(object, Runtime());
}

// All of the test's kernels.
const KernelLibrary& Kernels() {
  static const auto* const library =
      new LibraryPointer(Load(TestKernels()).value());
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
  EXPECT_EQ(Kernels().FindInRuntime("smooth"), nullptr);
  EXPECT_NE(Kernels().FindInRuntime("halide_device_sync"), nullptr);
}

TEST(KernelLibrary, RefusesWhatIsNoObject) {
  EXPECT_THAT(Load(""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Load("something else"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(KernelRuntime::Load(TestKernels()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("nothing defines `halide_")));
}

// Two libraries, also of one name or where one follows the other, do not mix.
TEST(KernelLibrary, KeepsLibrariesApart) {
  std::vector<LibraryPointer> kept;
  for (uint64_t mark = 1; mark <= 6; ++mark) {
    ASSERT_OK_AND_ASSIGN(const LibraryPointer library,
                         Load(MarkedKernels(mark)));
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

// No program runs, and none need be there.
TEST(KernelLibrary, LoadsWhereThereIsNoLinker) {
  MarkedKernels(6);
  TestRuntime();
  EXPECT_EQ(RunInChild([] {
              setenv("PATH", "/nowhere", 1);
              signal(SIGCHLD, SIG_IGN);
              const auto runtime = KernelRuntime::Load(TestRuntime());
              if (!runtime.ok()) return 1;
              const absl::StatusOr<LibraryPointer> library =
                  KernelLibrary::Load(MarkedKernels(6), *runtime);
              return library.ok() && MarkOf(**library) == 6 ? 0 : 2;
            }),
            0);
}

TEST(KernelLibrary, KeepsItsRuntimeLoaded) {
  LibraryPointer library;
  {
    ASSERT_OK_AND_ASSIGN(const auto runtime,
                         KernelRuntime::Load(TestRuntime()));
    ASSERT_OK_AND_ASSIGN(library, KernelLibrary::Load(TestKernels(), runtime));
  }
  EXPECT_EQ(MarkOf(*library), kTestMark);
}

TEST(KernelLibrary, CodeCanBeMadeHere) { EXPECT_OK(CodeStatus()); }

}  // namespace
}  // namespace cleave
