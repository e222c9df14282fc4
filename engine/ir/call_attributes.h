// Attributes of composite calls that no rule declares: names of rules have no
// dots.

#ifndef CLEAVE_ENGINE_IR_CALL_ATTRIBUTES_H_
#define CLEAVE_ENGINE_IR_CALL_ATTRIBUTES_H_

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace cleave {

// Which inputs are given: a list with, for each declared tensor input, true,
// false, or a list of bools where it is variadic. Left out where every input is
// there and none is variadic.
inline constexpr char kLayout[] = "call.layout";
// The attributes of a call of a transform, `vjp:f` say
// (engine/rules/rule_set.h). kActive: per operand, whether it is
// differentiated. kLive: per result, whether its cotangent is given. kBatched:
// per batch, the outermost last, a list that says which operands have it.
inline constexpr char kActive[] = "call.active";
inline constexpr char kLive[] = "call.live";
inline constexpr char kBatched[] = "call.batched";
// The extents that are known only when the graph runs: "new.n" is that of the
// result axis `new n`, "new.V" of what the body of a host's op calls V.
inline constexpr char kNewPrefix[] = "new.";

// Whether the name is one of the first four.
inline bool IsCallAttribute(absl::string_view name) {
  return absl::StartsWith(name, "call.");
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_CALL_ATTRIBUTES_H_
