#include "engine/runtime/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <new>

namespace cleave {
namespace {

// Smaller blocks are kept by the C library itself.
constexpr size_t kKeptFrom = size_t{128} << 10;
// A page of this size costs the system one fault in place of 512.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = 2 * kHugePage;

// A thread is known by the address of its own.
thread_local const char this_thread = 0;

void* Aligned(size_t bytes, size_t alignment) {
  void* address = nullptr;
  return posix_memalign(&address, alignment, bytes) == 0 ? address : nullptr;
}

// Large blocks carry what is known of them, so that to keep one takes no
// memory.
class KeepingAllocator : public Allocator {
 public:
  void* Allocate(size_t bytes, size_t alignment) override {
    if (bytes < kKeptFrom) {
      return Aligned(bytes, std::max(alignment, sizeof(void*)));
    }
    Header* block = nullptr;
    if (alignment <= kKernelAlignment) block = TakeKept(bytes);
    if (block == nullptr) block = Make(bytes, alignment);
    if (block == nullptr) {
      // Blocks that are kept may be the memory that is missing.
      Release();
      block = Make(bytes, alignment);
    }
    return block == nullptr ? nullptr : block + 1;
  }

  void Free(void* address, size_t bytes) override {
    if (bytes < kKeptFrom) return std::free(address);
    Header* const block = static_cast<Header*>(address) - 1;
    if (block->size > kMostKeptBytes) return std::free(block->start);
    Header* dropped = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      block->next = nullptr;
      block->user = &this_thread;
      *end_ = block;
      end_ = &block->next;
      kept_bytes_ += block->size;
      // The oldest make room.
      while (kept_bytes_ > kMostKeptBytes) {
        Header* const oldest = TakeNext(&oldest_);
        oldest->next = dropped;
        dropped = oldest;
      }
    }
    FreeAll(dropped);
  }

  void Release() {
    Header* dropped;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      dropped = oldest_;
      oldest_ = nullptr;
      end_ = &oldest_;
      kept_bytes_ = 0;
    }
    FreeAll(dropped);
  }

 private:
  // Stands before the memory that the caller sees.
  struct alignas(kKernelAlignment) Header {
    void* start;       // of what the C library gave
    size_t size;       // that the caller sees
    Header* next;      // of those that are kept
    const void* user;  // &this_thread of the one that freed it
  };

  static Header* Make(size_t bytes, size_t alignment) {
    const size_t before = std::max(alignment, sizeof(Header));
    const bool huge = bytes >= kHugeFrom;
    void* const start =
        Aligned(before + bytes, huge ? std::max(before, kHugePage) : before);
    if (start == nullptr) return nullptr;
    // Where the system has none, all works with small ones.
    if (huge) (void)madvise(start, before + bytes, MADV_HUGEPAGE);
    void* const header = static_cast<char*>(start) + before - sizeof(Header);
    return new (header) Header{start, bytes, nullptr, nullptr};
  }

  // The smallest kept block that serves, of which at most a quarter is unused;
  // among equal ones the last that this thread freed, whose cache may hold it,
  // else the last of all. Null where there is none.
  Header* TakeKept(size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Header** best = nullptr;
    size_t best_size = bytes + bytes / 3;
    for (Header** at = &oldest_; *at != nullptr; at = &(*at)->next) {
      const Header& block = **at;
      if (block.size < bytes || block.size > best_size) continue;
      const bool other_than_best = best != nullptr && block.size == best_size &&
                                   block.user != &this_thread &&
                                   (*best)->user == &this_thread;
      if (other_than_best) continue;
      best = at;
      best_size = block.size;
    }
    return best == nullptr ? nullptr : TakeNext(best);
  }

  // Takes the block that `link` leads to out of the list.
  Header* TakeNext(Header** link) {
    Header* const block = *link;
    *link = block->next;
    if (end_ == &block->next) end_ = link;
    kept_bytes_ -= block->size;
    return block;
  }

  static void FreeAll(Header* blocks) {
    while (blocks != nullptr) {
      void* const start = blocks->start;
      blocks = blocks->next;
      std::free(start);
    }
  }

  std::mutex mutex_;          // guards the rest
  Header* oldest_ = nullptr;  // those that are kept, by age
  Header** end_ = &oldest_;   // the link behind the newest
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
