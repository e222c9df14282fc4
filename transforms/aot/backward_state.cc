#include "transforms/aot/backward_state.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/eager/call.h"
#include "ops/status_macros.h"
#include "transforms/aot/joint_graph.h"
#include "transforms/table/names.h"

namespace cleave::aot {
namespace {

using functional::Flatten;
using functional::ShapeOf;
using functional::Unflatten;

// Whether a leaf is Tensor(), which stands for no cotangent.
bool IsAbsent(const functional::Tensor& leaf) {
  return !leaf.is_number() && !leaf.valid() &&
         leaf.status() == functional::Tensor().status();
}

}  // namespace

void BackwardState::Describe(const TracedProgram& program, const Graph& graph) {
  arguments_ = program.arguments;
  leaf_inputs_ = program.leaf_inputs;
  results_ = program.results;
  for (const TracedOutput& output : program.outputs) {
    leaf_outputs_.push_back(output.value);
  }
  for (size_t i = 0; i < leaf_inputs_.size(); ++i) {
    const TracedInput& input = program.inputs[leaf_inputs_[i]];
    if (input.updated >= 0) updated_.emplace(i, input.updated);
  }
  for (const NamedValue& output : graph.outputs()) {
    out_types_.push_back(graph.type(output.value));
  }
}

std::shared_ptr<BackwardState> BackwardState::OfCompiled(
    const TracedProgram& program, std::shared_ptr<AotGraph> graph,
    AotGraph::Result run) {
  std::shared_ptr<BackwardState> state(new BackwardState());
  state->Describe(program, graph->function().graph);
  state->active_ = graph->function().active;
  state->graph_ = std::move(graph);
  state->run_ = std::move(run);
  return state;
}

std::shared_ptr<BackwardState> BackwardState::OfTraced(
    const TracedProgram& program, const std::vector<bool>& active,
    std::shared_ptr<TraceRules> rules, std::vector<functional::Tensor> inputs) {
  std::shared_ptr<BackwardState> state(new BackwardState());
  state->Describe(program, program.graph);
  state->active_ = active;
  state->rules_ = std::move(rules);
  state->traced_ = program.graph;
  state->traced_inputs_ = std::move(inputs);
  return state;
}

absl::StatusOr<std::vector<std::optional<functional::Tensor>>>
BackwardState::PerOutput(
    const Tree& cotangents,
    const std::map<int, functional::Tensor>& updated) const {
  CLEAVE_RETURN_IF_ERROR(
      functional::CheckShape(cotangents, results_, "the cotangents"));
  std::vector<std::optional<functional::Tensor>> per_output(out_types_.size());
  const std::vector<functional::Tensor>& leaves = Flatten(cotangents);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (IsAbsent(leaves[i])) continue;
    if (!leaves[i].valid()) {
      return absl::InvalidArgumentError(
          leaves[i].is_number()
              ? absl::StrCat("cotangent ", i, " is a number without a dtype")
              : absl::StrCat("cotangent ", i, ": ",
                             leaves[i].status().message()));
    }
    if (leaf_outputs_[i] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("result ", i, " has no cotangent"));
    }
    per_output[leaf_outputs_[i]] = leaves[i];
  }
  for (const auto& [leaf, cotangent] : updated) {
    const auto it = updated_.find(leaf);
    if (it == updated_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the function does not write tensor ", leaf, " of its arguments"));
    }
    per_output[it->second] = cotangent;
  }
  return per_output;
}

absl::StatusOr<Tree> BackwardState::InArguments(
    std::vector<functional::Tensor> gradients) const {
  // Which of the gradients belongs to each input.
  std::vector<int> of_input(active_.size(), -1);
  int next = 0;
  for (size_t i = 0; i < active_.size(); ++i) {
    if (active_[i]) of_input[i] = next++;
  }
  std::vector<functional::Tensor> leaves;
  for (const int input : leaf_inputs_) {
    leaves.push_back(input >= 0 && of_input[input] >= 0
                         ? gradients[of_input[input]]
                         : functional::Tensor());
  }
  return Unflatten(arguments_, std::move(leaves));
}

std::shared_ptr<BackwardState> BackwardState::Next() const {
  std::shared_ptr<BackwardState> next(new BackwardState());
  // (arguments, cotangents) to the arguments' cotangents.
  next->arguments_ = TreeShape::Tuple({arguments_, results_});
  next->leaf_inputs_ = leaf_inputs_;
  next->active_ = active_;
  std::vector<int> cotangent_of(out_types_.size(), -1);
  for (size_t i = 0; i < out_types_.size(); ++i) {
    if (!InClass(out_types_[i].dtype, DTypeClass::kInexact)) continue;
    cotangent_of[i] = static_cast<int>(next->active_.size());
    next->active_.push_back(true);
  }
  for (const int output : leaf_outputs_) {
    next->leaf_inputs_.push_back(output < 0 ? -1 : cotangent_of[output]);
  }
  next->results_ = arguments_;
  std::vector<int> gradient_of(active_.size(), -1);
  int outputs = 0;
  for (size_t i = 0; i < active_.size(); ++i) {
    if (active_[i]) gradient_of[i] = outputs++;
  }
  for (const int input : leaf_inputs_) {
    next->leaf_outputs_.push_back(input < 0 ? -1 : gradient_of[input]);
  }
  return next;
}

