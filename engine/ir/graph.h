// Graph: typed SSA with hash-consed nodes; equal subgraphs of one builder are
// one node. Nodes are in topological order: operands precede their users.
//
//   auto context = std::make_shared<Context>();
//   GraphBuilder b(context);
//   Value x = b.Input("x", {DType::kF32, {Dim::Variable("n")}});
//   Value y = *b.Add(Primitive::kExp, {}, {x});
//   absl::StatusOr<Graph> graph = std::move(b).Build({{"y", y}});
//
// A node is a primitive or a call of a composite op. A composite's operands are
// its tensor inputs in order; see CallLayout for absent and variadic ones.

#ifndef CLEAVE_ENGINE_IR_GRAPH_H_
#define CLEAVE_ENGINE_IR_GRAPH_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/context.h"
#include "ops/infer_type.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave {

// A node of one graph or builder.
struct Value {
  uint32_t id = UINT32_MAX;
  bool valid() const { return id != UINT32_MAX; }
  friend bool operator==(Value a, Value b) { return a.id == b.id; }
  friend bool operator!=(Value a, Value b) { return a.id != b.id; }
  friend bool operator<(Value a, Value b) { return a.id < b.id; }
  template <typename H>
  friend H AbslHashValue(H h, Value v) {
    return H::combine(std::move(h), v.id);
  }
};

struct Node {
  OpId op = 0;
  AttributesId attributes = kNoAttributes;
  TypeId type = 0;
  uint32_t operands_begin = 0;
  uint32_t operand_count = 0;
  ProvenanceId provenance = 0;
};

struct NamedValue {
  std::string name;
  Value value;
};

// A graph shares the ownership of its context, and so does a copy of any graph.
// Only the graph of a region borrows it: a reference to it, as to all that is
// read from the context, is valid while a graph, a builder or the caller owns
// the context.
class Graph {
 public:
  Graph() = default;

  // Null for Graph(). CHECKs that a region's context still lives.
  std::shared_ptr<Context> context() const { return context_.Share(); }
  bool owns_context() const { return context_.owner() != nullptr; }
  int64_t size() const { return static_cast<int64_t>(nodes_.size()); }
  const Node& node(Value v) const { return nodes_[v.id]; }
  absl::Span<const Value> operands(Value v) const {
    const Node& n = nodes_[v.id];
    return {operands_.data() + n.operands_begin, n.operand_count};
  }
  const Attributes& attributes(Value v) const {
    return context_->attributes(nodes_[v.id].attributes);
  }
  // One type per result of the node.
  const std::vector<TensorType>& types(Value v) const {
    return context_->types(nodes_[v.id].type);
  }
  // The type of a node with one result.
  const TensorType& type(Value v) const { return types(v).front(); }

  const std::vector<NamedValue>& inputs() const { return inputs_; }
  const std::vector<NamedValue>& outputs() const { return outputs_; }
  // Conditions on extents that typing left open; checked when they are known.
  const std::vector<ShapeGuard>& guards() const { return guards_; }

 private:
  friend class GraphBuilder;
  friend Region MakeRegion(Graph graph);
  ContextReference context_;
  std::vector<Node> nodes_;
  std::vector<Value> operands_;
  std::vector<NamedValue> inputs_;
  std::vector<NamedValue> outputs_;
  std::vector<ShapeGuard> guards_;
};

// The attributes of a constant; of dtype bool it is value != 0, and integers
// have no negative zero.
Attributes ConstantAttributes(const Exact& value, DType dtype);

class GraphBuilder {
 public:
  explicit GraphBuilder(std::shared_ptr<Context> context);

  // The first mistake among the calls that return values and no status, OK if
  // there was none. Such a call still gives a value, so that its caller may go
  // on; Add and Build return the mistake. Example: BroadcastTo(x, {n}) of a
  // matrix x gives a vector that is good for nothing, and Build says that x has
  // more axes than [n].
  const absl::Status& status() const { return status_; }

