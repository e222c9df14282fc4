#include "testing/debug/node_values.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/ir/substitute.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/reference/reference.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// 256 bits tell an error in f64 to 200 bits; the others are for what cancels,
// and for what is beside a number 2^1074 times as large.
constexpr int kPrecisions[] = {256, 640, 2560, 8192};
// Bits of all exact values together beyond which none is computed again.
constexpr double kMostBits = 2e9;
// Two values of growing precision are one where they agree to so many bits.
constexpr int kAgreement = 64;

bool IsControl(Primitive primitive) {
  return ClassOf(primitive) == PrimitiveClass::kControl;
}

TensorType TypeOf(const Tensor& tensor) { return tensor.type(); }
TensorType TypeOf(const RealTensor& tensor) {
  TensorType type;
  type.dtype = tensor.dtype;
  type.shape.assign(tensor.shape.begin(), tensor.shape.end());
  return type;
}

// The node as a graph of its own, for what the interpreter runs itself.
template <typename T>
absl::StatusOr<Graph> GraphOfNode(const Graph& graph, Value node,
                                  const Attributes& attributes,
                                  absl::Span<const T> operands) {
  GraphBuilder builder(graph.context());
  std::vector<Value> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    inputs.push_back(
        builder.Input(absl::StrCat("operand", i), TypeOf(operands[i])));
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const Value copy,
      builder.Add(ToPrimitive(graph.node(node).op), attributes, inputs));
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < graph.types(node).size(); ++i) {
    outputs.push_back(
        {absl::StrCat("result", i), builder.Result(copy, static_cast<int>(i))});
  }
  return std::move(builder).Build(std::move(outputs));
}

// Binds the size that a nonzero has found.
template <typename T>
absl::Status BindSize(const Graph& graph, Value node,
                      const std::vector<T>& results, DimValues& dims) {
  if (graph.node(node).op != ToOpId(Primitive::kNonzero)) {
    return absl::OkStatus();
  }
  const Dim found = TypeOf(results[0]).shape[0];
  return BindEquations({{graph.attributes(node).Get("size").AsDim(),
                         *found.Value(), "the size of `nonzero`"}},
                       &dims);
}

absl::Status InNode(const Graph& graph, Value node,
                    const absl::Status& status) {
  const Provenance& p =
      graph.context()->provenance(graph.node(node).provenance);
  if (p.rule.empty()) return status;
  return absl::Status(
      status.code(),
      absl::StrCat(p.rule, ", ", p.file, ":", p.line, ": ", status.message()));
}

absl::Status ComputeInDTypes(const Graph& graph,
                             absl::Span<const Tensor> inputs,
                             NodeValues& values) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    values.nodes[graph.inputs()[i].value.id].computed = {inputs[i]};
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    const OpId op = graph.node(v).op;
    if (op == ToOpId(Primitive::kInput)) continue;
    CLEAVE_RETURN_IF_ERROR(PollBudget());
    if (op == ToOpId(Primitive::kResult)) {
      const NodeValue& tuple = values.nodes[graph.operands(v)[0].id];
      values.nodes[id].computed = {
          tuple.computed[graph.attributes(v).GetInt("index")]};
      continue;
    }
    auto results = EvaluateNode(graph, v, values.computed_dims,
                                ComputedOperands(graph, v, values));
    if (!results.ok()) return InNode(graph, v, results.status());
    CLEAVE_RETURN_IF_ERROR(BindSize(graph, v, *results, values.computed_dims));
    values.nodes[id].computed = *std::move(results);
  }
  return absl::OkStatus();
}

// The stand-in for the exact value of a node that has none.
absl::StatusOr<std::vector<RealTensor>> StandIn(
    const Graph& graph, Value v, const std::vector<RealTensor>& operands,
    const NodeValues& values) {
  std::vector<Tensor> rounded;
  for (const RealTensor& operand : operands) {
    rounded.push_back(Rounded(operand));
  }
  auto results = EvaluateNode(graph, v, values.exact_dims, rounded);
  if (!results.ok() && EndsCall(results.status())) return results.status();
  // Where that fails, too, as an index that lies outside does, the node counts
  // as right.
  return AsReals(results.ok() ? *results : values.nodes[v.id].computed,
                 values.bits);
}

