// Hooks that count what a run asks of its host.
//
//   CountingPool pool(&DefaultThreadPool());
//   options.call.pool = &pool;
//   kernel.RunInto(inputs, outputs, options);
//   pool.loops();  // the parallel loops that the kernels started

#ifndef CLEAVE_TOOLS_BENCHMARK_COUNT_HOOKS_H_
#define CLEAVE_TOOLS_BENCHMARK_COUNT_HOOKS_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/runtime/allocator.h"
#include "engine/runtime/thread_pool.h"

namespace cleave {

// Passes loops on to another pool, and times them.
class CountingPool : public ThreadPool {
 public:
  struct Loop {
    int64_t tasks = 0;
    int64_t nanoseconds = 0;
  };

  explicit CountingPool(ThreadPool* pool) : pool_(pool) {}

  // Two at least: the loops of a pool of one would not reach it.
  int threads() const override { return std::max(2, pool_->threads()); }
  void ParallelFor(
      int64_t tasks,
      absl::FunctionRef<void(int64_t begin, int64_t end)> body) override {
    const auto start = std::chrono::steady_clock::now();
    pool_->ParallelFor(tasks, body);
    const auto took = std::chrono::steady_clock::now() - start;
    const std::lock_guard<std::mutex> lock(mutex_);
    loops_.push_back(
        {tasks,
         std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()});
  }

  // In the order in which they ended.
  const std::vector<Loop>& loops() const { return loops_; }

 private:
  ThreadPool* const pool_;
  std::mutex mutex_;
  std::vector<Loop> loops_;
};

// Passes requests on to the default allocator.
class CountingAllocator : public Allocator {
 public:
  void* Allocate(size_t bytes, size_t alignment) override {
    ++allocations_;
    const int64_t now = bytes_ += static_cast<int64_t>(bytes);
    int64_t peak = peak_bytes_;
    while (now > peak && !peak_bytes_.compare_exchange_weak(peak, now)) {
    }
    return DefaultAllocator().Allocate(bytes, alignment);
  }
  void Free(void* address, size_t bytes) override {
    bytes_ -= static_cast<int64_t>(bytes);
    DefaultAllocator().Free(address, bytes);
  }

  int64_t allocations() const { return allocations_; }
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  std::atomic<int64_t> allocations_{0};
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> peak_bytes_{0};
};

}  // namespace cleave

#endif  // CLEAVE_TOOLS_BENCHMARK_COUNT_HOOKS_H_
