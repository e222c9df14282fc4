// RewriteGraph: the one loop in which a pass copies a graph and replaces some
// of its nodes. Inputs, guards and the names of outputs are kept; what no
// output needs any more is dropped.
//
//   // Graph without double negation: -(-x) is x.
//   Graph simpler = RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
//     const Value x = graph.operands(v).empty() ? v : graph.operands(v)[0];
//     const OpId neg = ToOpId(Primitive::kNeg);
//     return graph.node(v).op == neg && graph.node(x).op == neg
//                ? copy.of(graph.operands(x)[0])
//                : copy.Keep(v);
//   });
//
// A pass that may fail returns absl::StatusOr<Value> from the function, and
// RewriteGraph an absl::StatusOr<Graph>: the first error, or the mistake of the
// builder. Without, a mistake is a CHECK.

#ifndef CLEAVE_ENGINE_IR_REWRITE_GRAPH_H_
#define CLEAVE_ENGINE_IR_REWRITE_GRAPH_H_

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"

namespace cleave {

// A graph, and its copy as far as it is made. Neither is copied.
class GraphCopy {
 public:
  // Copies the inputs. The graph outlives this.
  explicit GraphCopy(const Graph& graph);
  GraphCopy(const GraphCopy&) = delete;
  GraphCopy& operator=(const GraphCopy&) = delete;

  const Graph& graph() const { return graph_; }
  GraphBuilder& builder() { return builder_; }

  // The value that stands for a node of the graph that was visited before.
  Value of(Value v) const { return values_[v.id]; }
  // The copies of a node's operands; they are valid until the next call.
  absl::Span<const Value> Operands(Value v);

  // The node on the copies of its operands, as it is; with other attributes;
  // or on other operands, of the same types.
  Value Keep(Value v);
  Value Keep(Value v, AttributesId attributes);
  Value Keep(Value v, absl::Span<const Value> operands);

  // The value that stands for a node that is replaced by `results`, one per
  // result: its projections become them without a visit.
  Value Replace(Value v, std::vector<Value> results);

  // For RewriteGraph: what stands for v, and whether that is known already.
  void Set(Value v, Value copy) { values_[v.id] = copy; }
  bool IsDone(Value v);
  absl::StatusOr<Graph> Build() &&;

 private:
  const Graph& graph_;
  GraphBuilder builder_;
  std::vector<Value> values_;
  // The results of nodes that were replaced, by the node.
  absl::flat_hash_map<uint32_t, std::vector<Value>> results_;
  absl::InlinedVector<Value, 8> operands_;
};

// `visit(GraphCopy& copy, Value v)` is called for each node that is no input,
// in order, and says what stands for it. O(nodes) beside what it does.
template <typename Visit>
auto RewriteGraph(const Graph& graph, Visit visit) {
  using Visited = decltype(visit(std::declval<GraphCopy&>(), Value()));
  constexpr bool kFails = !std::is_same_v<Visited, Value>;
  using Result = std::conditional_t<kFails, absl::StatusOr<Graph>, Graph>;
  GraphCopy copy(graph);
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    if (copy.IsDone(v)) continue;
    Visited visited = visit(copy, v);
    if constexpr (kFails) {
      if (!visited.ok()) return Result(std::move(visited).status());
      copy.Set(v, *visited);
    } else {
      copy.Set(v, visited);
    }
  }
  if constexpr (kFails) {
    return Result(std::move(copy).Build());
  } else {
    return Result(*std::move(copy).Build());
  }
}

// The attributes of a node with `rewrite` applied to each of its regions, a
// function from Graph to absl::StatusOr<Graph>. The first error.
template <typename Rewrite>
absl::StatusOr<AttributesId> RewriteRegions(const Graph& graph, Value v,
                                            Rewrite rewrite) {
  const Attributes given = graph.attributes(v);
  Attributes attributes = given;
  for (const auto& [name, value] : given.values()) {
    if (value.kind() != StaticValue::Kind::kRegion) continue;
    absl::StatusOr<Graph> region = rewrite(*value.AsRegion().graph);
    if (!region.ok()) return region.status();
    attributes.Set(name, MakeRegion(*std::move(region)));
  }
  return graph.context()->Intern(attributes);
}

// The graph with `rewrite(GraphCopy& copy, Value v)` in place of each node that
// `applies(Value v)` is true of; the graph itself where it is true of none.
// Nodes that `rewrite` adds have the provenance of v. O(nodes) beside what
// these do.
template <typename Applies, typename Rewrite>
Graph RewriteNodes(const Graph& graph, Applies applies, Rewrite rewrite) {
  bool any = false;
  for (uint32_t id = 0; id < graph.size(); ++id) any |= applies(Value{id});
  if (!any) return graph;
  return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    if (!applies(v)) return copy.Keep(v);
    copy.builder().SetProvenance(graph.node(v).provenance);
    return rewrite(copy, v);
  });
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_REWRITE_GRAPH_H_
