// The cost of computing one element of a node. Fusion, lowering and
// what reverse mode saves weigh it against storing the value.

#ifndef CLEAVE_OPS_ELEMENT_COST_H_
#define CLEAVE_OPS_ELEMENT_COST_H_

#include "ops/primitive.h"

namespace cleave {

// In operations of a vector unit: 1 for what is one instruction or a few, 4 for
// divisions and roots, 16 for functions, 40 for random numbers.
int CostOf(Primitive primitive);

}  // namespace cleave

#endif  // CLEAVE_OPS_ELEMENT_COST_H_
