// The context that an example is given, and the first steps of all examples.
//
//   CLEAVE_ASSIGN_OR_RETURN(const auto rules,
//                           LoadExampleRules(context, "mlp.rules"));
//   CLEAVE_ASSIGN_OR_RETURN(const Graph f, rules->Function("loss"));
//   CLEAVE_ASSIGN_OR_RETURN(const Kernel kernel, CompileCalls(f, *rules));

#ifndef CLEAVE_TOOLS_EXAMPLES_EXAMPLE_CONTEXT_H_
#define CLEAVE_TOOLS_EXAMPLES_EXAMPLE_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "ops/tensor.h"

namespace cleave {

struct ExampleContext {
  std::string rules;   // the folder of the shipped rules
  std::string folder;  // of the examples: their rule files and data
  // Whether times are printed, which differ from run to run.
  bool times = true;
};

// The shipped rules, without the ops of hosts, and a rule file of the examples
// if one is named. InvalidArgument with the diagnostics where there are any;
// errors of ReadRuleFiles.
absl::StatusOr<std::shared_ptr<const RuleSet>> LoadExampleRules(
    const ExampleContext& context, const std::string& file = "");

// A graph that may call ops as a kernel. Errors of Expand and Compile.
absl::StatusOr<Kernel> CompileCalls(const Graph& graph, const RuleSet& rules);

// The tensors that the function `drawn` of the rules, of one key, draws from
// the key `seed`.
absl::StatusOr<std::vector<Tensor>> Drawn(const RuleSet& rules, int64_t seed);

// Element i along the first axis.
Tensor Slice(const Tensor& tensor, int64_t i);

// Elements `begin` to `end` along the first axis.
Tensor Slices(const Tensor& tensor, int64_t begin, int64_t end);

// The shortest of five times that `run` takes, in milliseconds, after a run
// that is not timed. Its first error.
absl::StatusOr<double> Milliseconds(const std::function<absl::Status()>& run);

// A relative difference in words: "to 12 digits", or how large it is if it is
// larger.
std::string Agreement(double difference, int digits = 12);

// A tensor of numbers with its elements rounded to six digits, on one line:
// what a run prints is then the same on all machines.
std::string RoundedText(const Tensor& tensor);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_EXAMPLES_EXAMPLE_CONTEXT_H_
