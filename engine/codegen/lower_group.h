// LowerGroup: a group's graph as a Halide pipeline with its schedule. Internal
// to engine/codegen.
//
// Each value is an expression in the coordinates of its element: pointwise
// nodes and movement are inlined into one expression that shares what is
// common; reductions, structured nodes, and expensive values that are read more
// than once are Funcs of their own, computed inside the loops of their readers.

#ifndef CLEAVE_ENGINE_CODEGEN_LOWER_GROUP_H_
#define CLEAVE_ENGINE_CODEGEN_LOWER_GROUP_H_

#include <string>

#include "Halide.h"
#include "engine/codegen/compile_group.h"

namespace cleave {

// As CompileGroup.
Halide::Module LowerGroup(const Graph& graph, GroupKind kind,
                          const std::string& name, const Halide::Target& target,
                          const ScheduleOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_LOWER_GROUP_H_
