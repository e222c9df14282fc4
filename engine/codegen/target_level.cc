#include "engine/codegen/target_level.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace cleave {
namespace {

constexpr TargetLevel kLevels[] = {TargetLevel::kSse41, TargetLevel::kAvx2,
                                   TargetLevel::kAvx512};

}  // namespace

absl::string_view TargetLevelName(TargetLevel level) {
  switch (level) {
    case TargetLevel::kSse41:
      return "sse4.1";
    case TargetLevel::kAvx2:
      return "avx2";
    case TargetLevel::kAvx512:
      return "avx512";
  }
  return "";
}

absl::StatusOr<TargetLevel> ParseTargetLevel(absl::string_view name) {
  for (const TargetLevel level : kLevels) {
    if (TargetLevelName(level) == name) return level;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no target level `", name, "`: sse4.1, avx2 or avx512"));
}

TargetLevel HostLevel() {
  __builtin_cpu_init();
  // The builtin asks CPUID and XGETBV, so it also knows whether the operating
  // system saves the wide registers.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return TargetLevel::kSse41;
  }
  const bool wide =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  return wide ? TargetLevel::kAvx512 : TargetLevel::kAvx2;
}

std::vector<TargetLevel> HostLevels() {
  std::vector<TargetLevel> levels;
  for (const TargetLevel level : kLevels) {
    if (level <= HostLevel()) levels.push_back(level);
  }
  return levels;
}

}  // namespace cleave
