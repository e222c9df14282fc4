// FilledWith: the number that a value of a graph repeats.

#ifndef CLEAVE_ENGINE_IR_FILLED_WITH_H_
#define CLEAVE_ENGINE_IR_FILLED_WITH_H_

#include <optional>

#include "engine/ir/graph.h"
#include "ops/exact.h"

namespace cleave {

// The number that every element of `v` is, where `v` is a constant or a
// constant broadcast; nullopt for other values, and for constants that are
// bools.
//
//   %2: f32[n] = broadcast_in_dim(%1), %1 = constant(value: 3.0): 3 of %2
std::optional<Exact> FilledWith(const Graph& graph, Value v);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_FILLED_WITH_H_
