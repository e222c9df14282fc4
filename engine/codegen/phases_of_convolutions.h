// Convolutions of what is spread, without the zeros: of d zeros in a row and
// the element behind them each output meets one, by its place modulo d. The
// outputs of one phase are a dense convolution with each d-th place of the
// kernel, and all phases one convolution of d times as many channels.
//
//   conv(%x, %w, lhs_dilation: [2], ..)        // [n, o, 2 u]
//   -> %p = reshape(reverse(reshape(%w)))      // [2 o, c, k / 2]
//      reshape(transpose(reshape(conv(%x, %p, lhs_dilation: [1], ..))))
//
// Source: Shi et al., Is the deconvolution layer the same as a convolutional
// layer?, 2016.

#ifndef CLEAVE_ENGINE_CODEGEN_PHASES_OF_CONVOLUTIONS_H_
#define CLEAVE_ENGINE_CODEGEN_PHASES_OF_CONVOLUTIONS_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with convolutions of floats that are spread over known extents, of
// one group and without strides, in phases. Sums keep their order. Kernels that
// d does not divide get zeros, for which x is to be finite (HasAbsentPlaces). A
// graph with composite nodes comes back as it is. O(nodes).
Graph PhasesOfConvolutions(const Graph& graph);

// Whether a value is the kernel of phases, moved or stored, with such zeros.
bool HasAbsentPlaces(const Graph& graph, Value kernel);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_PHASES_OF_CONVOLUTIONS_H_
