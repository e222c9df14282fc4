#include "engine/runtime/kernel_call.h"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "absl/numeric/bits.h"
#include "absl/strings/str_cat.h"

namespace cleave {

// Stands before the memory that a kernel sees, which begins kKernelAlignment
// bytes on, and as much room is left at the end: vector loads reach a few bytes
// over either side.
struct alignas(kKernelAlignment) KernelCall::Block {
  KernelCall* owner;
  size_t capacity;  // that the kernel sees

  size_t total() const { return sizeof(Block) + capacity + kKernelAlignment; }
  void* address() { return this + 1; }
  static Block* Of(void* address) { return static_cast<Block*>(address) - 1; }
};

namespace {

// How much larger a freed block may be than what it serves, or as much again.
constexpr size_t kTolerableWaste = size_t{64} << 10;

// Rounds up to what freed blocks are kept by: to 1/8 of the power of two below,
// so that requests of nearly the same size share blocks.
size_t Capacity(size_t bytes) {
  if (bytes <= 8 * kKernelAlignment) {
    return std::max(kKernelAlignment,
                    (bytes + kKernelAlignment - 1) & ~(kKernelAlignment - 1));
  }
  const size_t step = absl::bit_floor(bytes) / 8;
  return (bytes + step - 1) & ~(step - 1);
}

// Threads are numbered as they come.
int ThreadNumber() {
  static std::atomic<int> count{0};
  thread_local const int number =
      count.fetch_add(1, std::memory_order_relaxed) &
      std::numeric_limits<int>::max();
  return number;
}

}  // namespace

KernelCall::KernelCall(const KernelCallOptions& options)
    : pool_(options.pool),
      allocator_(options.allocator != nullptr ? options.allocator
                                              : &DefaultAllocator()),
      serial_(options.serial),
      device_ordinal_(options.device_ordinal),
      stream_(options.stream) {}

KernelCall::~KernelCall() {
  // Nobody else is here: no locks.
  for (Slot& slot : slots_) {
    for (int i = 0; i < slot.count; ++i) GiveToAllocator(slot.blocks[i]);
  }
}

absl::Status KernelCall::Run(KernelEntry entry, absl::Span<void*> arguments,
                             bool small) {
  small_.store(small, std::memory_order_relaxed);
  kernels_.store(kernels_.load(std::memory_order_relaxed) + 1,
                 std::memory_order_relaxed);
  arguments[0] = &context_;
  const int result = entry(arguments.data());
  // Loops behind it are their own callers'.
  small_.store(false, std::memory_order_relaxed);
  return ToStatus(result, "a kernel");
}

absl::Status KernelCall::ToStatus(int result, absl::string_view what) {
  if (ABSL_PREDICT_TRUE(result == 0)) return absl::OkStatus();
  const std::lock_guard<std::mutex> lock(error_mutex_);
  std::string message = std::exchange(error_, std::string());
  if (std::exchange(refused_, false)) {
    return absl::ResourceExhaustedError("a kernel's memory was refused");
  }
  if (message.empty()) message = "no message";
  return absl::InternalError(
      absl::StrCat(what, " failed with ", result, ": ", message));
}

void KernelCall::SetError(absl::string_view message) {
  const std::lock_guard<std::mutex> lock(error_mutex_);
  if (error_.empty()) error_ = std::string(message);
}

KernelCall::Slot* KernelCall::LockSlot() {
  const int number = ThreadNumber();
  // A slot is busy for nanoseconds, if threads share its number. Rather than
  // wait, look at the next ones.
  for (int i = 0; i < 3; ++i) {
    Slot& slot = slots_[(number + i) % kSlots];
    if (!slot.busy.load(std::memory_order_relaxed) &&
        !slot.busy.exchange(true, std::memory_order_acquire)) {
      return &slot;
    }
  }
  return nullptr;
}

void* KernelCall::Allocate(size_t bytes) {
  constexpr size_t kLimit = std::numeric_limits<size_t>::max() / 4;
  const size_t capacity = Capacity(std::min(bytes, kLimit));
  requests_.fetch_add(1, std::memory_order_relaxed);
  if (Slot* const slot = LockSlot()) {
    Block* found = nullptr;
    for (int i = slot->count - 1; i >= 0 && found == nullptr; --i) {
      Block* const block = slot->blocks[i];
      if (block->capacity < capacity ||
          block->capacity - capacity > std::max(capacity, kTolerableWaste)) {
        continue;
      }
      found = block;
      --slot->count;
      std::copy(slot->blocks + i + 1, slot->blocks + slot->count + 1,
                slot->blocks + i);
      slot->bytes -= block->total();
    }
    slot->busy.store(false, std::memory_order_release);
    if (found != nullptr) return found->address();
  }
  void* address = bytes < kLimit ? TakeFromAllocator(capacity) : nullptr;
  if (address == nullptr && bytes < kLimit) {
    // Freed blocks that are kept for later requests may be the memory that is
    // missing.
    ReleaseSlots();
    address = TakeFromAllocator(capacity);
  }
  if (address == nullptr) {
    const std::lock_guard<std::mutex> lock(error_mutex_);
    refused_ = true;
  }
  return address;
}

void* KernelCall::TakeFromAllocator(size_t capacity) {
  const size_t total = sizeof(Block) + capacity + kKernelAlignment;
  void* const memory = allocator_->Allocate(total, kKernelAlignment);
  if (memory == nullptr) return nullptr;
  allocations_.fetch_add(1, std::memory_order_relaxed);
  const int64_t size = static_cast<int64_t>(total);
  const int64_t now = bytes_.fetch_add(size, std::memory_order_relaxed) + size;
  int64_t peak = peak_bytes_.load(std::memory_order_relaxed);
  while (now > peak && !peak_bytes_.compare_exchange_weak(
                           peak, now, std::memory_order_relaxed)) {
  }
  return (new (memory) Block{this, capacity})->address();
}

void KernelCall::GiveToAllocator(Block* block) {
  const size_t total = block->total();
  bytes_.fetch_sub(static_cast<int64_t>(total), std::memory_order_relaxed);
  allocator_->Free(block, total);
}

void KernelCall::Free(void* address) {
  if (address == nullptr) return;
  Block* const block = Block::Of(address);
  KernelCall* const owner = block->owner;
  Slot* const slot =
      block->total() <= kBytesPerSlot ? owner->LockSlot() : nullptr;
  if (slot == nullptr) {
    owner->GiveToAllocator(block);
    return;
  }
  // The oldest make room.
  Block* dropped[kBlocksPerSlot];
  int drops = 0;
  while (slot->count - drops == kBlocksPerSlot ||
         slot->bytes + block->total() > kBytesPerSlot) {
    dropped[drops] = slot->blocks[drops];
    slot->bytes -= dropped[drops++]->total();
  }
  slot->count -= drops;
  std::copy_n(slot->blocks + drops, slot->count, slot->blocks);
  slot->blocks[slot->count++] = block;
  slot->bytes += block->total();
  slot->busy.store(false, std::memory_order_release);
  for (int i = 0; i < drops; ++i) owner->GiveToAllocator(dropped[i]);
}

void KernelCall::ReleaseSlots() {
  for (Slot& slot : slots_) {
    while (slot.busy.exchange(true, std::memory_order_acquire)) {
    }
    const int count = std::exchange(slot.count, 0);
    slot.bytes = 0;
    Block* blocks[kBlocksPerSlot];
    std::copy_n(slot.blocks, count, blocks);
    slot.busy.store(false, std::memory_order_release);
    for (int i = 0; i < count; ++i) GiveToAllocator(blocks[i]);
  }
}

void KernelCall::ParallelFor(
    int64_t tasks, absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (tasks <= 0) return;
  parallel_tasks_.fetch_add(tasks, std::memory_order_relaxed);
  if (tasks > 1 && !serial_ && !small_.load(std::memory_order_relaxed)) {
    ThreadPool& pool = pool_ != nullptr ? *pool_ : DefaultThreadPool();
    if (pool.threads() > 1) {
      parallel_loops_.fetch_add(1, std::memory_order_relaxed);
      pool.ParallelFor(tasks, body);
      return;
    }
  }
  body(0, tasks);
}

KernelCallReport KernelCall::report() const {
  KernelCallReport report;
  report.kernels = kernels_.load(std::memory_order_relaxed);
  report.parallel_loops = parallel_loops_.load(std::memory_order_relaxed);
  report.parallel_tasks = parallel_tasks_.load(std::memory_order_relaxed);
  report.scratch_requests = requests_.load(std::memory_order_relaxed);
  report.allocations = allocations_.load(std::memory_order_relaxed);
  report.bytes = bytes_.load(std::memory_order_relaxed);
  report.peak_bytes = peak_bytes_.load(std::memory_order_relaxed);
  return report;
}

}  // namespace cleave
