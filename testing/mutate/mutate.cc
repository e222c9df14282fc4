#include "testing/mutate/mutate.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/files/threads.h"
#include "ops/budget.h"
#include "testing/glob.h"
#include "testing/mutate/judge.h"
#include "testing/mutate/mutation_draw.h"
#include "testing/mutate/rule_texts.h"
#include "testing/mutate/rule_uses.h"

namespace cleave {
namespace {

// The mutants of one run, which any number of threads work on. The report does
// not depend on the number of threads: mutants count in the order in which they
// were drawn, up to the wanted number.
class Run {
 public:
  Run(const Judge& judge, MutationDraw draw,
      std::vector<RuleTexts::Place> places, const MutateOptions& options)
      : judge_(judge),
        draw_(std::move(draw)),
        places_(std::move(places)),
        options_(options),
        limits_(CurrentLimits()) {}

  void Work() {
    const BudgetScope scope(limits_, BudgetScope::Mode::kDefaults);
    while (const std::optional<Job> job = Next()) {
      MutantReport mutant =
          judge_.Check(places_[job->drawn.rule], job->drawn.mutation);
      mutant.number = job->number * options_.shards + options_.shard;
      const std::lock_guard<std::mutex> lock(mutex_);
      // A mutant whose check was cut off is not judged.
      if (Cancelled()) return;
      if (options_.progress) options_.progress(mutant);
      ended_[job->number] = std::move(mutant);
      Settle();
    }
  }

  // Moves the mutants that are settled; of a run that was ended early all that
  // have ended, whether those before them have or not.
  void MoveTo(MutationReport& report) && {
    if (!done_) {
      for (auto& [number, mutant] : ended_) Take(std::move(mutant));
    }
    report.mutants = std::move(settled_);
    report.rejected = std::move(rejected_);
    report.mutations = draw_.total();
  }

 private:
  struct Job {
    int64_t number;
    MutationDraw::Drawn drawn;
  };

  bool Cancelled() const {
    return limits_.cancelled != nullptr && *limits_.cancelled;
  }

  std::optional<Job> Next() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (done_ || Cancelled() || (options_.stop && options_.stop())) {
      return std::nullopt;
    }
    while (options_.draws == 0 || drawn_ < options_.draws) {
      std::optional<MutationDraw::Drawn> drawn = draw_.Next();
      if (!drawn) break;
      if (drawn_++ % options_.shards != options_.shard) continue;
      return Job{next_++, *std::move(drawn)};
    }
    return std::nullopt;
  }

  // Takes those that have ended, up to the first that has not. Under mutex_.
  void Settle() {
    while (!done_ && !ended_.empty() &&
           ended_.begin()->first == next_settled_) {
      MutantReport mutant = std::move(ended_.begin()->second);
      ended_.erase(ended_.begin());
      ++next_settled_;
      Take(std::move(mutant));
      done_ = options_.count > 0 && counted_ == options_.count;
    }
  }

  void Take(MutantReport mutant) {
    if (mutant.fate == MutantFate::kRejected) {
      rejected_.push_back({mutant.number, mutant.refuted});
      return;
    }
    counted_ += mutant.fate != MutantFate::kProvedEquivalent;
    settled_.push_back(std::move(mutant));
  }

  const Judge& judge_;
  MutationDraw draw_;
  const std::vector<RuleTexts::Place> places_;
  const MutateOptions& options_;
  const Limits limits_;
  std::mutex mutex_;
  // Guarded by mutex_, as draw_ is.
  int64_t drawn_ = 0;
  int64_t next_ = 0;
  int64_t next_settled_ = 0;
  std::map<int64_t, MutantReport> ended_;
  std::vector<MutantReport> settled_;
  std::vector<RejectedMutant> rejected_;
  int counted_ = 0;
  bool done_ = false;
};

}  // namespace

absl::StatusOr<MutationReport> MutateRules(
    const std::vector<NamedSource>& sources, const MutateOptions& options) {
  if (options.shards < 1 || options.shard < 0 ||
      options.shard >= options.shards) {
    return absl::InvalidArgumentError(absl::StrCat(
        "there is no shard ", options.shard, " of ", options.shards));
  }
  const auto start = std::chrono::steady_clock::now();
  absl::StatusOr<RuleTexts> texts = RuleTexts::Make(sources);
  if (!texts.ok()) return texts.status();
  const RuleUses uses(*texts);
  MutationDraw draw(options.seed);
  std::vector<RuleTexts::Place> places;
  for (const RuleTexts::Place& place : texts->Items()) {
    const Item& item = texts->item(place);
    if (!MatchesGlob(options.ops, RuleUses::NameOf(item)) ||
        (!options.files.empty() &&
         options.files.count(texts->file(place)) == 0) ||
        uses.Of(place, options.seed).empty()) {
      continue;
    }
    std::vector<Mutation> mutations = MutationsOf(item);
    if (mutations.empty()) continue;
    places.push_back(place);
    draw.Add(std::move(mutations));
  }
  if (places.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "nothing to mutate: no rule of these files that computes is named "
        "like `",
        options.ops, "`"));
  }
  absl::StatusOr<std::unique_ptr<Judge>> judge =
      Judge::Make(*texts, uses, options.seed);
  if (!judge.ok()) return judge.status();
  Run run(**judge, std::move(draw), std::move(places), options);
  RunOnThreads(options.jobs > 0 ? options.jobs : UsableCores(),
               [&run] { run.Work(); });
  MutationReport report;
  report.seed = options.seed;
  std::move(run).MoveTo(report);
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return report;
}

}  // namespace cleave
