// One or more sample nodes of every primitive: what batching and
// differentiation are tested on.

#ifndef CLEAVE_TRANSFORMS_TESTING_SAMPLE_NODES_H_
#define CLEAVE_TRANSFORMS_TESTING_SAMPLE_NODES_H_

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave {

struct SampleNode {
  std::string name;  // "gather/fill"
  Primitive primitive;
  std::vector<std::string> operands;  // types, as text
  Attributes attributes;
  // Where floats are drawn from; integers are from [int_low, int_high].
  double low = -2;
  double high = 2;
  int64_t int_low = -1;
  int64_t int_high = 3;
  // Draws floats among few values, so that equal ones and zeros are common.
  bool ties = false;
};

// All samples. Floats are f64 where nothing else is asked for.
std::vector<SampleNode> SampleNodes(const std::shared_ptr<Context>& context);

// The sample as a graph: inputs x0, x1, .., outputs y0, y1, .. Every f64 is
// replaced by `dtype`.
absl::StatusOr<Graph> SampleGraph(const SampleNode& sample,
                                  const std::shared_ptr<Context>& context,
                                  DType dtype = DType::kF64);

// The extents of a type that has no symbolic ones (CHECK).
std::vector<int64_t> ConstantShape(const TensorType& type);

// A tensor of this shape with values as the sample asks for.
Tensor DrawTensor(const SampleNode& sample, DType dtype,
                  const std::vector<int64_t>& shape, std::mt19937_64& random);

// Whether evaluation over the reals can check the primitive's derivative: it
// knows no bits of floats and no complex numbers.
bool IsOverTheReals(Primitive primitive);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_TESTING_SAMPLE_NODES_H_
