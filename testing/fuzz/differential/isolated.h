// CheckIsolated: CheckCase in a process of its own, so that a crash, a hang or
// memory without end is an outcome like any other.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_ISOLATED_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_ISOLATED_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel_cache.h"
#include "testing/fuzz/differential/check_case.h"
#include "testing/fuzz/differential/fuzz_case.h"

namespace cleave::fuzz {

struct IsolatedLimits {
  int seconds = 120;  // of processor time, and twenty times as many in all
  int64_t bytes = int64_t{6} << 30;  // of addresses
  // Bytes of tensors that are alive: a case that needs more is kOverLimits.
  int64_t tensor_bytes = int64_t{512} << 20;
};

// The state that all cases share: the shipped rules, and a cache that has the
// runtimes of the kernels, so that no case makes them.
class Workbench {
 public:
  // Reads the rules in folders of `rules`; an error where they are not there or
  // do not load.
  static absl::StatusOr<Workbench> Create(const std::string& rules);

  // The caller has no other threads. A crash is kDiffers, its `what` the signal
  // or exit code. kInterrupted once the process was (interrupt.h).
  Outcome CheckIsolated(const FuzzCase& one, const IsolatedLimits& limits = {});

 private:
  Workbench(std::shared_ptr<const RuleSet> rules,
            std::unique_ptr<KernelCache> cache);

  std::shared_ptr<const RuleSet> rules_;
  std::unique_ptr<KernelCache> cache_;
};

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_ISOLATED_H_
