// Convolutions as products of matrices: what the kernel meets at each place is
// written to memory once (im2col), so that the packed contraction runs on it.
//
//   conv(%x, %w, ..)                           // [n, o, h, w]
//   -> %p = convert(pad(%x, 0))
//      %c = convert(transpose(windows(%p, 0))) // [c, a, b, n, h, w]
//      transpose(dot_general(%w, %c, contract_a: [1, 2, 3],
//                            contract_b: [0, 1, 2]))
//
// Images of many places are a batch of the product instead, which needs no
// transpose; kernels that are larger than the result (those of a weight's
// gradient) are rows: [n, h, w, c, a, b].
//
// Windows are not written where tiles that find them in x are faster: the
// product meets the places of a row of an image as its rows, [n, h, w, c, a,
// b], and panels of turned weights, or as its columns, [n, h, c, a, b, w], for
// few rows of weights. Gradients of weights take their terms from x, [c a b, n,
// h, w].

#ifndef CLEAVE_ENGINE_CODEGEN_PRODUCTS_OF_WINDOWS_H_
#define CLEAVE_ENGINE_CODEGEN_PRODUCTS_OF_WINDOWS_H_

#include <cstdint>
#include <vector>

#include "engine/ir/graph.h"
#include "ops/dim.h"

namespace cleave {

// The most memory that the stored windows of one convolution take, in bytes.
inline constexpr int64_t kMaxWindowBytes = int64_t{1} << 28;

// Whether windows along an axis are known to read no place outside of it:
// `count` of `size` places, `dilation` apart, the first at 0 and each `stride`
// behind the last. False where these are not known.
bool StayInside(const Dim& extent, const Dim& count, const Dim& size,
                const Dim& stride, const Dim& dilation);

// The graph with convolutions of floats as products. Windows are stored where
// they are known to take kMaxWindowBytes at most; else the product finds them
// in x. With `rows_of_images` it finds them there, too, row by row of an image
// where that is faster, and term by term where windows are larger than the
// result, that is the gradient of weights: then sums of large images are added
// up. Groups are a batch of the
// product. One output of a group, of windows larger than the result (the
// gradient of depthwise weights), is a sum over windows. Others stay: without
// spatial axes or with groups, of open extents; and groups of which each output
// reads few elements, or is one of few (depthwise): these are taken of a tensor
// that is padded in memory. Other products add in the same order as
// convolutions: the values stay the same; sums add in the order of reduce_sum.
// A graph with composite nodes comes back as it is. O(nodes). An infinite or
// NaN weight turns the zeros around a padded tensor into NaN, which are absent
// from a convolution: FiniteOperands are to be finite.
Graph ProductsOfWindows(const Graph& graph, bool rows_of_images = true);

// The operands that are to be finite: the weights of a product of
// ProductsOfWindows, or of a convolution of what is padded there, which meet
// zeros for what is absent, and the windows that meet zeros of a kernel of
// phases (HasAbsentPlaces).
std::vector<int> FiniteOperands(const Graph& graph, Value node);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_PRODUCTS_OF_WINDOWS_H_
