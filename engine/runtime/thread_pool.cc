#include "engine/runtime/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/files/threads.h"
#include "ops/check.h"

namespace cleave {
namespace {

// Kernels of a graph follow each other within microseconds, while waking a
// thread takes tens: so a thread without work looks for more this often first.
constexpr int kSpins = 2000;

// Ranges per thread: enough that one slow range does not hold up the others.
constexpr int64_t kRangesPerThread = 8;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// One ParallelFor, on its caller's stack. Threads claim range after range.
struct Job {
  Job(int64_t tasks, int64_t ranges,
      absl::FunctionRef<void(int64_t, int64_t)> f)
      : tasks(tasks), ranges(ranges), body(f), outer(running) {}

  // Runs ranges until all are claimed.
  void Work() {
    const Job* const before = running;
    running = this;
    while (true) {
      const int64_t range = next.fetch_add(1, std::memory_order_relaxed);
      if (range >= ranges) break;
      // The first tasks % ranges ranges have one task more than the others.
      const int64_t length = tasks / ranges;
      const int64_t longer = tasks % ranges;
      const int64_t begin = range * length + std::min(range, longer);
      body(begin, begin + length + (range < longer ? 1 : 0));
    }
    running = before;
  }
  bool AllClaimed() const {
    return next.load(std::memory_order_relaxed) >= ranges;
  }
  bool HasHelpers() const {
    return helpers.load(std::memory_order_acquire) != 0;
  }
  // Whether it ends before `job` does, in whose body it is.
  bool IsWithin(const Job& job) const {
    const Job* at = outer;
    while (at != nullptr && at != &job) at = at->outer;
    return at != nullptr;
  }

  // The one whose body this thread is in, the innermost.
  static thread_local const Job* running;

  const int64_t tasks;
  const int64_t ranges;
  const absl::FunctionRef<void(int64_t, int64_t)> body;
  // In whose body it is; that one waits for it, so that it lives as long.
  const Job* const outer;
  std::atomic<int64_t> next{0};
  // Threads of the pool in Work(). Raised under the pool's mutex only, while
  // the job is listed: once it is not, zero means that nobody will touch it
  // again.
  std::atomic<int> helpers{0};
};

thread_local const Job* Job::running = nullptr;

class Pool : public ThreadPool {
 public:
  explicit Pool(int threads) {
    workers_.reserve(static_cast<size_t>(threads) - 1);
    for (int i = 1; i < threads; ++i) {
      std::optional<std::thread> worker = StartThread([this] { Serve(); });
      if (!worker.has_value()) break;  // as many as the system grants
      workers_.push_back(*std::move(worker));
      const std::string name = absl::StrCat("cleave-", i);
      pthread_setname_np(workers_.back().native_handle(), name.c_str());
    }
  }

  ~Pool() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      CLEAVE_CHECK(jobs_.empty()) << "the pool is in use";
      stop_ = true;
      posted_.fetch_add(1, std::memory_order_release);
    }
    work_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  int threads() const override { return static_cast<int>(workers_.size()) + 1; }

  void ParallelFor(int64_t tasks,
                   absl::FunctionRef<void(int64_t, int64_t)> body) override {
    if (tasks <= 0) return;
    if (tasks == 1 || workers_.empty()) {
      body(0, tasks);
      return;
    }
    Job job(tasks, std::min(tasks, threads() * kRangesPerThread), body);
    int wanted =
        static_cast<int>(std::min<int64_t>(job.ranges - 1, threads() - 1));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      jobs_.push_back(&job);
      posted_.fetch_add(1, std::memory_order_release);
      wanted = std::min(wanted, sleepers_);
      if (waiters_ > 0 && job.outer != nullptr) done_.notify_all();
    }
    for (; wanted > 0; --wanted) work_.notify_one();

    job.Work();

    {
      const std::lock_guard<std::mutex> lock(mutex_);
      jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    }
    // All is claimed: what is left are the ranges that the helpers are in.
    if (Spin([&] { return !job.HasHelpers(); })) return;
    std::unique_lock<std::mutex> lock(mutex_);
    while (job.HasHelpers()) {
      if (Help(lock, [&](const Job& other) { return other.IsWithin(job); })) {
        continue;
      }
      ++waiters_;
      done_.wait(lock);
      --waiters_;
    }
  }

 private:
  // Whether `done` got true soon.
  template <typename F>
  static bool Spin(const F& done) {
    for (int i = 0; i < kSpins; ++i) {
      if (done()) return true;
      Pause();
    }
    return false;
  }

  // Works on the newest job that `may` says: a job within another's body holds
  // that one up. False where there is none. `lock` is that of mutex_.
  template <typename F>
  bool Help(std::unique_lock<std::mutex>& lock, const F& may) {
    const auto found = std::find_if(
        jobs_.rbegin(), jobs_.rend(),
        [&](const Job* job) { return !job->AllClaimed() && may(*job); });
    if (found == jobs_.rend()) return false;
    Job* const job = *found;
    job->helpers.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    job->Work();
    lock.lock();
    // Under the mutex, so that a caller that goes to sleep does not miss it.
    // The caller may take its job away at once.
    job->helpers.fetch_sub(1, std::memory_order_release);
    if (waiters_ > 0) done_.notify_all();
    return true;
  }

  // A worker's life.
  void Serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      if (Help(lock, [](const Job&) { return true; })) continue;
      if (stop_) return;
      const int64_t seen = posted_.load(std::memory_order_acquire);
      const auto is_posted = [&] {
        return posted_.load(std::memory_order_acquire) != seen;
      };
      lock.unlock();
      Spin(is_posted);
      lock.lock();
      if (is_posted() || stop_) continue;
      ++sleepers_;
      work_.wait(lock);
      --sleepers_;
    }
  }

  std::mutex mutex_;
  std::condition_variable work_;  // there may be a job
  // A helper left its job, or there is one within another's body.
  std::condition_variable done_;
  std::vector<Job*> jobs_;  // guarded by mutex_, as are the next three
  int sleepers_ = 0;
  int waiters_ = 0;
  bool stop_ = false;
  // Raised under mutex_ with each job; read without it by those that spin.
  std::atomic<int64_t> posted_{0};
  std::vector<std::thread> workers_;  // last: they use what is above
};

}  // namespace

std::unique_ptr<ThreadPool> MakeThreadPool(int threads) {
  CLEAVE_CHECK(threads >= 1) << threads << " threads";
  return std::make_unique<Pool>(threads);
}

ThreadPool& DefaultThreadPool() {
  // Nothing frees it: threads may use it until the process ends.
  static std::atomic<ThreadPool*> shared{nullptr};
  ThreadPool* pool = shared.load(std::memory_order_acquire);
  if (pool != nullptr) return *pool;
  // The threads of a pool do not exist in a child that the process forks, and
  // its locks are as they were: the child makes another one.
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { shared.store(nullptr); });
  static_cast<void>(registered);
  auto made = MakeThreadPool(UsableCores());
  if (shared.compare_exchange_strong(pool, made.get())) pool = made.release();
  return *pool;
}

}  // namespace cleave
