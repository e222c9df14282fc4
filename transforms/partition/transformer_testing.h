// Stacked transformer blocks (tools/examples/transformer_block.rules), for
// tests and benchmarks of partitioners.

#ifndef CLEAVE_TRANSFORMS_PARTITION_TRANSFORMER_TESTING_H_
#define CLEAVE_TRANSFORMS_PARTITION_TRANSFORMER_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "ops/dtype.h"

namespace cleave::aot {

struct TransformerSizes {
  int layers = 12;
  int64_t batch = 8;
  int64_t time = 128;
  int64_t width = 128;
  int64_t heads = 4;
  int64_t mlp = 512;  // four times the width
};

// The shipped ops and the block, its floats of this dtype.
std::shared_ptr<const RuleSet> LoadTransformer(
    const std::shared_ptr<Context>& context, DType dtype = DType::kF32);

// The blocks one after the other: inputs are the 16 weights of each, named
// `wq.3`, then x; the output is y.
absl::StatusOr<Graph> Transformer(const RuleSet& rules,
                                  const TransformerSizes& sizes = {});

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_PARTITION_TRANSFORMER_TESTING_H_
