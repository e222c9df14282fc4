// Checks that a process remembers for the next one, and rule sets that threads
// share.

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/files/file.h"
#include "engine/ir/context.h"
#include "engine/ir/graph.h"
#include "engine/ir/graph_text.h"
#include "engine/rules/rule_set.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

namespace fs = std::filesystem;

constexpr char kTwice[] =
    "language 1\n\nop twice(x: T[S..]) -> T[S..]\n  where T: float\n"
    "  = 2 * x\n";
constexpr char kFourfold[] =
    "language 1\n\nop fourfold(x: T[S..]) -> T[S..]\n  where T: float\n"
    "  = twice(twice(x))\n";
// Nothing but a check of its body at symbolic signatures finds the mistake.
constexpr char kWrong[] =
    "language 1\n\nop wrong(x: T[n]) -> T[n + 1]\n  where T: float\n"
    "  = x + x\n";
// Rules with many ops: those in `wrong` have a mistake.
std::string ManyOps(int count, const std::set<int>& wrong) {
  std::string text = "language 1\n";
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "\nop op", i, "(x: T[n]) -> T[",
                    wrong.count(i) != 0 ? "n + 1" : "n",
                    "]\n  where T: float\n  = x + x\n");
  }
  return text;
}

constexpr char kUnique[] =
    "language 1\n\nop places(x: bool[n]) -> i64[new m <= n, 1]\n"
    "  = nonzero(x)\n";

class LoadRulesTest : public ::testing::Test {
 protected:
  LoadRulesTest()
      : folder_(absl::StrCat(
            ::testing::TempDir(), "/load_rules_test_", getpid(), "_",
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder_);
  }
  ~LoadRulesTest() override { fs::remove_all(folder_); }

  LoadResult Load(const std::vector<NamedSource>& sources) const {
    LoadOptions options;
    options.cache_folder = folder_;
    return LoadRules(sources, std::make_shared<Context>(), options);
  }

  std::vector<std::string> Entries() const {
    std::vector<std::string> entries;
    std::error_code error;
    for (const auto& entry : fs::recursive_directory_iterator(folder_, error)) {
      if (entry.is_regular_file()) entries.push_back(entry.path().string());
    }
    return entries;
  }

  const std::string folder_;
};

// All cores look for mistakes: what is told is what one core tells, in order of
// place.
TEST_F(LoadRulesTest, TellsMistakesInOrder) {
  for (int round = 0; round < 5; ++round) {
    const LoadResult result = Load({{"a.rules", ManyOps(64, {3, 40, 63})}});
    ASSERT_THAT(result.diagnostics, SizeIs(3));
    EXPECT_EQ(result.rules, nullptr);
    int line = 0;
    for (const std::string& diagnostic : result.diagnostics) {
      int at = 0;
      ASSERT_EQ(std::sscanf(diagnostic.c_str(), "a.rules:%d:", &at), 1)
          << diagnostic;
      EXPECT_GT(at, line);
      line = at;
    }
  }
}

TEST_F(LoadRulesTest, MistakesInJsonHaveTheirPointers) {
  const LoadResult result =
      Load({{"b.json", "{\"language\": 1, \"items\": [3]}", /*json=*/true}});
  ASSERT_THAT(result.mistakes, Not(IsEmpty()));
  ASSERT_EQ(result.diagnostics.size(), result.mistakes.size());
  for (const PlacedMistake& mistake : result.mistakes) {
    EXPECT_EQ(mistake.file, "b.json");
    EXPECT_THAT(mistake.pointer, StartsWith("/"));
    EXPECT_EQ(mistake.line, 0);
  }
}

TEST_F(LoadRulesTest, MistakesOfNamesHaveTheirPlaces) {
  const LoadResult result =
      Load({{"a.rules", "language 1\n\nfn f(x: f32[n]) -> f32[n] = eyp(x)\n"}});
  ASSERT_THAT(result.mistakes, SizeIs(1));
  const PlacedMistake& mistake = result.mistakes[0];
  EXPECT_EQ(mistake.file, "a.rules");
  EXPECT_EQ(mistake.line, 3);
  EXPECT_EQ(mistake.column, 29);
  EXPECT_EQ(mistake.end_line, 3);
  EXPECT_EQ(mistake.end_column, 35);
  EXPECT_EQ(mistake.kind, "unknown-op");
  EXPECT_EQ(mistake.help, "did you mean `exp`?");
}

