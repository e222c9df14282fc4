#include "testing/certificate/kernel_environment.h"

#include "absl/strings/str_cat.h"
#include "engine/codegen/code_generator_interface.h"
#include "engine/codegen/target_level.h"
#include "engine/files/threads.h"
#include "testing/certificate/kernel_sources.h"

namespace cleave {

std::string KernelEnvironment() {
  return absl::StrCat(
      "sources ", CLEAVE_KERNEL_SOURCES, ", ", CLEAVE_CODE_GENERATOR_VERSION,
      ", ", TargetLevelName(HostLevel()), ", ", UsableCores(), " cores");
}

}  // namespace cleave
