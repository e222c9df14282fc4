// CheckPass: what a pass over graphs makes of a text, and that it keeps the
// values.

#ifndef CLEAVE_ENGINE_CODEGEN_PASS_TESTING_H_
#define CLEAVE_ENGINE_CODEGEN_PASS_TESTING_H_

#include <cstdint>
#include <functional>
#include <string>

#include "engine/ir/graph.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave {

// Small integers: their sums are exact in any order.
Tensor SmallIntegers(const TensorType& type, int64_t input);

// The text of `pass(graph)`. A failure of the test unless its results have
// the values of the graph's on what `fill` makes of each input's type and
// number. All extents of inputs are numbers.
std::string CheckPass(const std::string& text,
                      const std::function<Graph(const Graph&)>& pass,
                      const std::function<Tensor(const TensorType&, int64_t)>&
                          fill = SmallIntegers);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_PASS_TESTING_H_
