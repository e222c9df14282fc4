// MatrixProduct: a contraction as a library of matrix products takes it, such
// as cuBLAS: two operands that are found by strides.
//
//   %t: f32[k, n] = transpose(%w, axes: [1, 0])        // %w: [n, k]
//   %y: f32[m, n] = dot_general(%x, %t, contract_a: [1], contract_b: [0], ...)
//
//   FindMatrixProduct(graph)->terms             // k
//   FindMatrixProduct(graph)->right.of_columns  // k: the stride of n in %w

#ifndef CLEAVE_ENGINE_CODEGEN_MATRIX_PRODUCT_H_
#define CLEAVE_ENGINE_CODEGEN_MATRIX_PRODUCT_H_

#include <optional>
#include <vector>

#include "engine/ir/graph.h"
#include "ops/dim.h"
#include "ops/dtype.h"

namespace cleave {

// The result is [batch.., rows, columns] in row-major order:
// result[b, i, j] = sum over t < terms of left[b, i, t] * right[b, t, j].
struct MatrixProduct {
  // Where the elements of one side lie in an input of the graph. Strides are
  // counted in elements.
  struct Side {
    int input = 0;  // its number
    Dim offset;     // of the first element
    std::vector<Dim> of_batch;
    Dim of_own;  // of the rows of the left side, the columns of the right one
    Dim of_terms;
  };
  DType dtype = DType::kF32;  // of both sides and the result
  std::vector<Dim> batch;     // extents, the outermost first, as few as may be
  Dim rows, columns, terms;
  Side left, right;
};

// The product that a group's graph is: one dot_general of floats, whose
// operands are inputs, or transposes, repetitions, slices and reshapes of them;
// the result may be reshaped. Nullopt for another graph. O(nodes * rank).
std::optional<MatrixProduct> FindMatrixProduct(const Graph& graph);

// The extents from which on such a library is faster than a kernel of ours:
// below that, the kernel of one product has less than one tile to compute.
inline constexpr int64_t kLeastProductExtent = 16;

// Whether the node is a dot_general of which no extent is known to be smaller:
// one that is better left to a library, where the device has one.
bool IsLargeProduct(const Graph& graph, Value node);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_MATRIX_PRODUCT_H_
