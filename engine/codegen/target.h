// The machine that kernels are compiled for.
//
//   Halide::Buffer<float> out = func.realize({n}, HostTarget());
//
// Halide is included in this folder only.

#ifndef CLEAVE_ENGINE_CODEGEN_TARGET_H_
#define CLEAVE_ENGINE_CODEGEN_TARGET_H_

#include "Halide.h"

namespace cleave {

// The host as Halide detects it, less the features that the CPU or its
// operating system denies. Halide::get_host_target() tells some AMD processors
// by their model number and promises AVX-512 even where a virtual machine masks
// it: a kernel that is compiled for that target dies with SIGILL. Nothing else
// in the project calls get_host_target().
Halide::Target HostTarget();

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_TARGET_H_
