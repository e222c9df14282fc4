#include "transforms/partition/partition.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/is_primitive.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "transforms/partition/determined_dims.h"

namespace cleave::aot {
namespace {

Value Copy(GraphBuilder& builder, const Graph& graph, Value v,
           const std::vector<Value>& copies) {
  const Node& node = graph.node(v);
  std::vector<Value> operands;
  operands.reserve(node.operand_count);
  for (Value operand : graph.operands(v)) {
    operands.push_back(copies[operand.id]);
  }
  return builder.AddTyped(node.op, node.attributes, node.type, operands,
                          node.provenance);
}

// Builds the two halves of a joint graph.
class Halves {
 public:
  Halves(const JointGraph& joint, const std::vector<bool>& depends,
         const std::vector<Value>& chosen)
      : joint_(joint),
        graph_(joint.graph),
        depends_(depends),
        chosen_(graph_.size(), false),
        is_saved_(graph_.size(), false),
        needed_(graph_.size(), false),
        of_primals_(DimsOfInputs(graph_, joint.primals)) {
    for (Value v : chosen) chosen_[v.id] = true;
    FindDynamic();
  }

  absl::StatusOr<Partition> Run(const std::vector<Value>& offloaded) {
    FindSaved();
    CLEAVE_RETURN_IF_ERROR(FindExtents());
    Partition result;
    const std::string prefix = Prefix();
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      if (!is_saved_[id]) continue;
      const bool is_offloaded = std::find(offloaded.begin(), offloaded.end(),
                                          Value{id}) != offloaded.end();
      if (is_offloaded) {
        result.offloaded.push_back(static_cast<int>(saved_.size()));
      }
      saved_.push_back(Value{id});
    }
    result.saved = static_cast<int>(saved_.size()) + (extents_.empty() ? 0 : 1);
    for (int i = 0; i < result.saved; ++i) {
      names_.push_back(absl::StrCat(prefix, i));
    }
    result.forward = Forward();
    result.backward = Backward();
    return result;
  }

 private:
  // Marks the nodes that make an extent, which is known when they have run: a
  // `nonzero`, or a call or loop with one in it.
  void FindDynamic() {
    is_dynamic_.assign(graph_.size(), false);
    absl::flat_hash_map<TypeId, std::set<std::string>> of_type;
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const Value v{id};
      const auto [it, added] =
          of_type.emplace(graph_.node(v).type, std::set<std::string>());
      if (added) it->second = OtherExtents(graph_.types(v));
      if (it->second.empty() || depends_[id]) continue;
      const OpId op = graph_.node(v).op;
      const absl::Span<const Value> operands = graph_.operands(v);
      if (op == ToOpId(Primitive::kResult)) {
        is_dynamic_[id] = is_dynamic_[operands[0].id];
      } else if (!IsPrimitive(op) || op == ToOpId(Primitive::kNonzero) ||
                 ClassOf(ToPrimitive(op)) == PrimitiveClass::kControl) {
        std::set<std::string> made = it->second;
        for (Value operand : operands) {
          for (const std::string& name :
               of_type.at(graph_.node(operand).type)) {
            made.erase(name);
          }
        }
        is_dynamic_[id] = !made.empty();
      }
      if (is_dynamic_[id] && graph_.types(v).size() == 1) chosen_[id] = true;
    }
  }

  // The variables that no primal has.
  std::set<std::string> OtherExtents(
      const std::vector<TensorType>& types) const {
    std::set<std::string> others;
    for (const TensorType& type : types) {
      for (const Dim& dim : type.shape) {
        if (dim.IsConstant()) continue;
        for (const std::string& name : dim.Variables()) {
          if (of_primals_.count(name) == 0) others.insert(name);
        }
      }
    }
    return others;
  }

  // Walks back from the outputs of the backward half to what it is given.
  void FindSaved() {
    for (size_t i = joint_.outputs; i < graph_.outputs().size(); ++i) {
      needed_[graph_.outputs()[i].value.id] = true;
    }
    for (uint32_t id = static_cast<uint32_t>(graph_.size()); id-- > 0;) {
      if (!needed_[id]) continue;
      if (chosen_[id]) {
        needed_[id] = false;
        is_saved_[id] = true;
        continue;
      }
      for (Value operand : graph_.operands(Value{id})) {
        needed_[operand.id] = true;
      }
    }
    for (int i = 0; i < joint_.primals; ++i) {
      const Value v = graph_.inputs()[i].value;
      if (needed_[v.id]) is_saved_[v.id] = true;
      needed_[v.id] = false;
    }
  }

