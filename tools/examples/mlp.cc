// Two layers learn to read handwritten digits. The model, its loss and the
// optimizer are rules; here they are put together, compiled once, and run.

#include <algorithm>
#include <chrono>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/runtime/safetensors.h"
#include "ops/status_macros.h"
#include "tools/examples/examples.h"
#include "transforms/vjp/derivatives.h"

namespace cleave {
namespace {

constexpr int kParameters = 4;  // w1, b1, w2, b2: the first inputs of `loss`
constexpr int64_t kBatch = 32;
constexpr int kEpochs = 10;

// A step of training as one graph. Inputs and first outputs: each parameter,
// with its two moments; then inputs the data and the number of the step, and
// the loss as the last output.
absl::StatusOr<Graph> TrainingStep(const RuleSet& rules) {
  CLEAVE_ASSIGN_OR_RETURN(const Graph loss, rules.Function("loss"));
  std::vector<bool> active(loss.inputs().size(), false);
  std::fill_n(active.begin(), kParameters, true);
  CLEAVE_ASSIGN_OR_RETURN(const Graph value_and_grad,
                          ValueAndGrad(loss, active, rules));

  GraphBuilder b(rules.context());
  std::vector<Value> inputs;
  std::vector<Value> moments;
  for (size_t i = 0; i < active.size(); ++i) {
    const NamedValue& input = value_and_grad.inputs()[i];
    const TensorType& type = value_and_grad.type(input.value);
    inputs.push_back(b.Input(input.name, type));
    if (!active[i]) continue;
    moments.push_back(b.Input(absl::StrCat(input.name, ".m"), type));
    moments.push_back(b.Input(absl::StrCat(input.name, ".v"), type));
  }
  const Value step = b.Input("step", {DType::kF32, {}});

  // The loss, then its gradients.
  const std::vector<Value> results = b.Inline(value_and_grad, inputs);
  std::vector<NamedValue> outputs;
  for (int i = 0; i < kParameters; ++i) {
    CLEAVE_ASSIGN_OR_RETURN(const auto updated,
                            rules.Call(b, "adam",
                                       {{"w", inputs[i]},
                                        {"m", moments[2 * i]},
                                        {"v", moments[2 * i + 1]},
                                        {"dw", results[1 + i]},
                                        {"step", step}},
                                       {}));
    const std::string& name = value_and_grad.inputs()[i].name;
    outputs.push_back({name, *updated[0]});
    outputs.push_back({absl::StrCat(name, ".m"), *updated[1]});
    outputs.push_back({absl::StrCat(name, ".v"), *updated[2]});
  }
  outputs.push_back({"loss", results[0]});
  return *std::move(b).Build(std::move(outputs));
}

using Clock = std::chrono::steady_clock;

double Seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

Tensor Key(int64_t seed) { return Tensor::FromInts(DType::kKey, {}, {seed}); }

}  // namespace

absl::Status RunMlp(const ExampleContext& context, std::ostream& out) {
  CLEAVE_ASSIGN_OR_RETURN(const auto rules,
                          LoadExampleRules(context, "mlp.rules"));
  CLEAVE_ASSIGN_OR_RETURN(
      const TensorMap digits,
      ReadSafetensors(absl::StrCat(context.folder, "/digits.safetensors")));
  if (digits.count("images") == 0 || digits.count("labels") == 0) {
    return absl::NotFoundError("there are no images or no labels");
  }
  const Tensor& images = digits.at("images");
  const Tensor& labels = digits.at("labels");

  // Everything that runs is compiled here, each once.
  const Clock::time_point start = Clock::now();
  const auto compile = [&](const char* name) -> absl::StatusOr<Kernel> {
    CLEAVE_ASSIGN_OR_RETURN(const Graph graph, rules->Function(name));
    return CompileCalls(graph, *rules);
  };
  CLEAVE_ASSIGN_OR_RETURN(const Graph step_graph, TrainingStep(*rules));
  CLEAVE_ASSIGN_OR_RETURN(const Kernel step, CompileCalls(step_graph, *rules));
  CLEAVE_ASSIGN_OR_RETURN(const Kernel initial, compile("initial"));
  CLEAVE_ASSIGN_OR_RETURN(const Kernel order, compile("order"));
  CLEAVE_ASSIGN_OR_RETURN(const Kernel accuracy, compile("accuracy"));
  const double compiling = Seconds(start);
  const Clock::time_point compiled = Clock::now();

  // The parameters, each with its moments, which are zero at first.
  std::vector<Tensor> state;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> weights,
                          initial.Run({Key(1)}));
  for (const Tensor& weight : weights) {
    state.push_back(weight);
    state.push_back(Tensor(weight.dtype(), weight.shape()));
    state.push_back(Tensor(weight.dtype(), weight.shape()));
  }

  int64_t steps = 0;
  for (int epoch = 1; epoch <= kEpochs; ++epoch) {
    double total = 0;
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<Tensor> shuffled,
        order.Run({Key(2), Tensor::FromInts(DType::kI64, {}, {epoch})}));
    const int64_t count = shuffled[0].size();
    if (epoch == 1) {
      out << count << " images to learn from, " << labels.size() - count
          << " held out\n";
    }
    // The last batch is smaller: kernels serve all extents.
    for (int64_t begin = 0; begin < count; begin += kBatch) {
      const int64_t end = std::min(begin + kBatch, count);
      std::vector<Tensor> inputs = std::move(state);
      inputs.insert(inputs.end(),
                    {images, labels, Slices(shuffled[0], begin, end),
                     Tensor::Scalar(DType::kF32, ++steps)});
      CLEAVE_ASSIGN_OR_RETURN(state, step.Run(inputs));
      total += state.back().GetDouble(0) * (end - begin);
      state.pop_back();
    }
    std::vector<Tensor> inputs;
    for (int i = 0; i < kParameters; ++i) inputs.push_back(state[3 * i]);
    inputs.insert(inputs.end(), {images, labels});
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> share,
                            accuracy.Run(inputs));
    out << absl::StrFormat(
        "epoch %2d: loss %.3f, %.1f %% of the held out read right\n", epoch,
        total / count, 100 * share[0].GetDouble(0));
  }
  if (context.times) {
    out << absl::StrFormat("%d steps in %.2f s, after %.2f s of compiling\n",
                           steps, Seconds(compiled), compiling);
  }
  return absl::OkStatus();
}

}  // namespace cleave
