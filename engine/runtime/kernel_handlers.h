// Points a library's Halide runtime to KernelCall.

#ifndef CLEAVE_ENGINE_RUNTIME_KERNEL_HANDLERS_H_
#define CLEAVE_ENGINE_RUNTIME_KERNEL_HANDLERS_H_

#include "absl/status/status.h"

namespace cleave::internal_kernel {

// `handle` is dlopen's. From then on the kernels' memory, parallel loops and
// errors go to the KernelCall that they get as user context. Not supported, and
// reported as the kernel's error: tasks that wait for each other (Halide's
// async). InvalidArgument if the library has no Halide runtime, or one of
// another make.
absl::Status InstallKernelHandlers(void* handle);

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_KERNEL_HANDLERS_H_
