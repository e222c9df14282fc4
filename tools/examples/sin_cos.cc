// cos(sin(x)) in reverse: what is computed on the way there, and on the way
// back.

#include <ostream>
#include <vector>

#include "engine/ir/graph_text.h"
#include "ops/status_macros.h"
#include "tools/examples/examples.h"
#include "transforms/aot/joint_graph.h"
#include "transforms/aot/partition.h"
#include "transforms/synthetic_rules.h"

namespace cleave {

absl::Status RunSinCos(const ExampleContext& context, std::ostream& out) {
  CLEAVE_ASSIGN_OR_RETURN(const auto rules,
                          LoadExampleRules(context, "sin_cos.rules"));
  CLEAVE_ASSIGN_OR_RETURN(const Graph f, rules->Function("f"));
  out << "the function\n" << PrintGraph(f);

  SyntheticRules transforms(*rules);
  CLEAVE_ASSIGN_OR_RETURN(
      const aot::JointGraph joint,
      aot::MakeJointGraph(f, {/*active=*/{true}}, transforms));
  CLEAVE_ASSIGN_OR_RETURN(const aot::Partition halves,
                          aot::DefaultPartition(joint));
  out << "\nforward\n" << PrintGraph(halves.forward);
  out << "\nbackward\n" << PrintGraph(halves.backward);

  CLEAVE_ASSIGN_OR_RETURN(const Kernel forward,
                          CompileCalls(halves.forward, *rules));
  CLEAVE_ASSIGN_OR_RETURN(const Kernel backward,
                          CompileCalls(halves.backward, *rules));
  const Tensor x = Tensor::FromDoubles(DType::kF64, {3}, {-1, 0.5, 2});
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> results, forward.Run({x}));
  // What was saved, then the cotangent of y.
  std::vector<Tensor> inputs(results.begin() + 1, results.end());
  inputs.push_back(Tensor::FromDoubles(DType::kF64, {3}, {1, 1, 1}));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> cotangents,
                          backward.Run(inputs));
  out << "\nx            " << RoundedText(x)           //
      << "\ny            " << RoundedText(results[0])  //
      << "\nx.cotangent  " << RoundedText(cotangents[0]) << "\n";
  return absl::OkStatus();
}

}  // namespace cleave
