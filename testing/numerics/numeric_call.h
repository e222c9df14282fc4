// NumericCalls: a primitive as the graphs that its numeric serves.

#ifndef CLEAVE_TESTING_NUMERICS_NUMERIC_CALL_H_
#define CLEAVE_TESTING_NUMERICS_NUMERIC_CALL_H_

#include <memory>
#include <vector>

#include "engine/ir/context.h"
#include "engine/ir/graph.h"
#include "ops/dtype.h"
#include "ops/primitive.h"

namespace cleave {

// One call on vectors of n elements, its inputs `x` and `y`. The first operands
// of the primitive may be numbers of the call: the order of `polygamma`.
struct NumericCall {
  Graph graph;
  std::vector<double> numbers;
};

// All calls of the primitive in `dtype` that have a numeric.
std::vector<NumericCall> NumericCalls(Primitive primitive, DType dtype,
                                      const std::shared_ptr<Context>& context);

}  // namespace cleave

#endif  // CLEAVE_TESTING_NUMERICS_NUMERIC_CALL_H_
