#include "engine/runtime/cuda_driver.h"

#include <dlfcn.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/runtime/loaded_library.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

constexpr char kFileName[] = "libcuda.so.1";

}  // namespace

absl::StatusOr<const CudaDriver*> CudaDriver::Get() {
  static const auto* const driver = new absl::StatusOr<const CudaDriver*>(
      Loaded(std::unique_ptr<CudaDriver>(new CudaDriver), &CudaDriver::Load));
  return *driver;
}

absl::Status CudaDriver::Load() {
  // Kept open: code of the driver runs until the process ends.
  void* const library = dlopen(kFileName, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) return absl::FailedPreconditionError(dlerror());
  CLEAVE_RETURN_IF_ERROR(Look(library, kFileName, "cuInit", &init_));
  CLEAVE_RETURN_IF_ERROR(
      Look(library, kFileName, "cuDeviceGetCount", &device_count_));
  CLEAVE_RETURN_IF_ERROR(Look(library, kFileName, "cuDeviceGet", &device_get_));
  CLEAVE_RETURN_IF_ERROR(
      Look(library, kFileName, "cuDevicePrimaryCtxRetain", &retain_context_));
  CLEAVE_RETURN_IF_ERROR(
      Look(library, kFileName, "cuCtxPushCurrent_v2", &push_context_));
  CLEAVE_RETURN_IF_ERROR(
      Look(library, kFileName, "cuCtxPopCurrent_v2", &pop_context_));
  CLEAVE_RETURN_IF_ERROR(Look(library, kFileName, "cuMemcpyAsync", &copy_));
  CLEAVE_RETURN_IF_ERROR(
      Look(library, kFileName, "cuGetErrorString", &error_string_));
  CLEAVE_RETURN_IF_ERROR(ToStatus(init_(0), "cuInit"));
  CLEAVE_RETURN_IF_ERROR(
      ToStatus(device_count_(&devices_), "cuDeviceGetCount"));
  if (devices_ > 0) return absl::OkStatus();
  return absl::FailedPreconditionError("the driver has no device");
}

absl::Status CudaDriver::ToStatus(Result result, absl::string_view what) const {
  if (result == 0) return absl::OkStatus();
  const char* text = nullptr;
  error_string_(result, &text);
  return absl::FailedPreconditionError(
      absl::StrCat(what, " failed with ", result, ": ",
                   text == nullptr ? "an error without a name" : text));
}

absl::StatusOr<void*> CudaDriver::PrimaryContext(int ordinal) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = contexts_.find(ordinal);
  if (found != contexts_.end()) return found->second;
  if (ordinal < 0 || ordinal >= devices_) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no cuda device number ", ordinal, " of ", devices_));
  }
  int device = 0;
  CLEAVE_RETURN_IF_ERROR(
      ToStatus(device_get_(&device, ordinal), "cuDeviceGet"));
  void* context = nullptr;
  CLEAVE_RETURN_IF_ERROR(
      ToStatus(retain_context_(&context, device), "cuDevicePrimaryCtxRetain"));
  contexts_.emplace(ordinal, context);
  return context;
}

absl::Status CudaDriver::InContext(
    int ordinal, absl::FunctionRef<absl::Status()> body) const {
  CLEAVE_ASSIGN_OR_RETURN(void* context, PrimaryContext(ordinal));
  CLEAVE_RETURN_IF_ERROR(ToStatus(push_context_(context), "cuCtxPushCurrent"));
  const absl::Status status = body();
  void* popped = nullptr;
  CLEAVE_RETURN_IF_ERROR(ToStatus(pop_context_(&popped), "cuCtxPopCurrent"));
  return status;
}

absl::Status CudaDriver::Copy(int ordinal, void* target, const void* source,
                              int64_t bytes, void* stream) const {
  if (bytes == 0) return absl::OkStatus();
  return InContext(ordinal, [&] {
    return ToStatus(copy_(reinterpret_cast<uintptr_t>(target),
                          reinterpret_cast<uintptr_t>(source),
                          static_cast<size_t>(bytes), stream),
                    "cuMemcpyAsync");
  });
}

}  // namespace cleave
