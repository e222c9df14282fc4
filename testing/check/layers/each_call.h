// ForEachCall: what the value layers do with each prepared call of an op.
// Internal to this folder.

#ifndef CLEAVE_TESTING_CHECK_LAYERS_EACH_CALL_H_
#define CLEAVE_TESTING_CHECK_LAYERS_EACH_CALL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "testing/check/compare/compare_values.h"
#include "testing/check/compare/verdict.h"
#include "testing/check/layers/compare_at.h"
#include "testing/check/layers/op_context.h"
#include "testing/check/reference/reference.h"

namespace cleave {

// The constants that body, spec and domain compare with, and the ends of the
// ranges of which the claims of `reference` are, if there is one.
std::vector<double> GuardsOf(const PreparedCall& call,
                             const SpecReference* reference);

// The first step of each value layer: a verdict if there is nothing to check.
std::optional<Verdict> NothingToCheck(const OpContext& context,
                                      const PreparedCalls& prepared);

// Adds what was sampled to the notes.
void AddSampleNotes(const PreparedCalls& prepared, Verdict& verdict);

// Runs `visit(call, comparer)` for those of `calls` with a spec.
template <typename Visit>
Verdict ForEachCall(const OpContext& context, const PreparedCalls& prepared,
                    const std::vector<PreparedCall>& calls, Visit visit) {
  if (const auto nothing = NothingToCheck(context, prepared)) return *nothing;
  Verdict verdict;
  CompareCounts counts;
  for (const PreparedCall& call : calls) {
    if (!call.graphs.spec) continue;
    if (context.Expired()) {
      Merge(verdict, Verdict::Inconclusive(context.WhyExpired()));
      break;
    }
    const auto comparer =
        ValueComparer::Make(*context.clauses, call.call, call.graphs);
    if (!comparer.ok()) {
      Merge(verdict, Verdict::Inconclusive(absl::StrCat(
                         call.call.ToString(), ": ",
                         std::string(comparer.status().message()))));
      continue;
    }
    if (!visit(call, *comparer, verdict, counts)) break;
  }
  AddCountNotes(counts, verdict);
  return verdict;
}

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_LAYERS_EACH_CALL_H_