  // A new input; each call makes a new node. Two inputs of one name are a
  // mistake.
  Value Input(absl::string_view name, const TensorType& type);
  // A primitive, typed by InferType (scan, cond, while by their regions).
  // Movement that moves nothing gives its operand.
  absl::StatusOr<Value> Add(Primitive primitive, const Attributes& attributes,
                            absl::Span<const Value> operands);
  // The same for interned attributes: no attribute is hashed.
  absl::StatusOr<Value> AddInterned(Primitive primitive,
                                    AttributesId attributes,
                                    absl::Span<const Value> operands);
  // A node whose type the caller knows: a composite, or an instance of a node
  // that was typed before. The hot path: O(operands), no inference.
  Value AddTyped(OpId op, AttributesId attributes, TypeId type,
                 absl::Span<const Value> operands, ProvenanceId provenance);
  // Copies `graph`, which is of the same context, into this builder, its inputs
  // replaced by `arguments` (as many, of the same types; anything else is a
  // mistake), and returns its outputs. O(nodes). Nodes keep their provenance.
  // The size of a nonzero is a variable, k in `i64[k, 1]`. It is renamed if
  // another nonzero of this builder has it already, or an input. One kind of
  // variable is kept though an input has it: a variable in `results`, the types
  // of the call that the copy replaces. It is the caller's, and an input with
  // that variable, such as the cotangent of the call's result, is to have that
  // size.
  std::vector<Value> Inline(const Graph& graph,
                            absl::Span<const Value> arguments,
                            absl::Span<const TensorType> results = {});

  // Makes room for `nodes` nodes in all, which saves growing step by step.
  void Reserve(int64_t nodes);

  // Shorthands for Add. Where one does not type, that is a mistake (status()).
  // Pointwise operands agree in type.
  Value Constant(const Exact& value, DType dtype);             // 0-d
  Value Constant(const Exact& value, const TensorType& type);  // broadcast
  Value Zeros(const TensorType& type);
  // A node with one result is its result: Result(x, 0) gives x.
  Value Result(Value tuple, int index);
  // Pointwise, movement and the like.
  Value Apply(Primitive primitive, absl::Span<const Value> operands,
              const Attributes& attributes = {});
  Value BroadcastTo(Value x, const Shape& shape);  // right-aligned
  Value BroadcastInDim(Value x, const Shape& shape,
                       const std::vector<int>& axes);
  Value Reshape(Value x, const Shape& shape);
  Value Transpose(Value x, const std::vector<int>& axes);

  // The provenance of nodes added from here on (AddTyped and Inline excepted).
  void SetProvenance(ProvenanceId id) { provenance_ = id; }
  ProvenanceId provenance() const { return provenance_; }
  void AddGuard(ShapeGuard guard);

  const std::shared_ptr<Context>& context() const {
    return graph_.context_.owner();
  }
  // The nodes built so far; references to it stay valid until the next
  // addition.
  const Graph& graph() const { return graph_; }
  const TensorType& type(Value v) const { return graph_.type(v); }

  // Nodes that no output needs are dropped (inputs stay). The order is kept.
  // An error if there was a mistake, or if an output is no node of this
  // builder.
  absl::StatusOr<Graph> Build(std::vector<NamedValue> outputs) &&;

 private:
  // The result types of a primitive node; new guards are added to the graph.
  absl::StatusOr<TypeId> Infer(Primitive primitive, AttributesId attributes,
                               absl::Span<const Value> operands);
  // The operand, or a node before it, that the node would equal bit by bit;
  // invalid if there is none.
  Value MoveNothing(Primitive primitive, AttributesId attributes, TypeId type,
                    absl::Span<const Value> operands);
  Value Append(const Node& node, absl::Span<const Value> operands);
  // Remembers the mistake, and gives a value of that type.
  Value Mistake(absl::Status status, const TensorType& type);
  // Whether Inline may copy the graph.
  absl::Status FitsInline(const Graph& graph,
                          absl::Span<const Value> arguments) const;
  // The variable that a nonzero's size is; empty if it is no variable.
  static std::string SizeVariable(const Attributes& attributes);
  // The variable for the size of a nonzero of `operand`: `variable`, or one
  // derived from it if that is taken. An input does not take a variable that is
  // an extent of `results`.
  std::string FreeSize(const std::string& variable, Value operand,
                       absl::Span<const TensorType> results) const;
  bool Same(Value node, OpId op, AttributesId attributes,
            absl::Span<const Value> operands) const;
  void Rehash(uint64_t slot_count);

  Graph graph_;
  absl::Status status_;
  ProvenanceId provenance_ = 0;
  // Open addressing with linear probing: the node's hash in the upper half, its
  // id in the lower, so that a probe reads one cache line and growing none of
  // the nodes.
  std::vector<uint64_t> slots_;
  uint64_t slot_mask_ = 0;
  int64_t used_slots_ = 0;
  absl::flat_hash_set<std::string> input_names_;
  // Variables in the types of inputs, and nonzeros by the variable of their
  // size.
  absl::flat_hash_set<std::string> input_variables_;
  absl::flat_hash_map<std::string, Value> sizes_;
  // (primitive, attributes, operand types) -> result types.
  absl::flat_hash_map<std::vector<uint32_t>, TypeId> inferred_;
  std::vector<uint32_t> inference_key_;  // scratch
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_GRAPH_H_
