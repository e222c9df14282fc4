// CallGraph: a graph's nodes as ops.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/eager/call.h"
#include "engine/eager/match_dims.h"
#include "engine/eager/storage.h"
#include "engine/eager/tensor_access.h"
#include "engine/ir/bind.h"
#include "engine/ir/count_readers.h"
#include "engine/ir/substitute.h"
#include "ops/status_macros.h"

namespace cleave::functional {
namespace {

// Runs the nodes one by one, as ops.
absl::StatusOr<std::vector<Tensor>> RunNodes(const Graph& graph,
                                             const std::vector<Tensor>& inputs,
                                             std::map<std::string, Dim> dims) {
  for (const ShapeGuard& guard : graph.guards()) {
    const ShapeGuard at = SubstituteDims(guard, dims);
    // One that speaks of a size that is not known yet is checked by its node.
    if (at.lhs.IsConstant() && at.rhs.IsConstant()) {
      CLEAVE_RETURN_IF_ERROR(CheckGuard(at, {}));
    }
  }
  std::vector<int> readers = CountReaders(graph);
  // Per node, its results.
  std::vector<std::vector<Tensor>> values(graph.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[graph.inputs()[i].value.id] = {inputs[i]};
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value at{id};
    const Node& node = graph.node(at);
    if (node.op == ToOpId(Primitive::kInput)) continue;
    if (node.op == ToOpId(Primitive::kResult)) {
      const int64_t index = graph.attributes(at).GetInt("index");
      values[id] = {values[graph.operands(at)[0].id][index]};
    } else {
      CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<Recorder> recorder,
                              CurrentRecorder());
      GraphBuilder& builder = recorder->builder();
      std::vector<Value> operands;
      for (const Value operand : graph.operands(at)) {
        CLEAVE_ASSIGN_OR_RETURN(
            const Value value,
            TensorAccess::Read(*recorder, values[operand.id][0]));
        operands.push_back(value);
      }
      Context& context = *graph.context();
      CLEAVE_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                              SubstituteDims(graph.types(at), dims));
      CLEAVE_ASSIGN_OR_RETURN(const Attributes attributes,
                              SubstituteDims(graph.attributes(at), dims));
      const Value copy =
          builder.AddTyped(node.op, context.Intern(attributes),
                           context.Intern(types), operands, node.provenance);
      for (size_t i = 0; i < types.size(); ++i) {
        values[id].push_back(TensorAccess::Make(
            *recorder, builder.Result(copy, static_cast<int>(i))));
      }
      CLEAVE_RETURN_IF_ERROR(recorder->Done());
      // A size that the node found.
      std::vector<DimMatch> found;
      for (size_t i = 0; i < types.size(); ++i) {
        Tensor& value = values[id][i];
        CLEAVE_RETURN_IF_ERROR(value.status());
        value = TensorAccess::Make(TensorAccess::StorageOf(value));
        for (size_t d = 0; d < types[i].shape.size(); ++d) {
          if (types[i].shape[d].IsConstant()) continue;
          found.push_back({types[i].shape[d], value.shape()[d],
                           absl::StrCat("axis ", d, " of a result")});
        }
      }
      CLEAVE_RETURN_IF_ERROR(MatchDims(std::move(found), &dims));
    }
    for (const Value operand : graph.operands(at)) {
      if (--readers[operand.id] == 0) values[operand.id].clear();
    }
  }
  // Each output is a storage of its own, also of an input or another output.
  std::set<uint32_t> taken;
  for (const NamedValue& input : graph.inputs()) taken.insert(input.value.id);
  std::vector<Tensor> outputs;
  for (const NamedValue& output : graph.outputs()) {
    const Tensor& value = values[output.value.id][0];
    outputs.push_back(taken.insert(output.value.id).second ? value
                                                           : value.Clone());
  }
  return outputs;
}

absl::StatusOr<std::vector<Tensor>> CallGraphIn(
    Recorder& recorder, const Graph& graph, const std::vector<Tensor>& inputs) {
  if (graph.context() != recorder.builder().context()) {
    return absl::InvalidArgumentError(
        "the graph is of another context than the ops around it");
  }
  if (inputs.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(inputs.size(), " tensors for the ", graph.inputs().size(),
                     " inputs of a graph"));
  }
  std::vector<DimMatch> equations;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    const TensorType& type = graph.type(input.value);
    CLEAVE_RETURN_IF_ERROR(inputs[i].status());
    if (!inputs[i].valid() || inputs[i].dtype() != type.dtype ||
        inputs[i].rank() != type.rank()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", input.name, " of a graph is ", type.ToString(), ", not ",
          inputs[i].valid() ? inputs[i].type().ToString()
                            : inputs[i].ToString()));
    }
    for (int d = 0; d < type.rank(); ++d) {
      equations.push_back({type.shape[d], inputs[i].shape()[d],
                           absl::StrCat("axis ", d, " of ", input.name)});
    }
  }
  std::map<std::string, Dim> dims;
  CLEAVE_RETURN_IF_ERROR(MatchDims(std::move(equations), &dims));
  if (!recorder.accumulates()) return RunNodes(graph, inputs, dims);
  std::vector<Value> arguments;
  for (const Tensor& input : inputs) {
    CLEAVE_ASSIGN_OR_RETURN(const Value value,
                            TensorAccess::Read(recorder, input));
    const NamedValue& name = graph.inputs()[arguments.size()];
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<TensorType> types,
                            SubstituteDims(graph.types(name.value), dims));
    const TensorType& declared = types.front();
    // A symbolic extent may be the number that is declared, or not.
    if (recorder.builder().type(value) != declared) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", name.name, " of a graph is ", declared.ToString(), ", not ",
          recorder.builder().type(value).ToString()));
    }
    arguments.push_back(value);
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph at_extents, SubstituteDims(graph, dims));
  const std::vector<Value> outputs =
      recorder.builder().Inline(at_extents, arguments);
  CLEAVE_RETURN_IF_ERROR(recorder.builder().status());
  std::vector<Tensor> results;
  for (const Value output : outputs) {
    results.push_back(TensorAccess::Make(recorder, output));
  }
  CLEAVE_RETURN_IF_ERROR(recorder.Done());
  for (Tensor& result : results) {
    CLEAVE_RETURN_IF_ERROR(TensorAccess::Settle(recorder, &result));
  }
  return results;
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> CallGraph(
    const Graph& graph, const std::vector<Tensor>& inputs) {
  CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<Recorder> recorder,
                          CurrentRecorder());
  absl::StatusOr<std::vector<Tensor>> results =
      CallGraphIn(*recorder, graph, inputs);
  if (!results.ok()) recorder->Mistake(results.status());
  return results;
}

}  // namespace cleave::functional
