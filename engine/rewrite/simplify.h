// Simplify: a graph with the `rewrite` items of its rules applied.
//
//   rewrite one_times: 1 * x => x where x: real
//
//   %1 = constant(value: 1, dtype: f32)
//   %2 = broadcast_in_dim(%1; shape: [n], axes: [])
//   %3 = mul(%2, x)
//   exp(%3)                                          becomes exp(x)
//
// Results are the same bits (NaN being one value), unless `approx` allows
// rewrites that are true over the reals only. A node that the graph no longer
// needs is not evaluated, and cannot fail.
//
// One pass in topological order: each node is made of operands that are
// simplified, and is replaced as long as a rewrite matches there, at most
// kMaxRewritesPerNode times; so the time is linear in the size of the graph.
// A rewrite matches pointwise primitives on one shape; a number matches a
// constant of that value, broadcast or not. It applies where both of its sides
// type, and the type of the node stays. Beside the rewrites, movement of
// movement becomes one (simplify_movement.h). Operations, which are all nodes
// but inputs, constants and their broadcasts, do not become more.

#ifndef CLEAVE_ENGINE_REWRITE_SIMPLIFY_H_
#define CLEAVE_ENGINE_REWRITE_SIMPLIFY_H_

#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// The rewrites that are applied at one node, at most. No shipped rewrite comes
// near this bound; further ones are left out.
inline constexpr int kMaxRewritesPerNode = 32;

struct SimplifyOptions {
  // Also rewrites that are marked `real`.
  bool approx = false;
};

// Inputs, outputs, their types and the guards stay; calls of composite ops stay
// calls; regions are simplified, too. A node that a rewrite makes has the
// rewrite's name and place for a provenance. `graph` is of the rules' context
// (CHECK).
Graph Simplify(const Graph& graph, const RuleSet& rules,
               const SimplifyOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_ENGINE_REWRITE_SIMPLIFY_H_
