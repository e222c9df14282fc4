#include "transforms/table/rule_cache.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace cleave {
namespace {

TEST(RuleCache, FindsWhatWasAdded) {
  RuleCache<int, std::string> cache(10);
  EXPECT_EQ(cache.Find(1), nullptr);
  EXPECT_EQ(*cache.Add(1, "one"), "one");
  ASSERT_NE(cache.Find(1), nullptr);
  EXPECT_EQ(*cache.Find(1), "one");
  EXPECT_EQ(cache.Find(2), nullptr);
}

TEST(RuleCache, KeepsTheFirstOfAKey) {
  RuleCache<int, std::string> cache(10);
  const std::shared_ptr<const std::string> first = cache.Add(1, "one");
  EXPECT_EQ(cache.Add(1, "another"), first);
  EXPECT_EQ(cache.size(), 1);
}

TEST(RuleCache, HoldsNoMoreThanItsCapacity) {
  RuleCache<int, int> cache(10);
  for (int i = 0; i < 1000; ++i) {
    cache.Add(i, i);
    EXPECT_LE(cache.size(), 10);
    for (int recent = i; recent >= 0 && recent > i - 5; --recent) {
      EXPECT_NE(cache.Find(recent), nullptr) << recent << " of " << i;
    }
  }
  EXPECT_EQ(cache.Find(0), nullptr);
}

TEST(RuleCache, KeepsWhatIsAskedFor) {
  RuleCache<int, int> cache(10);
  cache.Add(-1, 7);
  for (int i = 0; i < 1000; ++i) {
    cache.Add(i, i);
    const std::shared_ptr<const int> found = cache.Find(-1);
    ASSERT_NE(found, nullptr) << i;
    EXPECT_EQ(*found, 7);
  }
}

TEST(RuleCache, HoldersKeepWhatGoes) {
  RuleCache<int, std::string> cache(4);
  const std::shared_ptr<const std::string> held = cache.Add(0, "held");
  for (int i = 1; i < 100; ++i) cache.Add(i, "other");
  EXPECT_EQ(cache.Find(0), nullptr);
  EXPECT_EQ(*held, "held");
}

TEST(RuleCache, IsSharedByThreads) {
  RuleCache<int, int> cache(64);
  std::vector<std::thread> threads;
  std::vector<int> wrong(8, 0);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&cache, &wrong, t] {
      for (int i = 0; i < 20000; ++i) {
        const int key = (i * 7 + t) % 200;
        std::shared_ptr<const int> found = cache.Find(key);
        if (found == nullptr) found = cache.Add(key, key);
        wrong[t] += *found != key;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(8, 0));
  EXPECT_LE(cache.size(), 64);
}

}  // namespace
}  // namespace cleave
