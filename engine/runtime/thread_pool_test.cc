#include "engine/runtime/thread_pool.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cleave {
namespace {

// How often each task was run.
std::vector<int> Count(ThreadPool& pool, int64_t tasks) {
  std::vector<std::atomic<int>> counts(static_cast<size_t>(tasks));
  std::atomic<int> wrong{0};
  pool.ParallelFor(tasks, [&](int64_t begin, int64_t end) {
    if (begin < 0 || begin >= end || end > tasks) ++wrong;
    for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
  });
  EXPECT_EQ(wrong, 0);
  return std::vector<int>(counts.begin(), counts.end());
}

TEST(ThreadPool, RunsEachTaskOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const std::unique_ptr<ThreadPool> pool = MakeThreadPool(threads);
    EXPECT_EQ(pool->threads(), threads);
    for (const int64_t tasks : {1, 2, 3, 7, 16, 17, 64, 1000}) {
      EXPECT_THAT(Count(*pool, tasks), ::testing::Each(1))
          << threads << " threads, " << tasks << " tasks";
    }
  }
}

TEST(ThreadPool, DoesNothingForNoTasks) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(2);
  int calls = 0;
  pool->ParallelFor(0, [&](int64_t, int64_t) { ++calls; });
  pool->ParallelFor(-5, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 0);
}

TEST(ThreadPool, RunsInlineWithOneThread) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(1);
  int64_t tasks = 0;
  int calls = 0;
  pool->ParallelFor(1000, [&](int64_t begin, int64_t end) {
    ++calls;
    tasks += end - begin;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(tasks, 1000);
}

TEST(ThreadPool, TakesHugeCounts) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(3);
  std::atomic<int64_t> sum{0};
  constexpr int64_t kTasks = int64_t{1} << 61;
  pool->ParallelFor(kTasks,
                    [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum, kTasks);
}

// Each thread waits in its range for the other: one thread could not pass.
TEST(ThreadPool, UsesItsThreadsAtOnce) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(2);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> arrived{0};
    std::mutex mutex;
    std::set<std::thread::id> threads;
    pool->ParallelFor(2, [&](int64_t, int64_t) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
      const std::lock_guard<std::mutex> lock(mutex);
      threads.insert(std::this_thread::get_id());
    });
    EXPECT_EQ(threads.size(), 2u);
    // Long enough that the pool's thread sleeps at times.
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 3));
  }
}

TEST(ThreadPool, Nests) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(4);
  std::atomic<int> count{0};
  for (int round = 0; round < 20; ++round) {
    pool->ParallelFor(9, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        pool->ParallelFor(7, [&](int64_t begin, int64_t end) {
          for (int64_t j = begin; j < end; ++j) {
            pool->ParallelFor(5, [&](int64_t begin, int64_t end) {
              count += static_cast<int>(end - begin);
            });
          }
        });
      }
    });
  }
  EXPECT_EQ(count, 20 * 9 * 7 * 5);
}

// The caller has done its own range when the other thread cuts its one in two,
// which wait for each other.
TEST(ThreadPool, HelpsWhatItWaitsFor) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(2);
  const std::thread::id caller = std::this_thread::get_id();
  const auto wait_until = [](const std::function<bool()>& done) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done() && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    return done();
  };
  for (int round = 0; round < 20; ++round) {
    std::atomic<bool> started{false};
    std::atomic<int> met{0};
    std::atomic<int> alone{0};
    pool->ParallelFor(2, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() == caller) {
        if (!wait_until([&] { return started.load(); })) ++alone;
        return;
      }
      started = true;
      // Long enough that the caller sleeps at times.
      std::this_thread::sleep_for(std::chrono::milliseconds(round % 3));
      pool->ParallelFor(2, [&](int64_t, int64_t) {
        ++met;
        if (!wait_until([&] { return met == 2; })) ++alone;
      });
    });
    ASSERT_EQ(alone, 0) << "round " << round;
  }
}

TEST(ThreadPool, ServesManyCallers) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int caller = 0; caller < 16; ++caller) {
    callers.emplace_back([&, caller] {
      for (int round = 0; round < 200; ++round) {
        // Not atomic where it need not be: ParallelFor orders what the ranges
        // wrote before what comes after it.
        std::vector<int64_t> values(static_cast<size_t>(1 + caller));
        pool->ParallelFor(static_cast<int64_t>(values.size()),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t i = begin; i < end; ++i) {
                              values[static_cast<size_t>(i)] = i * round;
                            }
                          });
        for (size_t i = 0; i < values.size(); ++i) {
          if (values[i] != static_cast<int64_t>(i) * round) ++wrong;
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, ComesAndGoes) {
  for (int round = 0; round < 100; ++round) {
    const std::unique_ptr<ThreadPool> pool = MakeThreadPool(1 + round % 4);
    if (round % 2 == 0) {
      EXPECT_THAT(Count(*pool, round), ::testing::Each(1));
    }
  }
}

TEST(ThreadPool, HasADefault) {
  EXPECT_GE(DefaultThreadPool().threads(), 1);
  EXPECT_EQ(&DefaultThreadPool(), &DefaultThreadPool());
  EXPECT_THAT(Count(DefaultThreadPool(), 100), ::testing::Each(1));
}

// A child has none of its parent's threads, and would wait for them.
TEST(ThreadPool, ForkedChildHasItsOwn) {
  const ThreadPool* const parents = &DefaultThreadPool();
  for (int round = 0; round < 100; ++round) {
    ASSERT_THAT(Count(DefaultThreadPool(), 100), ::testing::Each(1));
  }
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    bool right = &DefaultThreadPool() != parents;
    for (int round = 0; round < 100; ++round) {
      for (const int count : Count(DefaultThreadPool(), 100)) {
        right &= count == 1;
      }
    }
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(&DefaultThreadPool(), parents);
}

}  // namespace
}  // namespace cleave
