// A group's graph as machine code.
//
//   Graph kernel = *ApplyNumerics(*CollapseAxes(extracted.graph), rules);
//   std::string object = *CompileGroup(kernel, group.kind, "kernel", level);
//
// The entry point takes what kernel_parameters.h says. Halide is behind it: the
// first call of a process loads it (code_generator.h), and nothing else does.

#ifndef CLEAVE_ENGINE_CODEGEN_COMPILE_GROUP_H_
#define CLEAVE_ENGINE_CODEGEN_COMPILE_GROUP_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/codegen/device.h"
#include "engine/codegen/fusion.h"
#include "engine/codegen/target_level.h"
#include "engine/ir/graph.h"

namespace cleave {

struct ScheduleOptions {
  // Plain loops in the order of the axes: what must not change the result of
  // anything but a reduction.
  bool plain = false;
};

// The ELF object of the kernel `name`: its entry is `<name>_argv`. `graph` is a
// group (ExtractGroup) after CollapseAxes and ApplyNumerics; every node of it
// can be lowered. `level` bounds the instructions: where LLVM fails to write
// them, the object has those of a lower level. Internal if Halide fails, with
// its message: an error of ours. ResourceExhausted if the folder for temporary
// files refuses. Unavailable or FailedPrecondition, as LoadCodeGenerator says,
// where there is no code generator to load.
absl::StatusOr<std::string> CompileGroup(const Graph& graph, GroupKind kind,
                                         const std::string& name,
                                         TargetLevel level,
                                         const ScheduleOptions& options = {});

// A group of CompileGroups.
struct DeviceGroup {
  const Graph* graph = nullptr;
  GroupKind kind = GroupKind::kPointwise;
  std::string name;  // of its kernel
};

// One ELF object with kernels for a device, which share what they leave there:
// as CompileGroup, but that the buffers' elements are read and written on the
// device. CanRunOn has allowed each group; there is at least one.
absl::StatusOr<std::string> CompileGroups(
    const std::vector<DeviceGroup>& groups, TargetLevel level, Device device);

// The object of Halide's runtime for kernels of that level and device.
absl::StatusOr<std::string> CompileRuntime(TargetLevel level,
                                           Device device = Device::kCpu);

// All that the code depends on but the graph: the target and the versions.
std::string CodeVersion(TargetLevel level, Device device = Device::kCpu);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_COMPILE_GROUP_H_
