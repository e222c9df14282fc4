// CudaDriver: NVIDIA's driver, loaded when a kernel for CUDA is.
//
//   CLEAVE_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Get());
//   CLEAVE_ASSIGN_OR_RETURN(void* context, driver->PrimaryContext(0));
//
// Kernels run in a device's primary context. CUDA's own runtime, PyTorch and
// JAX use that one, too: their memory serves our kernels without a copy.
// Source: CUDA Driver API, "Primary Context Management" and "Unified
// Addressing". Internal to engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_CUDA_DRIVER_H_
#define CLEAVE_ENGINE_RUNTIME_CUDA_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cleave {

class CudaDriver {
 public:
  // The process's one. FailedPrecondition where it has no driver, or the driver
  // no device.
  static absl::StatusOr<const CudaDriver*> Get();

  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  // The primary context (a CUcontext) of device number `ordinal` of those that
  // the process sees, kept until the process ends. InvalidArgument for a number
  // that no device has.
  absl::StatusOr<void*> PrimaryContext(int ordinal) const;

  // Calls `body` with that device's primary context as the thread's own.
  absl::Status InContext(int ordinal,
                         absl::FunctionRef<absl::Status()> body) const;

  // Copies bytes once `stream` (a CUstream; null is the default stream) has
  // done all before. Each address is the host's, or one of that device's.
  absl::Status Copy(int ordinal, void* target, const void* source,
                    int64_t bytes, void* stream) const;

 private:
  using Result = int;  // CUresult; 0 is success

  CudaDriver() = default;
  absl::Status Load();
  absl::Status ToStatus(Result result, absl::string_view what) const;

  Result (*init_)(unsigned flags) = nullptr;
  Result (*device_count_)(int* count) = nullptr;
  Result (*device_get_)(int* device, int ordinal) = nullptr;
  Result (*retain_context_)(void** context, int device) = nullptr;
  Result (*push_context_)(void* context) = nullptr;
  Result (*pop_context_)(void** context) = nullptr;
  Result (*copy_)(uintptr_t target, uintptr_t source, size_t bytes,
                  void* stream) = nullptr;
  Result (*error_string_)(Result result, const char** text) = nullptr;
  int devices_ = 0;

  mutable std::mutex mutex_;
  mutable std::map<int, void*> contexts_;  // by ordinal; guarded by mutex_
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_CUDA_DRIVER_H_
