#include "transforms/functional/inline_graph.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "transforms/functional/storage.h"
#include "transforms/functional/tensor_access.h"

namespace cleave::functional {

absl::StatusOr<std::vector<Tensor>> InlineGraph(
    const Graph& graph, absl::Span<const Tensor> inputs) {
  CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<Recorder> recorder,
                          CurrentRecorder());
  CLEAVE_RETURN_IF_ERROR(recorder->CheckOpen());
  if (graph.context() != recorder->builder().context()) {
    return absl::InvalidArgumentError(
        "the graph is of another context than the rules in use");
  }
  if (inputs.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(inputs.size(), " tensors are given for ",
                     graph.inputs().size(), " inputs"));
  }
  std::vector<Value> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const NamedValue& input = graph.inputs()[i];
    CLEAVE_ASSIGN_OR_RETURN(const Value argument,
                            TensorAccess::Read(*recorder, inputs[i]));
    if (recorder->builder().type(argument) != graph.type(input.value)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the input `", input.name, "` is of type ",
          recorder->builder().type(argument).ToString(), ", but is declared ",
          graph.type(input.value).ToString()));
    }
    arguments.push_back(argument);
  }
  std::vector<Tensor> outputs;
  for (const Value node : recorder->builder().Inline(graph, arguments)) {
    outputs.push_back(TensorAccess::Make(*recorder, node));
  }
  CLEAVE_RETURN_IF_ERROR(recorder->Done());
  return outputs;
}

}  // namespace cleave::functional
