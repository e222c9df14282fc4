// AotOptions: how a function is differentiated and compiled ahead of time. The
// names are those of functorch's `aot_function`.

#ifndef CLEAVE_TRANSFORMS_AOT_AOT_OPTIONS_H_
#define CLEAVE_TRANSFORMS_AOT_AOT_OPTIONS_H_

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "ops/tensor.h"
#include "transforms/aot/decompositions.h"
#include "transforms/aot/graph_compiler.h"
#include "transforms/partition/partition.h"

namespace cleave::aot {

// Where a partition has residuals rest between the halves (SavePolicy's
// kOffload): `store` takes one after the forward, `load` gives it back for the
// backward, any number of times.
struct OffloadHook {
  std::function<absl::StatusOr<std::shared_ptr<const void>>(const Tensor&)>
      store;
  std::function<absl::StatusOr<Tensor>(const std::shared_ptr<const void>&)>
      load;
};

struct AotOptions {
  // For the backward graph, and for the graph of calls that need no gradients.
  // Null: the forward compiler.
  GraphCompiler bw_compiler;
  GraphCompiler inference_compiler;
  PartitionFunction partition_fn = DefaultPartition;
  OffloadHook offload;
  // Ops that are decomposed before a compiler sees the graphs. All other
  // composite calls stay calls.
  Decompositions decompositions;
  // Whether compilers see primitives alone, and calls of what `decompositions`
  // preserves, as ops with host kernels.
  bool expand = false;
  // Leading tensors (of the flattened arguments) that are parameters or
  // buffers: they live on from call to call, so partitioners save them for
  // nothing.
  int num_params_buffers = 0;
  // In inference: inputs that are written to are written within the graph,
  // which takes their storages and gives them back, instead of after it.
  bool keep_inference_input_mutations = false;
  // Extents other than 1 are traced as symbols: one compilation serves all
  // calls that its guards admit.
  bool dynamic = false;
  // Traces that are kept, with their compiled graphs: the most recently used
  // ones. A call that none of them serves is traced and compiled, and the one
  // that was not used for longest goes. At least 1.
  int64_t max_specializations = 128;
  // Each phase's graph, as text, and time are kept, to be read and replayed: of
  // the last `max_specializations` traces. About 500 bytes for each op and
  // trace.
  bool enable_log = false;
  // A function that writes to a tensor is refused: nothing is rewritten.
  bool disable_functionalization = false;
  // The option of reverse mode TransformOptions::recompute_loops.
  bool recompute_loops = false;
};

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_AOT_OPTIONS_H_
