// The tiles of products, as tiled_dot.cc and found_dot.cc make them. Internal
// to this folder.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_TILE_VARS_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_TILE_VARS_H_

#include <vector>

#include "Halide.h"
#include "absl/strings/str_cat.h"
#include "engine/codegen/halide/lowering.h"
#include "ops/dim.h"

namespace cleave {

// The variables of panels and tiles: column c of panel p is at place i of its
// tiles, row j of tile q is row q rows + j; `k` is what is summed over.
struct TileVars {
  explicit TileVars(size_t batch) {
    for (size_t d = 0; d < batch; ++d) {
      batches.emplace_back(absl::StrCat("a", d));
    }
  }
  std::vector<Halide::Expr> With(std::vector<Halide::Expr> indices) const {
    indices.insert(indices.end(), batches.rbegin(), batches.rend());
    return indices;
  }
  std::vector<Halide::Var> VarsWith(std::vector<Halide::Var> vars) const {
    vars.insert(vars.end(), batches.rbegin(), batches.rend());
    return vars;
  }

  std::vector<Halide::Var> batches;
  Halide::Var c{"c"}, k{"k"}, p{"p"}, i{"i"}, j{"j"}, q{"q"}, row{"row"};
};

// Tiles of so many rows and columns, for results of that height.
Stage TileStage(Halide::Func func, const Dim& height, int rows, int columns);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_TILE_VARS_H_