absl::Status ComputeExact(const Graph& graph,
                          absl::Span<const RealTensor> inputs,
                          const DebugProgress& progress, NodeValues& values) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    values.nodes[graph.inputs()[i].value.id].exact = {inputs[i]};
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    const OpId op = graph.node(v).op;
    if (op == ToOpId(Primitive::kInput)) continue;
    NodeValue& node = values.nodes[id];
    if (op == ToOpId(Primitive::kResult)) {
      const NodeValue& tuple = values.nodes[graph.operands(v)[0].id];
      node.exact = {tuple.exact[graph.attributes(v).GetInt("index")]};
      node.no_exact_value = tuple.no_exact_value;
      continue;
    }
    if (progress) {
      progress(absl::StrCat("node ", id, " of ", graph.size(), ", ",
                            values.bits, " bits"));
    }
    CLEAVE_RETURN_IF_ERROR(PollBudget());
    const std::vector<RealTensor> operands = ExactOperands(graph, v, values);
    auto results =
        EvaluateNode(graph, v, values.exact_dims, operands, values.bits);
    node.no_exact_value.clear();
    if (!results.ok()) {
      if (EndsCall(results.status())) return results.status();
      node.no_exact_value = std::string(results.status().message());
      results = StandIn(graph, v, operands, values);
      if (!results.ok()) return results.status();
    }
    CLEAVE_RETURN_IF_ERROR(BindSize(graph, v, *results, values.exact_dims));
    node.exact = *std::move(results);
  }
  return absl::OkStatus();
}

bool AreOne(const Real& before, const Real& after) {
  if (after.exactness() == Exactness::kLost) return false;
  if (mpfr_nan_p(before.get()) || mpfr_nan_p(after.get())) {
    return mpfr_nan_p(before.get()) && mpfr_nan_p(after.get());
  }
  if (mpfr_equal_p(before.get(), after.get())) return true;
  if (!mpfr_number_p(before.get()) || !mpfr_number_p(after.get())) return false;
  Real change(after.bits());
  mpfr_sub(change.get(), before.get(), after.get(), MPFR_RNDN);
  if (mpfr_zero_p(after.get())) return false;
  return mpfr_get_exp(change.get()) < mpfr_get_exp(after.get()) - kAgreement;
}

// Notes the elements of `after` that are not settled; whether there are none.
bool Settle(const NodeValues& before, NodeValues& after) {
  bool settled = true;
  for (size_t id = 0; id < after.nodes.size(); ++id) {
    NodeValue& node = after.nodes[id];
    node.unsettled.assign(node.exact.size(), {});
    for (size_t r = 0; r < node.exact.size(); ++r) {
      const std::vector<Real>& now = node.exact[r].reals;
      const std::vector<Real>& then = before.nodes[id].exact[r].reals;
      for (size_t i = 0; i < now.size(); ++i) {
        if (then.size() == now.size() && AreOne(then[i], now[i])) continue;
        node.unsettled[r].push_back(static_cast<int64_t>(i));
        settled = false;
      }
    }
  }
  return settled;
}

// With the most bits, a number that shrinks with them is taken for the zero
// that it tends to.
void ReplaceVanishing(NodeValues& values) {
  for (NodeValue& node : values.nodes) {
    for (size_t r = 0; r < node.unsettled.size(); ++r) {
      std::vector<int64_t> left;
      for (const int64_t i : node.unsettled[r]) {
        Real& real = node.exact[r].reals[i];
        const bool vanishes = mpfr_zero_p(real.get()) ||
                              (mpfr_regular_p(real.get()) &&
                               mpfr_get_exp(real.get()) < -values.bits / 4);
        if (vanishes) {
          real = Real(0.0, values.bits);
        } else {
          left.push_back(i);
        }
      }
      node.unsettled[r] = std::move(left);
    }
  }
}

double CountReals(const NodeValues& values) {
  double count = 0;
  for (const NodeValue& node : values.nodes) {
    for (const RealTensor& tensor : node.exact) count += tensor.reals.size();
  }
  return count;
}

}  // namespace

absl::StatusOr<Attributes> AttributesWithDims(const Graph& graph, Value node,
                                              const DimValues& dims) {
  if (!IsControl(ToPrimitive(graph.node(node).op))) {
    return EvaluateDims(graph.attributes(node), dims);
  }
  DimSubstitution substitution;
  for (const auto& [name, value] : dims) substitution.emplace(name, Dim(value));
  return SubstituteDims(graph.attributes(node), substitution);
}

