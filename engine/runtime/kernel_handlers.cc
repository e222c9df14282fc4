#include "engine/runtime/kernel_handlers.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "HalideRuntime.h"
#include "HalideRuntimeCuda.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/runtime/cuda_driver.h"
#include "engine/runtime/kernel_call.h"
#include "engine/runtime/messages.h"
#include "ops/status_macros.h"

namespace cleave::internal_kernel {
namespace {

// Parts of Halide's runtime allocate without a context, as those that keep
// locks for scattered stores.
KernelCall& CallOf(void* context) {
  static auto* const without_context = new KernelCall;
  return context != nullptr ? *static_cast<KernelCall*>(context)
                            : *without_context;
}

void* Malloc(void* context, size_t bytes) {
  return CallOf(context).Allocate(bytes);
}

void Free(void* context, void* address) { KernelCall::Free(address); }

void Error(void* context, const char* message) {
  if (context != nullptr) {
    CallOf(context).SetError(message);
  } else {
    Say(absl::StrCat("a kernel without a context failed: ", message));
  }
}

void Print(void* context, const char* message) {
  Say(std::string(absl::StripSuffix(message, "\n")));
}

int ParallelFor(void* context, halide_task_t task, int min, int size,
                uint8_t* closure) {
  std::atomic<int> failure{0};
  CallOf(context).ParallelFor(size, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (failure.load(std::memory_order_relaxed) != 0) return;
      const int result = task(context, static_cast<int>(min + i), closure);
      if (result != 0) failure.store(result, std::memory_order_relaxed);
    }
  });
  return failure.load(std::memory_order_relaxed);
}

int ParallelTasks(void* context, int count, halide_parallel_task_t* tasks,
                  void* parent) {
  for (int i = 0; i < count; ++i) {
    if (tasks[i].num_semaphores == 0) continue;
    Error(context, "not supported: tasks of a kernel that wait for each other");
    return halide_error_code_internal_error;
  }
  // Independent of each other: so one after the other is an order, too.
  for (int i = 0; i < count; ++i) {
    const halide_parallel_task_t& task = tasks[i];
    if (task.extent <= 0) continue;
    if (task.serial) {
      const int result =
          task.fn(context, task.min, task.extent, task.closure, parent);
      if (result != 0) return result;
      continue;
    }
    std::atomic<int> failure{0};
    CallOf(context).ParallelFor(task.extent, [&](int64_t begin, int64_t end) {
      if (failure.load(std::memory_order_relaxed) != 0) return;
      const int result =
          task.fn(context, static_cast<int>(task.min + begin),
                  static_cast<int>(end - begin), task.closure, parent);
      if (result != 0) failure.store(result, std::memory_order_relaxed);
    });
    const int result = failure.load(std::memory_order_relaxed);
    if (result != 0) return result;
  }
  return 0;
}

absl::StatusOr<void*> CudaContextOf(const KernelCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Get());
  return driver->PrimaryContext(call.device_ordinal());
}

int AcquireCudaContext(void* context, void** cuda_context, bool create) {
  KernelCall& call = CallOf(context);
  const absl::StatusOr<void*> found = CudaContextOf(call);
  *cuda_context = found.ok() ? *found : nullptr;
  if (found.ok()) return halide_error_code_success;
  call.SetError(found.status().message());
  return halide_error_code_gpu_device_error;
}

int ReleaseCudaContext(void* context) { return halide_error_code_success; }

int GetCudaStream(void* context, void* cuda_context, void** stream) {
  *stream = CallOf(context).stream();
  return halide_error_code_success;
}

// The runtime asks for libcuda.so, which only development packages have: the
// driver itself is libcuda.so.1, as CudaDriver loads it.
void* LoadDriver(const char* name) {
  void* const library =
      dlopen(absl::StrCat(name, ".1").c_str(), RTLD_LAZY | RTLD_LOCAL);
  return library != nullptr ? library : dlopen(name, RTLD_LAZY | RTLD_LOCAL);
}

