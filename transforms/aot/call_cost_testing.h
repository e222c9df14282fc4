// A function and a compiler that cost nothing, so that calls of an AotFunction
// cost what is around them: call_cost_test counts it, aot_call_benchmark
// measures it.

#ifndef CLEAVE_TRANSFORMS_AOT_CALL_COST_TESTING_H_
#define CLEAVE_TRANSFORMS_AOT_CALL_COST_TESTING_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/eager/tensor.h"
#include "engine/eager/tree.h"
#include "transforms/aot/graph_compiler.h"

namespace cleave::aot {

// Gives zeros of the types that the graph's outputs have for the examples'
// extents; all of them are 8 here.
inline absl::StatusOr<CompiledGraph> CompileNothing(const Graph& graph,
                                                    const ExampleInputs&) {
  std::vector<Tensor> results;
  for (const NamedValue& output : graph.outputs()) {
    const TensorType& type = graph.type(output.value);
    results.push_back(
        Tensor(type.dtype, std::vector<int64_t>(type.shape.size(), 8)));
  }
  return CompiledGraph([results](absl::Span<const Tensor>) { return results; });
}

inline functional::Tensor SumOf(const std::vector<functional::Tensor>& xs) {
  functional::Tensor sum = xs[0];
  for (size_t i = 1; i < xs.size(); ++i) sum = sum + xs[i];
  return sum;
}

// `count` tensors f32[8].
inline Tree SumArguments(int64_t count) {
  std::vector<functional::Tensor> xs;
  for (int64_t i = 0; i < count; ++i) xs.push_back(Tensor(DType::kF32, {8}));
  return functional::ToTree(xs);
}

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_CALL_COST_TESTING_H_
