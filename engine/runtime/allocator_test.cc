#include "engine/runtime/allocator.h"

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace cleave {
namespace {

constexpr size_t kLarge = size_t{1} << 20;

TEST(DefaultAllocator, KeepsLargeBlocks) {
  ReleaseKeptMemory();
  Allocator& allocator = DefaultAllocator();
  for (const size_t bytes : {kLarge, 8 * kLarge}) {
    void* const first = allocator.Allocate(bytes, kKernelAlignment);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % kKernelAlignment, 0u);
    std::memset(first, 1, bytes);
    // A block in use is nobody else's.
    void* const second = allocator.Allocate(bytes, kKernelAlignment);
    EXPECT_NE(second, first);
    allocator.Free(first, bytes);
    // Up to a quarter of a block is left unused, no more.
    void* const small = allocator.Allocate(bytes / 2, kKernelAlignment);
    EXPECT_NE(small, first);
    void* const again = allocator.Allocate(bytes * 7 / 8, kKernelAlignment);
    EXPECT_EQ(again, first);
    allocator.Free(again, bytes * 7 / 8);
    // The block has its whole size still.
    EXPECT_EQ(allocator.Allocate(bytes, kKernelAlignment), first);
    allocator.Free(first, bytes);
    allocator.Free(second, bytes);
    allocator.Free(small, bytes / 2);
  }
  ReleaseKeptMemory();
}

// The cache of a thread may hold what it freed.
TEST(DefaultAllocator, GivesAThreadItsOwnBlock) {
  ReleaseKeptMemory();
  Allocator& allocator = DefaultAllocator();
  const auto allocate = [&] {
    return allocator.Allocate(kLarge, kKernelAlignment);
  };
  void* const older = allocate();
  void* const own = allocate();
  void* others = nullptr;
  std::thread([&] { others = allocate(); }).join();
  allocator.Free(older, kLarge);
  allocator.Free(own, kLarge);
  std::thread([&] {
    allocator.Free(others, kLarge);
    // Without one of its own a thread takes the last.
    void* const last = allocate();
    EXPECT_EQ(last, others);
    allocator.Free(last, kLarge);
  }).join();
  EXPECT_EQ(allocate(), own);
  EXPECT_EQ(allocate(), older);
  EXPECT_EQ(allocate(), others);
  for (void* const block : {own, older, others}) {
    allocator.Free(block, kLarge);
  }
  ReleaseKeptMemory();
}

TEST(DefaultAllocator, TakesOtherAlignments) {
  for (const size_t alignment : {size_t{1}, size_t{4096}}) {
    void* const address = DefaultAllocator().Allocate(kLarge, alignment);
    ASSERT_NE(address, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % alignment, 0u);
    DefaultAllocator().Free(address, kLarge);
  }
}

// The oldest blocks make room: the last ones that were freed are there.
TEST(DefaultAllocator, KeepsSoMuchAndNoMore) {
  ReleaseKeptMemory();
  Allocator& allocator = DefaultAllocator();
  constexpr size_t kBytes = kMostKeptBytes / 4;
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) {
    blocks.push_back(allocator.Allocate(kBytes, kKernelAlignment));
    ASSERT_NE(blocks.back(), nullptr);
  }
  for (void* block : blocks) allocator.Free(block, kBytes);
  for (size_t i = blocks.size(); i-- > 2;) {
    EXPECT_EQ(allocator.Allocate(kBytes, kKernelAlignment), blocks[i]);
  }
  for (size_t i = 2; i < blocks.size(); ++i) {
    allocator.Free(blocks[i], kBytes);
  }
  // A block of more than all is not kept, and drives none out.
  void* const whole = allocator.Allocate(kMostKeptBytes + 1, kKernelAlignment);
  ASSERT_NE(whole, nullptr);
  allocator.Free(whole, kMostKeptBytes + 1);
  EXPECT_EQ(allocator.Allocate(kBytes, kKernelAlignment), blocks.back());
  allocator.Free(blocks.back(), kBytes);
  ReleaseKeptMemory();
}

TEST(DefaultAllocator, ServesThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        const size_t bytes = (kLarge / 8) << (i + t) % 4;
        auto* const at = static_cast<unsigned char*>(
            DefaultAllocator().Allocate(bytes, kKernelAlignment));
        ASSERT_NE(at, nullptr);
        at[0] = at[bytes - 1] = static_cast<unsigned char>(t);
        std::this_thread::yield();
        EXPECT_EQ(at[0], t);
        EXPECT_EQ(at[bytes - 1], t);
        DefaultAllocator().Free(at, bytes);
        if (i % 50 == 0) ReleaseKeptMemory();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ReleaseKeptMemory();
}

}  // namespace
}  // namespace cleave
