// How strongly each example pulls at the weights: the norm of its own gradient,
// which differential privacy clips, and importance sampling weighs by. A rule
// says it for one example; vmap makes the function of all of them.

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "ops/status_macros.h"
#include "tools/examples/examples.h"
#include "transforms/vmap/vmap.h"

namespace cleave {

absl::Status RunPerSampleGradients(const ExampleContext& context,
                                   std::ostream& out) {
  CLEAVE_ASSIGN_OR_RETURN(
      const auto rules,
      LoadExampleRules(context, "per_sample_gradients.rules"));
  CLEAVE_ASSIGN_OR_RETURN(const Graph one, rules->Function("gradient_norm"));
  // Inputs w1, b1, w2 and b2 are the same for all examples; x and the target
  // have the batch as axis 0.
  CLEAVE_ASSIGN_OR_RETURN(const Graph all,
                          Vmap(one,
                               {kNotMapped, kNotMapped, kNotMapped, kNotMapped,
                                /*x=*/0, /*target=*/0},
                               Dim::Variable("B"), /*out_axes=*/{0}, *rules));
  CLEAVE_ASSIGN_OR_RETURN(const Kernel one_kernel, CompileCalls(one, *rules));
  CLEAVE_ASSIGN_OR_RETURN(const Kernel all_kernel, CompileCalls(all, *rules));

  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> batch,
                          Drawn(*rules, /*seed=*/1));
  const std::vector<Tensor> weights(batch.begin(), batch.begin() + 4);
  const int64_t count = batch[4].shape()[0];
  std::vector<std::vector<Tensor>> examples;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Tensor> inputs = weights;
    inputs.push_back(Slice(batch[4], i));
    inputs.push_back(Slice(batch[5], i));
    examples.push_back(std::move(inputs));
  }

  std::vector<Tensor> norms;
  CLEAVE_ASSIGN_OR_RETURN(
      const double all_milliseconds, Milliseconds([&]() -> absl::Status {
        CLEAVE_ASSIGN_OR_RETURN(norms, all_kernel.Run(batch));
        return absl::OkStatus();
      }));
  std::vector<double> looped(count);
  CLEAVE_ASSIGN_OR_RETURN(
      const double loop_milliseconds, Milliseconds([&]() -> absl::Status {
        for (int64_t i = 0; i < count; ++i) {
          CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> norm,
                                  one_kernel.Run(examples[i]));
          looped[i] = norm[0].GetDouble(0);
        }
        return absl::OkStatus();
      }));

  double difference = 0;
  int64_t strongest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double norm = norms[0].GetDouble(i);
    difference = std::max(difference, std::abs(norm - looped[i]) / looped[i]);
    if (norm > norms[0].GetDouble(strongest)) strongest = i;
  }
  out << absl::StrFormat(
      "%d norms; the largest is that of example %d: %.6f\n"
      "the loop over the examples gives the same %s\n",
      count, strongest, norms[0].GetDouble(strongest), Agreement(difference));
  if (context.times) {
    out << absl::StrFormat("vmap %.2f ms, loop %.2f ms\n", all_milliseconds,
                           loop_milliseconds);
  }
  return absl::OkStatus();
}

}  // namespace cleave