  // Finds what tells the backward half the extents that its own inputs do not
  // tell.
  absl::Status FindExtents() {
    DimVariables used(graph_);
    std::vector<TensorType> types;
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      if (needed_[id] || is_saved_[id]) used.AddNode(Value{id});
      if (is_saved_[id]) types.push_back(graph_.type(Value{id}));
    }
    for (size_t i = joint_.primals; i < graph_.inputs().size(); ++i) {
      used.AddNode(graph_.inputs()[i].value);
      types.push_back(graph_.type(graph_.inputs()[i].value));
    }
    used_ = used.names();
    if (used_.empty()) return absl::OkStatus();
    const std::set<std::string> determined = DeterminedDims(types);
    for (const std::string& name : used_) {
      if (determined.count(name) > 0) continue;
      const Dim extent = Dim::Variable(name);
      if (of_primals_.count(name) > 0) {
        extents_.push_back(extent);
        continue;
      }
      const Value v = DynamicWith(extent);
      if (!v.valid()) {
        return NotSupported("the backward graph needs the extent ", name,
                            ", which no value of the forward graph has");
      }
      is_saved_[v.id] = true;
      needed_[v.id] = false;
    }
    if (!extents_.empty()) extents_.insert(extents_.begin(), Dim(0));
    return absl::OkStatus();
  }

  // A value that makes this extent.
  Value DynamicWith(const Dim& extent) const {
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const Value v{id};
      if (!is_dynamic_[id] || graph_.types(v).size() != 1) continue;
      const Shape& shape = graph_.type(v).shape;
      if (std::find(shape.begin(), shape.end(), extent) != shape.end()) {
        return v;
      }
    }
    return Value();
  }

  // "saved.", or "saved.saved." where a name of an input or output begins so.
  std::string Prefix() const {
    std::string prefix = "saved.";
    const auto taken = [&](const NamedValue& named) {
      return absl::StartsWith(named.name, prefix);
    };
    while (
        std::any_of(graph_.inputs().begin(), graph_.inputs().end(), taken) ||
        std::any_of(graph_.outputs().begin(), graph_.outputs().end(), taken)) {
      absl::StrAppend(&prefix, "saved.");
    }
    return prefix;
  }

  Graph Forward() const {
    std::vector<bool> needed = is_saved_;
    for (int i = 0; i < joint_.outputs; ++i) {
      needed[graph_.outputs()[i].value.id] = true;
    }
    for (uint32_t id = static_cast<uint32_t>(graph_.size()); id-- > 0;) {
      if (!needed[id]) continue;
      for (Value v : graph_.operands(Value{id})) needed[v.id] = true;
    }
    GraphBuilder builder(graph_.context());
    std::vector<Value> copies(graph_.size());
    for (int i = 0; i < joint_.primals; ++i) {
      const NamedValue& input = graph_.inputs()[i];
      copies[input.value.id] =
          builder.Input(input.name, graph_.type(input.value));
    }
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      if (!needed[id] || copies[id].valid()) continue;
      copies[id] = Copy(builder, graph_, Value{id}, copies);
    }
    std::vector<NamedValue> outputs;
    for (int i = 0; i < joint_.outputs; ++i) {
      const NamedValue& output = graph_.outputs()[i];
      outputs.push_back({output.name, copies[output.value.id]});
    }
    for (Value v : saved_) {
      outputs.push_back(
          {names_[outputs.size() - joint_.outputs], copies[v.id]});
    }
    if (!extents_.empty()) {
      outputs.push_back({names_.back(), builder.Zeros(ExtentsType())});
    }
    for (const ShapeGuard& guard : graph_.guards()) builder.AddGuard(guard);
    return *std::move(builder).Build(std::move(outputs));
  }

  Graph Backward() const {
    GraphBuilder builder(graph_.context());
    std::vector<Value> copies(graph_.size());
    size_t name = 0;
    for (Value v : saved_) {
      copies[v.id] = builder.Input(names_[name++], graph_.type(v));
    }
    if (!extents_.empty()) builder.Input(names_.back(), ExtentsType());
    for (size_t i = joint_.primals; i < graph_.inputs().size(); ++i) {
      const NamedValue& input = graph_.inputs()[i];
      copies[input.value.id] =
          builder.Input(input.name, graph_.type(input.value));
    }
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      if (!needed_[id] || copies[id].valid()) continue;
      copies[id] = Copy(builder, graph_, Value{id}, copies);
    }
    for (const ShapeGuard& guard : graph_.guards()) {
      if (IsUsed(guard.lhs) && IsUsed(guard.rhs)) builder.AddGuard(guard);
    }
    std::vector<NamedValue> outputs;
    for (size_t i = joint_.outputs; i < graph_.outputs().size(); ++i) {
      const NamedValue& output = graph_.outputs()[i];
      outputs.push_back({output.name, copies[output.value.id]});
    }
    return *std::move(builder).Build(std::move(outputs));
  }

  // Whether the backward half knows all variables of `dim`.
  bool IsUsed(const Dim& dim) const {
    const std::set<std::string> names = dim.Variables();
    return std::includes(used_.begin(), used_.end(), names.begin(),
                         names.end());
  }

  TensorType ExtentsType() const { return {DType::kF32, extents_}; }

  const JointGraph& joint_;
  const Graph& graph_;
  const std::vector<bool>& depends_;
  std::vector<bool> chosen_;
  std::vector<bool> is_saved_;
  std::vector<bool> needed_;  // by the backward half, which computes it
  const std::set<std::string> of_primals_;  // their dimension variables
  std::vector<bool> is_dynamic_;
  std::set<std::string> used_;  // dimension variables of the backward half
  Shape extents_;               // of a tensor without elements; or empty
  std::vector<Value> saved_;
  std::vector<std::string> names_;  // of what is saved
};

