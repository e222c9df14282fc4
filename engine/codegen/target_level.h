// TargetLevel: the vector instructions that kernels may use.

#ifndef CLEAVE_ENGINE_CODEGEN_TARGET_LEVEL_H_
#define CLEAVE_ENGINE_CODEGEN_TARGET_LEVEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cleave {

enum class TargetLevel : uint8_t {
  kSse41,   // 4 floats, no fused multiply-add
  kAvx2,    // 8 floats, FMA, F16C
  kAvx512,  // 16 floats: F, CD, VL, DQ, BW
};

absl::string_view TargetLevelName(TargetLevel level);
// "sse4.1", "avx2", "avx512"; InvalidArgument for another name.
absl::StatusOr<TargetLevel> ParseTargetLevel(absl::string_view name);

// The highest level that the CPU and its operating system allow, by CPUID and
// XGETBV.
TargetLevel HostLevel();
// It and those below it.
std::vector<TargetLevel> HostLevels();

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_TARGET_LEVEL_H_
