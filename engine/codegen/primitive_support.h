// DescribeSupport: whether a primitive has kernel code on a device, as text for
// `cleave coverage --kernels`.

#ifndef CLEAVE_ENGINE_CODEGEN_PRIMITIVE_SUPPORT_H_
#define CLEAVE_ENGINE_CODEGEN_PRIMITIVE_SUPPORT_H_

#include <string>

#include "engine/codegen/device.h"
#include "ops/primitive.h"

namespace cleave {

// "kernel"; "kernel: the runtime's own"; "kernels of its regions"; "kernel;
// reference kernel in DTYPES: why" where some dtypes have no code; "reference
// kernel: why"; or, for a device, "cpu: why" where it leaves the primitive to
// the CPU. Empty for inputs, constants and results of tuples, which compute
// nothing.
std::string DescribeSupport(Primitive primitive, Device device);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_PRIMITIVE_SUPPORT_H_
