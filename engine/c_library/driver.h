// CDriver: the driver of a compiled function, which is the C code that computes
// the extents of a call, checks it, and runs its kernels in order.
// engine/runtime does the same for a Kernel.

#ifndef CLEAVE_ENGINE_C_LIBRARY_DRIVER_H_
#define CLEAVE_ENGINE_C_LIBRARY_DRIVER_H_

#include <string>
#include <vector>

#include "engine/c_library/c_interface.h"
#include "engine/codegen/target_level.h"
#include "engine/runtime/kernel_plan.h"

namespace cleave {

// Code of one step: entries[i] is the symbol of its kernel for levels[i].
struct DriverKernel {
  std::vector<std::string> entries;
};

// <function>_driver.c, which defines the functions of the header, and of
// Halide's runtime those that allocate and that report errors. It includes
// <function>.h and the headers of C alone. No step is a reference
// kernel, and the plan has static shapes (CHECK).
std::string CDriver(const CInterface& interface,
                    const internal_kernel::PlannedGraph& plan,
                    const std::vector<DriverKernel>& kernels,
                    const std::vector<TargetLevel>& levels);

// Its parts that do not depend on the function. Internal to engine/c_library.
namespace internal_aot {
extern const char kDriverTypes[];
extern const char kDriverFunctions[];
}  // namespace internal_aot

}  // namespace cleave

#endif  // CLEAVE_ENGINE_C_LIBRARY_DRIVER_H_
