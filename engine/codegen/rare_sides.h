// RareSides: the selections of a graph one side of which alone takes long.
//
//   %sine = select(%is_large, %of_large, %of_small)
//   RareSides(graph)[%sine.id]   // kFirst: all that %of_large rests on, and
//                                // nothing else does, is many operations
//
// A kernel branches over such a side where no lane of a vector wants it. So it
// does, where it reduces, over what is computed if a result is not 0: masked
// scores of an attention are 0 in whole vectors.

#ifndef CLEAVE_ENGINE_CODEGEN_RARE_SIDES_H_
#define CLEAVE_ENGINE_CODEGEN_RARE_SIDES_H_

#include <cstdint>
#include <vector>

#include "engine/ir/graph.h"

namespace cleave {

// The side of a selection: where its condition is true, or false.
enum class RareSide : uint8_t { kNone, kFirst, kSecond };

// The operations of a side, those on f64 twice, from which on a branch pays:
// where lanes differ it is mispredicted, and both sides are computed.
inline constexpr int kRareSideCost = 40;
// The operations of the other side, at least: a number or an operand in place
// of a long computation is a guard, and hardly ever wanted by all lanes.
inline constexpr int kUsualSideCost = 8;
// The operations of a side beside a 0, at least.
inline constexpr int kMaskedSideCost = 15;

// For each node of `graph`, of primitives: the dearer side of a selection whose
// sides have these costs, or the one beside a 0; kNone for other nodes. Linear
// in the graph for each selection.
std::vector<RareSide> RareSides(const Graph& graph);

// Whether a node of such a graph is computed for dearer sides only.
std::vector<bool> OnRareSides(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_RARE_SIDES_H_
