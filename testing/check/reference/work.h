// How much the evaluation of a graph costs: limits are counts, so that verdicts
// do not depend on the load of the machine.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_WORK_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_WORK_H_

#include "engine/ir/graph.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

// The elements that the nodes of `graph` read or compute, those of functions
// that the reference has no fast way for many times; extents that are not known
// count 1.
double WorkOf(const Graph& graph);

// The work of body and spec together.
double WorkOf(const CallGraphs& graphs);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_WORK_H_
