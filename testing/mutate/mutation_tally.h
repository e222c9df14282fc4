// The counts of mutants in a report. Internal to mutate.h.

#ifndef CLEAVE_TESTING_MUTATE_MUTATION_TALLY_H_
#define CLEAVE_TESTING_MUTATE_MUTATION_TALLY_H_

#include "testing/mutate/mutate.h"

namespace cleave {

struct Tally {
  int killed = 0;
  int survived = 0;
  int proved_equivalent = 0;
  int allclose_killed = 0;

  void Add(const MutantReport& mutant) {
    killed += mutant.fate == MutantFate::kKilled;
    survived += mutant.fate == MutantFate::kSurvived;
    proved_equivalent += mutant.fate == MutantFate::kProvedEquivalent;
    allclose_killed +=
        mutant.fate != MutantFate::kProvedEquivalent && mutant.allclose_kills;
  }
  int Counted() const { return killed + survived; }
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_MUTATION_TALLY_H_
