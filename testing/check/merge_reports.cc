#include "testing/check/merge_reports.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "testing/check/layers/check_sweep.h"
#include "testing/run_shard.h"

namespace cleave {
namespace {

// In the order of a report: ops, then derivatives, then rewrites, then parts of
// sweeps.
std::tuple<int, absl::string_view> Order(const OpReport& op) {
  const int kind = absl::StartsWith(op.op, "jvp ")       ? 1
                   : absl::StartsWith(op.op, "rewrite ") ? 2
                   : !WholeSweep(op.op).empty()          ? 3
                                                         : 0;
  return {kind, op.op};
}

// A line or a branch of an item.
std::pair<bool, int> Key(const UncoveredArm& arm) {
  return {arm.is_line, arm.index};
}

// Takes from `sum` what is covered by the same item of another shard.
absl::Status Unite(RuleCoverage& sum, const RuleCoverage& next,
                   const std::string& name) {
  if (sum.item != next.item || sum.place != next.place ||
      sum.lines != next.lines || sum.branches != next.branches) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": its coverage is of `", next.item, "` at ", next.place,
        " where that of another shard is of `", sum.item, "` at ", sum.place));
  }
  std::map<std::pair<bool, int>, const UncoveredArm*> missed;
  for (const UncoveredArm& arm : next.uncovered) missed[Key(arm)] = &arm;
  std::vector<UncoveredArm> left;
  for (UncoveredArm& arm : sum.uncovered) {
    const auto it = missed.find(Key(arm));
    if (it == missed.end()) continue;
    // If a condition is asked for in one of the shards, its other branch is
    // known to be taken.
    if (arm.what == kNeverAsked) arm.what = it->second->what;
    left.push_back(std::move(arm));
  }
  sum.uncovered = std::move(left);
  sum.covered_lines = sum.lines;
  sum.covered_branches = sum.branches;
  for (const UncoveredArm& arm : sum.uncovered) {
    --(arm.is_line ? sum.covered_lines : sum.covered_branches);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CheckReport> MergeCheckReports(std::vector<NamedReport> shards) {
  std::vector<NamedShard> parts;
  for (const NamedReport& one : shards) {
    if (!one.report.shard.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(one.name, " is the report of no shard"));
    }
    parts.push_back({one.name, *one.report.shard});
  }
  CLEAVE_RETURN_IF_ERROR(CheckAllShards(parts));
  CheckReport merged;
  merged.seed = shards.front().report.seed;
  merged.coverage = shards.front().report.coverage;
  std::map<std::string, std::string> shard_of;
  for (NamedReport& one : shards) {
    if (one.report.seed != merged.seed) {
      return absl::InvalidArgumentError(
          absl::StrCat(one.name, ": its seed is not that of its run"));
    }
    for (OpReport& op : one.report.ops) {
      const auto [it, is_new] = shard_of.emplace(op.op, one.name);
      if (!is_new) {
        return absl::InvalidArgumentError(absl::StrCat(
            one.name, " and ", it->second, " both have `", op.op, "`"));
      }
      merged.ops.push_back(std::move(op));
    }
    if (one.report.coverage.size() != merged.coverage.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          one.name, ": its coverage is of ", one.report.coverage.size(),
          " items, that of another shard of ", merged.coverage.size()));
    }
    for (size_t i = 0; i < merged.coverage.size(); ++i) {
      CLEAVE_RETURN_IF_ERROR(
          Unite(merged.coverage[i], one.report.coverage[i], one.name));
    }
  }
  std::sort(
      merged.ops.begin(), merged.ops.end(),
      [](const OpReport& a, const OpReport& b) { return Order(a) < Order(b); });
  return merged;
}

}  // namespace cleave
