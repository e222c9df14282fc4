// IsOuter: whether a value has far more elements than what it is made of, so
// that it is made again rather than stored.

#ifndef CLEAVE_OPS_OUTER_SHAPE_H_
#define CLEAVE_OPS_OUTER_SHAPE_H_

#include "ops/tensor_type.h"

namespace cleave {

// Whether `shape` has eight times as many elements as `from`, or, where extents
// are open, an open axis more.
//
//   [1000, 1000, 64], [1000, 64]: true      [m, n], [m]: true
bool IsOuter(const Shape& shape, const Shape& from);

}  // namespace cleave

#endif  // CLEAVE_OPS_OUTER_SHAPE_H_
