#include "testing/check/samples/sampled_call.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/ir/graph_text.h"
#include "engine/rewrite/expand.h"
#include "ops/exact.h"
#include "ops/status_macros.h"
#include "testing/check/samples/over_reals.h"

namespace cleave {

std::vector<TensorType> SampledCall::OperandTypes() const {
  std::vector<TensorType> types;
  for (const SampledInput& input : inputs) {
    for (const auto& type : input.types) {
      if (type) types.push_back(*type);
    }
  }
  return types;
}

std::vector<std::string> SampledCall::OperandNames() const {
  std::vector<std::string> names;
  for (const SampledInput& input : inputs) {
    for (size_t i = 0; i < input.types.size(); ++i) {
      if (!input.types[i]) continue;
      names.push_back(input.variadic ? absl::StrCat(input.name, ".", i)
                                     : input.name);
    }
  }
  return names;
}

std::vector<bool> SampledCall::IndexOperands() const {
  std::vector<bool> indices;
  for (const SampledInput& input : inputs) {
    for (const auto& type : input.types) {
      if (type) indices.push_back(input.is_index);
    }
  }
  return indices;
}

std::string SampledCall::ToString() const {
  std::vector<std::string> parts;
  for (const SampledInput& input : inputs) {
    if (input.variadic) {
      std::vector<std::string> elements;
      for (const auto& type : input.types) {
        elements.push_back(type ? type->ToString() : "none");
      }
      parts.push_back(
          absl::StrCat(input.name, ": [", absl::StrJoin(elements, ", "), "]"));
    } else if (!input.types.empty() && input.types[0]) {
      parts.push_back(
          absl::StrCat(input.name, ": ", input.types[0]->ToString()));
    }
  }
  for (const Attributes* group : {&statics, &attributes}) {
    for (const auto& [name, value] : group->values()) {
      parts.push_back(absl::StrCat(name, ": ", value.ToString()));
    }
  }
  return absl::StrCat(op, "(", absl::StrJoin(parts, ", "), ")");
}

absl::StatusOr<Graph> MakeCallGraph(
    const RuleSet& rules, const SampledCall& call, absl::string_view op,
    const std::vector<std::pair<std::string, TensorType>>& extra) {
  const std::string name = op.empty() ? call.op : std::string(op);
  GraphBuilder builder(rules.context());
  std::vector<Argument> arguments;
  for (const SampledInput& input : call.inputs) {
    Argument argument;
    argument.name = input.name;
    if (input.variadic) {
      std::vector<std::optional<Value>> values;
      for (size_t i = 0; i < input.types.size(); ++i) {
        if (input.types[i]) {
          values.push_back(
              builder.Input(absl::StrCat(input.name, ".", i), *input.types[i]));
        } else {
          values.push_back(std::nullopt);
        }
      }
      argument.value = std::move(values);
    } else if (!input.types.empty() && input.types[0]) {
      argument.value = builder.Input(input.name, *input.types[0]);
    } else {
      argument.value = Argument::Absent{};
    }
    arguments.push_back(std::move(argument));
  }
  for (const auto& [static_name, value] : call.statics.values()) {
    arguments.push_back({static_name, value});
  }
  for (const auto& [extra_name, type] : extra) {
    arguments.push_back({extra_name, builder.Input(extra_name, type)});
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<std::optional<Value>> results,
      rules.Call(builder, name, arguments, call.attributes));
  const std::vector<std::string> names = rules.ResultNames(name);
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i]) outputs.push_back({names[i], *results[i]});
  }
  return std::move(builder).Build(std::move(outputs));
}

absl::StatusOr<Signature> CallSignature(const Graph& call_graph) {
  for (uint32_t id = 0; id < call_graph.size(); ++id) {
    const Value value{id};
    if (!IsPrimitive(call_graph.node(value).op)) {
      return RuleSet::SignatureOf(call_graph, value);
    }
  }
  return absl::InternalError(
      absl::StrCat("the op has the name of a primitive: no call is in\n",
                   PrintGraph(call_graph)));
}

