// SubstituteDims: a graph whose dimension variables are replaced, so that its
// extents are renamed or made concrete.
//
//   absl::StatusOr<Graph> fixed = SubstituteDims(graph, {{"n", Dim(128)}});

#ifndef CLEAVE_ENGINE_IR_SUBSTITUTE_H_
#define CLEAVE_ENGINE_IR_SUBSTITUTE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "ops/dim.h"
#include "ops/infer_type.h"
#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave {

using DimSubstitution = std::map<std::string, Dim>;

// Each replaces the variables that are named, in types, attributes, guards and
// regions; others stay. Beyond the limits of Dims it is an error; a Dim of a
// guard is invalid.
absl::StatusOr<Attributes> SubstituteDims(const Attributes& attributes,
                                          const DimSubstitution& values);
absl::StatusOr<std::vector<TensorType>> SubstituteDims(
    const std::vector<TensorType>& types, const DimSubstitution& values);
ShapeGuard SubstituteDims(const ShapeGuard& guard,
                          const DimSubstitution& values);
// Nodes that become equal are one. O(nodes).
absl::StatusOr<Graph> SubstituteDims(const Graph& graph,
                                     const DimSubstitution& values);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_SUBSTITUTE_H_
