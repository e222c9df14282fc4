// CDriver: the driver of a compiled function, which is the C code that computes
// the extents of a call, checks it, and runs its kernels in order, the regions
// of loops as often as they say.
// engine/runtime does the same for a Kernel.

#ifndef CLEAVE_ENGINE_C_LIBRARY_DRIVER_H_
#define CLEAVE_ENGINE_C_LIBRARY_DRIVER_H_

#include <string>
#include <vector>

#include "engine/c_library/c_interface.h"
#include "engine/c_library/programs.h"
#include "engine/codegen/target_level.h"

namespace cleave {

// <function>_driver.c, which defines the functions of the header, and of
// Halide's runtime those that allocate and that report errors. It includes
// <function>.h and the headers of C alone. The programs are those of
// PlanPrograms, with their kernels for the levels.
std::string CDriver(const CInterface& interface,
                    const std::vector<DriverProgram>& programs,
                    const std::vector<TargetLevel>& levels);

// Its parts: the functions of the header, and what does not depend on them.
// The code of sorts, loops and choices is for drivers that have some. Internal
// to engine/c_library.
namespace internal_aot {
std::string PublicFunctions(const CInterface& interface);
extern const char kDriverTypes[];
extern const char kDriverFunctions[];
extern const char kDriverRun[];
extern const char kSortTypes[];
extern const char kSortFunctions[];
extern const char kLoopTypes[];
extern const char kLoopFunctions[];
extern const char kCarryFunctions[];  // of scan and while
extern const char kScanFunction[];
extern const char kWhileFunction[];
extern const char kCondFunction[];
}  // namespace internal_aot

}  // namespace cleave

#endif  // CLEAVE_ENGINE_C_LIBRARY_DRIVER_H_
