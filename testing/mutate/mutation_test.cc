#include "testing/mutate/mutation.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/lang/parser.h"
#include "engine/rules/rule_files.h"
#include "gtest/gtest.h"
#include "testing/golden_file.h"
#include "testing/mutate/mutation_draw.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

std::vector<Item> ItemsOf(absl::string_view text) {
  const ParseResult parsed =
      ParseRules(Source("test.rules", std::string(text)));
  EXPECT_TRUE(parsed.ok()) << text;
  std::vector<Item> items;
  for (const RuleFile::Entry& entry : parsed.file.entries) {
    if (entry.item.has_value()) items.push_back(*entry.item);
  }
  return items;
}

std::vector<Item> ShippedItems() {
  const absl::StatusOr<std::vector<NamedSource>> sources =
      ReadRuleFiles({"rules"});
  EXPECT_OK(sources);
  std::vector<Item> all;
  for (const NamedSource& source : *sources) {
    for (Item& item : ItemsOf(source.text)) all.push_back(std::move(item));
  }
  return all;
}

std::string Print(Item item) {
  RuleFile file;
  file.entries.emplace_back();
  file.entries.back().item = std::move(item);
  return PrintRuleFile(file);
}

TEST(Mutation, Golden) {
  TestGoldenFile("testing/mutate/testdata/mutations.golden",
                 [](absl::string_view text) {
                   std::string list;
                   for (const Item& item : ItemsOf(text)) {
                     for (const Mutation& m : MutationsOf(item)) {
                       absl::StrAppend(&list, MutationOperatorName(m.op), ": ",
                                       m.before, " -> ", m.after, "\n");
                     }
                   }
                   return list;
                 });
}

// The parts that a rule is compared with: all but its body.
std::string Declared(Item item) {
  item.body = nullptr;
  return Print(std::move(item));
}

TEST(Mutation, ChangesRuleTextAndKeepsWhatItIsComparedWith) {
  int mutations = 0;
  for (const Item& item : ShippedItems()) {
    const std::string before = Print(item);
    const std::string declared = Declared(item);
    for (const Mutation& mutation : MutationsOf(item)) {
      ++mutations;
      const Item mutant = Mutated(item, mutation);
      const std::string text = Print(mutant);
      EXPECT_NE(text, before) << mutation.after;
      const ParseResult parsed = ParseRules(Source("mutant.rules", text));
      ASSERT_TRUE(parsed.ok()) << text;
      EXPECT_EQ(PrintRuleFile(parsed.file), text);
      if (item.kind == ItemKind::kRewrite) continue;
      EXPECT_EQ(Declared(mutant), declared) << mutation.after;
    }
  }
  EXPECT_GT(mutations, 10000);
}

TEST(Mutation, OfTheShippedRulesHasEveryOperator) {
  std::set<MutationOperator> seen;
  for (const Item& item : ShippedItems()) {
    for (const Mutation& mutation : MutationsOf(item)) seen.insert(mutation.op);
  }
  for (int op = 0; op < kNumMutationOperators; ++op) {
    EXPECT_EQ(seen.count(static_cast<MutationOperator>(op)), 1u)
        << MutationOperatorName(static_cast<MutationOperator>(op));
  }
}

// Two rules, one with one mutation, one with many.
std::vector<std::string> Drawn(uint64_t seed) {
  MutationDraw draw(seed);
  for (const Item& item : ItemsOf("language 1\n\ndef half(e) = e // 2\n\n"
                                  "def many(e) = sin(e) + 1.25 * e^3\n")) {
    draw.Add(MutationsOf(item));
  }
  std::vector<std::string> drawn;
  while (const auto next = draw.Next()) {
    drawn.push_back(
        absl::StrCat(next->rule, " ", MutationOperatorName(next->mutation.op),
                     " ", next->mutation.before, " -> ", next->mutation.after));
  }
  EXPECT_EQ(static_cast<int64_t>(drawn.size()), draw.total());
  return drawn;
}

TEST(MutationDraw, DrawsEachOnceInAnOrderOfItsSeed) {
  const std::vector<std::string> first = Drawn(1);
  EXPECT_EQ(std::set<std::string>(first.begin(), first.end()).size(),
            first.size());
  EXPECT_EQ(Drawn(1), first);
  std::vector<std::string> second = Drawn(2);
  EXPECT_NE(second, first);
}

// Half of the time, the one mutation of an operator comes before all ten of
// another.
TEST(MutationDraw, IsFairToOperators) {
  int first = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    MutationDraw draw(seed);
    std::vector<Mutation> mutations(11);
    for (Mutation& mutation : mutations) {
      mutation.op = MutationOperator::kArithmetic;
    }
    mutations.back().op = MutationOperator::kSign;
    draw.Add(std::move(mutations));
    first += draw.Next()->mutation.op == MutationOperator::kSign;
  }
  EXPECT_GT(first, 150);
  EXPECT_LT(first, 250);
}

}  // namespace
}  // namespace cleave
