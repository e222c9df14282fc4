// The examples of rules/README.md hold what they say: loaded together with the
// shipped rules, each passes the checker, or is refused with the message that
// stands below it.

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/files/file.h"
#include "engine/lang/parser.h"
#include "engine/rewrite/expand.h"
#include "engine/rules/rule_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/check.h"
#include "testing/check/layers/read_example.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"
#include "transforms/report/coverage.h"

namespace cleave {
namespace {

using ::testing::IsEmpty;

constexpr char kReadme[] = "rules/README.md";
constexpr char kExample[] = "example.rules";

struct Block {
  std::string fence;  // "rules", "rules error", "text", ...
  int line = 0;
  std::string text;
};

std::vector<Block> ReadBlocks() {
  const absl::StatusOr<std::string> readme = ReadFile(kReadme);
  EXPECT_OK(readme);
  std::vector<Block> blocks;
  bool inside = false;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(*readme, '\n')) {
    ++number;
    if (inside && line == "```") {
      inside = false;
    } else if (inside) {
      absl::StrAppend(&blocks.back().text, line, "\n");
    } else if (absl::StartsWith(line, "```")) {
      inside = true;
      blocks.push_back({std::string(line.substr(3)), number + 1, ""});
    }
  }
  return blocks;
}

std::string FileOf(const Block& block) {
  constexpr absl::string_view kHeading = "language 1\n";
  return absl::StartsWith(block.text, kHeading)
             ? block.text
             : absl::StrCat(kHeading, "\n", block.text);
}

// The declarations of an example of which there may be only one: derivatives,
// rewrites and numerics.
using Declared = std::set<std::pair<ItemKind, std::string>>;
Declared DeclaredOnce(const RuleFile& example) {
  Declared declared;
  for (const RuleFile::Entry& entry : example.entries) {
    if (!entry.item) continue;
    const ItemKind kind = entry.item->kind;
    if (kind == ItemKind::kJvp || kind == ItemKind::kRewrite ||
        kind == ItemKind::kNumeric) {
      declared.emplace(kind, entry.item->name);
    }
  }
  return declared;
}

// The shipped rules without `left_out`.
LoadResult LoadShipped(const Declared& left_out) {
  absl::StatusOr<std::vector<NamedSource>> shipped = ReadRuleFiles({"rules"});
  EXPECT_OK(shipped);
  for (NamedSource& source : *shipped) {
    source.shipped = true;
    RuleFile file = ParseRules(Source(source.name, source.text)).file;
    RuleFile kept;
    for (RuleFile::Entry& entry : file.entries) {
      if (entry.item && left_out.count({entry.item->kind, entry.item->name})) {
        continue;
      }
      // Without it there is nothing to show of a derivative.
      if (entry.item && entry.item->kind == ItemKind::kExample &&
          left_out.count({ItemKind::kJvp, OpOfExample(*entry.item)}) != 0) {
        continue;
      }
      kept.entries.push_back(std::move(entry));
    }
    if (kept.entries.size() != file.entries.size()) {
      source.text = PrintRuleFile(kept);
    }
  }
  return LoadRules(*shipped, std::make_shared<Context>(), WithTransforms());
}

LoadResult Load(const std::string& name, const std::string& text) {
  static const auto& all = *new LoadResult(LoadShipped({}));
  const Declared declared = DeclaredOnce(ParseRules(Source(name, text)).file);
  const LoadResult& base = declared.empty() ? all : LoadShipped(declared);
  EXPECT_THAT(base.diagnostics, IsEmpty());
  return ExtendRules(base.rules, {name, text});
}

// Whether the README says that this is not built yet.
bool IsNotBuilt(absl::string_view why) {
  return absl::StrContains(why, "not supported: reverse mode") ||
         absl::StrContains(why, "not supported: while");
}

void ExpectHolds(const std::string& text) {
  const LoadResult loaded = Load(kExample, text);
  EXPECT_THAT(loaded.diagnostics, IsEmpty());
  if (loaded.rules == nullptr) return;
  CheckOptions options;
  options.sources = {kExample};
  const absl::StatusOr<CheckReport> checked = CheckRules(loaded.rules, options);
  ASSERT_THAT(checked, IsOk());
  const CheckReport& report = *checked;
  EXPECT_EQ(report.ExitStatus(), 0) << report.ToString();
  for (const OpReport& op : report.ops) {
    for (const auto& [layer, verdict] : op.layers) {
      EXPECT_TRUE(verdict.kind != VerdictKind::kInconclusive ||
                  IsNotBuilt(verdict.why))
          << report.ToString();
    }
  }
  EXPECT_EQ(report.Count(VerdictKind::kNotIndependent), 0) << report.ToString();
  const auto in_example = [&](const std::string& name) {
    return loaded.rules->SourceOf(*loaded.rules->Find(name)).name() == kExample;
  };
  // An op of a host is typed where it is called.
  for (ItemKind kind : {ItemKind::kAten, ItemKind::kOnnx}) {
    for (const std::string& name : loaded.rules->Names(kind)) {
      if (!in_example(name)) continue;
      ASSERT_OK_AND_ASSIGN(const OpCoverage coverage,
                           TransformCoverage(*loaded.rules, name));
      EXPECT_EQ(coverage.vmap.kind, Coverage::Kind::kDerived)
          << name << ": " << coverage.vmap.why;
    }
  }
  for (const std::string& name : loaded.rules->Names(ItemKind::kFn)) {
    if (!in_example(name)) continue;
    const absl::StatusOr<Graph> graph = loaded.rules->Function(name);
    const absl::Status status =
        graph.ok() ? Expand(*graph, *loaded.rules).status() : graph.status();
    EXPECT_TRUE(status.ok() || IsNotBuilt(status.message())) << status;
  }
}

// `message` is all of it, or from `error:` on its first line alone.
void ExpectIsRefused(const std::string& text, const std::string& message) {
  const bool whole = !absl::StartsWith(message, "error:");
  const std::string name =
      whole ? message.substr(0, message.find(':')) : kExample;
  const LoadResult loaded = Load(name, text);
  ASSERT_EQ(loaded.diagnostics.size(), 1u)
      << ::testing::PrintToString(loaded.diagnostics);
  std::string got = loaded.diagnostics[0];
  if (!whole) {
    const size_t begin = got.find("error:");
    ASSERT_NE(begin, std::string::npos) << got;
    got = got.substr(begin, got.find('\n') + 1 - begin);
  }
  EXPECT_EQ(got, message);
}

TEST(Readme, ExamplesHold) {
  const std::vector<Block> blocks = ReadBlocks();
  int hold = 0;
  int refused = 0;
  for (size_t i = 0; i < blocks.size(); ++i) {
    SCOPED_TRACE(absl::StrCat(kReadme, ":", blocks[i].line));
    if (blocks[i].fence == "rules") {
      ExpectHolds(FileOf(blocks[i]));
      ++hold;
    } else if (blocks[i].fence == "rules error") {
      ASSERT_LT(i + 1, blocks.size());
      ASSERT_EQ(blocks[i + 1].fence, "text") << "no message";
      ExpectIsRefused(FileOf(blocks[i]), blocks[i + 1].text);
      ++refused;
    }
  }
  EXPECT_GE(hold, 20);
  EXPECT_GE(refused, 5);
}

}  // namespace
}  // namespace cleave
