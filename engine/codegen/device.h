// Device: the place where kernels run, the host's CPU or a device with memory
// of its own.

#ifndef CLEAVE_ENGINE_CODEGEN_DEVICE_H_
#define CLEAVE_ENGINE_CODEGEN_DEVICE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/codegen/fusion.h"

namespace cleave {

enum class Device : uint8_t {
  kCpu,
  kOpenCl,  // the first OpenCL device of the first platform that has one
  kCuda,    // CUDA's, of compute capability 7.0 or higher
};

// "cpu", "opencl", "cuda".
absl::string_view DeviceName(Device device);
// InvalidArgument for another name.
absl::StatusOr<Device> ParseDevice(absl::string_view name);

// Whether groups of that kind have code for the device, and if not why:
// Unimplemented("a structured kernel has no ..."). All but reference kernels
// have code for the CPU. A group without code for the device runs on the CPU.
absl::Status CanRunOn(Device device, GroupKind kind);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_DEVICE_H_