absl::Status CheckValue(const Graph& graph, const NamedValue& got,
                        absl::string_view of, const TensorType& wanted,
                        absl::string_view name) {
  const TensorType& type = graph.type(got.value);
  if (type == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "partition: ", of, " `", got.name, "` is ", type.ToString(), ", but `",
      name, "` of the joint graph is ", wanted.ToString()));
}

absl::Status CheckCount(absl::string_view what, size_t got, size_t wanted) {
  if (got == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "partition: ", what, " are ", got, ", but must be ", wanted));
}

}  // namespace

absl::Status CheckPartition(const JointGraph& joint,
                            const Partition& partition) {
  const Graph& graph = joint.graph;
  const Graph& forward = partition.forward;
  const Graph& backward = partition.backward;
  if (forward.context() != graph.context() ||
      backward.context() != graph.context()) {
    return absl::InvalidArgumentError(
        "partition: a half is not of the joint graph's context");
  }
  if (partition.saved < 0) {
    return absl::InvalidArgumentError("partition: saved is negative");
  }
  const size_t primals = joint.primals;
  const size_t outputs = joint.outputs;
  const size_t saved = partition.saved;
  CLEAVE_RETURN_IF_ERROR(CheckCount("the inputs of the forward graph",
                                    forward.inputs().size(), primals));
  CLEAVE_RETURN_IF_ERROR(CheckCount("the outputs of the forward graph",
                                    forward.outputs().size(), outputs + saved));
  CLEAVE_RETURN_IF_ERROR(CheckCount("the inputs of the backward graph",
                                    backward.inputs().size(),
                                    saved + graph.inputs().size() - primals));
  CLEAVE_RETURN_IF_ERROR(CheckCount("the outputs of the backward graph",
                                    backward.outputs().size(),
                                    graph.outputs().size() - outputs));
  for (size_t i = 0; i < primals; ++i) {
    const NamedValue& wanted = graph.inputs()[i];
    CLEAVE_RETURN_IF_ERROR(CheckValue(forward, forward.inputs()[i],
                                      "the forward input",
                                      graph.type(wanted.value), wanted.name));
  }
  for (size_t i = 0; i < outputs; ++i) {
    const NamedValue& wanted = graph.outputs()[i];
    CLEAVE_RETURN_IF_ERROR(CheckValue(forward, forward.outputs()[i],
                                      "the forward output",
                                      graph.type(wanted.value), wanted.name));
  }
  for (size_t i = 0; i < saved; ++i) {
    const NamedValue& given = forward.outputs()[outputs + i];
    const NamedValue& taken = backward.inputs()[i];
    if (forward.type(given.value) != backward.type(taken.value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "partition: the forward graph saves `", given.name, "`, which is ",
          forward.type(given.value).ToString(), ", but the backward graph's `",
          taken.name, "` is ", backward.type(taken.value).ToString()));
    }
  }
  for (size_t i = primals; i < graph.inputs().size(); ++i) {
    const NamedValue& wanted = graph.inputs()[i];
    CLEAVE_RETURN_IF_ERROR(CheckValue(
        backward, backward.inputs()[saved + i - primals], "the backward input",
        graph.type(wanted.value), wanted.name));
  }
  for (size_t i = outputs; i < graph.outputs().size(); ++i) {
    const NamedValue& wanted = graph.outputs()[i];
    CLEAVE_RETURN_IF_ERROR(CheckValue(backward, backward.outputs()[i - outputs],
                                      "the backward output",
                                      graph.type(wanted.value), wanted.name));
  }
  for (int i : partition.offloaded) {
    if (i >= 0 && i < partition.saved) continue;
    return absl::InvalidArgumentError(absl::StrCat("partition: number ", i,
                                                   " is offloaded, but only ",
                                                   saved, " values are saved"));
  }
  return absl::OkStatus();
}

