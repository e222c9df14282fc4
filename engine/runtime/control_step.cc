#include "engine/runtime/control_step.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/ir/rewrite_graph.h"
#include "engine/runtime/pack.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave::internal_kernel {
namespace {

// The graph's values as its outputs.
Graph GraphOf(const Graph& graph, const std::vector<Value>& values) {
  GraphCopy copy(graph);
  const Value last = *std::max_element(values.begin(), values.end());
  for (uint32_t id = 0; id <= last.id; ++id) {
    const Value v{id};
    if (!copy.of(v).valid()) copy.Set(v, copy.Keep(v));
  }
  std::vector<NamedValue> outputs;
  for (const Value v : values) {
    outputs.push_back({absl::StrCat("y", outputs.size()), copy.of(v)});
  }
  absl::StatusOr<Graph> result = std::move(copy.builder()).Build(outputs);
  CLEAVE_CHECK(result.ok()) << result.status().message();
  return *std::move(result);
}

}  // namespace

std::optional<ControlStep> ControlStep::Make(const Graph& step,
                                             Primitive primitive) {
  ControlStep control;
  for (uint32_t id = 0; id < step.size(); ++id) {
    const Value v{id};
    if (step.node(v).op != ToOpId(primitive)) continue;
    if (control.node_.valid()) return std::nullopt;
    control.node_ = v;
  }
  if (!control.node_.valid()) return std::nullopt;
  std::vector<Value> moved;
  for (const Value operand : step.operands(control.node_)) {
    size_t number = 0;
    while (number < step.inputs().size() &&
           step.inputs()[number].value != operand) {
      ++number;
    }
    if (number == step.inputs().size()) {
      number += moved.size();
      moved.push_back(operand);
    }
    control.operands_.push_back(number);
  }
  if (!moved.empty()) {
    // Operands come before the node: the copy ends before it.
    control.moved_ = GraphOf(step, moved);
  }
  control.results_.assign(step.types(control.node_).size(), -1);
  for (size_t i = 0; i < step.outputs().size(); ++i) {
    const Value v = step.outputs()[i].value;
    size_t result = 0;
    if (v != control.node_) {
      if (step.node(v).op != ToOpId(Primitive::kResult) ||
          step.operands(v)[0] != control.node_) {
        return std::nullopt;
      }
      result = step.attributes(v).GetInt("index");
    }
    if (control.results_[result] >= 0) return std::nullopt;
    control.results_[result] = static_cast<int>(i);
  }
  return control;
}

absl::StatusOr<std::vector<ArrayView>> ControlStep::Operands(
    absl::Span<const Tensor> inputs, const DimValues& dims,
    std::vector<Tensor>* moved) const {
  if (moved_.has_value()) {
    CLEAVE_ASSIGN_OR_RETURN(*moved,
                            Interpret(*moved_, inputs, {dims, {}, nullptr}));
  }
  std::vector<ArrayView> operands;
  for (const size_t number : operands_) {
    operands.push_back(ArrayOf(number < inputs.size()
                                   ? inputs[number]
                                   : (*moved)[number - inputs.size()]));
  }
  return operands;
}

}  // namespace cleave::internal_kernel