template <typename Function>
absl::Status Look(const LoadedObject& runtime, const char* name,
                  Function** function) {
  *function = reinterpret_cast<Function*>(runtime.Find(name));
  if (*function != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the object is no Halide runtime: there is no ", name));
}

// A runtime for other devices has none of these.
absl::Status InstallCudaHandlers(const LoadedObject& runtime) {
  if (runtime.Find("halide_cuda_device_interface") == nullptr) {
    return absl::OkStatus();
  }
  decltype(halide_set_cuda_acquire_context)* set_acquire;
  decltype(halide_set_cuda_release_context)* set_release;
  decltype(halide_set_cuda_get_stream)* set_stream;
  decltype(halide_set_custom_load_library)* set_load;
  CLEAVE_RETURN_IF_ERROR(
      Look(runtime, "halide_set_cuda_acquire_context", &set_acquire));
  CLEAVE_RETURN_IF_ERROR(
      Look(runtime, "halide_set_cuda_release_context", &set_release));
  CLEAVE_RETURN_IF_ERROR(
      Look(runtime, "halide_set_cuda_get_stream", &set_stream));
  CLEAVE_RETURN_IF_ERROR(
      Look(runtime, "halide_set_custom_load_library", &set_load));
  set_load(&LoadDriver);
  set_acquire(&AcquireCudaContext);
  set_release(&ReleaseCudaContext);
  set_stream(&GetCudaStream);
  return absl::OkStatus();
}

}  // namespace

absl::Status InstallKernelHandlers(const LoadedObject& runtime) {
  decltype(halide_set_custom_malloc)* set_malloc;
  decltype(halide_set_custom_free)* set_free;
  decltype(halide_set_error_handler)* set_error;
  decltype(halide_set_custom_print)* set_print;
  decltype(halide_set_custom_parallel_runtime)* set_parallel;
  decltype(halide_default_do_task)* do_task;
  decltype(halide_default_do_loop_task)* do_loop_task;
  decltype(halide_default_semaphore_init)* semaphore_init;
  decltype(halide_default_semaphore_try_acquire)* semaphore_try_acquire;
  decltype(halide_default_semaphore_release)* semaphore_release;
  CLEAVE_RETURN_IF_ERROR(
      Look(runtime, "halide_set_custom_malloc", &set_malloc));
  CLEAVE_RETURN_IF_ERROR(Look(runtime, "halide_set_custom_free", &set_free));
  CLEAVE_RETURN_IF_ERROR(Look(runtime, "halide_set_error_handler", &set_error));
  CLEAVE_RETURN_IF_ERROR(Look(runtime, "halide_set_custom_print", &set_print));
  CLEAVE_RETURN_IF_ERROR(
      Look(runtime, "halide_set_custom_parallel_runtime", &set_parallel));
  CLEAVE_RETURN_IF_ERROR(Look(runtime, "halide_default_do_task", &do_task));
  CLEAVE_RETURN_IF_ERROR(
      Look(runtime, "halide_default_do_loop_task", &do_loop_task));
  CLEAVE_RETURN_IF_ERROR(
      Look(runtime, "halide_default_semaphore_init", &semaphore_init));
  CLEAVE_RETURN_IF_ERROR(Look(runtime, "halide_default_semaphore_try_acquire",
                              &semaphore_try_acquire));
  CLEAVE_RETURN_IF_ERROR(
      Look(runtime, "halide_default_semaphore_release", &semaphore_release));
  set_malloc(&Malloc);
  set_free(&Free);
  set_error(&Error);
  set_print(&Print);
  set_parallel(&ParallelFor, do_task, do_loop_task, &ParallelTasks,
               semaphore_init, semaphore_try_acquire, semaphore_release);
  return InstallCudaHandlers(runtime);
}

}  // namespace cleave::internal_kernel
