// CostModel: the costs of saving a value of a joint graph for the backward
// half, and of computing it there again. Partitioners decide by it.
//
// Both are counted in bytes that move between memory and processor, since that
// is what a choice between them trades. Arithmetic is converted at
// `operations_per_byte`, what the machine computes in the time in which it
// moves a byte.
//
//   class        primitives                  computing it again costs
//   -----------  --------------------------  ----------------------------------
//   free         constant, extent, iota      nothing; never saved
//   view         broadcast_in_dim, reshape,  nothing; saved is what it is a
//                transpose                   view of
//   projection   result                      nothing beyond its node
//   fused        pointwise, other movement,  its operations: it joins the
//                windows, gather, random     kernel of what uses it
//   reduction    reduce_*, argmax, argmin    its operations, operands read and
//                                            results written
//   contraction  dot_general, conv           the same where it is cheap: up to
//                                            `cheap_contraction` operations for
//                                            a byte of operands and results;
//                                            else it is not computed again
//   heavy        linear_scan, sort, scatter, is not computed again
//                cumulative_*, windows_add,
//                scan, cond, while
//   never        nonzero                     cannot be: its size is an extent
//
// A call of a composite op, and a loop or branch, has the last class in this
// order that occurs in its body, and all the operations of it but those of a
// side of a selection that a kernel seldom computes (rare_sides.h). Saving a
// value costs its bytes, read in the backward half; and written, if it is not
// in memory anyway. See min_cut.h for how the costs are used.

#ifndef CLEAVE_TRANSFORMS_PARTITION_RECOMPUTE_COST_H_
#define CLEAVE_TRANSFORMS_PARTITION_RECOMPUTE_COST_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/ir/bind.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave::aot {

enum class RecomputeClass : uint8_t {
  kFree,
  kView,
  kProjection,
  kFused,
  kReduction,
  kContraction,
  kHeavy,
  kNever,
};

// The class of a primitive by itself. Loops and branches: kHeavy.
RecomputeClass RecomputeClassOf(Primitive primitive);

struct CostOptions {
  // Extents that are taken for variables; others are taken for `extent_hint`.
  DimValues extents;
  int64_t extent_hint = 4096;
  // Operations in the time of a byte.
  double operations_per_byte = 16;
  // Up to so many operations per byte of its operands and results a contraction
  // is computed again: a product with a vector, or of thin matrices.
  double cheap_contraction = 4;
};

struct NodeCost {
  RecomputeClass kind = RecomputeClass::kFree;
  double operations = 0;
  // Bytes that move if the node is computed in a kernel of its own: operands
  // and results.
  double traffic = 0;
  // Whether it is one that may be computed again where nothing else is said.
  bool cheap = true;
};

// Looks into each call once. Not thread-safe. The rule set must outlive it.
class CostModel {
 public:
  explicit CostModel(const RuleSet& rules, const CostOptions& options = {})
      : rules_(rules), options_(options) {}

  const CostOptions& options() const { return options_; }
  // Elements and bytes of a tensor of the type, at the extents of the options;
  // at least 0. A type with a negative extent there has none.
  double Elements(const TensorType& type) const;
  double Bytes(const TensorType& type) const;
  // The bytes of all the results of a node.
  double Bytes(const Graph& graph, Value node);
  // Errors of the bodies of the rules.
  absl::StatusOr<NodeCost> Of(const Graph& graph, Value node);
  // The operations of all nodes.
  absl::StatusOr<double> Operations(const Graph& graph);
  // Operations and traffic of computing a node again, in bytes.
  double InBytes(const NodeCost& cost) const;

 private:
  double Extent(const Dim& dim) const;
  absl::StatusOr<NodeCost> OfCall(const Graph& graph, Value node);
  absl::StatusOr<NodeCost> OfControl(const Graph& graph, Value node);
  // The sum and worst of the nodes of a body.
  absl::StatusOr<NodeCost> OfBody(const Graph& body);
  double PrimitiveOperations(const Graph& graph, Value node) const;

  const RuleSet& rules_;
  const CostOptions options_;
  absl::flat_hash_map<Signature, NodeCost> calls_;
  absl::flat_hash_map<TypeId, double> bytes_;
};

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_PARTITION_RECOMPUTE_COST_H_
