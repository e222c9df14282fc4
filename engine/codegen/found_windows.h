// Products of windows that are found where they are taken of, and are not
// stored: rows of images as columns, and the terms of the gradient of weights.
// Internal to engine/codegen; products_of_windows.h has the whole.

#ifndef CLEAVE_ENGINE_CODEGEN_FOUND_WINDOWS_H_
#define CLEAVE_ENGINE_CODEGEN_FOUND_WINDOWS_H_

#include <optional>

#include "engine/codegen/convolution_parts.h"
#include "engine/ir/graph.h"

namespace cleave {

// The windows that `v` is, with the places along their last axis behind all
// other axes: a product meets them where they are taken of.
std::optional<Value> WindowsOfRows(const Graph& graph, Value v);

// The windows that `reshape` is, as the rows of a product that is summed over
// their own axes: they are found where they are taken of, too.
std::optional<Value> WindowsOfTerms(const Graph& graph, Value reshape);

namespace internal_windows {

// Whether tiles of rows of images are computed faster than the windows are
// stored, and packed, for few rows of weights: columns beyond the last place
// are computed in vain.
bool MeetsRowsOfImages(const Convolution& conv);

// A product for each row of an image, whose columns are its places, found
// where x is: nothing is stored but x with zeros around it. The zeros behind
// its last axis let tiles go on beyond the last place.
Value ProductOfRowsOfImages(const Convolution& conv);

// Whether the gradient of weights is a product of windows that are found where
// x is: its rows are channels by the few places of a kernel, and its columns
// the cotangent's channels.
bool FindsTerms(const Convolution& conv);

// The product of that, over all images where their columns stay in the second
// cache; else of each image, or of each place along its first axes, and the sum
// of these. The columns are stored side by side, with zeros that fill the last
// vector.
Value SumOfProducts(const Convolution& conv, Value windows);

}  // namespace internal_windows
}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_FOUND_WINDOWS_H_
