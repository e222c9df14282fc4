// Convolutions as products of matrices: what the kernel meets at each place is
// written to memory once (im2col), so that the packed contraction runs on it.
//
//   conv(%x, %w, ..)                           // [n, o, h, w]
//   -> %p = convert(transpose(windows(%x, 0))) // [n, h, w, c, a, b]
//      transpose(dot_general(%p, %w, contract_a: [3, 4, 5],
//                            contract_b: [1, 2, 3]))

#ifndef CLEAVE_ENGINE_CODEGEN_PRODUCTS_OF_WINDOWS_H_
#define CLEAVE_ENGINE_CODEGEN_PRODUCTS_OF_WINDOWS_H_

#include <cstdint>

#include "engine/ir/graph.h"
#include "ops/dim.h"

namespace cleave {

// The most memory that the windows of one convolution may take, in bytes.
inline constexpr int64_t kMaxWindowBytes = int64_t{1} << 28;

// Whether windows along an axis read no place outside of it: `count` of `size`
// places, `dilation` apart, the first at 0 and each `stride` behind the last.
// False where these are not known.
bool StayInside(const Dim& extent, const Dim& count, const Dim& size,
                const Dim& stride, const Dim& dilation);

// The graph with each convolution of floats as a product: of one group, of
// known extents whose windows take kMaxWindowBytes at most. Others stay, since
// what their windows take is not known, or since each output reads few of them
// (depthwise): these are taken of a tensor that is padded in memory. Sums are
// taken in the same order: the values stay the same. A graph with composite
// nodes comes back as it is. O(nodes). An infinite or NaN weight turns the
// zeros around a padded tensor into NaN, which are absent from a convolution:
// where MultipliesAbsent, the weights are to be finite.
Graph ProductsOfWindows(const Graph& graph);

// Whether the node is a product of ProductsOfWindows, or a convolution of what
// is padded there: operand 1 are the weights, which meet zeros for what is
// absent.
bool MultipliesAbsent(const Graph& graph, Value node);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_PRODUCTS_OF_WINDOWS_H_
