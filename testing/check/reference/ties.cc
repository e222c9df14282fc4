#include "testing/check/reference/ties.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// A graph of the same inputs with an output for each node that `probe` makes
// one for, of its copy and the copies of its operands; without outputs if there
// is none.
template <typename Probe>
Graph ProbeGraph(const Graph& graph, Probe probe) {
  GraphBuilder builder(graph.context());
  std::vector<Value> copies(graph.size());
  for (const NamedValue& input : graph.inputs()) {
    copies[input.value.id] = builder.Input(input.name, graph.type(input.value));
  }
  std::vector<NamedValue> probes;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (copies[id].valid()) continue;
    const Node& node = graph.node(Value{id});
    std::vector<Value> operands;
    for (Value operand : graph.operands(Value{id})) {
      operands.push_back(copies[operand.id]);
    }
    copies[id] = builder.AddTyped(node.op, node.attributes, node.type, operands,
                                  node.provenance);
    if (!IsPrimitive(node.op)) continue;
    const Value made =
        probe(builder, ToPrimitive(node.op), Value{id}, copies[id], operands);
    if (made.valid()) {
      probes.push_back({absl::StrCat("probe", probes.size()), made});
    }
  }
  return *std::move(builder).Build(std::move(probes));
}

// Whether elements that are neighbours along an axis are equal.
bool HasEqualNeighbours(const Tensor& tensor, int64_t axis) {
  int64_t stride = 1;
  for (int d = tensor.rank() - 1; d > axis; --d) stride *= tensor.shape()[d];
  for (int64_t i = 0; i + stride < tensor.size(); ++i) {
    if (i / stride % tensor.shape()[axis] + 1 < tensor.shape()[axis] &&
        tensor.GetDouble(i) == tensor.GetDouble(i + stride)) {
      return true;
    }
  }
  return false;
}

// Whether `graph` sorts within a loop or a choice.
bool SortsInRegion(const Graph& graph, bool is_region = false) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(Value{id});
    if (is_region && node.op == ToOpId(Primitive::kSort)) return true;
    for (const auto& [name, value] : graph.attributes(Value{id}).values()) {
      if (value.kind() == StaticValue::Kind::kRegion &&
          SortsInRegion(*value.AsRegion().graph, true)) {
        return true;
      }
    }
  }
  return false;
}

// Whether two elements of a tensor of floats are equal.
bool HasEqualElements(const Tensor& tensor) {
  if (!IsFloat(tensor.dtype())) return false;
  std::set<double> elements;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (!elements.insert(tensor.GetDouble(i)).second) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<bool> HasTie(const Graph& graph,
                            absl::Span<const Tensor> inputs) {
  const Graph ties =
      ProbeGraph(graph, [](GraphBuilder& builder, Primitive primitive, Value,
                           Value, const std::vector<Value>& operands) {
        return primitive == Primitive::kMax || primitive == Primitive::kMin
                   ? builder.Apply(Primitive::kEq, operands)
                   : Value();
      });
  if (ties.outputs().empty()) return false;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> equal,
                          Interpret(ties, inputs));
  for (const Tensor& tensor : equal) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      if (tensor.GetInt(i) != 0) return true;
    }
  }
  return false;
}

absl::StatusOr<bool> SortsEqualKeys(const Graph& graph,
                                    absl::Span<const Tensor> inputs) {
  if (SortsInRegion(graph) &&
      std::any_of(inputs.begin(), inputs.end(), HasEqualElements)) {
    return true;
  }
  std::vector<int64_t> axes;
  const Graph sorts =
      ProbeGraph(graph, [&](GraphBuilder& builder, Primitive primitive,
                            Value node, Value copy, const std::vector<Value>&) {
        if (primitive != Primitive::kSort) return Value();
        axes.push_back(graph.attributes(node).GetInt("axis"));
        return builder.Result(copy, 0);
      });
  if (axes.empty()) return false;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> sorted,
                          Interpret(sorts, inputs));
  for (size_t i = 0; i < axes.size(); ++i) {
    if (HasEqualNeighbours(sorted[i], axes[i])) return true;
  }
  return false;
}

}  // namespace cleave
