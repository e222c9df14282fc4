#include "engine/index/lower_index.h"

#include <utility>

#include "engine/index/element_lowering.h"
#include "engine/index/split_indices.h"
#include "ops/status_macros.h"

namespace cleave {

absl::StatusOr<Value> LowerComprehension(const Term& comprehension,
                                         TermLowering& lowering) {
  // Indices of which quotients and remainders are read become two each; the
  // array is reshaped back.
  const SplitTerms split =
      SplitIndices(comprehension.indices, comprehension.children);
  CLEAVE_ASSIGN_OR_RETURN(
      const Value value,
      ElementLowering(lowering).LowerArray(split.elements[0], split.indices));
  Shape shape;
  for (const IndexPtr& index : comprehension.indices) {
    shape.push_back(index->extent);
  }
  return lowering.builder().Add(Primitive::kReshape,
                                {{"shape", StaticValue::Dims(shape)}}, {value});
}

}  // namespace cleave
