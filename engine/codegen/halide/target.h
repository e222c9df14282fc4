// HostTarget and KernelTarget: the machine that kernels are compiled for, in
// Halide's terms.
//
//   Halide::Target target = KernelTarget(HostLevel());
//
// Halide is included in this folder only: levels are what others see
// (target_level.h).

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_TARGET_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_TARGET_H_

#include "Halide.h"
#include "engine/codegen/device.h"
#include "engine/codegen/target_level.h"

namespace cleave {

// The host as Halide detects it, less the features that the CPU or its
// operating system denies. Halide::get_host_target() tells some AMD processors
// by their model number and promises AVX-512 even where a virtual machine masks
// it: a kernel that is compiled for that target dies with SIGILL. Nothing else
// in the project calls get_host_target().
Halide::Target HostTarget();

// The target of kernels: the instructions of one level, strict floats, no
// runtime in each object, and the host's handlers by the user context; with a
// device, its code beside that of the host.
Halide::Target KernelTarget(TargetLevel level, Device device = Device::kCpu);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_TARGET_H_
