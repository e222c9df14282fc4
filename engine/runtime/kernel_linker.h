// LinkKernelLibrary: from Halide's objects to a library that can be loaded.
//
//   absl::StatusOr<std::string> image = LinkKernelLibrary(object, runtime);

#ifndef CLEAVE_ENGINE_RUNTIME_KERNEL_LINKER_H_
#define CLEAVE_ENGINE_RUNTIME_KERNEL_LINKER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cleave {

// The shared library (an ELF image) of a Halide object that was compiled
// without a runtime, and of the runtime object for its target. Only the
// `*_argv` entries and what KernelLibrary needs of the runtime are visible in
// it; calls between the two stay within it, and of the system it needs libc and
// libm alone.
//
// Runs the system's linker: $CLEAVE_LINKER, a path or a name on $PATH, else ld,
// ld.lld or cc; FailedPrecondition, which names the package to install, if
// there is none. Internal with the linker's words if it fails. Leaves no files
// behind, however the process ends.
absl::StatusOr<std::string> LinkKernelLibrary(absl::string_view object,
                                              absl::string_view runtime_object);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_KERNEL_LINKER_H_
