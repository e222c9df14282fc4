// The names that rules may call besides ops and defs.

#ifndef CLEAVE_ENGINE_REWRITE_BUILTINS_H_
#define CLEAVE_ENGINE_REWRITE_BUILTINS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cleave {

// The op name that `jvp f(..)(..)` calls: this, then f.
inline constexpr absl::string_view kJvpCallPrefix = "jvp:";

struct Builtin {
  absl::string_view name;
  absl::string_view signature;  // for messages and documentation
};

// Those that are no pointwise primitives (which all have their names from
// ops/primitive.def).
const std::vector<Builtin>& Builtins();

// All of them, sorted.
std::vector<std::string> BuiltinNames();
bool IsBuiltin(absl::string_view name);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_REWRITE_BUILTINS_H_
