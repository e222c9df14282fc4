#include "testing/check/layers/each_call.h"

#include <utility>

namespace cleave {
namespace {

const char* MissingSpec(const OpContext& context) {
  if (!context.item->laws.empty()) return "its spec is laws";
  return "no spec";
}

}  // namespace

std::vector<double> GuardsOf(const PreparedCall& call,
                             const SpecReference* reference) {
  std::vector<double> guards = GuardConstants(call.graphs.body);
  const auto add = [&guards](const std::vector<double>& more) {
    guards.insert(guards.end(), more.begin(), more.end());
  };
  add(GuardConstants(*call.graphs.spec));
  add(call.domain.Guards());
  if (reference == nullptr) return guards;
  const absl::StatusOr<std::vector<double>> ends = reference->RangeEnds();
  // The bounds of claims that cannot be evaluated are an error of L3.
  if (ends.ok()) add(*ends);
  return guards;
}

std::optional<Verdict> NothingToCheck(const OpContext& context,
                                      const PreparedCalls& prepared) {
  if (context.item->spec == nullptr) {
    return Verdict::NotChecked(MissingSpec(context));
  }
  if (prepared.calls.empty()) {
    return Verdict::Inconclusive(
        prepared.problems.empty()
            ? absl::StrCat("no sampled call is accepted (", prepared.rejected,
                           " rejected)")
            : prepared.problems.front());
  }
  return std::nullopt;
}

void AddSampleNotes(const PreparedCalls& prepared, Verdict& verdict) {
  for (std::string& note : SampleNotes(prepared)) {
    verdict.notes.push_back(std::move(note));
  }
}

}  // namespace cleave
