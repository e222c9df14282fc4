#include "transforms/aot/aot_graph.h"

#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/bind.h"
#include "engine/ir/interpreter.h"
#include "ops/status_macros.h"
#include "transforms/table/names.h"

namespace cleave::aot {
namespace {

// The types of a graph's inputs from number `first` on, with numbers for their
// extents.
absl::StatusOr<std::vector<TensorType>> InputTypesAt(const Graph& graph,
                                                     size_t first,
                                                     const DimValues& extents) {
  std::vector<TensorType> types;
  for (size_t i = first; i < graph.inputs().size(); ++i) {
    TensorType type = graph.type(graph.inputs()[i].value);
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> shape,
                            EvaluateShape(type.shape, extents));
    type.shape.assign(shape.begin(), shape.end());
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace

absl::StatusOr<std::shared_ptr<AotGraph>> AotGraph::Make(
    const Graph& graph, const std::vector<bool>& active,
    const std::vector<TensorType>& examples, GraphCompiler fw_compiler,
    const AotOptions& options, std::shared_ptr<TraceRules> rules,
    AotTrace* log) {
  if (fw_compiler == nullptr) {
    return absl::InvalidArgumentError("there is no fw_compiler");
  }
  std::shared_ptr<AotGraph> made(new AotGraph());
  CLEAVE_ASSIGN_OR_RETURN(
      made->function_,
      PartitionFunctionGraph(graph, active, options, *rules, log));
  made->examples_ = examples;
  made->fw_compiler_ = std::move(fw_compiler);
  made->options_ = options;
  made->rules_ = std::move(rules);
  const Partition& partition = made->function_.partition;
  // A call that the graph refuses is refused now: compiling would be for
  // nothing.
  CLEAVE_ASSIGN_OR_RETURN(const DimValues extents, BindTypes(graph, examples));
  for (const Graph* guarded :
       {&graph, &partition.forward, &partition.backward}) {
    CLEAVE_RETURN_IF_ERROR(CheckKnownGuards(guarded->guards(), extents));
  }
  PhaseClock clock(log);
  if (!made->function_.differentiated) {
    const GraphCompiler& compiler = options.inference_compiler
                                        ? options.inference_compiler
                                        : made->fw_compiler_;
    // A function that only moves views around leaves nothing to run.
    if (partition.forward.outputs().empty()) {
      CLEAVE_ASSIGN_OR_RETURN(
          made->forward_,
          CheckedGraph::Make(
              partition.forward, Half::kInference,
              [](absl::Span<const Tensor>) { return std::vector<Tensor>(); }));
      return made;
    }
    CLEAVE_ASSIGN_OR_RETURN(
        CompiledGraph inference,
        compiler(partition.forward, {examples, Half::kInference}));
    CLEAVE_ASSIGN_OR_RETURN(
        made->forward_, CheckedGraph::Make(partition.forward, Half::kInference,
                                           std::move(inference)));
    clock.Phase("compile inference");
    return made;
  }
  if (!partition.offloaded.empty() &&
      (options.offload.store == nullptr || options.offload.load == nullptr)) {
    return absl::InvalidArgumentError(
        "the partition offloads residuals, and there is no offload hook");
  }
  CLEAVE_ASSIGN_OR_RETURN(
      CompiledGraph forward,
      made->fw_compiler_(partition.forward, {examples, Half::kForward}));
  CLEAVE_ASSIGN_OR_RETURN(made->forward_,
                          CheckedGraph::Make(partition.forward, Half::kForward,
                                             std::move(forward)));
  clock.Phase("compile forward");
  // The backward's examples: what is saved, and cotangents like the outputs.
  CLEAVE_ASSIGN_OR_RETURN(
      std::vector<TensorType> backward_examples,
      InputTypesAt(partition.backward, /*first=*/0, extents));
  const GraphCompiler& bw_compiler =
      options.bw_compiler ? options.bw_compiler : made->fw_compiler_;
  CLEAVE_ASSIGN_OR_RETURN(
      CompiledGraph backward,
      bw_compiler(partition.backward,
                  {std::move(backward_examples), Half::kBackward}));
  CLEAVE_ASSIGN_OR_RETURN(
      made->backward_, CheckedGraph::Make(partition.backward, Half::kBackward,
                                          std::move(backward)));
  clock.Phase("compile backward");
  return made;
}

absl::StatusOr<AotGraph::Result> AotGraph::Run(
    std::vector<Tensor> inputs) const {
  CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> all, forward_(inputs));
  const size_t outputs = function_.graph.outputs().size();
  Result result;
  result.saved.assign(std::make_move_iterator(all.begin() + outputs),
                      std::make_move_iterator(all.end()));
  all.resize(outputs);
  result.outputs = std::move(all);
  result.primals = std::move(inputs);
  for (const int i : function_.partition.offloaded) {
    result.offloaded_types.push_back(result.saved[i].type());
    CLEAVE_ASSIGN_OR_RETURN(std::shared_ptr<const void> stored,
                            options_.offload.store(result.saved[i]));
    result.offloaded.push_back(std::move(stored));
    result.saved[i] = Tensor();
  }
  return result;
}

absl::StatusOr<std::vector<Tensor>> AotGraph::FullCotangents(
    const Result& result,
    absl::Span<const std::optional<Tensor>> cotangents) const {
  if (!backward_.exists()) {
    return absl::FailedPreconditionError(
        "no input of this call needs a gradient: there is no backward");
  }
  if (cotangents.size() != result.outputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(cotangents.size(), " cotangents for ",
                     result.outputs.size(), " outputs"));
  }
  std::vector<Tensor> full;
  for (size_t i = 0; i < cotangents.size(); ++i) {
    const Tensor& output = result.outputs[i];
    const std::string& name = function_.graph.outputs()[i].name;
    if (!InClass(output.type().dtype, DTypeClass::kInexact)) {
      if (cotangents[i].has_value()) {
        return absl::InvalidArgumentError(
            absl::StrCat("output `", name, "` is of dtype ",
                         DTypeName(output.dtype()), ": it has no cotangent"));
      }
      continue;
    }
    if (!cotangents[i].has_value()) {
      full.push_back(Tensor(output.dtype(), output.shape()));
      continue;
    }
    if (cotangents[i]->type() != output.type()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the cotangent of `", name, "` is ", cotangents[i]->type().ToString(),
          ", the output ", output.type().ToString()));
    }
    full.push_back(*cotangents[i]);
  }
  return full;
}

