// DimVariables and DeterminedDims: the dimension variables that a graph needs,
// and those that the types of its inputs determine: n, but not m, of f32[n,
// n*m]. Internal to transforms/aot.

#ifndef CLEAVE_TRANSFORMS_PARTITION_DETERMINED_DIMS_H_
#define CLEAVE_TRANSFORMS_PARTITION_DETERMINED_DIMS_H_

#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "engine/ir/graph.h"
#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave::aot {

// The variables in the types and attributes of nodes of `graph`, regions
// included. Types and attributes are looked at once each.
class DimVariables {
 public:
  explicit DimVariables(const Graph& graph) : graph_(graph) {}

  void AddNode(Value v);
  const std::set<std::string>& names() const { return names_; }

 private:
  void AddValue(const StaticValue& value);
  void AddType(const TensorType& type);

  const Graph& graph_;
  absl::flat_hash_set<TypeId> types_;
  absl::flat_hash_set<AttributesId> attributes_;
  std::set<std::string> names_;
};

// The variables in the types of the inputs of `graph` numbered below `count`.
std::set<std::string> DimsOfInputs(const Graph& graph, int count);

// The variables of `types` that their extents determine, whatever these are:
// of f32[n, 2*m + n] both, of f32[n, n*m] only n, since n may be 0.
std::set<std::string> DeterminedDims(const std::vector<TensorType>& types);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_PARTITION_DETERMINED_DIMS_H_
