#include "engine/codegen/halide/tile_shapes.h"

#include <array>
#include <cstddef>
#include <vector>

#include "engine/codegen/up_to_multiple.h"

namespace cleave {
namespace {

using Shapes = std::vector<TileShape>;

// Columns of shapes are in vectors, in this file.
//
// LLVM keeps a factor of each row until it met all vectors of the right side,
// and one of these. With 32 registers, factors that do not fit come from memory
// with each multiplication; with sixteen, sums would pass through memory, which
// takes twice the time: tiles of 4 x 3 vectors took 1.9 times as long as those
// of 3 x 4.
constexpr int kNarrowRegisters = 16;

constexpr bool Fits(int rows, int vectors) {
  const int factors = vectors > 1 ? rows : 1;
  return rows * vectors + factors + 1 <= kNarrowRegisters;
}

template <size_t n>
constexpr bool AllFit(const std::array<TileShape, n>& shapes) {
  for (const TileShape& shape : shapes) {
    if (!Fits(shape.rows, shape.columns)) return false;
  }
  return true;
}

constexpr std::array<TileShape, 4> kNarrow = {{{3, 4}, {5, 2}, {2, 4}, {1, 6}}};
constexpr std::array<TileShape, 3> kNarrowOfPanels = {{{3, 4}, {5, 2}, {2, 4}}};
constexpr std::array<TileShape, 5> kNarrowFound = {
    {{3, 4}, {5, 2}, {4, 2}, {10, 1}, {4, 1}}};

// These leave registers over, where a factor is made of both sides (a
// difference, say) and takes a register itself: 3 x 4 took 1.6 times as long.
constexpr std::array<TileShape, 3> kNarrowRoomy = {{{2, 4}, {4, 2}, {1, 6}}};
static_assert(AllFit(kNarrow) && AllFit(kNarrowOfPanels) &&
              AllFit(kNarrowFound) && AllFit(kNarrowRoomy));

template <size_t n>
Shapes ListOf(const std::array<TileShape, n>& shapes) {
  return {shapes.begin(), shapes.end()};
}

// The time of a multiplication in such tiles, in percent of that in tall ones.
// With few rows each takes a vector of the panel from the second cache, as seen
// with AVX-512 on Zen 5 and without on Zen 3, unless each does more with it;
// with one vector each loads a factor, for which two loads a cycle are not
// enough.
int PercentOfTime(const TileShape& shape, const TileRegisters& registers) {
  if (shape.rows == 1) return 250;
  if (!registers.wide && registers.roomy) return 100;
  return shape.rows < 3 || (shape.columns == 1 && !registers.wide) ? 130 : 100;
}

// Within 2 % the first is better: it reads less for each product.
bool IsLess(int64_t work, int64_t least) { return work < least - least / 50; }

// The one of these that computes the least in vain, and divides the width.
TileShape Cheapest(const Shapes& shapes, int64_t height, int64_t width,
                   int64_t places, const TileRegisters& registers) {
  TileShape best{0, 0};
  int64_t least = INT64_MAX;
  for (const TileShape& one : shapes) {
    const auto rows = static_cast<int>(one.rows / places * places);
    if (rows == 0 || width % (one.columns * registers.lanes) != 0) continue;
    const int64_t work = UpToMultiple(height, rows) *
                         PercentOfTime({rows, one.columns}, registers);
    if (!IsLess(work, least)) continue;
    least = work;
    best = {rows, one.columns * registers.lanes};
  }
  return best;
}

}  // namespace

TileShape ChooseTile(const Dim& height, const Dim& width,
                     const TileRegisters& registers) {
  const Shapes shapes =
      registers.wide ? Shapes{{8, 3}, {6, 4}, {12, 2}, {4, 6}, {2, 8}, {1, 8}}
      : registers.roomy ? ListOf(kNarrowRoomy)
                        : ListOf(kNarrow);
  // Whole panels are even tasks, too.
  const auto work = [&](const TileShape& shape) {
    return UpToMultiple(height.Value().value_or(0), shape.rows) *
           UpToMultiple(width.Value().value_or(0),
                        shape.columns * registers.lanes) *
           PercentOfTime(shape, registers);
  };
  TileShape best = shapes[0];
  for (const TileShape& shape : shapes) {
    if (IsLess(work(shape), work(best))) best = shape;
  }
  return {best.rows, best.columns * registers.lanes};
}

TileShape ChooseTileOfPanels(const Dim& height, int64_t panel,
                             const TileRegisters& registers) {
  const Shapes shapes = registers.wide ? Shapes{{6, 4}, {12, 2}, {4, 4}}
                                       : ListOf(kNarrowOfPanels);
  return Cheapest(shapes, height.Value().value_or(0), panel, 1, registers);
}

TileShape ChooseFoundTile(int64_t height, int64_t width, int64_t places,
                          const TileRegisters& registers) {
  const Shapes shapes = registers.wide
                            ? Shapes{{6, 4},  {8, 3}, {12, 2}, {8, 2},
                                     {20, 1}, {4, 4}, {4, 2},  {4, 1}}
                            : ListOf(kNarrowFound);
  return Cheapest(shapes, height, width, places, registers);
}

TileShape ChooseTileOfPlaces(int64_t height, int64_t width,
                             const TileRegisters& registers) {
  struct Range {
    int vectors, most, fewest;
  };
  static_assert(Fits(3, 4) && Fits(5, 2) && Fits(12, 1));
  const std::vector<Range> ranges =
      registers.wide ? std::vector<Range>{{2, 14, 5}, {3, 9, 4}, {1, 28, 8}}
                     : std::vector<Range>{{4, 3, 2}, {2, 5, 3}, {1, 12, 4}};
  Shapes shapes;
  for (const Range& range : ranges) {
    for (int rows = range.most; rows >= range.fewest; --rows) {
      shapes.push_back({rows, range.vectors});
    }
  }
  return Cheapest(shapes, height, width, 1, registers);
}

bool TakesTermsInSteps(const Dim& height, int rows) {
  // LLVM lays out the loop over fewer, and keeps all of their sums at once.
  constexpr int kFewestTiles = 4;
  return height.Value().value_or(0) > (kFewestTiles - 1) * rows;
}

}  // namespace cleave