absl::StatusOr<AotResult> BackwardState::Run(
    const Tree& cotangents, const std::map<int, functional::Tensor>& updated) {
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<std::optional<functional::Tensor>> per_output,
      PerOutput(cotangents, updated));
  return rules_ != nullptr ? RunTraced(per_output) : RunCompiled(per_output);
}

absl::StatusOr<AotResult> BackwardState::RunCompiled(
    const std::vector<std::optional<functional::Tensor>>& cotangents) {
  if (graph_ == nullptr) {
    // The backward of a backward: compiled and run when it is asked for.
    CLEAVE_ASSIGN_OR_RETURN(graph_, parent_->BackwardAsFunction());
  }
  if (!run_) {
    CLEAVE_ASSIGN_OR_RETURN(run_, graph_->Run(inputs_));
  }
  std::vector<std::optional<cleave::Tensor>> values;
  for (const std::optional<functional::Tensor>& cotangent : cotangents) {
    values.emplace_back();
    if (!cotangent) continue;
    CLEAVE_ASSIGN_OR_RETURN(values.back(), cotangent->Concrete());
  }
  CLEAVE_ASSIGN_OR_RETURN(std::vector<cleave::Tensor> gradients,
                          graph_->Backward(*run_, values));
  AotResult result;
  CLEAVE_ASSIGN_OR_RETURN(result.outputs,
                          InArguments(std::vector<functional::Tensor>(
                              gradients.begin(), gradients.end())));
  std::shared_ptr<BackwardState> next = Next();
  next->parent_ = graph_;
  next->inputs_ = run_->primals;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<cleave::Tensor> full,
                          graph_->FullCotangents(*run_, values));
  next->inputs_.insert(next->inputs_.end(), full.begin(), full.end());
  for (const cleave::Tensor& gradient : gradients) {
    next->out_types_.push_back(gradient.type());
  }
  result.backward = AotBackward(std::move(next));
  return result;
}

absl::StatusOr<AotResult> BackwardState::RunTraced(
    const std::vector<std::optional<functional::Tensor>>& cotangents) {
  JointGraphOptions options;
  options.active = active_;
  CLEAVE_ASSIGN_OR_RETURN(const JointGraph joint,
                          MakeJointGraph(traced_, options, *rules_->synthetic));
  Graph backward = WithoutOutputsBefore(joint.graph, joint.outputs);
  std::vector<functional::Tensor> inputs = traced_inputs_;
  for (size_t i = 0; i < cotangents.size(); ++i) {
    if (!InClass(out_types_[i].dtype, DTypeClass::kInexact)) {
      if (cotangents[i]) {
        return absl::InvalidArgumentError(absl::StrCat(
            "result ", i, " is of dtype ", DTypeName(out_types_[i].dtype),
            ": it has no cotangent"));
      }
      continue;
    }
    inputs.push_back(cotangents[i] ? cotangents[i]->Clone()
                                   : functional::Zeros(out_types_[i].dtype,
                                                       out_types_[i].shape));
  }
  CLEAVE_ASSIGN_OR_RETURN(std::vector<functional::Tensor> gradients,
                          functional::CallGraph(backward, inputs));
  AotResult result;
  std::shared_ptr<BackwardState> next = Next();
  for (const functional::Tensor& gradient : gradients) {
    next->out_types_.push_back(gradient.type());
  }
  CLEAVE_ASSIGN_OR_RETURN(result.outputs, InArguments(std::move(gradients)));
  next->rules_ = rules_;
  next->traced_ = std::move(backward);
  next->traced_inputs_ = std::move(inputs);
  result.backward = AotBackward(std::move(next));
  return result;
}

AotBackward::AotBackward(std::shared_ptr<BackwardState> state)
    : state_(std::move(state)) {}

absl::StatusOr<AotResult> AotBackward::operator()(
    const Tree& cotangents,
    const std::map<int, functional::Tensor>& updated) const {
  if (state_ == nullptr) {
    return absl::FailedPreconditionError(
        "no input of this call needs a gradient: there is no backward");
  }
  return state_->Run(cotangents, updated);
}

}  // namespace cleave::aot
