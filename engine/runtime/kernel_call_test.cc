#include "engine/runtime/kernel_call.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/runtime/allocator.h"
#include "engine/runtime/thread_pool.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

// Counts, checks what comes back, and refuses on demand.
class CheckedAllocator : public Allocator {
 public:
  ~CheckedAllocator() override { EXPECT_TRUE(live_.empty()) << "a leak"; }

  void* Allocate(size_t bytes, size_t alignment) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (calls_++ >= refuse_from_ || bytes > (size_t{1} << 40)) return nullptr;
    void* const address = DefaultAllocator().Allocate(bytes, alignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % alignment, 0u);
    live_[address] = bytes;
    return address;
  }
  void Free(void* address, size_t bytes) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    EXPECT_EQ(live_[address], bytes);
    live_.erase(address);
    DefaultAllocator().Free(address, bytes);
  }
  void RefuseFrom(int64_t call) { refuse_from_ = call; }
  int64_t calls() const { return calls_; }

 private:
  std::mutex mutex_;
  std::unordered_map<void*, size_t> live_;
  int64_t calls_ = 0;
  int64_t refuse_from_ = std::numeric_limits<int64_t>::max();
};

KernelCallOptions With(Allocator* allocator, ThreadPool* pool = nullptr) {
  KernelCallOptions options;
  options.allocator = allocator;
  options.pool = pool;
  return options;
}

TEST(KernelCall, AllocatesAlignedWithRoomAround) {
  CheckedAllocator allocator;
  KernelCall call(With(&allocator));
  for (const size_t bytes : {0, 1, 63, 64, 65, 511, 513, 4097, 1000000}) {
    auto* const memory = static_cast<char*>(call.Allocate(bytes));
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % kKernelAlignment, 0u);
    std::memset(memory, 1, bytes);
    // Readable, which AddressSanitizer checks.
    int sum = 0;
    for (int i = 1; i <= 64; ++i) sum += memory[-i] | memory[bytes + i - 1];
    volatile int sink = sum;
    (void)sink;
    KernelCall::Free(memory);
  }
  KernelCall::Free(nullptr);
}

TEST(KernelCall, ServesFreedMemoryAgain) {
  CheckedAllocator allocator;
  KernelCall call(With(&allocator));
  for (int i = 0; i < 100; ++i) {
    void* const large = call.Allocate(1000000 - 100 * (i % 3));
    void* const small = call.Allocate(100);
    EXPECT_NE(large, small);
    KernelCall::Free(large);
    KernelCall::Free(small);
  }
  EXPECT_EQ(allocator.calls(), 2);
  const KernelCallReport report = call.report();
  EXPECT_EQ(report.scratch_requests, 200);
  EXPECT_EQ(report.allocations, 2);
  EXPECT_EQ(report.bytes, report.peak_bytes);
  EXPECT_GE(report.peak_bytes, 1000100);
  EXPECT_LT(report.peak_bytes, 1100000);
}

TEST(KernelCall, KeepsABoundedAmount) {
  CheckedAllocator allocator;
  KernelCall call(With(&allocator));
  constexpr size_t kBytes = size_t{20} << 20;
  void* const first = call.Allocate(kBytes);
  void* const second = call.Allocate(kBytes);
  void* const huge = call.Allocate(size_t{100} << 20);
  std::vector<void*> small;
  for (int i = 0; i < 50; ++i) small.push_back(call.Allocate(64));
  EXPECT_GE(call.report().bytes, int64_t{140} << 20);
  KernelCall::Free(huge);
  KernelCall::Free(first);
  KernelCall::Free(second);
  EXPECT_LT(call.report().bytes, int64_t{22} << 20);
  for (void* const address : small) KernelCall::Free(address);
  EXPECT_LT(call.report().bytes, 10000);
  EXPECT_GE(call.report().peak_bytes, int64_t{140} << 20);
}

TEST(KernelCall, GivesUnusedMemoryBackBeforeItFails) {
  // Refuses whatever goes beyond 1000 kB in total.
  class Bounded : public Allocator {
   public:
    void* Allocate(size_t bytes, size_t alignment) override {
      if (held_ + bytes > 1000000) return nullptr;
      held_ += bytes;
      return DefaultAllocator().Allocate(bytes, alignment);
    }
    void Free(void* address, size_t bytes) override {
      held_ -= bytes;
      DefaultAllocator().Free(address, bytes);
    }

   private:
    size_t held_ = 0;
  };
  Bounded allocator;
  KernelCall call(With(&allocator));
  KernelCall::Free(call.Allocate(600000));
  void* const more = call.Allocate(900000);
  EXPECT_NE(more, nullptr);
  EXPECT_EQ(call.Allocate(900000), nullptr);
  KernelCall::Free(more);
}

