// Batching coverage: for each op and subset of batched inputs, whether vmap
// keeps the op one call, and why not.
//
//   CoverBatching(rules, "softmax")->rows[0].answer   // Answer::kKept

#ifndef CLEAVE_TRANSFORMS_REPORT_BATCHING_COVERAGE_H_
#define CLEAVE_TRANSFORMS_REPORT_BATCHING_COVERAGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// One subset of an op's inputs with a batch in front.
struct BatchingRow {
  enum class Answer {
    kKept,      // one call of the op, for all calls that were tried
    kPartly,    // for some of them
    kExpanded,  // for none: what its body does, batched
    kGiven,     // by an override of the op
    kRefused,   // there is no vmap; `why` begins with the kind of refusal
  };
  // The calls that an answer kKept stands for. Each call that was tried is
  // proved.
  // kProved      those calls stand for all (engine/rules/rank_bound.h)
  // kExhaustive  all combinations at ranks 0 to kMaxSymbolicRank of packs,
  //              attributes other than enums and bools at one value each
  // kSampled     `calls` of them: an op of a host, or one with too many
  enum class Verdict { kNone, kProved, kExhaustive, kSampled };

  std::vector<std::string> batched;  // names; elements of variadic ones `xs.0`
  Answer answer = Answer::kKept;
  Verdict verdict = Verdict::kNone;
  int calls = 0;
  int kept_calls = 0;
  // Kept: how the call differs from that of one example. Else the first call
  // that is not kept: its inputs, and why it is not kept.
  std::string why;
};

struct BatchingCoverage {
  std::vector<BatchingRow> rows;  // by size of the subset, then by input
  std::string why;                // why there is none; why no rank bound holds
};

// Subsets of one call with more inputs than this are those of one input and of
// all of them.
inline constexpr int kMaxSubsetInputs = 6;

// The op's symbolic calls, or where there are none those that a search finds,
// each batched in every subset of its inputs. NotFound for no op.
absl::StatusOr<BatchingCoverage> CoverBatching(const RuleSet& rules,
                                               absl::string_view op);

// `kept`, `partly`, `expanded`, `given`, `refused`.
absl::string_view AnswerName(BatchingRow::Answer answer);
// `PROVED`, `EXHAUSTIVE(2)`, `SAMPLED(8)`; empty for kNone.
std::string VerdictName(const BatchingRow& row);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_REPORT_BATCHING_COVERAGE_H_
