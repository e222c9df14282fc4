#include "transforms/aot/backward_state.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/eager/call.h"
#include "ops/status_macros.h"
#include "transforms/partition/joint_graph.h"
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

std::shared_ptr<const BackwardTrees> BackwardTrees::Of(
    const TracedProgram& program, const Graph& graph,
    std::vector<bool> active) {
  auto trees = std::make_shared<BackwardTrees>();
  trees->arguments = program.arguments;
  trees->leaf_inputs = program.leaf_inputs;
  trees->results = program.results;
  for (const TracedOutput& output : program.outputs) {
    trees->leaf_outputs.push_back(output.value);
  }
  for (size_t i = 0; i < program.leaf_inputs.size(); ++i) {
    const TracedInput& input = program.inputs[program.leaf_inputs[i]];
    if (input.updated >= 0) trees->updated.emplace(i, input.updated);
  }
  trees->active = std::move(active);
  for (const NamedValue& output : graph.outputs()) {
    trees->out_types.push_back(graph.type(output.value));
  }
  return trees;
}

std::shared_ptr<BackwardState> BackwardState::Make() {
  // One allocation, though the constructor is private.
  struct Constructible : BackwardState {};
  return std::make_shared<Constructible>();
}

std::shared_ptr<BackwardState> BackwardState::OfCompiled(
    std::shared_ptr<const BackwardTrees> trees, std::shared_ptr<AotGraph> graph,
    AotGraph::Result run) {
  std::shared_ptr<BackwardState> state = Make();
  state->trees_ = std::move(trees);
  state->graph_ = std::move(graph);
  state->run_ = std::move(run);
  return state;
}

std::shared_ptr<BackwardState> BackwardState::OfTraced(
    std::shared_ptr<const BackwardTrees> trees, const Graph& graph,
    std::shared_ptr<TraceRules> rules, std::vector<functional::Tensor> inputs) {
  std::shared_ptr<BackwardState> state = Make();
  state->trees_ = std::move(trees);
  state->traced_ = std::make_unique<const Traced>(
      Traced{std::move(rules), graph, std::move(inputs)});
  return state;
}

absl::StatusOr<std::vector<std::optional<functional::Tensor>>>
BackwardState::PerOutput(
    const Tree& cotangents,
    const std::map<int, functional::Tensor>& updated) const {
  CLEAVE_RETURN_IF_ERROR(
      functional::CheckShape(cotangents, trees_->results, "the cotangents"));
  std::vector<std::optional<functional::Tensor>> per_output(
      trees_->out_types.size());
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
    if (trees_->leaf_outputs[i] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("result ", i, " has no cotangent"));
    }
    per_output[trees_->leaf_outputs[i]] = leaves[i];
  }
  for (const auto& [leaf, cotangent] : updated) {
    const auto it = trees_->updated.find(leaf);
    if (it == trees_->updated.end()) {
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
  std::vector<int> of_input(trees_->active.size(), -1);
  int next = 0;
  for (size_t i = 0; i < trees_->active.size(); ++i) {
    if (trees_->active[i]) of_input[i] = next++;
  }
  std::vector<functional::Tensor> leaves;
  for (const int input : trees_->leaf_inputs) {
    leaves.push_back(input >= 0 && of_input[input] >= 0
                         ? gradients[of_input[input]]
                         : functional::Tensor());
  }
  return Unflatten(trees_->arguments, std::move(leaves));
}

std::shared_ptr<const BackwardTrees> BackwardState::Next(
    std::vector<TensorType> out_types) const {
  auto next = std::make_shared<BackwardTrees>();
  // (arguments, cotangents) to the arguments' cotangents.
  next->arguments = TreeShape::Tuple({trees_->arguments, trees_->results});
  next->leaf_inputs = trees_->leaf_inputs;
  next->active = trees_->active;
  std::vector<int> cotangent_of(trees_->out_types.size(), -1);
  for (size_t i = 0; i < trees_->out_types.size(); ++i) {
    if (!InClass(trees_->out_types[i].dtype, DTypeClass::kInexact)) continue;
    cotangent_of[i] = static_cast<int>(next->active.size());
    next->active.push_back(true);
  }
  for (const int output : trees_->leaf_outputs) {
    next->leaf_inputs.push_back(output < 0 ? -1 : cotangent_of[output]);
  }
  next->results = trees_->arguments;
  std::vector<int> gradient_of(trees_->active.size(), -1);
  int outputs = 0;
  for (size_t i = 0; i < trees_->active.size(); ++i) {
    if (trees_->active[i]) gradient_of[i] = outputs++;
  }
  for (const int input : trees_->leaf_inputs) {
    next->leaf_outputs.push_back(input < 0 ? -1 : gradient_of[input]);
  }
  next->out_types = std::move(out_types);
  return next;
}

absl::StatusOr<AotResult> BackwardState::Run(
    const Tree& cotangents, const std::map<int, functional::Tensor>& updated) {
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<std::optional<functional::Tensor>> per_output,
      PerOutput(cotangents, updated));
  return traced_ != nullptr ? RunTraced(per_output) : RunCompiled(per_output);
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
  std::vector<TensorType> types;
  for (const cleave::Tensor& gradient : gradients) {
    types.push_back(gradient.type());
  }
  std::shared_ptr<BackwardState> next = Make();
  next->trees_ = Next(std::move(types));
  next->parent_ = graph_;
  next->inputs_ = run_->primals;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<cleave::Tensor> full,
                          graph_->FullCotangents(*run_, values));
  next->inputs_.insert(next->inputs_.end(), full.begin(), full.end());
  result.backward = AotBackward(std::move(next));
  return result;
}

absl::StatusOr<AotResult> BackwardState::RunTraced(
    const std::vector<std::optional<functional::Tensor>>& cotangents) {
  JointGraphOptions options;
  options.active = trees_->active;
  CLEAVE_ASSIGN_OR_RETURN(const JointGraph joint,
                          MakeJointGraph(traced_->graph, options,
                                         *traced_->rules->decompositions.rules,
                                         traced_->rules->transform));
  Graph backward = WithoutOutputsBefore(joint.graph, joint.outputs);
  std::vector<functional::Tensor> inputs = traced_->inputs;
  for (size_t i = 0; i < cotangents.size(); ++i) {
    if (!InClass(trees_->out_types[i].dtype, DTypeClass::kInexact)) {
      if (cotangents[i]) {
        return absl::InvalidArgumentError(absl::StrCat(
            "result ", i, " is of dtype ",
            DTypeName(trees_->out_types[i].dtype), ": it has no cotangent"));
      }
      continue;
    }
    inputs.push_back(cotangents[i]
                         ? cotangents[i]->Clone()
                         : functional::Zeros(trees_->out_types[i].dtype,
                                             trees_->out_types[i].shape));
  }
  CLEAVE_ASSIGN_OR_RETURN(std::vector<functional::Tensor> gradients,
                          functional::CallGraph(backward, inputs));
  AotResult result;
  std::vector<TensorType> types;
  for (const functional::Tensor& gradient : gradients) {
    types.push_back(gradient.type());
  }
  std::shared_ptr<BackwardState> next = Make();
  next->trees_ = Next(std::move(types));
  CLEAVE_ASSIGN_OR_RETURN(result.outputs, InArguments(std::move(gradients)));
  next->traced_ = std::make_unique<const Traced>(
      Traced{traced_->rules, std::move(backward), std::move(inputs)});
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
