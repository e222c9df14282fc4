// A function on tensors, compiled ahead of time together with its reverse mode:
// what functorch's `aot_function` is shown on, x.sin().cos().

#include <memory>
#include <ostream>
#include <vector>

#include "engine/eager/core_ops.h"
#include "engine/eager/session.h"
#include "engine/eager/tensor.h"
#include "ops/status_macros.h"
#include "tools/examples/examples.h"
#include "transforms/aot/aot_function.h"
#include "transforms/aot/graph_compiler.h"

namespace cleave {

absl::Status RunSinCos(const ExampleContext& context, std::ostream& out) {
  CLEAVE_ASSIGN_OR_RETURN(const std::shared_ptr<const RuleSet> rules,
                          LoadExampleRules(context));
  functional::Session session(rules);
  const functional::SessionScope scope(session);

  // A compiler is any function from a graph to what runs it: this one prints
  // the graph, and hands it on to Halide.
  const auto fn = [](const functional::Tensor& x) { return Cos(Sin(x)); };
  CLEAVE_ASSIGN_OR_RETURN(
      const aot::AotFunction compiled,
      aot::AotFunction::Make(
          fn, aot::PrintCompiler(&out, aot::HalideCompiler(rules)), rules));

  // The first call traces the function, and compiles both halves.
  const functional::Tensor x =
      Tensor::FromDoubles(DType::kF64, {3}, {-1, 0.5, 2});
  CLEAVE_ASSIGN_OR_RETURN(const aot::AotResult y, compiled(x));
  const functional::Tensor dy =
      Tensor::FromDoubles(DType::kF64, {3}, {1, 1, 1});
  CLEAVE_ASSIGN_OR_RETURN(const aot::AotResult dx, y.backward(dy));
  CLEAVE_ASSIGN_OR_RETURN(const Tensor value, y.outputs.leaves()[0].Concrete());
  CLEAVE_ASSIGN_OR_RETURN(const Tensor cotangent,
                          dx.outputs.leaves()[0].Concrete());
  out << "\ny            " << RoundedText(value)  //
      << "\nx.cotangent  " << RoundedText(cotangent) << "\n";
  return absl::OkStatus();
}

}  // namespace cleave
