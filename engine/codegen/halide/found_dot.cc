// Products of windows that are found where they are taken of
// (found_windows.h), in tiles.

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/codegen/found_windows.h"
#include "engine/codegen/halide/element.h"
#include "engine/codegen/halide/lowering.h"
#include "engine/codegen/halide/tile_shapes.h"
#include "engine/codegen/halide/tile_vars.h"

namespace cleave {

using Halide::Expr;
using Halide::RDom;

namespace {

// Channels whose weights for a tile's columns stay in the first cache while the
// tiles of a row of places read them.
constexpr int kChannels = 16;

}  // namespace

// Tiles of a product over several axes, of a right side whose columns lie side
// by side already: windows of rows of images, or columns that were stored so
// for windows as rows. Each tile reads both sides there.
bool Lowering::AddFoundDot(Value v) {
  const Value a = graph_.operands(v)[0];
  const Value b = graph_.operands(v)[1];
  const std::optional<Value> terms = WindowsOfTerms(graph_, a);
  const Attributes& attributes = graph_.attributes(v);
  const auto batch = attributes.GetInts("batch_b");
  const auto contract_a = attributes.GetInts("contract_a");
  const auto contract_b = attributes.GetInts("contract_b");
  const Shape& of_a = graph_.type(a).shape;
  const Shape& of_b = graph_.type(b).shape;
  const auto first = static_cast<int64_t>(batch.size());
  // [batch.., rows, terms..] and [batch.., terms.., columns].
  const auto follow = [](const std::vector<int64_t>& axes, int64_t from) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != from + static_cast<int64_t>(i)) return false;
    }
    return true;
  };
  const auto width = of_b.back().Value();
  const bool of_places = WindowsOfPlaces(graph_, a).has_value();
  if ((!terms.has_value() && !WindowsOfRows(graph_, b).has_value() &&
       !of_places) ||
      plain_schedule_ || on_device_ || !width.has_value() ||
      batch != attributes.GetInts("batch_a") || !follow(batch, 0) ||
      !follow(contract_a, first + 1) || !follow(contract_b, first) ||
      of_a.size() != batch.size() + 1 + contract_a.size() ||
      of_b.size() != batch.size() + contract_b.size() + 1) {
    return false;
  }
  const DType dtype = graph_.type(v).dtype;
  const DType sum = SumType(dtype);
  const Dim& height = of_a[batch.size()];
  const TileRegisters registers(target_, VectorWidth(ByteSize(sum)));
  const int64_t known_height = height.Value().value_or(0);
  const int64_t places =
      terms.has_value()
          ? graph_.attributes(*terms).GetDims("counts").back().Value().value_or(
                INT64_MAX)
          : 1;
  const Value panels = of_places ? PanelsOf(graph_, b).value_or(b) : b;
  const TileShape shape =
      of_places ? ChooseTileOfPlaces(known_height,
                                     *graph_.type(panels).shape.back().Value(),
                                     registers)
                : ChooseFoundTile(known_height, *width, places, registers);
  if (shape.rows == 0) return false;
  const TileVars of(batch.size());
  std::vector<Expr> extents;
  for (size_t i = contract_a.size(); i-- > 0;) {
    extents.push_back(Extent(of_a[contract_a[i]]));
  }
  const RDom domain = Domain(extents, "r");
  Expr above = of.q * shape.rows + of.j;
  if (known_height == 0 || known_height % shape.rows != 0) {
    above = Halide::min(Halide::likely(above), Extent(height) - 1);
  }
  Coordinates of_term;
  for (int i = domain.dimensions(); i-- > 0;) of_term.push_back(domain[i]);
  Coordinates left(of.batches.begin(), of.batches.end());
  left.push_back(above);
  left.insert(left.end(), of_term.begin(), of_term.end());
  Coordinates right(of.batches.begin(), of.batches.end());
  Expr column = of.p * shape.columns + of.i;
  if (panels != b) {
    // Tiles of shorter vectors are parts of a panel.
    const Shape& of_panels = graph_.type(panels).shape;
    const auto tiles =
        static_cast<int>(*of_panels.back().Value()) / shape.columns;
    right.resize(of_panels.size() - contract_b.size() - 2);
    right.push_back(of.p / tiles);
    column = of.p % tiles * shape.columns + of.i;
  }
  right.insert(right.end(), of_term.begin(), of_term.end());
  right.push_back(column);
  Stage tile = TileStage(MakeFunc("tile"), height, shape.rows, shape.columns);
  const auto vars = of.VarsWith({of.i, of.j, of.q, of.p});
  tile.func(vars) = NumberElement(sum, 0);
  tile.func(vars) = AddProductTo(
      dtype, tile.func(vars), ForEach(domain, At(a, left)), At(panels, right));
  tile.reduced = Variables(domain);
  tile.panels_outermost = of_places;
  tile.of_windows = true;
  if (of_places && TakesTermsInSteps(height, shape.rows)) {
    tile.outermost_steps = kChannels;
  }
  stages_.push_back(std::move(tile));
  AddTileResult(v, of);
  return true;
}

}  // namespace cleave
