// KernelCall: what compiled kernels get from their host during one run:
// threads, scratch memory, and a place for errors. Kernels carry it as Halide's
// user context.
//
//   KernelCall call;                      // default pool and allocator
//   void* arguments[] = {nullptr, &input, &output, &scale};
//   absl::Status status = call.Run(entry, absl::MakeSpan(arguments));
//   call.report().peak_bytes              // what the kernels allocated

#ifndef CLEAVE_ENGINE_RUNTIME_KERNEL_CALL_H_
#define CLEAVE_ENGINE_RUNTIME_KERNEL_CALL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/runtime/allocator.h"
#include "engine/runtime/thread_pool.h"

namespace cleave {

// A kernel by Halide's argv convention: an argument for each buffer points to
// its halide_buffer_t, one for each scalar to its value, and the first to the
// user context. 0 is success.
using KernelEntry = int (*)(void** arguments);

struct KernelCallOptions {
  ThreadPool* pool = nullptr;      // null: DefaultThreadPool()
  Allocator* allocator = nullptr;  // null: DefaultAllocator()
  // Runs parallel loops on the calling thread. The results are the same bits.
  bool serial = false;
  // For CUDA: the number of the device, and the stream (a CUstream; null is the
  // default stream) on which kernels run in order.
  int device_ordinal = 0;
  void* stream = nullptr;
};

// The threads and memory that the kernels of a run asked for so far.
struct KernelCallReport {
  int64_t kernels = 0;         // Run() calls
  int64_t parallel_loops = 0;  // shared among threads
  int64_t parallel_tasks = 0;  // iterations of parallel loops, shared or not
  int64_t scratch_requests = 0;
  int64_t allocations = 0;  // requests that went to the allocator
  int64_t bytes = 0;        // held from the allocator now
  int64_t peak_bytes = 0;
};

// Lives for one run of one or more kernels, one after the other; the kernels'
// own threads may use it at once. Making one costs some ten nanoseconds.
class KernelCall {
 public:
  explicit KernelCall(const KernelCallOptions& options = {});
  KernelCall(const KernelCall&) = delete;
  KernelCall& operator=(const KernelCall&) = delete;
  // Gives the scratch memory back to the allocator. All that kernels allocated
  // is free by then, as Halide frees in every case.
  ~KernelCall();

  // Calls the kernel; `arguments[0]` is set to this call. ResourceExhausted
  // where the allocator refused, else Internal with the kernel's own message:
  // the caller has checked shapes and types, so that nothing else may fail.
  // A kernel that is `small` runs on this thread alone: another one would take
  // longer to join in.
  absl::Status Run(KernelEntry entry, absl::Span<void*> arguments,
                   bool small = false);

  // The status of what a part of a kernel's runtime returned, as for Run():
  // "WHAT failed with -16: MESSAGE".
  absl::Status ToStatus(int result, absl::string_view what);

  // Scratch memory, aligned to kKernelAlignment, that may be read up to 64
  // bytes before and after. Null if the allocator refuses. A freed block serves
  // later requests of this call, first those of the same thread.
  void* Allocate(size_t bytes);
  // Gives it back to the call that it came from; `address` may be null.
  static void Free(void* address);

  // Keeps `message` unless there is one already.
  void SetError(absl::string_view message);

  // Calls body(begin, end) over [0, tasks) on the pool, or inline if the call
  // is serial, the kernel is small, the pool has one thread, or there is one
  // task.
  void ParallelFor(int64_t tasks,
                   absl::FunctionRef<void(int64_t begin, int64_t end)> body);

  KernelCallReport report() const;
  // The options of a call within this one.
  KernelCallOptions options() const {
    return {pool_, allocator_, serial_, device_ordinal_, stream_};
  }
  int device_ordinal() const { return device_ordinal_; }
  void* stream() const { return stream_; }

 private:
  static constexpr int kSlots = 16;
  static constexpr int kBlocksPerSlot = 6;
  static constexpr size_t kBytesPerSlot = size_t{32} << 20;

  struct Block;
  // Freed blocks of the threads with one number modulo kSlots.
  struct alignas(64) Slot {
    std::atomic<bool> busy{false};
    int count = 0;
    size_t bytes = 0;
    Block* blocks[kBlocksPerSlot];  // the first `count` are set
  };

  // A slot, locked, that this thread is likely to have to itself; null if the
  // likely ones are busy.
  Slot* LockSlot();
  void* TakeFromAllocator(size_t capacity);
  void GiveToAllocator(Block* block);
  void ReleaseSlots();

  ThreadPool* const pool_;
  Allocator* const allocator_;
  const bool serial_;
  std::atomic<bool> small_{false};  // of the kernel that runs
  const int device_ordinal_;
  void* const stream_;
  void* context_ = this;  // what arguments[0] points to

  std::atomic<int64_t> kernels_{0};
  std::atomic<int64_t> parallel_loops_{0};
  std::atomic<int64_t> parallel_tasks_{0};
  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> allocations_{0};
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> peak_bytes_{0};

  std::mutex error_mutex_;
  std::string error_;     // guarded by error_mutex_
  bool refused_ = false;  // likewise

  Slot slots_[kSlots];
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_KERNEL_CALL_H_