absl::StatusOr<CallGraphs> MakeCallGraphs(const RuleSet& rules,
                                          const SampledCall& call) {
  CallGraphs graphs;
  CLEAVE_ASSIGN_OR_RETURN(graphs.call, MakeCallGraph(rules, call));
  CLEAVE_ASSIGN_OR_RETURN(graphs.body, Expand(graphs.call, rules));
  CLEAVE_ASSIGN_OR_RETURN(graphs.real_body,
                          ExpandBodiesOverReals(graphs.call, rules));
  CLEAVE_ASSIGN_OR_RETURN(const Signature signature,
                          CallSignature(graphs.call));
  CLEAVE_ASSIGN_OR_RETURN(const Graph* spec, rules.Spec(signature));
  if (spec == nullptr) return graphs;
  CLEAVE_ASSIGN_OR_RETURN(graphs.spec, ExpandOverReals(*spec, rules));
  // The inputs of a spec go by their own names; what counts is the rest.
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules.Body(signature));
  CLEAVE_ASSIGN_OR_RETURN(const Graph primitive_body,
                          ExpandOverReals(*body, rules));
  graphs.same = primitive_body.size() == graphs.spec->size() &&
                PrintGraph(primitive_body) == PrintGraph(*graphs.spec);
  return graphs;
}

bool HasNegativeExtent(const Graph& call_graph) {
  for (const NamedValue& output : call_graph.outputs()) {
    for (const Dim& dim : call_graph.type(output.value).shape) {
      if (dim.Value().value_or(0) < 0) return true;
    }
  }
  return false;
}

bool IsElementwise(const Graph& graph) {
  if (graph.inputs().empty() || graph.outputs().empty()) return false;
  const Shape& shape = graph.type(graph.inputs()[0].value).shape;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value value{id};
    const Node& node = graph.node(value);
    if (!IsPrimitive(node.op)) return false;
    const Primitive primitive = ToPrimitive(node.op);
    if (graph.types(value).size() != 1) return false;
    const bool scalar = graph.type(value).rank() == 0;
    switch (ClassOf(primitive)) {
      case PrimitiveClass::kLeaf:
        // A value that depends on a place or on an extent is not elementwise.
        if (primitive == Primitive::kIota || primitive == Primitive::kExtent) {
          return false;
        }
        if (primitive == Primitive::kInput &&
            graph.type(value).shape != shape) {
          return false;
        }
        break;
      case PrimitiveClass::kPointwise:
        if (!scalar && graph.type(value).shape != shape) return false;
        break;
      case PrimitiveClass::kMovement:
        // A constant, or what is computed from constants alone, spread.
        if (primitive != Primitive::kBroadcastInDim ||
            graph.type(graph.operands(value)[0]).rank() != 0 ||
            graph.type(value).shape != shape) {
          return false;
        }
        break;
      default:
        return false;
    }
  }
  for (const NamedValue& output : graph.outputs()) {
    if (graph.type(output.value).shape != shape) return false;
  }
  return true;
}

namespace {

// The number that a node is, or spreads.
std::optional<Exact> ConstantOf(const Graph& graph, Value value) {
  while (true) {
    const Node& node = graph.node(value);
    if (!IsPrimitive(node.op)) return std::nullopt;
    const Primitive primitive = ToPrimitive(node.op);
    if (primitive == Primitive::kConstant) {
      const StaticValue& constant = graph.attributes(value).Get("value");
      if (constant.kind() == StaticValue::Kind::kReal) {
        return constant.AsReal();
      }
      return std::nullopt;
    }
    if (primitive != Primitive::kBroadcastInDim &&
        primitive != Primitive::kConvert) {
      return std::nullopt;
    }
    value = graph.operands(value)[0];
  }
}

bool Clamps(Primitive primitive) {
  return primitive == Primitive::kMax || primitive == Primitive::kMin;
}

// The bits of an integer constant, those of a u64 among them.
std::optional<int64_t> IntConstantOf(const Graph& graph, Value value) {
  const std::optional<Exact> constant = ConstantOf(graph, value);
  if (!constant || !constant->IsInteger()) return std::nullopt;
  if (const auto fits = constant->ToInt64()) return fits;
  const Exact half = Exact(int64_t{1} << 32);
  return (*constant - half * half).ToInt64();
}

void AddIntGuards(const Graph& graph, std::vector<int64_t>& guards) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value value{id};
    if (!IsPrimitive(graph.node(value).op)) continue;
    const Primitive primitive = ToPrimitive(graph.node(value).op);
    if (!IsComparison(primitive) && !Clamps(primitive) &&
        primitive != Primitive::kSelect) {
      continue;
    }
    for (const Value operand : graph.operands(value)) {
      if (!IsInt(graph.type(operand).dtype)) continue;
      if (const auto constant = IntConstantOf(graph, operand)) {
        guards.push_back(*constant);
      }
    }
  }
}

