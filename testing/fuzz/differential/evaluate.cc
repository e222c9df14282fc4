#include "testing/fuzz/differential/evaluate.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/ir/substitute.h"
#include "ops/dim.h"
#include "ops/reference/reference.h"
#include "ops/status_macros.h"

namespace cleave::fuzz {
namespace {

// A node with regions, which the reference kernels do not have.
absl::StatusOr<std::vector<Tensor>> EvaluateControl(
    const Graph& graph, Value v, const std::vector<Tensor>& operands) {
  GraphBuilder builder(graph.context());
  std::vector<Value> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    inputs.push_back(
        builder.Input(absl::StrCat("x", i), graph.type(graph.operands(v)[i])));
  }
  const Node& node = graph.node(v);
  const Value made =
      builder.AddTyped(node.op, node.attributes, node.type, inputs, 0);
  std::vector<NamedValue> outputs;
  for (size_t r = 0; r < graph.types(v).size(); ++r) {
    outputs.push_back(
        {absl::StrCat("y", r), builder.Result(made, static_cast<int>(r))});
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph one,
                          std::move(builder).Build(std::move(outputs)));
  return Interpret(one, operands);
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> EvaluateNodes(
    const Graph& graph, const std::vector<Tensor>& inputs,
    absl::FunctionRef<absl::Status(const EvaluatedNode&)> visit) {
  CLEAVE_ASSIGN_OR_RETURN(const DimValues dims, BindDims(graph, inputs));
  DimSubstitution numbers;
  for (const auto& [name, value] : dims) numbers.emplace(name, Dim(value));
  CLEAVE_ASSIGN_OR_RETURN(const Graph concrete, SubstituteDims(graph, numbers));
  std::vector<std::vector<Tensor>> values(concrete.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[concrete.inputs()[i].value.id] = {inputs[i]};
  }
  for (uint32_t id = 0; id < concrete.size(); ++id) {
    const Value v{id};
    const Primitive primitive = ToPrimitive(concrete.node(v).op);
    if (primitive == Primitive::kInput) continue;
    const auto operands = concrete.operands(v);
    if (primitive == Primitive::kResult) {
      values[id] = {
          values[operands[0].id][concrete.attributes(v).GetInt("index")]};
      continue;
    }
    if (primitive == Primitive::kNonzero) {
      return absl::UnimplementedError("an extent found on the way");
    }
    std::vector<Tensor> taken;
    for (const Value operand : operands) {
      taken.push_back(values[operand.id][0]);
    }
    if (ClassOf(primitive) == PrimitiveClass::kControl) {
      CLEAVE_ASSIGN_OR_RETURN(values[id], EvaluateControl(concrete, v, taken));
    } else {
      CLEAVE_ASSIGN_OR_RETURN(
          values[id], EvalReference(primitive, concrete.attributes(v), taken));
    }
    CLEAVE_RETURN_IF_ERROR(visit({concrete, v, primitive, taken, values[id]}));
  }
  std::vector<Tensor> outputs;
  for (const NamedValue& output : concrete.outputs()) {
    outputs.push_back(values[output.value.id][0]);
  }
  return outputs;
}

}  // namespace cleave::fuzz
