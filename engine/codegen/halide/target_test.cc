#include "engine/codegen/halide/target.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace cleave {
namespace {

using Halide::Target;

// A kernel for a feature that the host lacks ends the process with SIGILL.
TEST(HostTarget, RunsAVectorizedFloatKernel) {
  constexpr int kSize = 64;
  Halide::Func doubled("doubled");
  Halide::Var x("x");
  doubled(x) = Halide::cast<float>(x) * 2.0f + 0.5f;
  doubled.vectorize(x, 16);
  const Halide::Buffer<float> out = doubled.realize({kSize}, HostTarget());
  for (int i = 0; i < kSize; ++i) EXPECT_EQ(out(i), 2.0f * i + 0.5f) << i;
}

TEST(HostTarget, ClaimsNoAvx512WhereTheCpuDeniesIt) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512f")) {
    for (const Target::Feature feature :
         {Target::AVX512, Target::AVX512_KNL, Target::AVX512_Skylake,
          Target::AVX512_Cannonlake, Target::AVX512_SapphireRapids,
          Target::AVX512_Zen4, Target::AVX512_Zen5}) {
      EXPECT_FALSE(HostTarget().has_feature(feature))
          << HostTarget().to_string();
    }
  }
#endif
  EXPECT_EQ(HostTarget().os, Halide::get_host_target().os);
  EXPECT_EQ(HostTarget().bits, Halide::get_host_target().bits);
}

TEST(HostTarget, TakesStrictFloatAtItsWord) {
  Halide::Func difference("difference");
  Halide::Var x("x");
  Halide::Param<float> value("value");
  difference(x) = Halide::strict_float(value - value);
  value.set(std::numeric_limits<float>::infinity());
  const Halide::Buffer<float> out = difference.realize({1}, HostTarget());
  EXPECT_TRUE(std::isnan(out(0)));
}

}  // namespace
}  // namespace cleave
