// RunCampaign: random functions from a seed on, checked by all the ways that
// must agree, until the time is up.
//
//   Workbench bench("rules");
//   CampaignOptions options;
//   options.seconds = 600;
//   CampaignTally tally = RunCampaign(options, bench);
//   if (tally.differing > 0) ..  // files in options.out
//
// A function that differs is written to a file as it is, then shrunk, and the
// file is replaced: what was found is kept, whenever the campaign ends.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CAMPAIGN_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CAMPAIGN_H_

#include <cstdint>
#include <limits>
#include <string>

#include "testing/fuzz/differential/isolated.h"

namespace cleave::fuzz {

struct CampaignOptions {
  int64_t seed = 1;  // the first one
  int64_t seconds = 60;
  // At most so many seeds.
  int64_t count = std::numeric_limits<int64_t>::max();
  int64_t jobs = 1;      // processes at a time
  int64_t trials = 400;  // of one shrinking
  // Where findings go: seed_N.rules. It is made if it is not there.
  std::string out = ".cleave/fuzz/differential";
  bool print_rejected = false;
  // One line that changes, on stderr.
  bool progress = false;
};

struct CampaignTally {
  int64_t functions = 0;
  int64_t rejected = 0;  // by the rules of the language
  int64_t over_limits = 0;
  int64_t comparisons = 0;
  int64_t undecided = 0;  // floats that noise alone could explain
  int64_t differing = 0;
  int64_t next_seed = 0;  // all before it were checked
  std::string ToString() const;
};

// The caller has no other threads. Ends early when it is interrupted
// (interrupt.h). A function that differs is printed to stdout, with a line that
// replays it.
CampaignTally RunCampaign(const CampaignOptions& options, Workbench& bench);

// Checks one kept case; prints as RunCampaign does. `path` is for messages.
Outcome CheckKept(const std::string& path, Workbench& bench);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CAMPAIGN_H_
