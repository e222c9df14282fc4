// A loop with a bound as a scan: what reverse mode runs backwards.
//
//   while(x = a) p(x) max N { body }
//
// becomes a scan of N steps that carries the same values; each step is
// `cond(p) { body } else { as they are }`. A step after the end of the loop
// computes nothing of the body, so that its derivative is that of the identity,
// and not NaN. It costs N steps however soon the loop ends.

#ifndef CLEAVE_TRANSFORMS_VJP_BOUNDED_WHILE_H_
#define CLEAVE_TRANSFORMS_VJP_BOUNDED_WHILE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"

namespace cleave {

// Adds the scan to `builder` for a `while` with these attributes and operands,
// and returns its results, the carries. As in the loop, evaluation fails with
// OutOfRange where the condition still holds after N steps: a loop of no steps
// behind the scan says so, which reads what the condition reads, and none of
// the results is tied to it but by a select of one bool. A joint loop (from
// jvp) becomes a joint scan; its tangents meet nothing but the scan, its cond
// and that select.
// Unimplemented("impossible: unbounded loop in reverse") without `max`.
absl::StatusOr<std::vector<Value>> BoundedWhileAsScan(
    GraphBuilder& builder, const Attributes& attributes,
    absl::Span<const Value> operands);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_BOUNDED_WHILE_H_
