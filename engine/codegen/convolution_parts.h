// The parts that convolutions become products of. Internal to engine/codegen.

#ifndef CLEAVE_ENGINE_CODEGEN_CONVOLUTION_PARTS_H_
#define CLEAVE_ENGINE_CODEGEN_CONVOLUTION_PARTS_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/tensor_type.h"

namespace cleave::internal_windows {

// A convolution on its way to a product. Where it has groups they are axis 1 of
// x and axis 0 of the weights: [n, g, c, ..] and [g, o, c, a, b].
struct Convolution {
  const Attributes& attributes;
  const TensorType& type;  // of the result
  int k = 0;               // spatial axes
  int g = 0;               // axes of groups, 0 or 1
  Value x;
  Value weights;
  Shape sizes;
  GraphBuilder& builder;
};

// The elements of a shape, where they are known.
std::optional<int64_t> SizeOf(const Shape& shape);

std::vector<int64_t> Numbers(int first, int count);

std::vector<int> Order(std::initializer_list<std::pair<int, int>> ranges);

// Zeros around the spatial axes and between their elements, in memory. Elements
// that a negative padding leaves out stay.
Value Padded(GraphBuilder& builder, Value x, const Attributes& attributes,
             bool stored = true);

// [n, g, c, counts.., sizes..].
Value WindowsOf(const Convolution& conv, Value padded);

// A product with the first `batch` axes of both as its batch.
Value Dot(GraphBuilder& builder, Value a, Value b, int batch,
          std::vector<int64_t> contract_a, std::vector<int64_t> contract_b);

// The weights for each of so many images, or rows of them.
Value ForEach(const Convolution& conv, Shape batch, Value weights);

}  // namespace cleave::internal_windows

#endif  // CLEAVE_ENGINE_CODEGEN_CONVOLUTION_PARTS_H_
