#include "engine/codegen/halide/target.h"

#include <vector>

namespace cleave {

using Halide::Target;

Target HostTarget() {
  Target target = Halide::get_host_target();
#if defined(__x86_64__)
  __builtin_cpu_init();
  // The builtin asks CPUID and XGETBV, so it also knows whether the operating
  // system saves the wide registers.
  const bool foundation = __builtin_cpu_supports("avx512f");
  const bool skylake = foundation && __builtin_cpu_supports("avx512cd") &&
                       __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512bw");
  const bool cannonlake = skylake && __builtin_cpu_supports("avx512ifma") &&
                          __builtin_cpu_supports("avx512vbmi");
  const bool zen4 = cannonlake && __builtin_cpu_supports("avx512vbmi2") &&
                    __builtin_cpu_supports("avx512vnni") &&
                    __builtin_cpu_supports("avx512bitalg") &&
                    __builtin_cpu_supports("avx512vpopcntdq") &&
                    __builtin_cpu_supports("avx512bf16");
  const struct {
    Target::Feature feature;
    bool supported;
  } claims[] = {
      {Target::AVX, __builtin_cpu_supports("avx") != 0},
      {Target::AVX2, __builtin_cpu_supports("avx2") != 0},
      {Target::FMA, __builtin_cpu_supports("fma") != 0},
      {Target::AVX512, foundation && __builtin_cpu_supports("avx512cd")},
      {Target::AVX512_KNL, foundation && __builtin_cpu_supports("avx512er")},
      {Target::AVX512_Skylake, skylake},
      {Target::AVX512_Cannonlake, cannonlake},
      {Target::AVX512_Zen4, zen4},
      // Sapphire Rapids brings AMX, which a process has to ask the operating
      // system for; Zen 5 then adds little to Zen 4. Neither is worth a guess.
      {Target::AVX512_Zen5, false},
      {Target::AVX512_SapphireRapids, false},
  };
  bool denied = false;
  for (const auto& claim : claims) {
    if (!target.has_feature(claim.feature) || claim.supported) continue;
    target.set_feature(claim.feature, false);
    denied = true;
  }
  // Tuning for a processor brings its instructions along.
  if (denied) target.processor_tune = Target::ProcessorGeneric;
#endif
  return target;
}

Target KernelTarget(TargetLevel level, Device device) {
  std::vector<Target::Feature> features = {
      Target::SSE41, Target::NoRuntime, Target::UserContext,
      Target::NoBoundsQuery, Target::StrictFloat};
  if (level >= TargetLevel::kAvx2) {
    features.insert(features.end(),
                    {Target::AVX, Target::AVX2, Target::FMA, Target::F16C});
  }
  if (level >= TargetLevel::kAvx512) {
    features.insert(features.end(), {Target::AVX512, Target::AVX512_Skylake});
  }
  if (device == Device::kOpenCl) {
    features.insert(features.end(), {Target::OpenCL, Target::CLDoubles});
  } else if (device == Device::kCuda) {
    features.insert(features.end(), {Target::CUDA, Target::CUDACapability70});
  }
  return Target(Target::Linux, Target::X86, 64, features);
}

}  // namespace cleave
