#include "engine/runtime/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

namespace cleave {
namespace {

// Smaller blocks are kept by the C library itself.
constexpr size_t kKeptFrom = size_t{128} << 10;
// A page of this size costs the system one fault in place of 512.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = 2 * kHugePage;

class KeepingAllocator : public Allocator {
 public:
  void* Allocate(size_t bytes, size_t alignment) override {
    if (bytes < kKeptFrom || alignment > kKernelAlignment) {
      return System(bytes, std::max(alignment, sizeof(void*)));
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (void* const kept = TakeKept(bytes)) return kept;
    }
    void* address = SystemBlock(bytes);
    if (address == nullptr) {
      // Blocks that are kept may be the memory that is missing.
      Release();
      address = SystemBlock(bytes);
      if (address == nullptr) return nullptr;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    sizes_.emplace(address, bytes);
    return address;
  }

  void Free(void* address, size_t bytes) override {
    std::vector<void*> dropped;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found =
          bytes < kKeptFrom ? sizes_.end() : sizes_.find(address);
      if (found == sizes_.end() || found->second > kMostKeptBytes) {
        if (found != sizes_.end()) sizes_.erase(found);
        dropped.push_back(address);
      } else {
        kept_.push_back(address);
        kept_bytes_ += found->second;
      }
      // The oldest make room.
      while (kept_bytes_ > kMostKeptBytes) {
        dropped.push_back(kept_.front());
        Forget(kept_.begin());
      }
    }
    for (void* const block : dropped) std::free(block);
  }

  void Release() {
    std::deque<void*> dropped;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      dropped = kept_;
      while (!kept_.empty()) Forget(kept_.begin());
    }
    for (void* const block : dropped) std::free(block);
  }

 private:
  static void* System(size_t bytes, size_t alignment) {
    void* address = nullptr;
    return posix_memalign(&address, alignment, bytes) == 0 ? address : nullptr;
  }

  static void* SystemBlock(size_t bytes) {
    if (bytes < kHugeFrom) return System(bytes, kKernelAlignment);
    void* const address = System(bytes, kHugePage);
    // Where the system has none, all works with small ones.
    if (address != nullptr) (void)madvise(address, bytes, MADV_HUGEPAGE);
    return address;
  }

  // The smallest kept block that serves, of which at most a quarter is unused.
  void* TakeKept(size_t bytes) {
    auto best = kept_.end();
    size_t best_size = bytes + bytes / 3 + 1;
    for (auto at = kept_.begin(); at != kept_.end(); ++at) {
      const size_t size = sizes_.at(*at);
      if (size < bytes || size >= best_size) continue;
      best = at;
      best_size = size;
    }
    if (best == kept_.end()) return nullptr;
    void* const address = *best;
    kept_.erase(best);
    kept_bytes_ -= best_size;
    return address;
  }

  void Forget(std::deque<void*>::iterator at) {
    const auto found = sizes_.find(*at);
    kept_bytes_ -= found->second;
    sizes_.erase(found);
    kept_.erase(at);
  }

  std::mutex mutex_;               // guards the rest
  std::map<void*, size_t> sizes_;  // of large blocks, in use or kept
  std::deque<void*> kept_;         // the oldest first
  size_t kept_bytes_ = 0;
};

KeepingAllocator& Keeping() {
  static auto* const allocator = new KeepingAllocator;
  return *allocator;
}

}  // namespace

Allocator& DefaultAllocator() { return Keeping(); }

void ReleaseKeptMemory() { Keeping().Release(); }

}  // namespace cleave
