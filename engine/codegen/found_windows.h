// Products of windows that are found where they are taken of, and are not
// stored: rows of images as columns, and the terms of the gradient of weights.
// Internal to engine/codegen; products_of_windows.h has the whole.

#ifndef CLEAVE_ENGINE_CODEGEN_FOUND_WINDOWS_H_
#define CLEAVE_ENGINE_CODEGEN_FOUND_WINDOWS_H_

#include <cstdint>
#include <optional>

#include "engine/codegen/convolution_parts.h"
#include "engine/ir/graph.h"

namespace cleave {

// The windows that `v` is, with the places along their last axis behind all
// other axes: a product meets them where they are taken of.
std::optional<Value> WindowsOfRows(const Graph& graph, Value v);

// The windows that `v` is, with their own axes behind all others, as the rows
// of a product.
std::optional<Value> WindowsOfPlaces(const Graph& graph, Value v);

// The panels of columns, [group, panel, terms.., column], that the right side
// of such a product is: a tile's columns are those of one panel, line by line.
std::optional<Value> PanelsOf(const Graph& graph, Value v);

// The windows that `reshape` is, as the rows of a product that is summed over
// their own axes: they are found where they are taken of, too.
std::optional<Value> WindowsOfTerms(const Graph& graph, Value reshape);

namespace internal_windows {

// The operand of a product that windows are, found where x is, or that they are
// stored before.
enum class WindowsIn : uint8_t { kMemory, kRows, kColumns };

// The one whose tiles, with all that they compute in vain, take the least time:
// outputs fill vectors where places are rows, and places where they are
// columns.
WindowsIn CheapestWindows(const Convolution& conv);

// A product for each row of an image, whose rows are its places, found where x
// is: nothing is stored but x with zeros around it, and the weights, turned, in
// panels that tiles read line by line.
Value ProductOfPlaces(const Convolution& conv);

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
