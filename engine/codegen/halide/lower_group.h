// LowerGroup: a group's graph as a Halide pipeline with its schedule. Internal
// to this folder.
//
// Each value is an expression in the coordinates of its element: pointwise
// nodes and movement are inlined into one expression that shares what is
// common; reductions, structured nodes, and expensive values that are read more
// than once are Funcs of their own, computed inside the loops of their readers.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_LOWER_GROUP_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_LOWER_GROUP_H_

#include <string>

#include "Halide.h"
#include "absl/status/statusor.h"
#include "engine/codegen/fusion.h"
#include "engine/ir/graph.h"

namespace cleave {

// The arguments are those of CompileGroup (compile_group.h). Internal where the
// code would round otherwise than the graph.
absl::StatusOr<Halide::Module> LowerGroup(const Graph& graph, GroupKind kind,
                                          const std::string& name,
                                          const Halide::Target& target,
                                          bool plain_schedule = false);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_LOWER_GROUP_H_
