// Index notation to primitives. Bodies never run as loops in an interpreter;
// these lowerings are guaranteed, each pinned by a test:
//   - a product summed over shared indices is a dot_general (grouped where an
//     index is `h // g`: reshaped to groups, the group a batch axis);
//   - a read at p * s + k * d - q under a reduction over k is `windows` (a
//     product of it with a read at k, summed, is `conv`);
//   - a read at computed indices is a gather;
//   - a reduction under a condition `f[j] == b`, b an outer index, is a
//   scatter;
//   - a sum, product, max or min over j where `j <= i` is a scan (cumulative).
// What matches none of them is a broadcast over all of its indices, masked by
// the condition, and a reduction.

#ifndef CLEAVE_ENGINE_REWRITE_LOWER_INDEX_H_
#define CLEAVE_ENGINE_REWRITE_LOWER_INDEX_H_

#include <functional>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rewrite/term.h"

namespace cleave {

// What lowering an element needs of its surroundings.
class TermLowering {
 public:
  virtual ~TermLowering() = default;
  virtual GraphBuilder& builder() = 0;
  // An array term as a value of its shape and dtype; memoised.
  virtual absl::StatusOr<Value> Lower(const TermPtr& array) = 0;
  // A composite op applied to arrays of one shape, elementwise.
  virtual absl::StatusOr<Value> CallElementwise(
      const Term& call, absl::Span<const Value> arguments) = 0;
};

// The array of `comprehension` (kComprehension): its element at every value of
// its indices. Static reasoning about ranges removes `fill` where every read is
// provably in range, and turns affine reads into slices, pads and windows.
absl::StatusOr<Value> LowerComprehension(const Term& comprehension,
                                         TermLowering& lowering);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_REWRITE_LOWER_INDEX_H_
