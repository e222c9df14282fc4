// OpContext: the op that is being checked, its calls and its graphs, for all
// layers.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_OP_CONTEXT_H_
#define CLEAVE_TESTING_CHECK_LAYERS_OP_CONTEXT_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/ir/host_kernel.h"
#include "engine/lang/ast.h"
#include "ops/budget.h"
#include "ops/dtype.h"
#include "ops/tensor.h"
#include "testing/check/compare/host_tolerance.h"
#include "testing/check/compare/verdict.h"
#include "testing/check/layers/error_profile.h"
#include "testing/check/reference/clause_rules.h"
#include "testing/check/reference/domain.h"
#include "testing/check/samples/pair_cover.h"
#include "testing/check/samples/sampled_call.h"
#include "testing/check/samples/value_sampler.h"

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
  // Sizes of signatures that all samples have, by name.
  std::map<std::string, int64_t> sizes;
  // The numbers that all floats are taken from; empty: any.
  std::vector<double> points;
  // With a function for the op, or null.
  const HostKernels* host_kernels = nullptr;
  std::string host_replay;  // CheckOptions::host_replays
  HostTolerance host_tolerance;
  bool host_survey = false;  // CheckOptions::host_survey
  // The errors along the line of inputs, where they are wanted, or null.
  ErrorProfiles* profiles = nullptr;
  // Counterexamples are made small.
  bool shrinks = true;

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
  // The trials for a smaller counterexample, of so many at most.
  int ShrinkTrials(int most = 400) const { return shrinks ? most : 0; }
  // "cleave check FILE --op softplus --seed 1".
  std::string Replay() const;
  // "activation.rules:97": where the op is declared.
  std::string Place() const;
  // Where output `result` of `body` comes from.
  std::string Place(const Graph& body, int result) const;
};

// "activation.rules:97": the line of a place in the file of an item.
std::string PlaceIn(const RuleSet& rules, const Item& item, uint32_t begin);

// One call that the op accepts, with its graphs.
struct PreparedCall {
  SampledCall call;
  CallGraphs graphs;
  bool default_attributes = false;
  Domain domain{};  // all inputs, unless it was asked for
  // It takes a branch of the rule that no other call takes, at more work than
  // theirs: its values are compared once.
  bool is_dear = false;
};

// Whether a pattern for matrices (Pattern::kDominant) has some in the call.
bool HasSquareMatrices(const SampledCall& call);

// A part of notes on combinations of attributes that were not met.
inline constexpr char kOtherPairs[] = ", the others not: ";

// Calls for the value layers. Pointwise ops: one call per dtype and combination
// of attributes at the symbolic shape [n]; others: one per combination, and
// some for each dtype.
struct PreparedCalls {
  bool elementwise = false;
  std::vector<PreparedCall> calls;
  // Calls that are compared with few patterns, and that no derivative is taken
  // of twice: with one extent that was chosen, most of them large; of an
  // elementwise op, those at other shapes than [n].
  std::vector<PreparedCall> large;
  // The refutation by one of them, where the body refuses what the op accepts
  // and its spec gives a meaning.
  std::optional<Verdict> refused;
  // "26 of 26 pairs in 12 combinations": of attributes and absent inputs. Where
  // some were not met, that they were not, and how many calls were rejected.
  std::string combinations;
  void SetCover(const PairCover& cover);
  int rejected = 0;                   // by declared errors
  std::vector<std::string> problems;  // what could not be prepared, and why
  bool exceeded = false;  // a limit (ops/budget.h): the last of the problems
};

// Signatures of any op at concrete extents, smaller ones first.
PreparedCalls PrepareConcreteCalls(const OpContext& context);
// The calls for the value layers: those of an elementwise op at [n], or
// `concrete`, of PrepareConcreteCalls.
PreparedCalls PrepareCalls(const OpContext& context,
                           const PreparedCalls& concrete);
// The calls at [n] in which an op that is not elementwise is so: a loss whose
// reduction is none. They are elementwise calls, none where there are none.
PreparedCalls PrepareSingleElements(const OpContext& context);
// Adds `large` to them, which L3 and L5 take.
void AddLargeCalls(const OpContext& context, const PreparedCalls& concrete,
                   PreparedCalls& prepared);
// Adds calls in each dtype to them, for laws, which a rule may break in one
// dtype, at few inputs.
void AddCallsInEachDType(const OpContext& context, PreparedCalls& prepared);
// Whether a result of one of the calls is a float.
bool HasFloatResult(const PreparedCalls& calls);
// `verdict`, of a layer that compares values. It is inconclusive where few of
// the samples lie within the op's domain: such a layer knows nothing of the op.
Verdict EnoughWithinDomain(const OpContext& context, Verdict verdict);
// The patterns of the derivatives of `calls.calls[number]`: of few calls each
// has all of them, of many two, so that each pattern meets some.
std::vector<Pattern> DerivativePatterns(const PreparedCalls& calls, int number);
// "attributes: 26 of 26 pairs in 12 combinations" and "extents 0 1 2 3 4097".
std::vector<std::string> SampleNotes(const PreparedCalls& calls);

// The verdict where `what`, a transform of a call that the op accepts, could
// not be made: that is the fault of a rule where its types or shapes are wrong.
// So is it where an index of a derivative lies outside at the call's extents.
Verdict NotTransformed(const OpContext& context, const SampledCall& call,
                       const std::string& what, const absl::Status& status);

// The verdict where `what`, a transform of the call, cannot be evaluated at
// `inputs`, for a reason that may be the sample's (IsBadSample): nullopt if it
// is, since the op has no value there either.
std::optional<Verdict> NotEvaluated(const OpContext& context,
                                    const PreparedCall& prepared,
                                    const std::string& what,
                                    absl::Span<const Tensor> inputs,
                                    const absl::Status& status);

// Adds the errors at the elements of `inputs` to `profile`, where the call has
// one operand, of floats, and the default attributes.
void AddErrors(const PreparedCall& call, absl::Span<const Tensor> inputs,
               absl::Span<const double> errors,
               std::optional<ErrorProfile>& profile);

// The float dtype by which a call is named: that of its first float operand;
// else of its first operand.
DType MainDType(const SampledCall& call);

// The largest extent of the operands; 0 where they have no axis.
int64_t LargestExtent(const SampledCall& call);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_OP_CONTEXT_H_
