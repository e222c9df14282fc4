#include "engine/runtime/allocator.h"

#include <cstdlib>

namespace cleave {
namespace {

class SystemAllocator : public Allocator {
 public:
  void* Allocate(size_t bytes, size_t alignment) override {
    void* address = nullptr;
    if (alignment < sizeof(void*)) alignment = sizeof(void*);
    return posix_memalign(&address, alignment, bytes) == 0 ? address : nullptr;
  }
  void Free(void* address, size_t bytes) override { std::free(address); }
};

}  // namespace

Allocator& DefaultAllocator() {
  static auto* const allocator = new SystemAllocator;
  return *allocator;
}

}  // namespace cleave
