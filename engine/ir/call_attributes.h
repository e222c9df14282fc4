// Attributes of composite calls that no rule declares: names of rules have no
// dots.

#ifndef CLEAVE_ENGINE_IR_CALL_ATTRIBUTES_H_
#define CLEAVE_ENGINE_IR_CALL_ATTRIBUTES_H_

namespace cleave {

// Which inputs are given: a list with, for each declared tensor input, true,
// false, or a list of bools where it is variadic. Left out where every input is
// there and none is variadic.
inline constexpr char kLayout[] = "call.layout";
// Of calls of transforms (engine/rules/rule_set.h): per operand, whether it
// is differentiated; per result, whether its cotangent is given; for each
// batch, the outermost last, a list of which operands have it.
inline constexpr char kActive[] = "call.active";
inline constexpr char kLive[] = "call.live";
inline constexpr char kBatched[] = "call.batched";

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_CALL_ATTRIBUTES_H_
