// PrepareFusion: the graph that fusion is planned on, by the passes whose
// headers are below.

#ifndef CLEAVE_ENGINE_CODEGEN_PREPARE_FUSION_H_
#define CLEAVE_ENGINE_CODEGEN_PREPARE_FUSION_H_

#include "engine/codegen/choices_as_selections.h"
#include "engine/codegen/flatten_products.h"
#include "engine/codegen/flatten_scatters.h"
#include "engine/codegen/fusion.h"
#include "engine/codegen/masked_products.h"
#include "engine/codegen/multiples_of_sums.h"
#include "engine/codegen/phases_of_convolutions.h"
#include "engine/codegen/products_of_windows.h"
#include "engine/codegen/reductions_across_rows.h"
#include "engine/codegen/reductions_of_lines.h"
#include "engine/codegen/rounds_of_batches.h"
#include "engine/codegen/scatters_at_known_places.h"
#include "engine/codegen/scatters_of_last.h"
#include "engine/codegen/scatters_of_padding.h"
#include "engine/codegen/scatters_of_rows.h"
#include "engine/codegen/sink_gathers.h"
#include "engine/codegen/sums_of_loops.h"
#include "engine/codegen/sums_of_products.h"
#include "engine/codegen/transpose_loop_weights.h"
#include "engine/codegen/transposed_products.h"

namespace cleave {

// The same values, computed by nodes that share more kernels.
inline Graph PrepareFusion(const Graph& graph, const FusionOptions& fusion,
                           const ExtractOptions& extract) {
  Graph prepared = fusion.branches ? SumsOfLoops(graph)
                                   : ChoicesAsSelections(SumsOfLoops(graph));
  prepared = MultiplesOfSums(prepared);
  prepared = ScattersOfPadding(prepared);
  prepared = ScattersOfRows(prepared);
  if (fusion.runtime_code && fusion.runtime_copies) {
    prepared = ScattersOfLast(prepared);
  }
  prepared = TransposedProducts(prepared);
  prepared = PhasesOfConvolutions(prepared);
  prepared =
      ProductsOfWindows(prepared, /*rows_of_images=*/fusion.runtime_copies);
  prepared = SumsOfProducts(prepared);
  if (fusion.tables && !extract.generalize_extents) {
    prepared = ScattersAtKnownPlaces(prepared);
  }
  prepared = FlattenScatters(prepared);
  prepared = FlattenProducts(prepared);
  prepared = TransposeLoopWeights(prepared);
  if (fusion.runtime_code && fusion.runtime_copies) {
    prepared = RoundsOfBatches(prepared);
  }
  prepared = SinkGathers(prepared);
  prepared = ReductionsAcrossRows(prepared);
  prepared = ReductionsOfLines(prepared, extract.generalize_extents);
  return StoreRuntimeOperands(MarkZeros(prepared), fusion);
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_PREPARE_FUSION_H_
