// CallsThatShapesDecide: the calls of an op whose elements are computed one by
// one, but not alike at all shapes.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_SHAPE_DECIDES_H_
#define CLEAVE_TESTING_CHECK_LAYERS_SHAPE_DECIDES_H_

#include <vector>

#include "testing/check/layers/op_context.h"

namespace cleave {

// Points at one shape tell of all shapes where a body is pointwise but for
// broadcasts, unless it asks for an extent or the rank. The calls whose bodies
// are pointwise, where those of some dtypes and attributes differ in their
// primitives, constants or operands; none where they do not.
//
//   select(size(S) == 5, x + 1, x)  ->  the calls at [5], [6], [2, 3]..
//
// O(nodes of all bodies).
std::vector<PreparedCall> CallsThatShapesDecide(const PreparedCalls& prepared);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_SHAPE_DECIDES_H_
