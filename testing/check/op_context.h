// OpContext: the op that is being checked, its calls and its graphs, for all
// layers.

#ifndef CLEAVE_TESTING_CHECK_OP_CONTEXT_H_
#define CLEAVE_TESTING_CHECK_OP_CONTEXT_H_

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/ir/host_kernel.h"
#include "engine/lang/ast.h"
#include "ops/budget.h"
#include "ops/dtype.h"
#include "testing/check/clause_rules.h"
#include "testing/check/host_tolerance.h"
#include "testing/check/samples/sampled_call.h"
#include "testing/check/verdict.h"

namespace cleave {

struct OpContext {
  const ClauseRules* clauses = nullptr;
  const Item* item = nullptr;
  const Item* shown = nullptr;  // the item, or the `override` that is checked
  // Else a host computes it, and its spec is taken for one, if there is one.
  bool has_body = true;
  uint64_t run_seed = 1;   // as it was given
  uint64_t seed = 1;       // of this op's samples
  std::set<DType> dtypes;  // empty: all
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();
  // With a function for the op, or null.
  const HostKernels* host_kernels = nullptr;
  HostTolerance host_tolerance;

  const RuleSet& rules() const { return clauses->rules(); }
  // Whether checking is to end, and why.
  bool Expired() const {
    return std::chrono::steady_clock::now() > deadline || BudgetEnded();
  }
  std::string WhyExpired() const {
    const absl::Status ended = PollBudget();
    return ended.ok() ? "its time was up" : std::string(ended.message());
  }
  bool Wants(DType dtype) const {
    return dtypes.empty() || dtypes.count(dtype) != 0;
  }
  // "cleave check FILE --op softplus --seed 1".
  std::string Replay() const;
  // "activation.rules:97": where the op is declared.
  std::string Place() const;
  // Where output `result` of `body` comes from.
  std::string Place(const Graph& body, int result) const;
};

// One call that the op accepts, with its graphs.
struct PreparedCall {
  SampledCall call;
  CallGraphs graphs;
  bool default_attributes = false;
};

// Calls for the value layers. Pointwise ops: one call per dtype and attribute
// variant at the symbolic shape [n]; others: random signatures per dtype.
struct PreparedCalls {
  bool elementwise = false;
  std::vector<PreparedCall> calls;
  int rejected = 0;                   // by declared errors
  std::vector<std::string> problems;  // what could not be prepared, and why
  bool exceeded = false;  // a limit (ops/budget.h): the last of the problems
};

// The widest float dtype of the calls' operands: derivatives of structured ops
// are compared there, since others have the same rules and more rounding.
DType WidestDType(const PreparedCalls& calls);
PreparedCalls PrepareCalls(const OpContext& context);
// Random signatures of any op, smaller ones first.
PreparedCalls PrepareConcreteCalls(const OpContext& context);

// Errors of the samples, not of the rule: an index that lies outside, an
// integer division by zero, a guard that does not hold.
inline bool IsBadSample(const absl::Status& status) {
  return status.code() == absl::StatusCode::kOutOfRange ||
         status.code() == absl::StatusCode::kFailedPrecondition;
}

// The float dtype by which a call is named: that of its first float operand;
// else of its first operand.
DType MainDType(const SampledCall& call);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_OP_CONTEXT_H_
