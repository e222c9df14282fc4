// StableVector: a vector whose elements never move, which one thread appends to
// while others read what was appended before.
//
//   StableVector<std::string> names;
//   const size_t i = names.Append("softplus");  // one thread at a time
//   const std::string& name = names[i];         // any thread that knows of i

#ifndef CLEAVE_ENGINE_IR_STABLE_VECTOR_H_
#define CLEAVE_ENGINE_IR_STABLE_VECTOR_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace cleave {

// Elements lie in blocks of 64, 64, 128, 256, ..: reading one is a shift and
// two loads. A thread that hands an index to another one must order the reads
// behind the append, by a lock, say, or by starting the thread.
template <typename T>
class StableVector {
 public:
  StableVector() = default;
  StableVector(const StableVector&) = delete;
  StableVector& operator=(const StableVector&) = delete;
  ~StableVector() {
    for (size_t i = size_; i > 0; --i) Address(i - 1)->~T();
    for (auto& block : blocks_) {
      std::allocator<T> allocator;
      T* const memory = block.load(std::memory_order_relaxed);
      if (memory != nullptr) {
        allocator.deallocate(memory, BlockSize(&block - blocks_.data()));
      }
    }
  }

  // The index of the new element. Not together with size() or Append() on
  // another thread.
  template <typename... Arguments>
  size_t Append(Arguments&&... arguments) {
    const size_t index = size_;
    std::atomic<T*>& block = blocks_[BlockOf(index)];
    if (block.load(std::memory_order_relaxed) == nullptr) {
      std::allocator<T> allocator;
      block.store(allocator.allocate(BlockSize(BlockOf(index))),
                  std::memory_order_release);
    }
    new (Address(index)) T(std::forward<Arguments>(arguments)...);
    ++size_;
    return index;
  }

  size_t size() const { return size_; }
  const T& operator[](size_t index) const { return *Address(index); }

 private:
  static constexpr int kFirstBits = 6;

  // The place of the highest bit of an index from 64 on names its block.
  static int BlockOf(size_t index) {
    if (index < (size_t{1} << kFirstBits)) return 0;
    return 63 - __builtin_clzll(index) - kFirstBits + 1;
  }
  static size_t BlockSize(size_t block) {
    return size_t{1} << (block == 0 ? kFirstBits : kFirstBits + block - 1);
  }
  T* Address(size_t index) const {
    const int block = BlockOf(index);
    const size_t first = block == 0 ? 0 : BlockSize(block);
    return blocks_[block].load(std::memory_order_acquire) + (index - first);
  }

  // Indices have 32 bits.
  std::array<std::atomic<T*>, 33 - kFirstBits> blocks_ = {};
  size_t size_ = 0;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_STABLE_VECTOR_H_
