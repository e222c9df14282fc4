// RuleCache: a bounded map of immutable values that threads share.
//
//   RuleCache<std::string, Graph> cache(1000);
//   cache.Add("relu", graph);
//   std::shared_ptr<const Graph> found = cache.Find("relu");

#ifndef CLEAVE_TRANSFORMS_TABLE_RULE_CACHE_H_
#define CLEAVE_TRANSFORMS_TABLE_RULE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace cleave {

// Entries lie in two generations. One that is found or added is in the recent
// one; as this reaches half of the capacity it becomes the old one, and what
// the old one still had goes. So an entry lives for at least as many others as
// half of the capacity, and looking one up costs one or two searches. A holder
// keeps what it found whatever goes.
//
// Thread-safe. No lock is held while an entry is made: threads may make the
// same one twice, and the first that adds it is right for all.
template <typename Key, typename T>
class RuleCache {
 public:
  using Pointer = std::shared_ptr<const T>;

  // At least 2.
  explicit RuleCache(size_t capacity) : half_(capacity / 2) {}

  // Null where there is none.
  Pointer Find(const Key& key) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto recent = recent_.find(key);
    if (recent != recent_.end()) return recent->second;
    const auto old = old_.find(key);
    if (old == old_.end()) return nullptr;
    Pointer found = std::move(old->second);
    old_.erase(old);
    Insert(key, found);
    return found;
  }

  // A value that is there already under the key stays, and is returned.
  Pointer Add(const Key& key, T made) {
    auto added = std::make_shared<const T>(std::move(made));
    Pointer there = Find(key);
    if (there != nullptr) return there;
    const std::lock_guard<std::mutex> lock(mutex_);
    return Insert(key, std::move(added));
  }

  int64_t size() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int64_t>(recent_.size() + old_.size());
  }

 private:
  // The mutex is held.
  Pointer Insert(const Key& key, Pointer value) {
    if (recent_.size() >= half_) {
      old_ = std::move(recent_);
      recent_.clear();
    }
    return recent_.emplace(key, std::move(value)).first->second;
  }

  const size_t half_;
  mutable std::mutex mutex_;
  absl::flat_hash_map<Key, Pointer> recent_;
  absl::flat_hash_map<Key, Pointer> old_;
};

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_TABLE_RULE_CACHE_H_
