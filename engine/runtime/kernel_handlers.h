// InstallKernelHandlers: a Halide runtime takes threads and memory from the
// KernelCall of the run, and reports errors to it. Internal to engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_KERNEL_HANDLERS_H_
#define CLEAVE_ENGINE_RUNTIME_KERNEL_HANDLERS_H_

#include "absl/status/status.h"
#include "engine/runtime/object_loader.h"

namespace cleave::internal_kernel {

// From then on the memory of the kernels that use the runtime, parallel loops
// and errors go to the KernelCall that they get as user context. Not supported,
// and reported as the kernel's error: tasks that wait for each other (Halide's
// async). InvalidArgument if the object is no Halide runtime, or one of
// another make. A runtime for CUDA works in the primary context of the call's
// device, on its stream.
absl::Status InstallKernelHandlers(const LoadedObject& runtime);

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_KERNEL_HANDLERS_H_