std::vector<bool> DependsOnCotangents(const JointGraph& joint) {
  const Graph& graph = joint.graph;
  std::vector<bool> depends(graph.size(), false);
  for (size_t i = joint.primals; i < graph.inputs().size(); ++i) {
    depends[graph.inputs()[i].value.id] = true;
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    for (Value operand : graph.operands(Value{id})) {
      if (depends[operand.id]) depends[id] = true;
    }
  }
  return depends;
}

absl::StatusOr<Partition> PartitionBySaved(
    const JointGraph& joint, const std::vector<Value>& saved,
    const std::vector<Value>& offloaded) {
  const std::vector<bool> depends = DependsOnCotangents(joint);
  for (Value v : saved) {
    if (v.id >= joint.graph.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("partition: node ", v.id, " is to be saved, which the ",
                       "joint graph does not have"));
    }
    const absl::string_view op =
        joint.graph.context()->op_name(joint.graph.node(v).op);
    if (depends[v.id]) {
      return absl::InvalidArgumentError(
          absl::StrCat("partition: node ", v.id, " (", op,
                       ") is to be saved, but depends on a cotangent"));
    }
    if (joint.graph.types(v).size() != 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "partition: node ", v.id, " (", op,
          ") is to be saved, but has several results: save those"));
    }
  }
  return Halves(joint, depends, saved).Run(offloaded);
}

absl::StatusOr<Partition> DefaultPartition(const JointGraph& joint) {
  const Graph& graph = joint.graph;
  std::vector<bool> in_forward(graph.size(), false);
  for (int i = 0; i < joint.outputs; ++i) {
    in_forward[graph.outputs()[i].value.id] = true;
  }
  for (uint32_t id = static_cast<uint32_t>(graph.size()); id-- > 0;) {
    if (!in_forward[id]) continue;
    for (Value v : graph.operands(Value{id})) in_forward[v.id] = true;
  }
  // The values that the backward half needs and does not compute itself.
  std::vector<bool> crosses(graph.size(), false);
  for (size_t i = joint.outputs; i < graph.outputs().size(); ++i) {
    crosses[graph.outputs()[i].value.id] = true;
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value node{id};
    const absl::Span<const Value> operands = graph.operands(node);
    // All results of a node are there when it has run.
    if (Is(graph, node, Primitive::kResult) && in_forward[operands[0].id]) {
      in_forward[id] = true;
    }
    if (in_forward[id]) continue;
    for (Value v : operands) crosses[v.id] = true;
  }
  std::vector<Value> saved;
  for (uint32_t id = static_cast<uint32_t>(graph.size()); id-- > 0;) {
    const Value v{id};
    if (!crosses[id] || !in_forward[id]) continue;
    const bool is_view = Is(graph, v, Primitive::kBroadcastInDim) ||
                         Is(graph, v, Primitive::kReshape) ||
                         Is(graph, v, Primitive::kTranspose);
    if (is_view) {
      crosses[graph.operands(v)[0].id] = true;
    } else if (graph.types(v).size() == 1 &&
               (!graph.operands(v).empty() ||
                Is(graph, v, Primitive::kInput))) {
      saved.push_back(v);
    }
  }
  return PartitionBySaved(joint, saved);
}

}  // namespace cleave::aot
