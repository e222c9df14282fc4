// IndexChecks: the conditions that the indices of a gather in mode "error" must
// meet before a kernel reads by them, and the divisors of integers before it
// divides by them. Kernels clamp indices, divide by 1 in place of 0, and the
// host checks both.
//
// A check names elements that are stored (a value that is no movement) or known
// from extents, and covers each index that the gather reads and no other: the
// interpreter and the kernel fail on the same inputs. Indices that movement
// picks from a larger array, a slice of it say, have no check. Nor do divisors
// that are no 0 whatever the inputs are: they need none.

#ifndef CLEAVE_ENGINE_CODEGEN_INDEX_CHECK_H_
#define CLEAVE_ENGINE_CODEGEN_INDEX_CHECK_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "ops/dim.h"
#include "ops/tensor_type.h"

namespace cleave {

// Indices along one axis of what is gathered from, or divisors.
struct IndexCheck {
  // Elements component, component + components, .. of `base`, i64 but for
  // divisors, in row-major order; none is valid where `base` is not: then the
  // indices are those from `first` on, `count` of them.
  Value base;
  int64_t component = 0;
  int64_t components = 1;
  Dim first;
  Dim count;
  // An index of `base` that is the first stands for the second.
  int64_t replaced = 0;
  int64_t replacement = 0;
  // Nothing is read by them where one of these extents is 0.
  Shape repeats;
  // Each index must be in [0, extent).
  Dim extent;
  // The size of a divisor, which must not be 0 instead; 0 for indices.
  int divisor_bytes = 0;
};

// Whether the node divides integers: the primitives that refuse 0.
bool DividesIntegers(const Graph& graph, Value node);

// Whether no element of v is 0: a constant, select(y == 0, 1, y), max(y, 1).
bool IsNeverZero(const Graph& graph, Value v);

// The checks of a gather in mode "error", or of a division of integers; they
// need to hold only if its result has an element. Unimplemented with the reason
// where its indices, or divisors, cannot be told apart from others. O(the
// movement that they come through).
absl::StatusOr<std::vector<IndexCheck>> IndexChecks(const Graph& graph,
                                                    Value node);

// The error of a check that fails: that of the reference kernel.
absl::Status IndexError(const Graph& graph, Value node);

// The nodes with checks that computing `nodes` evaluates: among them or in the
// movement that they read through.
std::vector<Value> CheckedNodes(const Graph& graph,
                                const std::vector<Value>& nodes);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_INDEX_CHECK_H_
