// EvaluateExample: the results of the call of an `example` item, of f(x) as of
// `jvp f(x)(dx)` and `vjp f(x)(dy)`.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_EVALUATE_EXAMPLE_H_
#define CLEAVE_TESTING_CHECK_LAYERS_EVALUATE_EXAMPLE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"
#include "testing/check/layers/read_example.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

struct ExampleResults {
  // Names of results; of a `vjp` those of the inputs.
  std::vector<std::string> names;
  std::vector<Tensor> values;
  // The graphs of f(x), from which its accuracy follows.
  std::optional<CallGraphs> graphs;
};

// `op` is the op's item, or the `jvp` item of a primitive; `item` the `example`
// item that `example` was read from. A `vjp` is taken by the inputs that the
// item's right side names, or by all. Errors of the call, its transforms and
// Interpret; InvalidArgument for a tangent or cotangent of what has none.
absl::StatusOr<ExampleResults> EvaluateExample(const RuleSet& rules,
                                               const Item& op,
                                               const ExampleCall& example,
                                               const Item& item);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_EVALUATE_EXAMPLE_H_
