// MutateRules: is the checker worth its verdicts? Rules are made wrong in small
// ways, one at a time, and each of these mutants is checked.
//
//   MutateOptions options;
//   options.count = 300;
//   absl::StatusOr<MutationReport> report = MutateRules(sources, options);
//   std::cout << report->ToString(80);
//       operator         killed  survived  equivalent  allclose
//       constant-digits      12         0           0        11
//       ..
//
// A mutant counts where the loader accepts it and its types are right (L0 and
// L1): those mistakes need no checker. It is killed where a layer fails, as
// `cleave check` does: it refutes the mutant, or comes to no verdict, as of a
// loop that never ends. Where none does it survived; but for those that are
// proved to mean what the rule means (equivalence.h), which do not count.
// Mutants of rules that fail themselves do not count either.

#ifndef CLEAVE_TESTING_MUTATE_MUTATE_H_
#define CLEAVE_TESTING_MUTATE_MUTATE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/rules/rule_set.h"
#include "testing/check/compare/verdict.h"
#include "testing/mutate/mutation.h"
#include "testing/run_shard.h"

namespace cleave {

enum class MutantFate : uint8_t {
  kRejected,  // by the loader, or by L1: it does not count
  kKilled,
  kSurvived,
  kProvedEquivalent,
};

struct MutantReport {
  // In the order in which all of the run are drawn, from 0.
  int64_t number = 0;
  // The rule, as "softplus", "def nan_free", "jvp tanh", "rewrite neg_neg".
  std::string rule;
  MutationOperator op{};
  MutatedPart part{};
  std::string place;  // "rules/core/activation.rules:97:12"
  std::string before;
  std::string after;
  MutantFate fate = MutantFate::kRejected;
  // The layer that failed, and the rule that was checked then; of a
  // rejected one, the loader's or the checker's words.
  std::optional<Layer> layer;
  std::string by;
  std::string why;
  // The rule that fails as it is, where that is why it is rejected.
  std::string refuted;
  // A value of an elementwise op.
  bool elementwise = false;
  bool allclose_kills = false;
  // The text of the rule, and by "softplus L3" the verdict, of a mutant at
  // which no layer failed.
  std::string text;
  std::map<std::string, std::string> verdicts;
  double seconds = 0;
};

// A mutant that does not count.
struct RejectedMutant {
  int64_t number = 0;  // as of a MutantReport
  // The rule that fails as it is, where that is why.
  std::string refuted;
};

struct MutateOptions {
  uint64_t seed = 1;
  // Mutants that count, after which the run ends. 0: all.
  int count = 0;
  // Mutants, whether they count or not, after which the run ends. 0: all.
  // Unlike `count` the draws of a run are known before, so that its shards have
  // equal parts of them.
  int64_t draws = 0;
  // `*` and `?` as in a shell, for the names of rules (MutantReport::rule).
  std::string ops = "*";
  // Only rules of these sources; empty: all.
  std::set<std::string> files;
  // Mutants that are checked at once; 0: one per core. The report does not
  // depend on it.
  int jobs = 0;
  // Number `shard`, from 0, of every `shards` mutations that are drawn. With
  // `count` each shard goes on until so many of its own count.
  int shard = 0;
  int shards = 1;
  // These are called by the threads, one call at a time. Before each mutant:
  // true ends the run with what is done.
  std::function<bool()> stop;
  // Behind each mutant, in the order in which they end.
  std::function<void(const MutantReport& mutant)> progress;
};

struct MutationReport {
  uint64_t seed = 1;
  // Mutants that count, or are proved equivalent, as they were drawn.
  std::vector<MutantReport> mutants;
  std::vector<RejectedMutant> rejected;  // as they were drawn
  int64_t mutations = 0;                 // of the rules that were asked for
  double seconds = 0;
  // The part of a run that it is of, to be merged (merge_mutations.h).
  std::optional<RunShard> shard;

  int Count(MutantFate fate) const;
  // Rules that fail as they are, so that their mutants do not count.
  std::vector<std::string> Refuted() const;
  // How many that count the baseline of allclose.h kills.
  int AllcloseKilled() const;
  // Tables by operator and by layer, then the survivors as rule text. Lines of
  // the tables have at most `width` columns.
  std::string ToString(int width) const;
  // {"seed", "seconds", "mutations", "rejected", "totals": {"killed",
  // "survived", "proved_equivalent", "allclose_killed"}, "elementwise_values":
  // {the same}, "operators": {NAME: {the same}}, "layers": {LAYER: killed},
  // "refuted_rules", "survivors": [{"rule", "operator", "part", "place",
  // "before", "after", "text", "verdicts": {"softplus L3": VERDICT},
  // "allclose_kills"}], "proved_equivalent": [the same]}; with "shard"
  // (run_shard.h) and "drawn": [{"number", "fate", "operator", "layer",
  // "elementwise", "allclose_kills", "refuted"}] where it is that of a shard.
  std::string ToJson() const;
};

// `sources` load without mistakes. InvalidArgument where a shard is none, or no
// mutation fits what is asked for.
absl::StatusOr<MutationReport> MutateRules(
    const std::vector<NamedSource>& sources, const MutateOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_MUTATE_H_
