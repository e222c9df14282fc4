// CheckRules: does every rule mean what its op means? A verdict per op and
// layer.
//
//   LoadResult loaded = LoadRules(sources, context, WithTransforms());
//   CheckOptions options;
//   options.ops = "softplus";
//   absl::StatusOr<CheckReport> report = CheckRules(loaded.rules, options);
//   std::cout << report->ToString();
//       op        L0      L1             L2             L3  ...
//       softplus  agrees  agrees 174     agrees 320     agrees 173k 1.6 ulp, ..
//   return report->ExitStatus();   // 1 if not all that was checked agrees
//
// The layers: L0 form (the loader accepted the rule), L1 types and shapes, L2
// spec against body over the reals, L3 rounding in ULP against the declared
// accuracy, L4 special values, L5 vmap and jvp, L6 (if asked for) compiled
// kernels; and the rule's own examples and laws. Ops without a spec have no L2
// to L4: that is "not checked", and said. Derivatives of primitives are checked
// as entries named `jvp NAME`, rewrites as `rewrite NAME`: L2 compares the
// sides of those that are marked `real` over the reals, L3 and L4 those of the
// others bit by bit, at values anywhere and at special ones; L5 the derivatives
// of the sides.
//
// A host holds its own functions to the bodies of its ops, value by value:
//
//   options.ops = "softplus";
//   options.host_kernels.Set("softplus", Softplus);
//       op        L0      L1             ..   host
//       softplus  agrees  agrees 174     ..   agrees 176k 1.9 ulp, ..
//
// host_tolerance.h says how far a value may be from the body's. A kernel
// disagrees, too, that returns an error for what the op accepts, a result of
// another type, or a bool that is neither 0 nor 1, and one that writes to its
// inputs or beside them. Calls for which it is Unimplemented are left out, and
// said; where it is that for all of them, the verdict is inconclusive. An op
// without a body stands by its spec; where there is none either it is "not
// checked". The counterexample is a call of few axes and elements, with plain
// numbers, and the lines of C++ that set the options to find it again.

#ifndef CLEAVE_TESTING_CHECK_CHECK_H_
#define CLEAVE_TESTING_CHECK_CHECK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/host_kernel.h"
#include "engine/rules/rule_set.h"
#include "ops/dtype.h"
#include "testing/check/compare/host_tolerance.h"
#include "testing/check/compare/verdict.h"
#include "testing/check/layers/error_profile.h"
#include "testing/check/rule_coverage.h"
#include "testing/run_shard.h"

