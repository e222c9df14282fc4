// Hooks that count what a run asks of its host.
//
//   CountingPool pool(&DefaultThreadPool());
//   options.call.pool = &pool;
//   kernel.RunInto(inputs, outputs, options);
//   pool.loops();  // parallel loops that the kernels started

#ifndef CLEAVE_TOOLS_BENCHMARK_COUNT_HOOKS_H_
#define CLEAVE_TOOLS_BENCHMARK_COUNT_HOOKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "engine/runtime/allocator.h"
#include "engine/runtime/thread_pool.h"

namespace cleave {

// Passes loops on to another pool.
class CountingPool : public ThreadPool {
 public:
  explicit CountingPool(ThreadPool* pool) : pool_(pool) {}

  int threads() const override { return pool_->threads(); }
  void ParallelFor(
      int64_t tasks,
      absl::FunctionRef<void(int64_t begin, int64_t end)> body) override {
    ++loops_;
    pool_->ParallelFor(tasks, body);
  }

  int64_t loops() const { return loops_; }

 private:
  ThreadPool* const pool_;
  std::atomic<int64_t> loops_{0};
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
