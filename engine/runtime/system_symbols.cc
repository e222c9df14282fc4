// The functions of the system that loaded objects may call.

#include <dlfcn.h>

#include <string>

#include "absl/container/flat_hash_set.h"
#include "engine/runtime/object_loader.h"

namespace cleave::internal_kernel {
namespace {

// The functions that Halide's runtime calls, on a CPU and for devices.
constexpr const char* kSystemFunctions[] = {
    "abort",
    "atoi",
    "dlerror",
    "dlopen",
    "dlsym",
    "fclose",
    "fileno",
    "fopen64",
    "free",
    "fwrite",
    "getenv",
    "malloc",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "pthread_cond_broadcast",
    "pthread_cond_destroy",
    "pthread_cond_init",
    "pthread_cond_signal",
    "pthread_cond_wait",
    "pthread_create",
    "pthread_join",
    "pthread_mutex_destroy",
    "pthread_mutex_init",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "sched_yield",
    "strcmp",
    "strlen",
    "strncmp",
    "strncpy",
    "strstr",
    "syscall",
    "sysconf",
    "usleep",
    "write",
};

// The functions of libm for doubles; those for floats have an `f` behind.
constexpr const char* kMathFunctions[] = {
    "acos",      "acosh",     "asin",   "asinh",     "atan",  "atan2",
    "atanh",     "cbrt",      "ceil",   "copysign",  "cos",   "cosh",
    "erf",       "erfc",      "exp",    "exp2",      "expm1", "fabs",
    "floor",     "fma",       "fmax",   "fmin",      "fmod",  "hypot",
    "ldexp",     "lgamma",    "log",    "log10",     "log1p", "log2",
    "modf",      "nearbyint", "pow",    "remainder", "rint",  "round",
    "roundeven", "sin",       "sincos", "sinh",      "sqrt",  "tan",
    "tanh",      "tgamma",    "trunc",
};

const absl::flat_hash_set<std::string>& Allowed() {
  static const auto* const names = [] {
    auto* const set = new absl::flat_hash_set<std::string>;
    for (const char* name : kSystemFunctions) set->insert(name);
    for (const char* name : kMathFunctions) {
      set->insert(name);
      set->insert(std::string(name) + "f");
    }
    return set;
  }();
  return *names;
}

}  // namespace

void* FindSystemSymbol(absl::string_view name) {
  const std::string text(name);
  if (!Allowed().contains(text)) return nullptr;
  // As a library would: what the program itself defines, as its own malloc,
  // comes first. It may not be linked with libm.
  if (void* const own = dlsym(RTLD_DEFAULT, text.c_str())) return own;
  static void* const libm = dlopen("libm.so.6", RTLD_LAZY | RTLD_LOCAL);
  return libm == nullptr ? nullptr : dlsym(libm, text.c_str());
}

}  // namespace cleave::internal_kernel
