#include "transforms/vjp/derivatives.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp.h"
#include "transforms/table/emit.h"
#include "transforms/table/names.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

absl::Status OneScalar(const Graph& graph, absl::string_view what) {
  if (graph.outputs().size() != 1) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": the function has ",
                                                   graph.outputs().size(),
                                                   " outputs, not one scalar"));
  }
  const TensorType& type = graph.type(graph.outputs()[0].value);
  if (!IsFloat(type.dtype) || type.rank() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": the output `", graph.outputs()[0].name, "` is ",
                     type.ToString(), ", no float scalar"));
  }
  return absl::OkStatus();
}

absl::Status FloatInput(const Graph& graph, int input, absl::string_view what) {
  if (input < 0 || input >= static_cast<int>(graph.inputs().size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": there is no input ", input));
  }
  const NamedValue& named = graph.inputs()[input];
  if (!IsFloat(graph.type(named.value).dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": the input `", named.name, "` is ",
                     graph.type(named.value).ToString(), ", no float tensor"));
  }
  return absl::OkStatus();
}

std::vector<bool> Only(const Graph& graph, int input) {
  std::vector<bool> active(graph.inputs().size(), false);
  active[input] = true;
  return active;
}

// The tensors of `type` that are 1 at one element and 0 elsewhere, in row-major
// order along a leading axis of extent `count`.
absl::StatusOr<Value> UnitTensors(GraphBuilder& b, const TensorType& type,
                                  const Dim& count) {
  const Value iota = b.Apply(Primitive::kIota, {}, {{"size", count}});
  const Shape square = {count, count};
  const Value unit =
      emit::Convert(b,
                    emit::Eq(b, b.BroadcastInDim(iota, square, {0}),
                             b.BroadcastInDim(iota, square, {1})),
                    type.dtype);
  Shape shape = {count};
  shape.insert(shape.end(), type.shape.begin(), type.shape.end());
  return b.Add(Primitive::kReshape, {{"shape", StaticValue::Dims(shape)}},
               {unit});
}

Shape Joined(const Shape& a, const Shape& b) {
  Shape joined = a;
  joined.insert(joined.end(), b.begin(), b.end());
  return joined;
}

}  // namespace

absl::StatusOr<Graph> ValueAndGrad(const Graph& graph,
                                   const std::vector<bool>& active,
                                   const RuleSet& rules,
                                   const TransformOptions& options) {
  CLEAVE_RETURN_IF_ERROR(OneScalar(graph, "grad"));
  CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp,
                          Vjp(graph, active, rules, options));
  GraphBuilder b(graph.context());
  std::vector<Value> arguments = AddInputsOf(b, graph);
  arguments.push_back(
      b.Constant(Exact(1), graph.type(graph.outputs()[0].value).dtype));
  const std::vector<Value> values = b.Inline(vjp.graph, arguments);
  absl::flat_hash_set<std::string> taken = NamesOf(graph.outputs());
  std::vector<NamedValue> outputs = {{graph.outputs()[0].name, values[0]}};
  size_t next = 1;
  for (size_t i = 0; i < active.size(); ++i) {
    if (!active[i]) continue;
    outputs.push_back(
        {NameWith(graph.inputs()[i].name, ".gradient", taken), values[next++]});
  }
  return std::move(b).Build(std::move(outputs));
}

absl::StatusOr<Graph> Grad(const Graph& graph, const std::vector<bool>& active,
                           const RuleSet& rules,
                           const TransformOptions& options) {
  CLEAVE_ASSIGN_OR_RETURN(const Graph both,
                          ValueAndGrad(graph, active, rules, options));
  return WithoutOutputsBefore(both, 1);
}

// The tangents of all unit tensors at once; the batch comes to stand last.
absl::StatusOr<Graph> JacobianForward(const Graph& graph, int input,
                                      const RuleSet& rules,
                                      const TransformOptions& options) {
  CLEAVE_RETURN_IF_ERROR(FloatInput(graph, input, "jacobian"));
  const TensorType type = graph.type(graph.inputs()[input].value);
  CLEAVE_ASSIGN_OR_RETURN(const Dim count, NumElements(type.shape));
  CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp, Jvp(graph, Only(graph, input),
                                                   rules, {true, options}));
  std::vector<int> in_axes(graph.inputs().size(), kNotMapped);
  in_axes.push_back(0);
  std::vector<int> out_axes(graph.outputs().size(), kNotMapped);
  out_axes.resize(jvp.graph.outputs().size(), 0);
  CLEAVE_ASSIGN_OR_RETURN(const Graph all, Vmap(jvp.graph, in_axes, count,
                                                out_axes, rules, options));
  GraphBuilder b(graph.context());
  std::vector<Value> arguments = AddInputsOf(b, graph);
  CLEAVE_ASSIGN_OR_RETURN(arguments.emplace_back(),
                          UnitTensors(b, type, count));
  const std::vector<Value> values = b.Inline(all, arguments);
  absl::flat_hash_set<std::string> taken;
  std::vector<NamedValue> outputs;
  size_t next = graph.outputs().size();
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (!jvp.has_tangent[i]) continue;
    const Value batched = values[next++];
    const TensorType of = graph.type(graph.outputs()[i].value);
    if (!IsFloat(of.dtype)) continue;
    CLEAVE_ASSIGN_OR_RETURN(
        const Value jacobian,
        b.Add(Primitive::kReshape,
              {{"shape", StaticValue::Dims(Joined(of.shape, type.shape))}},
              {emit::MoveAxis(b, batched, 0, of.rank())}));
    outputs.push_back(
        {NameWith(graph.outputs()[i].name, ".jacobian", taken), jacobian});
  }
  return std::move(b).Build(std::move(outputs));
}

