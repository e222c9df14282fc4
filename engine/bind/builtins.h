// The names that rules may call besides ops and defs.

#ifndef CLEAVE_ENGINE_BIND_BUILTINS_H_
#define CLEAVE_ENGINE_BIND_BUILTINS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace cleave {

// The op names that `jvp f(..)(..)` and `vjp f(..)(..)` call: these, then f.
inline constexpr absl::string_view kJvpCallPrefix = "jvp:";
inline constexpr absl::string_view kVjpCallPrefix = "vjp:";
// The prefix of an op that is a batch of calls of f (RuleSet::BatchOf).
inline constexpr absl::string_view kVmapCallPrefix = "vmap:";
// The f of such a name; nullopt for any other op.
std::optional<absl::string_view> DerivedFrom(absl::string_view op);

bool IsBatchCall(absl::string_view op);

struct Builtin {
  // `axis:`, which must be given, or `reverse: false`.
  struct Attribute {
    absl::string_view name;
    absl::string_view fallback;  // empty: there is none
  };
  absl::string_view name;
  absl::string_view signature;
  std::vector<absl::string_view> operands;  // a last `..`: any number
  std::vector<Attribute> attributes;

  // Null where it has none of that name.
  const Attribute* FindAttribute(absl::string_view attribute) const;
};

// The builtins other than the pointwise primitives (which all have their names
// from ops/primitive.def).
const std::vector<Builtin>& Builtins();
// Null for a pointwise primitive and for no builtin.
const Builtin* FindBuiltin(absl::string_view name);

// All of them, sorted.
std::vector<std::string> BuiltinNames();
bool IsBuiltin(absl::string_view name);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_BIND_BUILTINS_H_