absl::StatusOr<std::vector<Tensor>> EvaluateNode(
    const Graph& graph, Value node, const DimValues& dims,
    absl::Span<const Tensor> operands) {
  const Primitive primitive = ToPrimitive(graph.node(node).op);
  CLEAVE_ASSIGN_OR_RETURN(const Attributes attributes,
                          AttributesWithDims(graph, node, dims));
  if (!IsControl(primitive)) {
    return EvalReference(primitive, attributes, operands);
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph alone,
                          GraphOfNode(graph, node, attributes, operands));
  return Interpret(alone, operands);
}

absl::StatusOr<std::vector<RealTensor>> EvaluateNode(
    const Graph& graph, Value node, const DimValues& dims,
    absl::Span<const RealTensor> operands, int bits) {
  const Primitive primitive = ToPrimitive(graph.node(node).op);
  CLEAVE_ASSIGN_OR_RETURN(const Attributes attributes,
                          AttributesWithDims(graph, node, dims));
  if (!IsControl(primitive)) {
    return EvalReal(primitive, attributes, operands, bits);
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph alone,
                          GraphOfNode(graph, node, attributes, operands));
  return InterpretReal(alone, operands, bits);
}

std::vector<Tensor> ComputedOperands(const Graph& graph, Value node,
                                     const NodeValues& values) {
  std::vector<Tensor> operands;
  for (const Value operand : graph.operands(node)) {
    operands.push_back(values.nodes[operand.id].computed[0]);
  }
  return operands;
}

std::vector<RealTensor> ExactOperands(const Graph& graph, Value node,
                                      const NodeValues& values) {
  std::vector<RealTensor> operands;
  for (const Value operand : graph.operands(node)) {
    operands.push_back(values.nodes[operand.id].exact[0]);
  }
  return operands;
}

std::vector<RealTensor> AsReals(absl::Span<const Tensor> tensors, int bits) {
  std::vector<RealTensor> reals;
  for (const Tensor& tensor : tensors) {
    reals.push_back(RealTensor::FromTensor(tensor, bits));
  }
  return reals;
}

Tensor Rounded(const RealTensor& tensor) {
  return IsFloat(tensor.dtype) ? tensor.RoundTo(tensor.dtype) : tensor.discrete;
}

absl::StatusOr<NodeValues> ComputeNodes(const Graph& graph,
                                        absl::Span<const Tensor> computed,
                                        absl::Span<const RealTensor> exact,
                                        const DimValues& dims, int bits,
                                        const DebugProgress& progress) {
  NodeValues values;
  values.bits = bits;
  values.nodes.resize(graph.size());
  values.computed_dims = dims;
  values.exact_dims = dims;
  CLEAVE_RETURN_IF_ERROR(ComputeInDTypes(graph, computed, values));
  CLEAVE_RETURN_IF_ERROR(ComputeExact(graph, exact, progress, values));
  return values;
}

absl::StatusOr<NodeValues> ComputeNodes(const Graph& graph,
                                        absl::Span<const Tensor> inputs,
                                        const DebugProgress& progress) {
  // Reports inputs that do not fit, and guards that do not hold.
  CLEAVE_RETURN_IF_ERROR(Interpret(graph, inputs).status());
  CLEAVE_ASSIGN_OR_RETURN(const DimValues dims, BindDims(graph, inputs));
  CLEAVE_ASSIGN_OR_RETURN(
      NodeValues values,
      ComputeNodes(graph, inputs, AsReals(inputs, kPrecisions[0]), dims,
                   kPrecisions[0], progress));
  const double count = CountReals(values);
  for (size_t i = 1; i < std::size(kPrecisions); ++i) {
    const int bits = kPrecisions[i];
    if (count * bits > kMostBits) break;
    NodeValues next;
    next.bits = bits;
    next.computed_dims = values.computed_dims;
    next.exact_dims = dims;
    for (const NodeValue& node : values.nodes) {
      next.nodes.emplace_back().computed = node.computed;
    }
    CLEAVE_RETURN_IF_ERROR(
        ComputeExact(graph, AsReals(inputs, bits), progress, next));
    const bool settled = Settle(values, next);
    values = std::move(next);
    if (settled) return values;
  }
  if (values.bits == *std::rbegin(kPrecisions)) ReplaceVanishing(values);
  return values;
}

}  // namespace cleave
