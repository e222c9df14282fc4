// Device code that keeps to IEEE 754. Internal to this folder.
//
// Halide 21 spells strict operations for CPUs alone. Its CUDA code fuses
// multiplications into additions, takes all for finite and flushes subnormal
// numbers; its OpenCL code allows fusion. Here the operations in the loops of a
// device become functions that round as they should, and what is left of the
// rest in the source is taken out.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_DEVICE_CODE_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_DEVICE_CODE_H_

#include <string>
#include <vector>

#include "Halide.h"

namespace cleave {

// A pass over what the pipeline's Funcs become, for a target with a device.
// Throws Halide::InternalError where a loop is left on the host, or one of
// `outputs` is stored nowhere.
void MakeDeviceCallsStrict(Halide::Pipeline& pipeline,
                           const std::vector<Halide::Func>& outputs,
                           const Halide::Target& target);

// Adds the functions of a module that was compiled so to `all`, with their
// sources made strict, too. Halide gives the sources and the state of every
// module the same names: here they get `prefix`. Throws Halide::InternalError
// if a source is not as expected.
void AppendStrict(const Halide::Module& module, const std::string& prefix,
                  Halide::Module& all);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_DEVICE_CODE_H_
