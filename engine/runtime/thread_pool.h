// ThreadPool: the threads that kernels share.
//
//   DefaultThreadPool().ParallelFor(rows, [&](int64_t begin, int64_t end) {
//     for (int64_t row = begin; row < end; ++row) Normalize(row);
//   });
//
// A host program that has threads of its own derives from ThreadPool and passes
// that, so that the two do not compete for the cores.

#ifndef CLEAVE_ENGINE_RUNTIME_THREAD_POOL_H_
#define CLEAVE_ENGINE_RUNTIME_THREAD_POOL_H_

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"

namespace cleave {

class ThreadPool {
 public:
  virtual ~ThreadPool() = default;
  // How many threads work on one ParallelFor, the caller's included; >= 1.
  virtual int threads() const = 0;
  // Calls `body(begin, end)` with ranges, none empty, that cover [0, tasks)
  // once, on any threads at once, and returns when all calls have. May be
  // called by many threads at a time and from within a body: that must not wait
  // for threads that are busy. `tasks` <= 0 does nothing.
  virtual void ParallelFor(
      int64_t tasks,
      absl::FunctionRef<void(int64_t begin, int64_t end)> body) = 0;
};

// A pool of `threads` >= 1 threads: as many less one of its own, and the
// caller's. Fewer where the system refuses them: threads() tells. Nobody may be
// within ParallelFor when it is destroyed.
std::unique_ptr<ThreadPool> MakeThreadPool(int threads);

// One thread for each core that the process may run on. Lives as long as the
// process; its threads start at the first call. A child that the process forks
// has one of its own.
ThreadPool& DefaultThreadPool();

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_THREAD_POOL_H_