// The cotangents of each output's unit tensors at once; the batch leads.
absl::StatusOr<Graph> JacobianReverse(const Graph& graph, int input,
                                      const RuleSet& rules,
                                      const TransformOptions& options) {
  CLEAVE_RETURN_IF_ERROR(FloatInput(graph, input, "jacobian"));
  const TensorType type = graph.type(graph.inputs()[input].value);
  CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp,
                          Vjp(graph, Only(graph, input), rules, options));
  GraphBuilder b(graph.context());
  const std::vector<Value> primals = AddInputsOf(b, graph);
  absl::flat_hash_set<std::string> taken;
  std::vector<NamedValue> outputs;
  const size_t inputs = primals.size();
  const size_t results = graph.outputs().size();
  size_t place = inputs;  // of the output's cotangent among the inputs
  for (const NamedValue& output : graph.outputs()) {
    const TensorType of = graph.type(output.value);
    if (!emit::IsInexact(of.dtype)) continue;
    const size_t own = place++;
    if (!IsFloat(of.dtype)) continue;
    CLEAVE_ASSIGN_OR_RETURN(const Dim count, NumElements(of.shape));
    std::vector<int> in_axes(vjp.graph.inputs().size(), kNotMapped);
    in_axes[own] = 0;
    std::vector<int> out_axes(results, kNotMapped);
    out_axes.push_back(0);
    CLEAVE_ASSIGN_OR_RETURN(const Graph all, Vmap(vjp.graph, in_axes, count,
                                                  out_axes, rules, options));
    std::vector<Value> arguments = primals;
    for (size_t i = inputs; i < all.inputs().size(); ++i) {
      if (i == own) {
        CLEAVE_ASSIGN_OR_RETURN(arguments.emplace_back(),
                                UnitTensors(b, of, count));
      } else {
        arguments.push_back(b.Zeros(all.type(all.inputs()[i].value)));
      }
    }
    const std::vector<Value> values = b.Inline(all, arguments);
    CLEAVE_ASSIGN_OR_RETURN(
        const Value jacobian,
        b.Add(Primitive::kReshape,
              {{"shape", StaticValue::Dims(Joined(of.shape, type.shape))}},
              {values[results]}));
    outputs.push_back({NameWith(output.name, ".jacobian", taken), jacobian});
  }
  return std::move(b).Build(std::move(outputs));
}

absl::StatusOr<Graph> Hessian(const Graph& graph, int input,
                              const RuleSet& rules,
                              const TransformOptions& options) {
  CLEAVE_RETURN_IF_ERROR(OneScalar(graph, "hessian"));
  CLEAVE_RETURN_IF_ERROR(FloatInput(graph, input, "hessian"));
  CLEAVE_ASSIGN_OR_RETURN(const Graph gradient,
                          Grad(graph, Only(graph, input), rules, options));
  CLEAVE_ASSIGN_OR_RETURN(const Graph jacobian,
                          JacobianForward(gradient, input, rules, options));
  GraphBuilder b(graph.context());
  const std::vector<Value> arguments = AddInputsOf(b, graph);
  const std::vector<Value> values = b.Inline(jacobian, arguments);
  return std::move(b).Build(
      {{absl::StrCat(graph.outputs()[0].name, ".hessian"), values[0]}});
}

absl::StatusOr<Graph> HessianVectorProduct(const Graph& graph,
                                           const std::vector<bool>& active,
                                           const RuleSet& rules,
                                           const TransformOptions& options) {
  CLEAVE_RETURN_IF_ERROR(OneScalar(graph, "hessian"));
  CLEAVE_ASSIGN_OR_RETURN(const Graph gradient,
                          Grad(graph, active, rules, options));
  CLEAVE_ASSIGN_OR_RETURN(const JvpResult jvp,
                          Jvp(gradient, active, rules, {true, options}));
  GraphBuilder b(graph.context());
  const std::vector<Value> arguments = AddInputsOf(b, jvp.graph);
  const std::vector<Value> values = b.Inline(jvp.graph, arguments);
  absl::flat_hash_set<std::string> taken;
  std::vector<NamedValue> outputs;
  size_t next = gradient.outputs().size();
  for (size_t i = 0; i < active.size(); ++i) {
    if (!active[i]) continue;
    outputs.push_back(
        {NameWith(graph.inputs()[i].name, ".product", taken), values[next++]});
  }
  return std::move(b).Build(std::move(outputs));
}

}  // namespace cleave