absl::StatusOr<std::vector<Tensor>> AotGraph::Backward(
    const Result& result,
    absl::Span<const std::optional<Tensor>> cotangents) const {
  CLEAVE_ASSIGN_OR_RETURN(std::vector<Tensor> full,
                          FullCotangents(result, cotangents));
  std::vector<Tensor> inputs = result.saved;
  for (size_t i = 0; i < result.offloaded.size(); ++i) {
    Tensor& loaded = inputs[function_.partition.offloaded[i]];
    CLEAVE_ASSIGN_OR_RETURN(loaded, options_.offload.load(result.offloaded[i]));
    if (loaded.type() != result.offloaded_types[i] ||
        (loaded.data() == nullptr && loaded.size() > 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the offload hook loads residual ", i, " as ",
                       loaded.type().ToString(),
                       loaded.data() == nullptr ? " (no data)" : "", ", not ",
                       result.offloaded_types[i].ToString()));
    }
  }
  inputs.insert(inputs.end(), full.begin(), full.end());
  return backward_(inputs);
}

absl::StatusOr<std::shared_ptr<AotGraph>> AotGraph::BackwardAsFunction() const {
  if (backward_function_ != nullptr) return backward_function_;
  if (!backward_.exists()) {
    return absl::FailedPreconditionError(
        "no input of this call needs a gradient: there is no backward");
  }
  const Graph backward = WithoutOutputsBefore(function_.joint.graph,
                                              function_.graph.outputs().size());
  CLEAVE_ASSIGN_OR_RETURN(const DimValues extents,
                          BindTypes(function_.graph, examples_));
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<TensorType> cotangents,
      InputTypesAt(backward, function_.graph.inputs().size(), extents));
  std::vector<TensorType> examples = examples_;
  examples.insert(examples.end(), cotangents.begin(), cotangents.end());
  std::vector<bool> active = function_.active;
  active.resize(examples.size(), true);
  CLEAVE_ASSIGN_OR_RETURN(
      backward_function_,
      Make(backward, active, examples, fw_compiler_, options_, rules_,
           /*log=*/nullptr));
  return backward_function_;
}

}  // namespace cleave::aot
