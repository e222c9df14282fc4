#include "testing/certificate/environment.h"

#include <gnu/libc-version.h>
#include <mpfr.h>

#include "absl/strings/str_cat.h"
#include "testing/certificate/checker_sources.h"
#include "testing/certificate/sha256.h"

namespace cleave {
namespace {

// Code of the same sources that was compiled in another way may round in
// another way, or be slower or stricter.
std::string Compiler() {
#if defined(__clang__)
  std::string text = absl::StrCat("clang ", __clang_version__);
#else
  std::string text = absl::StrCat("gcc ", __VERSION__);
#endif
#ifdef __OPTIMIZE__
  absl::StrAppend(&text, ", optimized");
#endif
#ifdef __FAST_MATH__
  absl::StrAppend(&text, ", fast math");
#endif
#ifdef NDEBUG
  absl::StrAppend(&text, ", no asserts");
#endif
#ifdef __SANITIZE_ADDRESS__
  absl::StrAppend(&text, ", address sanitizer");
#endif
#ifdef __SANITIZE_THREAD__
  absl::StrAppend(&text, ", thread sanitizer");
#endif
#ifdef __FMA__
  absl::StrAppend(&text, ", fma");
#endif
#ifdef __AVX2__
  absl::StrAppend(&text, ", avx2");
#endif
#ifdef __AVX512F__
  absl::StrAppend(&text, ", avx512");
#endif
  return text;
}

// The features by which the C library chooses its functions, and a code
// generator its vectors.
std::string Cpu() {
#if defined(__x86_64__)
  std::string text = "x86-64:";
  const auto add = [&text](const char* name, bool has) {
    if (has) absl::StrAppend(&text, " ", name);
  };
  __builtin_cpu_init();
  add("sse4.1", __builtin_cpu_supports("sse4.1"));
  add("avx", __builtin_cpu_supports("avx"));
  add("avx2", __builtin_cpu_supports("avx2"));
  add("fma", __builtin_cpu_supports("fma"));
  add("fma4", __builtin_cpu_supports("fma4"));
  add("avx512f", __builtin_cpu_supports("avx512f"));
  add("avx512cd", __builtin_cpu_supports("avx512cd"));
  add("avx512vl", __builtin_cpu_supports("avx512vl"));
  add("avx512dq", __builtin_cpu_supports("avx512dq"));
  add("avx512bw", __builtin_cpu_supports("avx512bw"));
  return text;
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "another CPU";
#endif
}

}  // namespace

std::string Environment::ToString() const {
  return absl::StrCat("engine ", engine, "\ncompiler ", compiler, "\nlibm ",
                      libm, "\nmpfr ", mpfr, "\ncpu ", cpu, "\nkernels ",
                      kernels, "\n");
}

std::string Environment::Id() const { return Sha256(ToString()).substr(0, 12); }

Environment ThisEnvironment() {
  Environment environment;
  environment.engine = CLEAVE_CHECKER_SOURCES;
  environment.compiler = Compiler();
  environment.libm = absl::StrCat("glibc ", gnu_get_libc_version());
  environment.mpfr = mpfr_get_version();
  environment.cpu = Cpu();
  return environment;
}

}  // namespace cleave
