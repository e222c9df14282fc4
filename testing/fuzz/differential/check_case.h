// CheckCase: one function, by all the ways that must agree.
//
//   Outcome outcome = CheckCase(one, base_rules, kernels);
//   if (outcome.kind == OutcomeKind::kDiffers) std::cerr << outcome.text;
//
// Compared are
// - the simplified graph with the graph, bit by bit; the graph with what is
//   read back of its text, and with the rule text that it is written as;
// - kernels with the interpreter: by the schedules of their patterns on one
//   thread, on several and on arrays of any strides, by plain loops, for open
//   extents, and for each level of instructions. Integers and bools are the
//   same; floats are too where no operation of the graph is free in its
//   rounding or order, and elsewhere as near as what those may be off allows
//   (noise.h);
// - a batch with the loop over its examples, bit by bit, and its kernels;
// - tangents with differences, where the function is smooth there, and
//   cotangents with tangents: <Jv, w> = <v, J^T w>, both in f64;
// - derivatives with those of the rules that they are written as, loaded again.

#ifndef CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CHECK_CASE_H_
#define CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CHECK_CASE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel_cache.h"
#include "testing/fuzz/differential/fuzz_case.h"

namespace cleave::fuzz {

enum class OutcomeKind : uint8_t {
  kAgrees,
  kRejected,     // the rules do not load
  kOverLimits,   // more memory or work than it may cause, and an error says so
  kInterrupted,  // before it ended
  kDiffers,
};

struct Outcome {
  OutcomeKind kind = OutcomeKind::kAgrees;
  // For kDiffers the comparison that failed, the same for failures of one kind.
  std::string what;
  std::string text;  // of kRejected, too
  int comparisons = 0;
  int undecided = 0;  // floats that noise alone could explain
};

// `base` are the shipped rules. Kernels are kept in `cache` alone.
Outcome CheckCase(const FuzzCase& one, std::shared_ptr<const RuleSet> base,
                  KernelCache& cache);

}  // namespace cleave::fuzz

#endif  // CLEAVE_TESTING_FUZZ_DIFFERENTIAL_CHECK_CASE_H_
