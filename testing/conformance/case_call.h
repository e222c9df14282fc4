// CaseCall: a case's call as a graph: the tensors among its arguments are the
// graph's inputs, named `<argument>` or `<argument>.<i>` in lists.

#ifndef CLEAVE_TESTING_CONFORMANCE_CASE_CALL_H_
#define CLEAVE_TESTING_CONFORMANCE_CASE_CALL_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "ops/tensor.h"
#include "testing/conformance/case_suite.h"

namespace cleave {

struct CaseCall {
  Graph graph;
  // One per input of the graph.
  std::vector<std::string> arguments;  // the argument that it belongs to
  std::vector<int> elements;           // its place in a list, 0 otherwise
  std::vector<Tensor> tensors;
  // Per declared result its place among the graph's outputs; -1 where the call
  // has no such result.
  std::vector<int> results;
};

// Calls `op` on `arguments`. Errors are those of RuleSet::Call.
absl::StatusOr<CaseCall> MakeCaseCall(const RuleSet& rules,
                                      const std::string& op,
                                      const CaseArguments& arguments);

// The tensors that `arguments` (tangents, batched arguments, ...) give for the
// inputs of `call`; nullopt for inputs that they do not name.
std::vector<std::optional<Tensor>> TensorsFor(const CaseCall& call,
                                              const CaseArguments& arguments);

// The same with the keys that the suite gives them.
ExpectedOutputs RefsFor(const CaseCall& call, const CaseArguments& arguments);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CONFORMANCE_CASE_CALL_H_
