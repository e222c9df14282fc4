// Index notation to primitives. Bodies never run as loops in an interpreter;
// these lowerings are guaranteed, each pinned by a test:
//   - a product summed over shared indices is a dot_general (grouped where an
//     index is `h // g`: reshaped to groups, the group a batch axis);
//   - a read at p * s + k * d - q under a reduction over k is `windows` (a
//     product of it with a read at k, summed, is `conv`);
//   - a read at computed indices is a gather;
//   - a reduction under a condition `f[j] == b`, b an outer index, is a
//     scatter;
//   - a sum, product, max or min over j where `j <= i` is a scan (cumulative).
// An expression that matches none of them is broadcast over all of its indices,
// masked by the condition, and reduced.
//
//   y[b, i] = sum[j if j <= i](x[b, j])      linear_scan along j
//   y[p] = max[k](x[2 * p + k - 1] ?? -inf)  windows, reduce_max
//   y[i, c] = w[idx[i], c]                   gather
//
// Reads at an index are transposes; at constants, offsets and strides slices,
// padded where they have a fill; at `i * n + j` and `i // n`, `i % n` (where n
// divides the extent) reshapes, and so are windows that tile a whole axis.
//
// Ranges. A read that is proved to be in range needs neither fill nor check.
// One without fill that is not: OutOfRange where it provably fails, a guard of
// the graph where extents decide it, else a gather that fails (under a
// condition: only where the condition holds). An element that does not depend
// on an index is evaluated once. Its errors are errors even if that index has
// no values. argmax of nothing is an error in the same ways.
//
// Floats are strict: no factor is pulled out of a sum, none is reassociated;
// only a contraction's declared order replaces that of a product and a sum.

#ifndef CLEAVE_ENGINE_INDEX_LOWER_INDEX_H_
#define CLEAVE_ENGINE_INDEX_LOWER_INDEX_H_

#include <functional>

#include "absl/status/statusor.h"
#include "engine/index/term.h"
#include "engine/ir/graph.h"

namespace cleave {

// The surroundings of an element that is lowered: the builder, and the values
// of array terms and calls.
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
// its indices. OutOfRange for a read or argmax that provably fails;
// InvalidArgument where a primitive does not take the dtype, or a number is
// none of its dtype.
absl::StatusOr<Value> LowerComprehension(const Term& comprehension,
                                         TermLowering& lowering);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_INDEX_LOWER_INDEX_H_