TEST_F(LoadRulesTest, RulesAreCheckedOnce) {
  const LoadResult first = Load({{"a.rules", kTwice}});
  ASSERT_THAT(first.diagnostics, IsEmpty());
  EXPECT_FALSE(first.checked_before);
  const LoadResult second = Load({{"elsewhere/a.rules", kTwice}});
  ASSERT_THAT(second.diagnostics, IsEmpty());
  EXPECT_TRUE(second.checked_before);
  // Bodies are compiled when they are used.
  GraphBuilder builder(second.rules->context());
  const Value x = builder.Input("x", {DType::kF32, {3}});
  EXPECT_OK(second.rules->Call(builder, "twice", {{"x", x}}, {}).status());
}

TEST_F(LoadRulesTest, OtherTextsAreChecked) {
  ASSERT_THAT(Load({{"a.rules", kTwice}}).diagnostics, IsEmpty());
  EXPECT_FALSE(Load({{"a.rules", absl::StrCat(kTwice, "\n")}}).checked_before);
  EXPECT_FALSE(
      Load({{"a.rules", kTwice}, {"b.rules", kFourfold}}).checked_before);
  EXPECT_TRUE(
      Load({{"a.rules", kTwice}, {"b.rules", kFourfold}}).checked_before);
}

TEST_F(LoadRulesTest, MistakesAreNeverRemembered) {
  for (int i = 0; i < 3; ++i) {
    const LoadResult loaded = Load({{"a.rules", kTwice}, {"b.rules", kWrong}});
    EXPECT_THAT(loaded.diagnostics, ElementsAre(HasSubstr("b.rules:5:5")));
    EXPECT_EQ(loaded.rules, nullptr);
    EXPECT_FALSE(loaded.checked_before);
  }
  EXPECT_THAT(Entries(), IsEmpty());
}

TEST_F(LoadRulesTest, ExtensionsOfRememberedRulesAreChecked) {
  ASSERT_THAT(Load({{"a.rules", kTwice}}).diagnostics, IsEmpty());
  const LoadResult base = Load({{"a.rules", kTwice}});
  ASSERT_TRUE(base.checked_before);
  const LoadResult wrong =
      ExtendRules(base.rules, NamedSource{"b.rules", kWrong});
  EXPECT_THAT(wrong.diagnostics, ElementsAre(HasSubstr("b.rules:5:5")));
  const NamedSource fourfold{"b.rules", kFourfold};
  EXPECT_FALSE(ExtendRules(base.rules, fourfold).checked_before);
  EXPECT_TRUE(ExtendRules(base.rules, fourfold).checked_before);
  // The same texts without a base are other rules: all of them are new.
  EXPECT_FALSE(Load({{"a.rules", kTwice}, fourfold}).checked_before);
}

TEST_F(LoadRulesTest, TrustedRulesAreNotChecked) {
  LoadOptions options;
  options.cache_folder = folder_;
  options.trusted = true;
  const LoadResult loaded =
      LoadRules({{"a.rules", kWrong}, {"b.rules", kTwice}},
                std::make_shared<Context>(), options);
  ASSERT_THAT(loaded.diagnostics, IsEmpty());
  EXPECT_TRUE(loaded.checked_before);
  EXPECT_THAT(Entries(), IsEmpty());
  // The mistake shows where it is used.
  Signature signature;
  signature.op = loaded.rules->context()->InternOp("wrong");
  signature.operands = {
      loaded.rules->context()->Intern(TensorType{DType::kF32, {3}})};
  EXPECT_FALSE(loaded.rules->Body(signature).ok());
  // Trust is for these rules, not for what extends them.
  const LoadResult extended =
      ExtendRules(loaded.rules, NamedSource{"c.rules",
                                            "language 1\n\n"
                                            "op more(x: f32[n]) -> f32[n + 1]\n"
                                            "  = x\n"});
  EXPECT_THAT(extended.diagnostics, SizeIs(1));
  // Syntax, and names declared twice, are mistakes all the same.
  EXPECT_THAT(LoadRules({{"a.rules", kTwice}, {"b.rules", kTwice}},
                        std::make_shared<Context>(), options)
                  .diagnostics,
              ElementsAre(HasSubstr("declared twice")));
}

