// The shapes of products' tiles, whose sums stay in registers. Internal to this
// folder.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_TILE_SHAPES_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_TILE_SHAPES_H_

#include <cstdint>

#include "Halide.h"
#include "ops/dim.h"

namespace cleave {

// Rows and columns of the sums that one loop over terms adds to.
struct TileShape {
  int rows;
  int columns;
};

// Whether there are 32 registers of 64 bytes, not 16 shorter ones.
inline bool HasWideRegisters(const Halide::Target& target) {
  return target.has_feature(Halide::Target::AVX512_Skylake);
}

// The registers that tiles are for.
struct TileRegisters {
  TileRegisters(const Halide::Target& target, int lanes_of_sum,
                bool leave_room = false)
      : wide(HasWideRegisters(target)),
        lanes(lanes_of_sum),
        roomy(leave_room) {}

  bool wide;  // HasWideRegisters
  int lanes;  // of a vector of sums
  // Whether tiles leave registers over: for loops that make each factor of both
  // sides.
  bool roomy;
};

// The tile that computes the least in vain for results of these extents; if one
// is open, the first.
TileShape ChooseTile(const Dim& height, const Dim& width,
                     const TileRegisters& registers);

// The tile of a product whose right side is stored in panels of so many
// columns: it divides them.
TileShape ChooseTileOfPanels(const Dim& height, int64_t panel,
                             const TileRegisters& registers);

// The tile of a product of windows that are found where they are: it divides
// the columns, and a few `places` of a window divide its rows. {0, 0} where
// there is none.
TileShape ChooseFoundTile(int64_t height, int64_t width, int64_t places,
                          const TileRegisters& registers);

// The tile whose rows are the places of a row of an image, which seldom are a
// power of two. {0, 0} where there is none.
TileShape ChooseTileOfPlaces(int64_t height, int64_t width,
                             const TileRegisters& registers);

// Whether blocks of that height have so many tiles of `rows` that all of them
// can take some terms before the next ones.
bool TakesTermsInSteps(const Dim& height, int rows);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_TILE_SHAPES_H_
