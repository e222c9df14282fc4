// Scatters whose places no input decides, as gathers of what each place gets:
// the gradients of resampling, rolling and the like. They share kernels with
// what makes the updates, and run on all threads.
//
//   scatter(0, %i, %u, axes: [0], mode: "add")    // i: 0, 1, 1, 2
//   -> u[first] + select(second < 4, u[second], 0)
//      // first: 0, 1, 3; second: 4, 2, 4, where 4 is none
//
// The two are tables (index_tables.h): the least number of an update of a
// place, and the least behind that.

#ifndef CLEAVE_ENGINE_CODEGEN_SCATTERS_AT_KNOWN_PLACES_H_
#define CLEAVE_ENGINE_CODEGEN_SCATTERS_AT_KNOWN_PLACES_H_

#include "engine/ir/graph.h"

namespace cleave {

// The graph with each scatter that adds to zeros along one axis in that form,
// where the extents of its indices are numbers, each index is in range and few
// updates have one place: these are added in the same order. O(nodes), and what
// it takes to compute the indices.
Graph ScattersAtKnownPlaces(const Graph& graph);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_SCATTERS_AT_KNOWN_PLACES_H_
