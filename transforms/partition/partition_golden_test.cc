// Small functions, cut by each partitioner and policy, as text.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/ir/graph_text.h"
#include "gtest/gtest.h"
#include "ops/check.h"
#include "testing/golden_file.h"
#include "transforms/partition/min_cut.h"
#include "transforms/partition/partition_figures.h"
#include "transforms/partition/partition_testing.h"
#include "transforms/partition/save_policy.h"

namespace cleave::aot {
namespace {

// The policy that a line names; null for none.
SavePolicy PolicyOf(const std::vector<std::string>& words,
                    const RuleSet& rules) {
  const std::string& kind = words[0];
  std::vector<std::string> names(words.begin() + 1, words.end());
  if (kind == "nothing") return NothingSaveable();
  if (kind == "everything") return EverythingSaveable();
  if (kind == "dots") return DotsSaveable(rules);
  if (kind == "names") return SaveOnlyTheseNames(std::move(names));
  if (kind == "offload") {
    return SaveAndOffloadOnlyTheseNames({}, std::move(names));
  }
  if (kind == "within") return RecomputeWithin(std::move(names));
  return nullptr;
}

std::string Partitioned(absl::string_view input,
                        const std::shared_ptr<const RuleSet>& base) {
  const std::pair<std::string, std::string> lines =
      absl::StrSplit(input, absl::MaxSplits('\n', 1));
  const std::vector<std::string> words = absl::StrSplit(lines.first, ' ');
  const LoadResult loaded = ExtendRules(
      base, {"golden.rules", absl::StrCat("language 1\n\n", lines.second)});
  for (const std::string& diagnostic : loaded.diagnostics) {
    ADD_FAILURE() << diagnostic;
  }
  if (loaded.rules == nullptr) return "";
  const std::shared_ptr<const RuleSet> rules = loaded.rules;
  const absl::StatusOr<JointGraph> joint = JointOf("f", *rules);
  CLEAVE_CHECK(joint.ok()) << joint.status();
  MinCutOptions options;
  options.policy = PolicyOf(words, *rules);
  const absl::StatusOr<Partition> partition =
      words[0] == "default"
          ? DefaultPartition(*joint)
          : MinCutRematerializationPartition(*joint, *rules, options);
  if (!partition.ok()) return absl::StrCat(partition.status().message(), "\n");
  const absl::Status status = CompareWithJoint(*joint, *partition, *rules);
  CLEAVE_CHECK(status.ok()) << status;
  CostModel costs(*rules);
  const auto figures = FiguresOf(*joint, *partition, costs);
  CLEAVE_CHECK(figures.ok()) << figures.status();
  std::string text = absl::StrCat(PrintGraph(partition->forward),
                                  PrintGraph(partition->backward));
  for (const SavedFigure& saved : figures->saved) {
    absl::StrAppend(&text, saved.name, ": ", SavedKindName(saved.kind), " ",
                    saved.of, saved.offloaded ? ", offloaded" : "", "\n");
  }
  return text;
}

TEST(Partition, Golden) {
  const auto base = LoadFunctions(std::make_shared<Context>());
  TestGoldenFile(
      "transforms/partition/testdata/partitions.golden",
      [&](absl::string_view input) { return Partitioned(input, base); });
}

}  // namespace
}  // namespace cleave::aot
