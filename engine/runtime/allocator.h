// Allocator: where kernels get their memory from.
//
//   class Arena : public Allocator { ... };
//   Arena arena;
//   KernelCallOptions options;  // kernel_call.h
//   options.allocator = &arena;
//
// A host program passes its own to place tensors and scratch memory where it
// wants them, or to bound what a run may take.

#ifndef CLEAVE_ENGINE_RUNTIME_ALLOCATOR_H_
#define CLEAVE_ENGINE_RUNTIME_ALLOCATOR_H_

#include <cstddef>

namespace cleave {

// The alignment in bytes that every vector load and store is content with.
inline constexpr size_t kKernelAlignment = 64;

// Called from all threads of a run at once.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // `bytes` > 0 bytes at a multiple of `alignment`, a power of two; null to
  // refuse, which fails the run that asked with ResourceExhausted.
  virtual void* Allocate(size_t bytes, size_t alignment) = 0;
  // Takes back what Allocate(bytes, ...) gave.
  virtual void Free(void* address, size_t bytes) = 0;
};

// The C library's allocator, which keeps freed blocks of 128 KiB and more for
// later runs, kMostKeptBytes at most: fresh memory costs the system a fault for
// each page. Lives as long as the process.
inline constexpr size_t kMostKeptBytes = size_t{256} << 20;
Allocator& DefaultAllocator();

// Gives what the default allocator keeps back to the C library. At any time,
// from any thread: blocks in use stay.
void ReleaseKeptMemory();

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_ALLOCATOR_H_
