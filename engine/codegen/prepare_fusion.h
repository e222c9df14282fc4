// PrepareFusion: the graph that fusion is planned on, by the passes of
// scatters_of_rows.h, flatten_scatters.h, phases_of_convolutions.h,
// products_of_windows.h, sums_of_products.h, flatten_products.h,
// transpose_loop_weights.h, sink_gathers.h and reductions_of_lines.h.

#ifndef CLEAVE_ENGINE_CODEGEN_PREPARE_FUSION_H_
#define CLEAVE_ENGINE_CODEGEN_PREPARE_FUSION_H_

#include "engine/codegen/flatten_products.h"
#include "engine/codegen/flatten_scatters.h"
#include "engine/codegen/fusion.h"
#include "engine/codegen/phases_of_convolutions.h"
#include "engine/codegen/products_of_windows.h"
#include "engine/codegen/reductions_of_lines.h"
#include "engine/codegen/scatters_of_rows.h"
#include "engine/codegen/sink_gathers.h"
#include "engine/codegen/sums_of_products.h"
#include "engine/codegen/transpose_loop_weights.h"

namespace cleave {

// The same values, computed by nodes that share more kernels.
inline Graph PrepareFusion(const Graph& graph, const FusionOptions& fusion,
                           const ExtractOptions& extract) {
  const Graph prepared = ReductionsOfLines(
      SinkGathers(
          TransposeLoopWeights(FlattenProducts(SumsOfProducts(ProductsOfWindows(
              PhasesOfConvolutions(FlattenScatters(ScattersOfRows(graph)))))))),
      extract.generalize_extents);
  return StoreRuntimeOperands(prepared, fusion);
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_PREPARE_FUSION_H_