TEST(KernelCall, RefusesWhatHasNoSize) {
  CheckedAllocator allocator;
  KernelCall call(With(&allocator));
  for (const size_t bytes :
       {std::numeric_limits<size_t>::max(),
        std::numeric_limits<size_t>::max() / 2 + 1, size_t{1} << 60}) {
    EXPECT_EQ(call.Allocate(bytes), nullptr) << bytes;
  }
}

TEST(KernelCall, FreesOnAnyThread) {
  CheckedAllocator allocator;
  KernelCall call(With(&allocator));
  std::vector<std::thread> threads;
  std::vector<void*> handed(32 * 100);
  for (int t = 0; t < 32; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        auto* const memory =
            static_cast<int*>(call.Allocate(64 + 64 * (i % 9)));
        *memory = t;
        void* const other = call.Allocate(128);
        EXPECT_EQ(*memory, t);
        KernelCall::Free(other);
        handed[static_cast<size_t>(t * 100 + i)] = memory;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (void* const address : handed) KernelCall::Free(address);
  EXPECT_EQ(call.report().scratch_requests, 2 * 32 * 100);
}

// Entries as Halide makes them.
KernelCall& CallOf(void** arguments) {
  return *static_cast<KernelCall*>(*static_cast<void**>(arguments[0]));
}

TEST(KernelCall, RunsAnEntry) {
  KernelCall call;
  int value = 0;
  void* arguments[] = {nullptr, &value};
  const KernelEntry entry = [](void** arguments) {
    *static_cast<int*>(arguments[1]) += 7;
    return 0;
  };
  EXPECT_THAT(call.Run(entry, absl::MakeSpan(arguments)), IsOk());
  EXPECT_THAT(call.Run(entry, absl::MakeSpan(arguments)), IsOk());
  EXPECT_EQ(value, 14);
  EXPECT_EQ(call.report().kernels, 2);
}

TEST(KernelCall, ReportsTheFirstError) {
  KernelCall call;
  void* arguments[] = {nullptr};
  const auto run = [&](KernelEntry entry) {
    return call.Run(entry, absl::MakeSpan(arguments));
  };
  EXPECT_THAT(
      run([](void** arguments) {
        CallOf(arguments).SetError("the first");
        CallOf(arguments).SetError("the second");
        return -3;
      }),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("-3: the first")));
  // The next kernel's errors are its own.
  EXPECT_THAT(run([](void**) { return -4; }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("-4")));
  EXPECT_THAT(run([](void**) { return 0; }), IsOk());
}

TEST(KernelCall, ReportsRefusedMemory) {
  CheckedAllocator allocator;
  allocator.RefuseFrom(0);
  KernelCall call(With(&allocator));
  void* arguments[] = {nullptr};
  EXPECT_THAT(call.Run(
                  [](void** arguments) {
                    return CallOf(arguments).Allocate(10) == nullptr ? -11 : 0;
                  },
                  absl::MakeSpan(arguments)),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("memory was refused")));
}

TEST(KernelCall, SharesLoopsUnlessSerial) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(3);
  KernelCallOptions options = With(nullptr, pool.get());
  for (const bool serial : {false, true}) {
    options.serial = serial;
    KernelCall call(options);
    std::atomic<int64_t> tasks{0};
    int calls = 0;
    std::mutex mutex;
    for (const int64_t size : {-1, 0, 1, 100}) {
      call.ParallelFor(size, [&](int64_t begin, int64_t end) {
        const std::lock_guard<std::mutex> lock(mutex);
        ++calls;
        tasks += end - begin;
      });
    }
    EXPECT_EQ(tasks, 101);
    EXPECT_EQ(call.report().parallel_tasks, 101);
    EXPECT_EQ(call.report().parallel_loops, serial ? 0 : 1);
    if (serial) {
      EXPECT_EQ(calls, 2);
    }
  }
}

// A small kernel's loops are its thread's; those of the code behind it are not.
TEST(KernelCall, SharesLoopsBehindASmallKernel) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(3);
  KernelCall call(With(nullptr, pool.get()));
  void* arguments[] = {nullptr};
  const KernelEntry entry = [](void**) { return 0; };
  ASSERT_THAT(call.Run(entry, absl::MakeSpan(arguments), /*small=*/true),
              IsOk());
  call.ParallelFor(100, [](int64_t, int64_t) {});
  EXPECT_EQ(call.report().parallel_loops, 1);
}

}  // namespace
}  // namespace cleave
