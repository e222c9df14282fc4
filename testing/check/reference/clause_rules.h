// ClauseRules: the clauses of an op (special values, domains, approximation,
// accuracy, laws) as ops of their own, so that the engine evaluates them like
// any body. They are written as rule text beside the ops that they belong to:
//
//   special y = x if x == inf
//       op softplus__special_0(x: T[S..], *, .., expected_: T[S..]) -> T[S..]
//         = select(x == inf, x, expected_)
//   domain x >= 0
//       op sqrt__domain_1(x: .., expected_: i32[S..]) -> i32[S..]
//         = select(x >= 0, expected_ + 1, expected_)
//   accuracy D within n eps * sum[j if j <= i](abs(x[a.., j, b..]))
//       op cumsum__factor_0(..) -> .. y[a.., i, b..] = n * sum[..](..)
//   .. on x in [0, 8]
//       op bessel__factor_3(..) -> .. = select(x >= 0 and x <= 8, 1, 0)
//   spec values[i] < values[j] if i < j
//       op unique__law_1(.., values: .., ..) -> bool[]
//
// An op without a body takes its spec for one: `override my_kernel { .. }`.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_CLAUSE_RULES_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_CLAUSE_RULES_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/elaborate/branch_observer.h"
#include "engine/rules/rule_set.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

// The name of the input that holds the expected result in the ops below.
inline constexpr char kExpectedInput[] = "expected_";
// The dtype that this input has in the op of a domain, whatever the result's.
inline constexpr char kDomainDType[] = "i32";

// A number of an accuracy clause: a literal, or an op that computes it.
struct ClauseFactor {
  double literal = 0;
  std::string op;  // empty: the literal counts
};

// An op that computes a clause for one result. The op of a `special` clause
// gives the value that takes the place of `expected_`. The op of a `domain`
// clause gives 1 more than `expected_` within the domain. A bool has no domain.
struct ResultClauseOp {
  std::string op;
  std::string result;
};

// `within K eps * e`: an absolute bound, K e, in units of eps.
struct EpsBound {
  ClauseFactor factor;  // K
  ClauseFactor size;    // e; 1 if there is none
};

struct ApproximationOp {
  ClauseFactor relative;
  ClauseFactor condition;
  std::optional<ClauseFactor> on;  // 1 where the clause holds, else 0
};

struct AccuracyOp {
  std::string dtype;  // as declared: a variable or a dtype
  std::optional<ClauseFactor> on;
  ClauseFactor ulp;
  ClauseFactor condition;
  std::map<std::string, EpsBound> eps;  // per result
  bool is_eps = false;
};

struct LawOp {
  std::string op;
  std::string text;
  uint32_t begin = 0;  // in the text of the op's file
  // It differentiates, so that it says nothing of integers.
  bool needs_inexact = false;
};

struct OpClauses {
  std::vector<ResultClauseOp> specials;
  std::vector<ResultClauseOp> domains;
  std::vector<ApproximationOp> approximations;
  std::vector<AccuracyOp> accuracies;
  std::vector<LawOp> laws;
  // Why the clauses of this op cannot be evaluated; empty if they can.
  std::string error;
};

class ClauseRules;

// The op of a clause on the operands of `call` and on what is expected, a last
// input of the type `expected`; of primitives only.
absl::StatusOr<Graph> MakeClauseGraph(const ClauseRules& clauses,
                                      const SampledCall& call,
                                      const std::string& op,
                                      const TensorType& expected);

class ClauseRules {
 public:
  // The clauses of `ops`, which are names of items of `base`.
  static ClauseRules Make(std::shared_ptr<const RuleSet> base,
                          const std::vector<std::string>& ops);

  // The observer is told what calls decide in the rules, from here on.
  void Observe(std::shared_ptr<BranchObserver> observer);

  // `base` with the ops of the clauses.
  const RuleSet& rules() const { return *rules_; }
  // "the `domain` clause at f.rules:6", of which an op below is.
  std::string ClauseOf(const std::string& op) const;
  std::shared_ptr<const RuleSet> shared_rules() const { return rules_; }
  const OpClauses& Of(const std::string& op) const;

 private:
  std::shared_ptr<const RuleSet> rules_;
  std::map<std::string, OpClauses> clauses_;
  std::map<std::string, std::string> shown_;  // by the op of a clause
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_CLAUSE_RULES_H_
