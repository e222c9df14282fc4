#include "transforms/vmap/vmap.h"

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/budget.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/table/rule_tables.h"
#include "transforms/vmap/batch.h"

namespace cleave {
namespace {

absl::Status CheckAxes(const Graph& graph, const std::vector<int>& in_axes,
                       const std::vector<int>& out_axes) {
  if (in_axes.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("vmap: ", in_axes.size(), " in_axes for ",
                     graph.inputs().size(), " inputs"));
  }
  if (out_axes.size() != graph.outputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("vmap: ", out_axes.size(), " out_axes for ",
                     graph.outputs().size(), " outputs"));
  }
  bool mapped = false;
  for (size_t i = 0; i < in_axes.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    const TensorType& type = graph.type(input.value);
    if (in_axes[i] == kNotMapped) continue;
    mapped = true;
    if (in_axes[i] == kSplit) {
      if (type.dtype == DType::kKey) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("vmap: in_axes[", i, "] splits a key, but `", input.name,
                       "` is ", type.ToString()));
    }
    if (in_axes[i] < 0 || in_axes[i] > type.rank()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "vmap: in_axes[", i, "] is ", in_axes[i], ", but `", input.name,
          "` is ", type.ToString(), ": 0 to ", type.rank(), ", or not mapped"));
    }
  }
  if (!mapped) {
    return absl::InvalidArgumentError("vmap: no input is mapped");
  }
  for (size_t j = 0; j < out_axes.size(); ++j) {
    const NamedValue& output = graph.outputs()[j];
    const TensorType& type = graph.type(output.value);
    if (out_axes[j] == kNotMapped) continue;
    if (out_axes[j] < 0 || out_axes[j] > type.rank()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "vmap: out_axes[", j, "] is ", out_axes[j], ", but `", output.name,
          "` is ", type.ToString(), ": 0 to ", type.rank(), ", or not mapped"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Graph> Vmap(const Graph& graph, const std::vector<int>& in_axes,
                           const Dim& batch, const std::vector<int>& out_axes,
                           const RuleSet& rules,
                           const TransformOptions& options) {
  const BudgetScope scope;
  CLEAVE_RETURN_IF_ERROR(CheckAxes(graph, in_axes, out_axes));
  if (graph.context() != rules.context()) {
    return absl::InvalidArgumentError(
        "vmap: the graph and the rules are of different contexts");
  }
  CLEAVE_ASSIGN_OR_RETURN(RuleTable * table, TableOf(rules, options));
  GraphBuilder builder(graph.context());
  std::vector<BatchedValue> arguments;
  for (size_t i = 0; i < in_axes.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    TensorType type = graph.type(input.value);
    const bool batched = in_axes[i] != kNotMapped;
    int axis = in_axes[i];
    if (axis >= 0) type.shape.insert(type.shape.begin() + axis, batch);
    Value value = builder.Input(input.name, type);
    if (axis == kSplit) {
      axis = type.rank();  // where random_split adds the keys
      CLEAVE_ASSIGN_OR_RETURN(value, builder.Add(Primitive::kRandomSplit,
                                                 {{"count", batch}}, {value}));
    }
    if (batched) value = emit::MoveAxis(builder, value, axis, 0);
    arguments.push_back({value, batched});
  }
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<BatchedValue> results,
                          BatchGraph(builder, graph, arguments, batch, *table));
  std::vector<NamedValue> outputs;
  for (size_t j = 0; j < results.size(); ++j) {
    const std::string& name = graph.outputs()[j].name;
    if (out_axes[j] == kNotMapped) {
      if (results[j].batched) {
        return absl::InvalidArgumentError(absl::StrCat(
            "vmap: the output `", name,
            "` depends on the batch, but out_axes says that it is not mapped"));
      }
      outputs.push_back({name, results[j].value});
      continue;
    }
    const Value front = InFront(builder, results[j], batch);
    outputs.push_back({name, emit::MoveAxis(builder, front, 0, out_axes[j])});
  }
  return std::move(builder).Build(std::move(outputs));
}

std::string FreshBatch(const Graph& graph) {
  std::set<std::string> used;
  for (const NamedValue& input : graph.inputs()) {
    for (const Dim& dim : graph.type(input.value).shape) {
      for (const std::string& name : dim.Variables()) used.insert(name);
    }
  }
  std::string name = "batch";
  for (int i = 1; used.count(name) != 0; ++i) name = absl::StrCat("batch_", i);
  return name;
}

}  // namespace cleave