TEST_F(LoadRulesTest, DamagedEntriesAreIgnored) {
  ASSERT_THAT(Load({{"a.rules", kTwice}}).diagnostics, IsEmpty());
  const std::vector<std::string> entries = Entries();
  ASSERT_THAT(entries, SizeIs(1));
  ASSERT_OK_AND_ASSIGN(const std::string whole, ReadFile(entries[0]));
  for (const size_t at : {size_t{0}, whole.size() / 2, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    ASSERT_OK(WriteFileAtomically(entries[0], damaged));
    EXPECT_FALSE(Load({{"a.rules", kTwice}}).checked_before) << at;
    EXPECT_TRUE(Load({{"a.rules", kTwice}}).checked_before) << at;
  }
  ASSERT_OK(WriteFileAtomically(entries[0], ""));
  EXPECT_FALSE(Load({{"a.rules", kTwice}}).checked_before);
  // An entry under another's name says nothing of these rules.
  ASSERT_THAT(Load({{"a.rules", kTwice}, {"b.rules", kFourfold}}).diagnostics,
              IsEmpty());
  for (const std::string& other : Entries()) {
    if (other != entries[0]) fs::rename(other, entries[0]);
  }
  EXPECT_FALSE(Load({{"a.rules", kTwice}}).checked_before);
}

TEST_F(LoadRulesTest, FoldersOfOthersAreNotBelieved) {
  ASSERT_THAT(Load({{"a.rules", kTwice}}).diagnostics, IsEmpty());
  ASSERT_TRUE(Load({{"a.rules", kTwice}}).checked_before);
  const std::string inner = folder_ + "/checked";
  ASSERT_EQ(chmod(inner.c_str(), 0777), 0);
  const LoadResult loaded = Load({{"a.rules", kTwice}});
  EXPECT_THAT(loaded.diagnostics, IsEmpty());
  EXPECT_FALSE(loaded.checked_before);
  ASSERT_EQ(chmod(inner.c_str(), 0700), 0);
  EXPECT_TRUE(Load({{"a.rules", kTwice}}).checked_before);
}

TEST_F(LoadRulesTest, NothingIsRememberedWithoutAFolder) {
  LoadOptions options;
  options.cache_folder = "";
  for (int i = 0; i < 2; ++i) {
    const LoadResult loaded =
        LoadRules({{"a.rules", kTwice}}, std::make_shared<Context>(), options);
    EXPECT_THAT(loaded.diagnostics, IsEmpty());
    EXPECT_FALSE(loaded.checked_before);
  }
}

TEST_F(LoadRulesTest, TheFolderIsTheDefaultOne) {
  const std::string chosen = folder_ + "/default";
  ASSERT_EQ(setenv("CLEAVE_CACHE", chosen.c_str(), 1), 0);
  EXPECT_FALSE(LoadRules({{"a.rules", kTwice}}, std::make_shared<Context>())
                   .checked_before);
  EXPECT_TRUE(LoadRules({{"a.rules", kTwice}}, std::make_shared<Context>())
                  .checked_before);
  ASSERT_EQ(unsetenv("CLEAVE_CACHE"), 0);
  EXPECT_THAT(Entries(), SizeIs(1));
}

// The names of an op's extents do not tell whether it was checked.
TEST_F(LoadRulesTest, ExtentsHaveTheSameNamesBothTimes) {
  std::vector<std::string> printed;
  for (int i = 0; i < 2; ++i) {
    const LoadResult loaded = Load({{"a.rules", kUnique}});
    ASSERT_THAT(loaded.diagnostics, IsEmpty());
    EXPECT_EQ(loaded.checked_before, i == 1);
    GraphBuilder builder(loaded.rules->context());
    const Value x = builder.Input("x", {DType::kBool, {3}});
    ASSERT_OK_AND_ASSIGN(const auto results,
                         loaded.rules->Call(builder, "places", {{"x", x}}, {}));
    printed.push_back(
        PrintGraph(*std::move(builder).Build({{"y", *results[0]}})));
  }
  EXPECT_EQ(printed[0], printed[1]);
}

// Run it under ThreadSanitizer, too.
TEST_F(LoadRulesTest, ThreadsShareARuleSet) {
  std::string text = "language 1\n";
  constexpr int kOps = 12;
  for (int i = 0; i < kOps; ++i) {
    const std::string inner =
        i == 0 ? "x" : absl::StrCat("f", i - 1, "(x, k: k)");
    absl::StrAppend(&text, "\nop f", i,
                    "(x: T[S..], *, k: int = 1) -> T[S..]\n",
                    "  where T: float\n  = ", inner, " * k + ", i, "\n");
  }
  absl::StrAppend(&text, "\njvp exp(a) = y * da\n");
  const LoadResult loaded = Load({{"ops.rules", text}});
  ASSERT_THAT(loaded.diagnostics, IsEmpty());
  const RuleSet& rules = *loaded.rules;
  constexpr int kThreads = 8;
  std::vector<std::vector<std::string>> printed(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&rules, &mine = printed[t], t] {
      for (int n = 0; n < 40; ++n) {
        for (int step = 0; step < kOps; ++step) {
          // Each thread begins with another op.
          const int i = (step + t) % kOps;
          GraphBuilder builder(rules.context());
          const Value x = builder.Input("x", {DType::kF32, {n, i}});
          const auto results = rules.Call(builder, absl::StrCat("f", i),
                                          {{"x", x}}, {{"k", n % 5}});
          if (!results.ok()) {
            mine.push_back(results.status().ToString());
            return;
          }
          const Graph call = *std::move(builder).Build({{"y", *(*results)[0]}});
          const auto body =
              rules.Body(RuleSet::SignatureOf(call, call.outputs()[0].value));
          mine.resize(40 * kOps);
          mine[n * kOps + i] =
              body.ok() ? PrintGraph(**body) : body.status().ToString();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 1; t < kThreads; ++t) EXPECT_EQ(printed[t], printed[0]) << t;
  EXPECT_THAT(printed[0].back(), HasSubstr("f10"));
}

// `not v` of a tensor is its elements' negation as a value; where a branch is
// chosen it asks whether v is given.
TEST(LoadRules, BranchesAskWhetherALetIsGiven) {
  const LoadResult loaded =
      LoadRules({{"in.rules",
                  "language 1\n\nop shifted(x: T[S..], w: T[S..]?) -> T[S..]\n"
                  "  where T: float\n{\n  let v = if w then w + 1\n"
                  "  if len(S) > 9 or not v then x else v\n}\n\n"
                  "fn with(x: f32[3], w: f32[3]) -> f32[3] = shifted(x, w)\n\n"
                  "fn without(x: f32[3]) -> f32[3] = shifted(x)\n"}},
                std::make_shared<Context>());
  ASSERT_THAT(loaded.diagnostics, IsEmpty());
  const auto expanded = [&](const char* name) {
    const auto call = loaded.rules->Function(name);
    EXPECT_OK(call);
    const auto body = loaded.rules->Body(
        RuleSet::SignatureOf(*call, call->outputs()[0].value));
    EXPECT_OK(body);
    return PrintGraph(**body);
  };
  EXPECT_THAT(expanded("with"), HasSubstr("= add(%w, "));
  EXPECT_THAT(expanded("without"), HasSubstr("return y = %x"));
}

TEST(AtenSchema, DefaultsOfDTypesAreDTypes) {
  const LoadResult loaded = LoadRules(
      {{"aten.rules",
        "language 1\n\n"
        "aten named(Tensor self, *, ScalarType dtype=long) -> Tensor\n"
        "  = convert(self, dtype: dtype)\n\n"
        "aten numbered(Tensor self, *, ScalarType? dtype=15) -> Tensor\n"
        "  = convert(self, dtype: dtype)\n\n"
        "fn f(x: f32[n]) -> (a: i64[n], b: bf16[n])\n{\n"
        "  (a = aten.named(x), b = aten.numbered(x))\n}\n"}},
      std::make_shared<Context>());
  ASSERT_THAT(loaded.diagnostics, IsEmpty());
  EXPECT_OK(loaded.rules->Function("f"));
}

// --- names that the shipped rules have, too

NamedSource Shipped(const std::string& text) {
  NamedSource source{"rules/core/shipped.rules", text};
  source.shipped = true;
  return source;
}

constexpr char kShippedText[] =
    "language 1\n\n"
    "op scaled(x: T[S..]) -> T[S..]\n  where T: float\n  = tail(x)\n\n"
    "op scaled_twice(x: T[S..]) -> T[S..]\n  where T: float\n"
    "  = scaled(scaled(x))\n\n"
    "def tail(x) = 2 * x\n";

TEST(ShippedNames, AUsersOpAndDefStandBesideThem) {
  const LoadResult shipped =
      LoadRules({Shipped(kShippedText)}, std::make_shared<Context>());
  ASSERT_THAT(shipped.diagnostics, IsEmpty());
  const LoadResult loaded = ExtendRules(
      shipped.rules,
      NamedSource{"my folder/mine.rules",
                  "language 1\n\n"
                  "op scaled(x: T[S..]) -> T[S..]\n  where T: float\n"
                  "  spec y[s..] = tail(x[s..])\n"
                  "  accuracy T within 1 ulp\n"
                  "{\n  tail(x)\n  jvp x = tail(dx)\n}\n\n"
                  "def tail(x) = 3 * x\n\n"
                  "example scaled([1.0]) = [3.0]\n\n"
                  "fn f(x: f64[]) -> f64[] = scaled(x) + scaled_twice(x)\n\n"
                  "fn g(x: f64[]) -> f64[] = jvp scaled(x)(x)\n"});
  ASSERT_THAT(loaded.diagnostics, IsEmpty());
  EXPECT_THAT(loaded.notes,
              ElementsAre("my folder/mine.rules:3: note: `scaled` is "
                          "`mine_scaled` outside of what is loaded with it, "
                          "where `scaled` is the shipped one\n"));
  EXPECT_EQ(loaded.rules->Find("mine_scaled")->name, "mine_scaled");
  EXPECT_NE(loaded.rules->Find("scaled"), nullptr);
  ASSERT_OK_AND_ASSIGN(const Graph f, loaded.rules->Function("f"));
  EXPECT_THAT(PrintGraph(f), HasSubstr("= mine_scaled(%x)"));
  EXPECT_THAT(PrintGraph(f), HasSubstr("= scaled_twice(%x)"));
  // The shipped op rests on the shipped one still, and its body on its def.
  const auto body = [&](const char* op) {
    Signature signature;
    signature.op = loaded.rules->context()->InternOp(op);
    signature.operands = {
        loaded.rules->context()->Intern(TensorType{DType::kF64, {}})};
    const auto graph = loaded.rules->Body(signature);
    EXPECT_OK(graph);
    return PrintGraph(**graph);
  };
  EXPECT_THAT(body("scaled_twice"), HasSubstr("= scaled(%x)"));
  EXPECT_THAT(body("scaled"), HasSubstr("value: 2.0"));
  EXPECT_THAT(body("mine_scaled"), HasSubstr("value: 3.0"));
}

TEST(ShippedNames, WhatOneLoadDeclaresMayAlsoBeTaken) {
  // Both in one load, and the name that would be given is a user's own.
  const LoadResult loaded = LoadRules(
      {Shipped(kShippedText),
       {"mine.rules",
        "language 1\n\nop scaled(x: T[S..]) -> T[S..]\n  where T: float\n"
        "  = mine_scaled(x)\n\nop mine_scaled(x: T[S..]) -> T[S..]\n"
        "  where T: float\n  = 4 * x\n"}},
      std::make_shared<Context>());
  ASSERT_THAT(loaded.diagnostics, IsEmpty());
  EXPECT_NE(loaded.rules->Find("mine_scaled_"), nullptr);
  EXPECT_NE(loaded.rules->Find("mine_scaled"), nullptr);
}

TEST(ShippedNames, AFnIsFoundByItsOwnName) {
  const LoadResult shipped =
      LoadRules({Shipped(kShippedText)}, std::make_shared<Context>());
  // One has the name of an op, one that of a def.
  const LoadResult loaded = ExtendRules(
      shipped.rules,
      {"mine.rules",
       "language 1\n\nfn scaled(x: f64[]) -> f64[] = 5 * x\n\n"
       "fn tail(x: f64[]) -> f64[] = scaled(x) + scaled_twice(x)\n"});
  ASSERT_THAT(loaded.diagnostics, IsEmpty());
  EXPECT_THAT(loaded.notes, IsEmpty());
  EXPECT_THAT(loaded.rules->Names(ItemKind::kFn),
              ElementsAre("scaled", "tail"));
  EXPECT_EQ(loaded.rules->Find("scaled")->kind, ItemKind::kOp);
  ASSERT_OK_AND_ASSIGN(const Graph scaled, loaded.rules->Function("scaled"));
  EXPECT_THAT(PrintGraph(scaled), HasSubstr("value: 5.0"));
  // A rule set that is loaded behind them has the fns as well.
  const LoadResult more = ExtendRules(
      loaded.rules,
      {"more.rules", "language 1\n\nfn f(x: f64[]) -> f64[] = scaled(x)\n"});
  ASSERT_THAT(more.diagnostics, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const Graph tail, more.rules->Function("tail"));
  EXPECT_THAT(PrintGraph(tail), HasSubstr("= mine_scaled(%x)"));
  EXPECT_THAT(PrintGraph(tail), HasSubstr("= scaled_twice(%x)"));
  ASSERT_OK_AND_ASSIGN(const Graph f, more.rules->Function("f"));
  EXPECT_THAT(PrintGraph(f), HasSubstr("= scaled(%x)"));
}

TEST(ShippedNames, DefsOfThemArePrivate) {
  const LoadResult shipped =
      LoadRules({Shipped(kShippedText)}, std::make_shared<Context>());
  LoadResult loaded = ExtendRules(
      shipped.rules,
      {"mine.rules", "language 1\n\nfn f(x: f64[]) -> f64[] = tail(x)\n"});
  EXPECT_THAT(loaded.diagnostics,
              ElementsAre(HasSubstr(
                  "`tail` is a def of the shipped rules "
                  "(rules/core/shipped.rules:11), which is private to them")));
  // A program may write what they do.
  NamedSource generated{"made",
                        "language 1\n\nop made(x: T[S..]) -> T[S..]\n"
                        "  where T: float\n  = tail(x)\n"};
  generated.generated = true;
  loaded = ExtendRules(shipped.rules, generated);
  EXPECT_THAT(loaded.diagnostics, IsEmpty());
}

// A shipped def is no reason to give a user's op another name.
TEST(ShippedNames, AUsersItemsKeepTheNamesOfShippedDefs) {
  const LoadResult shipped =
      LoadRules({Shipped(kShippedText)}, std::make_shared<Context>());
  ASSERT_THAT(shipped.diagnostics, IsEmpty());
  const LoadResult op =
      ExtendRules(shipped.rules,
                  NamedSource{"mine.rules",
                              "language 1\n\n"
                              "op tail(x: T[S..]) -> T[S..]\n  where T: float\n"
                              "{\n  3 * x\n  jvp x = tail(dx)\n}\n\n"
                              "fn f(x: f64[]) -> f64[] = tail(scaled(x))\n"});
  ASSERT_THAT(op.diagnostics, IsEmpty());
  EXPECT_THAT(op.notes, IsEmpty());
  EXPECT_NE(op.rules->Find("tail"), nullptr);
  ASSERT_OK_AND_ASSIGN(const Graph f, op.rules->Function("f"));
  EXPECT_THAT(PrintGraph(f), HasSubstr("= tail(%1)"));
  // The shipped op goes on to mean the shipped def.
  ASSERT_OK_AND_ASSIGN(const Graph* scaled,
                       op.rules->Body(RuleSet::SignatureOf(f, Value{1})));
  EXPECT_THAT(PrintGraph(*scaled), HasSubstr("value: 2.0"));
  // A file that is loaded later calls the op, by its name.
  const LoadResult more = ExtendRules(
      op.rules,
      NamedSource{"more.rules",
                  "language 1\n\nfn g(x: f64[]) -> f64[] = tail(x)\n"});
  ASSERT_THAT(more.diagnostics, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const Graph g, more.rules->Function("g"));
  EXPECT_THAT(PrintGraph(g), HasSubstr("= tail(%x)"));
  // So does a def that another file has.
  const LoadResult def = ExtendRules(
      shipped.rules, NamedSource{"mine.rules",
                                 "language 1\n\ndef tail(x) = 5 * x\n\n"
                                 "fn f(x: f64[]) -> f64[] = tail(x)\n"});
  ASSERT_THAT(def.diagnostics, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const Graph five, def.rules->Function("f"));
  EXPECT_THAT(PrintGraph(five), HasSubstr("value: 5.0"));
}

TEST(ShippedNames, AmongThemANameIsDeclaredOnce) {
  const LoadResult loaded =
      LoadRules({Shipped(kShippedText), Shipped(kShippedText)},
                std::make_shared<Context>());
  EXPECT_THAT(loaded.diagnostics, SizeIs(3));
  EXPECT_THAT(loaded.diagnostics[0], HasSubstr("declared twice"));
}

}  // namespace
}  // namespace cleave