// Adds the inputs of `graph` that may be indices, by their numbers.
void AddIndices(const Graph& graph, std::set<size_t>& indices) {
  // By value: the inputs that it depends on, and whether it does on places.
  std::vector<std::set<size_t>> sources(graph.size());
  std::vector<bool> placed(graph.size(), false);
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    sources[graph.inputs()[i].value.id].insert(i);
  }
  const auto add = [&](Value value) {
    indices.insert(sources[value.id].begin(), sources[value.id].end());
  };
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value value{id};
    const absl::Span<const Value> operands = graph.operands(value);
    for (const Value operand : operands) {
      sources[id].insert(sources[operand.id].begin(),
                         sources[operand.id].end());
      placed[id] = placed[id] || placed[operand.id];
    }
    if (!IsPrimitive(graph.node(value).op)) continue;
    const Primitive primitive = ToPrimitive(graph.node(value).op);
    switch (ClassOf(primitive)) {
      case PrimitiveClass::kGather:
      case PrimitiveClass::kScatter:
        add(operands[1]);
        break;
      case PrimitiveClass::kControl:
        // Regions are not read.
        add(value);
        break;
      default:
        placed[id] = placed[id] || primitive == Primitive::kIota;
        if (IsComparison(primitive) && placed[id]) add(value);
        break;
    }
  }
}

}  // namespace

std::vector<double> GuardConstants(const Graph& graph) {
  std::vector<double> constants;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value value{id};
    if (!IsPrimitive(graph.node(value).op)) continue;
    const Primitive primitive = ToPrimitive(graph.node(value).op);
    if (!IsComparison(primitive) && !Clamps(primitive)) continue;
    for (Value operand : graph.operands(value)) {
      const std::optional<Exact> constant = ConstantOf(graph, operand);
      if (constant && std::isfinite(constant->ToDouble())) {
        constants.push_back(constant->ToDouble());
      }
    }
  }
  std::sort(constants.begin(), constants.end());
  constants.erase(std::unique(constants.begin(), constants.end()),
                  constants.end());
  return constants;
}

void TellInts(const CallGraphs& graphs, SampledCall& call) {
  const std::vector<TensorType> types = call.OperandTypes();
  if (std::none_of(types.begin(), types.end(),
                   [](const TensorType& type) { return IsInt(type.dtype); })) {
    return;
  }
  call.int_guards.clear();
  std::set<size_t> indices;
  for (const Graph* graph :
       {&graphs.body, graphs.spec ? &*graphs.spec : nullptr}) {
    if (graph == nullptr) continue;
    AddIntGuards(*graph, call.int_guards);
    AddIndices(*graph, indices);
  }
  std::sort(call.int_guards.begin(), call.int_guards.end());
  call.int_guards.erase(
      std::unique(call.int_guards.begin(), call.int_guards.end()),
      call.int_guards.end());
  size_t operand = 0;
  for (SampledInput& input : call.inputs) {
    bool reaches = false;
    for (const auto& type : input.types) {
      if (type) reaches |= indices.count(operand++) != 0;
    }
    input.is_index = input.is_index && reaches;
  }
}

}  // namespace cleave
