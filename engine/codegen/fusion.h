// Which nodes of a primitive graph share a kernel.
//
// A group computes its nodes in one pass over one space of indices: a chain of
// pointwise nodes; reductions of one shape over the same axes, with the
// pointwise nodes before, between and behind them, and with the reductions of
// their results to scalars; a contraction with the pointwise nodes behind it.
// Movement (broadcasting, transposes, slices, ...) is no work of its own: it is
// an index map in whatever group reads it. A node without vector code is a
// group of its own, run by its reference kernel; so is the call of an op that
// the host computes. Index arithmetic that no input decides is a table, which
// is computed once (index_tables.h).
//
//   FusionPlan plan = PlanFusion(graph);
//   for (const FusionGroup& group : plan.groups) {
//     Graph kernel = ExtractGroup(graph, group).graph;
//   }
//
// The cost model (join_groups.cc, repeat_outer_values.cc): a value is computed
// again in another group rather than stored only where that takes a few cheap
// operations per element; a group is never merged where that would make the
// groups depend on each other in a circle.

#ifndef CLEAVE_ENGINE_CODEGEN_FUSION_H_
#define CLEAVE_ENGINE_CODEGEN_FUSION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/ir/host_kernel.h"

namespace cleave {

enum class GroupKind : uint8_t {
  kPointwise,    // and movement alone
  kReduction,    // over the same axes of one space, and of its rows to scalars
  kContraction,  // dot_general, conv
  kStructured,   // scans, scatter, windows_add: one node
  kTable,        // index arithmetic of numbers alone: computed with the plan
  kRuntime,      // one sort, cumulative sum, scatter, copy: the runtime's code
  kLoop,         // one scan, while or cond: its regions are kernels
  kReference,    // no vector code: the reference kernel of one node
  kHost,         // the call of one op that the host computes
};
absl::string_view GroupKindName(GroupKind kind);

// Whether a group of that kind is run by the interpreter, at least around its
// regions, or by the host.
inline bool IsInterpreted(GroupKind kind) {
  return kind == GroupKind::kLoop || kind == GroupKind::kReference ||
         kind == GroupKind::kHost;
}

// Whether a group of that kind becomes machine code.
inline bool HasCode(GroupKind kind) {
  return kind != GroupKind::kTable && kind != GroupKind::kRuntime &&
         !IsInterpreted(kind);
}

struct FusionGroup {
  GroupKind kind = GroupKind::kPointwise;
  // In topological order, without the movement that the group repeats for
  // itself. A node that is cheaper to compute than to read is in each group
  // that reads it.
  std::vector<Value> nodes;
  // Values that other groups or the graph's outputs read. Movement that the
  // graph returns is an output, too: of a node in another shape, say.
  std::vector<Value> outputs;
  // The reason why a group of kReference has no vector code.
  std::string why;
};

// Why an edge of the graph is not inside a group.
struct FusionBoundary {
  Value producer;
  Value consumer;
  std::string why;
};

struct FusionPlan {
  std::vector<FusionGroup> groups;  // in an order that they can run in
  // One for each node that a node of another group reads, movement seen
  // through.
  std::vector<FusionBoundary> boundaries;
};

struct FusionOptions {
  // Whether a reduction of values of rows shares the kernel of the rows, which
  // then stores them for itself. Not for devices: they have no arrays without
  // elements.
  bool totals_with_rows = true;
  // Whether sums and additions to rows are computed by the runtime's own code,
  // as sorts are, and loops by the interpreter around their regions. Not for
  // libraries, which have no runtime: their drivers sort and loop over what is
  // stored.
  bool runtime_code = true;
  // Whether a result that is stored values one behind the other is, too. Not
  // for devices, which the values would leave.
  bool runtime_copies = true;
  // Whether a choice runs the branch that is taken alone. Not for devices: the
  // host would run it.
  bool branches = true;
  // Whether index arithmetic that no input decides is computed with the plan.
  // Not for devices, which a table would be sent to in each run, nor for
  // libraries, which have code alone.
  bool tables = true;
  // Whether a library of the device computes large products of matrices
  // (matrix_product.h): each is a group of its own.
  bool library_products = false;
  // The functions that compute the composite nodes; null: there are none.
  const HostKernels* host_kernels = nullptr;
  // The reason why nothing becomes code: every node has a reference kernel.
  // Empty where code can be made.
  std::string no_code = {};
};

// Plans every node that the outputs need. InvalidArgument for a composite node
// without a host kernel (expand first). O(nodes * groups) at worst, O(nodes) as
// graphs are.
absl::StatusOr<FusionPlan> PlanFusion(const Graph& graph,
                                      const FusionOptions& options = {});

// Unimplemented with the reason where a node has no vector code.
absl::Status CanLower(const Graph& graph, Value node);

// `v`, or what it reshapes.
Value BelowReshapes(const Graph& graph, Value v);

// The value that the runtime's own code reads as an operand of `node`: the
// operand, or below the reshapes of a scatter's, since memory has no shape.
Value StoredBelow(const Graph& graph, Value node, Value operand);

// Whether the runtime's own code computes the node, which is to be stored.
bool HasRuntimeCode(const Graph& graph, Value node,
                    const FusionOptions& options);

// The value that the operand of a concatenation `node` is a part of, along the
// node's axis: the operand itself where it is no slice.
struct PartOfJoined {
  Value base;
  int64_t start = 0;
  std::optional<int64_t> length;  // nullopt: all of it
};
PartOfJoined JoinedPart(const Graph& graph, Value node, Value operand);

// The scatter of rows into zeros that `node`, an addition, adds to stored
// numbers, each of them reshaped or not: the runtime's code does both at once.
// Nullopt where it is none.
std::optional<Value> AddedScatter(const Graph& graph, Value node,
                                  const FusionOptions& options);

// The operands that the runtime's own code for the node reads: of a sort, of a
// linear_scan that is a cumulative sum, of a scatter that adds to rows, both of
// 32 or 64 bits, or that sets rows; for a library those of a sort, and of a
// loop or a choice. Empty where there is no such code. They must be stored: see
// StoreRuntimeOperands. A scatter into zeros does not read them.
std::vector<Value> RuntimeOperands(const Graph& graph, Value node,
                                   const FusionOptions& options = {});

// The graph with each such operand that is movement as a value of its own, with
// each large one of a loop or a choice, and with concatenations of which
// another one that is returned takes parts.
Graph StoreRuntimeOperands(const Graph& graph,
                           const FusionOptions& options = {});

// Whether the node is an index map (or a constant, iota or extent).
bool IsMovement(const Graph& graph, Value node);

// A group as a graph of its own. Extents and dims that are not numbers are its
// variables d0, d1, ..: equal kernels of different graphs are equal graphs.
struct ExtractedGroup {
  Graph graph;
  std::vector<Value> inputs;  // of the whole graph, one per input
  // Input i is the value with this shape, its elements in row-major order:
  // reshapes of what the group reads are free.
  std::vector<Shape> input_shapes;
  std::vector<Dim> dims;  // what d0, d1, .. stand for
};

struct ExtractOptions {
  // Constant extents from 2 on are variables, too: one kernel for all sizes.
  bool generalize_extents = false;
};

ExtractedGroup ExtractGroup(const Graph& graph, const FusionGroup& group,
                            const ExtractOptions& options = {});

// The plan as text: for each kernel its kind, what it reads and returns, its
// nodes (named as PrintGraph does) with the movement that it repeats, and what
// it reads of other kernels and why:
//
//   kernel 1, pointwise: (%x, %4) -> (%6)
//     %5: f32[m, n] = broadcast_in_dim(%4)
//     %6: f32[m, n] = add(%x, %5)
//     // %6 reads %4 of kernel 0: it has another shape
std::string PrintFusionPlan(const Graph& graph, const FusionPlan& plan);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_FUSION_H_
