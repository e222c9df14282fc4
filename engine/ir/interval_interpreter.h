// Evaluation of graphs of primitives over intervals, by the walk of
// engine/ir/interpreter.h: what InterpretReal means, enclosed.
//
//   InterpretInterval(graph, {IntervalTensor::FromTensor(x, 256)}, 256);

#ifndef CLEAVE_ENGINE_IR_INTERVAL_INTERPRETER_H_
#define CLEAVE_ENGINE_IR_INTERVAL_INTERPRETER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/reference/interval.h"

namespace cleave {

// One tensor per output, regions included. Errors of InterpretReal, and
// IsUndecided where a decision rests on intervals that overlap: a comparison,
// an order, an integer, which branch is taken, whether a loop goes on. Elements
// of the results may be undecided, too.
absl::StatusOr<std::vector<IntervalTensor>> InterpretInterval(
    const Graph& graph, absl::Span<const IntervalTensor> inputs, int bits);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_INTERVAL_INTERPRETER_H_