namespace cleave {

// Who knew a report already (CheckOptions::known).
struct Certified {
  std::string by;    // "own", "shipped"
  std::string date;  // "2026-11-23"
};

struct OpReport {
  std::string op;  // "softplus", "jvp tanh", "rewrite neg_neg"
  std::string place;
  std::map<Layer, Verdict> layers;
  double seconds = 0;
  // The op was not checked now: that is what was known of it.
  std::optional<Certified> certified;
  // The measured maximum of L3 is below a quarter of the declared bound.
  bool loose_claim = false;
  // Where they were asked for, and the op is a pointwise one of one input.
  ErrorProfiles profiles;
  // A layer of this kind is among them.
  bool Has(VerdictKind kind) const;
};

struct OpContext;      // op_context.h
struct PreparedCalls;  // op_context.h

// The verdict of L6 on an op.
using KernelCheck = Verdict (*)(const OpContext& op,
                                const PreparedCalls& calls);

// How much is checked.
enum class Tier : uint8_t {
  kQuick,
  // And sweeps (check_sweep.h), by themselves: all f32 of pointwise ops of one
  // operand, all pairs of 16 bits of those of two. Hours for a hundred ops.
  kFull,
};

struct CheckOptions {
  Tier tier = Tier::kQuick;
  // `*` and `?` as in a shell; also matched against "jvp tanh" and "rewrite
  // neg_neg".
  std::string ops = "*";
  // Only items of these sources (file names as they were loaded); empty: all.
  std::set<std::string> sources;
  // Every `shards`-th of the ops that `ops` and `sources` choose is checked,
  // beginning with number `shard`, from 1: the ops of all shards are those of
  // one run.
  int shard = 1;
  int shards = 1;
  uint64_t seed = 1;
  std::set<Layer>
      layers;  // empty: all but L6, and `host` where it has a kernel
  // Functions that are held to the bodies of their ops, by the names of `op`
  // items. They are called by the threads, as they are when graphs are run.
  HostKernels host_kernels;
  HostTolerance host_tolerance;
  // The comparison with a host's function goes on behind what is wrong: the
  // verdict's findings say in which ways it is off, how often, and by how much.
  bool host_survey = false;
  // By op, what is added to `cleave check FILE --op OP --seed S` to find a
  // counterexample of its kernel again. Else the lines of C++ are shown.
  std::map<std::string, std::string> host_replays;
  // L6 too, by CheckKernels of check_kernels.h: compiling kernels takes 50 to
  // 150 ms each. A program that leaves it null needs no code generator; it is
  // an error then to ask for L6 in `layers`.
  KernelCheck kernels = nullptr;
  std::set<DType> dtypes;  // empty: all
  // An op that takes longer is inconclusive; nullopt: samples alone are
  // limited, so that a verdict does not depend on the load of the machine.
  std::optional<double> seconds_per_op;
  // Sizes of signatures by name: all samples have these, `n` in `x: T[n]`.
  std::map<std::string, int64_t> sizes;
  // All floats of the samples, but for tangents, are taken from these numbers,
  // each of which an elementwise op of one operand meets; empty: any.
  std::vector<double> points;
  // The largest errors along the line of inputs, of pointwise ops of one input.
  bool error_profiles = false;
  // Which lines and branches of the rules the calls reach: all that is compiled
  // is compiled again for it, once.
  bool coverage = false;
  // The check of an op ends at the first layer that refutes it, whose
  // counterexample is as it was found: for those who ask whether, and not how.
  bool stop_at_refutation = false;
  // Ops that are checked at once, by a thread each; 0: one per core. With
  // `kernels` one at a time, whose kernels take all cores.
  int threads = 0;
  // Before all checks, for each op: the report that takes the place of its
  // check, nullopt where there is to be one. Null: all are checked.
  std::function<std::optional<OpReport>(const std::string& op)> known;
  // These are called by the threads, one call at a time. Before each op: true
  // ends the run with what is done.
  std::function<bool()> stop;
  // As an op's check begins.
  std::function<void(const std::string& op)> started;
  // Behind each op that is checked, in the order in which they end.
  std::function<void(const OpReport& op, int done, int total)> progress;
};

struct CheckReport {
  uint64_t seed = 1;
  std::vector<OpReport> ops;
  // Where it was asked for: of the ops that were checked now, of their
  // overrides and of derivatives of primitives; where `ops` is `*`, of defs. A
  // branch is covered if any op's check reaches it. A shard's is of the ops of
  // all shards, as far as this one reaches them.
  std::vector<RuleCoverage> coverage;
  // The part of a run that it is of, to be merged (merge_reports.h).
  std::optional<RunShard> shard;

  // 1 if anything disagrees, is inconclusive or rests on itself (not
  // independent), but for verdicts that are `allowed`; else 0.
  int ExitStatus(const std::set<VerdictKind>& allowed = {}) const;
  // The report on one op, null where it was not checked.
  const OpReport* Find(absl::string_view op) const;
  // How many ops have a verdict of that kind in some layer.
  int Count(VerdictKind kind) const;
  // How many are certified: known, and not checked now.
  int CountCertified() const;
  // How many of the ops are parts of sweeps.
  int CountSweepParts() const;
  // A table with a row per op, the parts of a sweep in one, then
  // counterexamples and reasons, then a summary with the seed. A column more
  // says which ops are certified, where any is. Without the coverage
  // (CoverageText).
  std::string ToString() const;
  // {"seed", "ops": {NAME: {"place", "seconds", "loose_claim", "certified":
  // {"by", "date"}, "layers": {"L3":
  // {"verdict", "strength", "samples", "worst_ulp", "worst_part_of_bound",
  // "worst_at", "why", "notes", "counterexample": {..}}}}}, "totals": {VERDICT:
  // n, "rules": n, "sweep_parts": n}}; with "coverage", where it was asked for:
  // [{"item", "place", "lines", "covered_lines", "branches",
  // "covered_branches", "uncovered": [{"place", "what", "text", "marked",
  // "kind": "line" or "branch", "index"}]}]; with "shard" (run_shard.h), where
  // it is one.
  std::string ToJson() const;
};

// The ops that CheckRules checks with these options.
struct CheckedOp {
  std::string op;
  // The op is another source's, and the examples alone are these sources':
  // no other layer is checked.
  bool examples_alone = false;
};
// In the order of the report. InvalidArgument as for CheckRules.
absl::StatusOr<std::vector<CheckedOp>> OpsToCheck(const RuleSet& rules,
                                                  const CheckOptions& options);

// Checks the ops, the derivatives of primitives and the rewrites of `rules`.
// Host ops rest on ops and are left to conformance.
//
// InvalidArgument where `rules` is null, a host kernel has the name of no op,
// none of the ops has a size that is fixed, or there is no such shard.
absl::StatusOr<CheckReport> CheckRules(std::shared_ptr<const RuleSet> rules,
                                       const CheckOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_CHECK_H_
