// Movement that is one movement, or none: what rewrites of pointwise primitives
// cannot say, since it computes with axes. Each law is exact, element by
// element.
//
//   reverse(reverse(x; A); B)     = reverse(x; the axes in one of A, B)
//   broadcast(broadcast(x; A); B) = broadcast(x; B after A)
//   m(broadcast(x))               = broadcast(x), for a scalar x and m one of
//                                   reshape, transpose, slice, reverse
//   slice(broadcast(x))           = broadcast(x), where all axes of x are taken
//   slice(iota(n); one at s)      = s
//   reduce(x; no axes)            = x, for max, min, all, any (sums of no more
//                                   than -0 are 0)
//
// and those of GraphBuilder::Add: reshape(reshape(x)), transpose(transpose(x)),
// and movement that changes nothing.

#ifndef CLEAVE_ENGINE_REWRITE_SIMPLIFY_MOVEMENT_H_
#define CLEAVE_ENGINE_REWRITE_SIMPLIFY_MOVEMENT_H_

#include "absl/types/span.h"
#include "engine/ir/graph.h"

namespace cleave {

// A movement, reduction or conversion of result type `type`, or what it is by a
// law; invalid if inference gives another type: then it is left as it was. New
// nodes have the builder's provenance.
Value SimplifyMovement(GraphBuilder& builder, Primitive primitive,
                       AttributesId attributes, TypeId type,
                       absl::Span<const Value> operands);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_REWRITE_SIMPLIFY_MOVEMENT_H_
