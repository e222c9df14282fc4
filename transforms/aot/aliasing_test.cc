// Writes and aliases: a call of an AotFunction leaves its arguments and results
// as the function itself does, sharing what they share.

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/eager/call.h"
#include "engine/ir/graph_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"
#include "transforms/aot/aot_function.h"
#include "transforms/aot/aot_function_testing.h"
#include "transforms/aot/traced_program.h"

namespace cleave::aot {
namespace {

using Tensors = std::vector<functional::Tensor>;
using ::testing::HasSubstr;

using Fn = std::function<absl::StatusOr<Tensors>(Tensors)>;
// New arguments, which share storages as they shall.
using Arguments = std::function<Tensors()>;

Tensors One() { return {Vector({1, 2, 3, 4})}; }
Tensors Two() { return {Vector({1, 2, 3, 4}), Vector({5, 6, 7, 8})}; }
// Views of one storage that overlap in an element.
Tensors Overlapping() {
  functional::Tensor base = Vector({1, 2, 3, 4, 5});
  return {base[{{0, 3}}], base[{{2, 5}}]};
}
Tensors Middle() {
  functional::Tensor base = Vector({0, 1, 2, 3, 4, 5});
  return {base[{{1, 5}}]};
}

struct Case {
  std::string name;
  Arguments arguments;
  Fn fn;
  std::vector<MutationKind> mutations;
  std::vector<OutputKind> outputs;
};

class AliasingTest : public AotFunctionTesting {
 protected:
  // The values that arguments and results see, all of the arguments' storages,
  // and who shares with whom.
  static std::string StateOf(const Tensors& arguments, const Tensors& results) {
    Tensors all = arguments;
    all.insert(all.end(), results.begin(), results.end());
    std::string state;
    for (size_t i = 0; i < all.size(); ++i) {
      size_t first = 0;
      while (!all[first].SharesStorage(all[i])) ++first;
      absl::StrAppend(&state, i, " shares with ", first, ": ",
                      all[i].ToString(), "\n");
      if (i < arguments.size()) {
        absl::StrAppend(&state, "of ", all[i].Base().ToString(), "\n");
      }
    }
    return state;
  }

  // Calls it, then writes each result in turn: who else sees it?
  static std::vector<std::string> States(const Tensors& arguments,
                                         Tensors results) {
    std::vector<std::string> states = {StateOf(arguments, results)};
    for (functional::Tensor& result : results) {
      result += 100;
      states.push_back(StateOf(arguments, results));
    }
    return states;
  }

  static void ExpectBehavesAsEager(const Case& test, const AotOptions& options,
                                   bool inference) {
    SCOPED_TRACE(absl::StrCat(test.name, inference ? ", inference" : ""));
    const Tensors eager = test.arguments();
    const absl::StatusOr<Tensors> want = test.fn(eager);
    ASSERT_OK(want);
    const auto f = AotFunction::Make(test.fn, Interpreting(), rules(), options);
    ASSERT_OK(f);
    // Twice: the second call runs what the first one compiled.
    for (int call = 0; call < 2; ++call) {
      const Tensors given = test.arguments();
      AotCallOptions call_options;
      call_options.inference = inference;
      const auto have = f->Call(functional::ToTree(given), call_options);
      ASSERT_OK(have);
      const TracedProgram& program = *f->last_program();
      if (!options.keep_inference_input_mutations) {
        EXPECT_EQ(program.mutations, test.mutations) << program.ToString();
      }
      std::vector<OutputKind> kinds;
      for (const TracedOutput& output : program.outputs) {
        kinds.push_back(output.kind);
      }
      EXPECT_EQ(kinds, test.outputs) << program.ToString();
      const Tensors eager_again = test.arguments();
      const absl::StatusOr<Tensors> again = test.fn(eager_again);
      ASSERT_OK(again);
      EXPECT_EQ(States(given, functional::Flatten(have->outputs)),
                States(eager_again, *again));
    }
    EXPECT_EQ(f->traces(), 1);
  }
};

constexpr MutationKind kRead = MutationKind::kNotMutated;
constexpr MutationKind kAfter = MutationKind::kOutOfGraph;
constexpr MutationKind kWithin = MutationKind::kInGraph;

std::vector<Case> Cases() {
  return {
      // The kinds of results.
      {"a tensor of its own",
       One,
       [](Tensors x) -> absl::StatusOr<Tensors> { return Tensors{x[0] * 2}; },
       {kRead},
       {OutputKind::kNonAlias}},
      {"an input",
       One,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         return Tensors{x[0], x[0] + 1};
       },
       {kRead},
       {OutputKind::kIsInput, OutputKind::kNonAlias}},
      {"a view of an input",
       One,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         return Tensors{x[0][{{1, 3}}], x[0].Reverse({0})};
       },
       {kRead},
       {OutputKind::kAliasOfInput, OutputKind::kAliasOfInput}},
      {"a view of an input that is a view",
       Middle,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         return Tensors{x[0][{{1, 3}}], x[0]};
       },
       {kRead},
       {OutputKind::kAliasOfInput, OutputKind::kIsInput}},
      {"views of an intermediate",
       One,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         functional::Tensor y = x[0] * 2;
         return Tensors{y[{{0, 2}}], y[{{1, 4}}], y.Reshape({2, 2})};
       },
       {kRead},
       {OutputKind::kAliasOfIntermediateSaveAsOutput,
        OutputKind::kAliasOfIntermediate, OutputKind::kAliasOfIntermediate}},
      {"views of another result",
       One,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         functional::Tensor y = x[0] * 2;
         return Tensors{y[{{0, 2}}], y, y.Reverse({0})};
       },
       {kRead},
       {OutputKind::kAliasOfIntermediateBaseIsUserOutput, OutputKind::kNonAlias,
        OutputKind::kAliasOfIntermediateBaseIsUserOutput}},
      {"two results that are one tensor",
       One,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         functional::Tensor y = x[0] * 2;
         return Tensors{y, y};
       },
       {kRead},
       {OutputKind::kNonAlias,
        OutputKind::kAliasOfIntermediateBaseIsUserOutput}},
      // AOTAutograd's unsafe_view: a view whose base nobody sees.
      {"a view of what nobody sees",
       One,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         return Tensors{(x[0] * 2).Reshape({2, 2})};
       },
       {kRead},
       {OutputKind::kNonAlias}},
      // Its custom_function_view: here functions on graphs have values alone.
      {"what a graph gives back unchanged",
       One,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         CLEAVE_ASSIGN_OR_RETURN(
             const Graph same,
             ParseGraph("graph (%x: f64[4]) -> (y: f64[4]) {\n"
                        "  return y = %x\n}\n",
                        AotFunctionTesting::rules()->context()));
         return functional::CallGraph(same, x);
       },
       {kRead},
       {OutputKind::kNonAlias}},
      // The kinds of writes.
      {"an input is written",
       Two,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         x[0] += x[1];
         return Tensors{x[0] * 2};
       },
       {kAfter, kRead},
       {OutputKind::kNonAlias}},
      {"an input is written through a view",
       One,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         functional::Tensor part = x[0][{{1, 3}}];
         part *= 10;
         return Tensors{x[0] + 0.5};
       },
       {kAfter},
       {OutputKind::kNonAlias}},
      {"an input that is a view is written",
       Middle,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         x[0] *= 10;
         return Tensors{x[0] + 1};
       },
       {kAfter},
       {OutputKind::kNonAlias}},
      {"inputs that overlap are written",
       Overlapping,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         x[0] *= 10;
         x[1] += x[0];
         return Tensors{x[0] + 0};
       },
       {kWithin, kWithin},
       {OutputKind::kNonAlias}},
      {"inputs that overlap are read",
       Overlapping,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         return Tensors{x[0] + x[1]};
       },
       {kRead, kRead},
       {OutputKind::kNonAlias}},
      {"a written input and a view of it are results",
       One,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         functional::Tensor before = x[0] * 1;
         x[0] += 1;
         return Tensors{x[0][{2}], before, x[0]};
       },
       {kAfter},
       {OutputKind::kAliasOfInput, OutputKind::kNonAlias,
        OutputKind::kIsInput}},
      {"overlapping inputs are written, and results",
       Overlapping,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         x[0] += 1;
         return Tensors{x[1], x[0][{1}]};
       },
       {kWithin, kWithin},
       {OutputKind::kIsInput, OutputKind::kAliasOfInput}},
      {"an intermediate is written",
       One,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         functional::Tensor y = x[0] * 2;
         functional::Tensor part = y[{{0, 2}}];
         part += x[0][{{2, 4}}];
         return Tensors{y, part};
       },
       {kRead},
       {OutputKind::kNonAlias,
        OutputKind::kAliasOfIntermediateBaseIsUserOutput}},
      // Shapes belong to handles: a function cannot change its caller's.
      {"an input's handle is moved to another shape",
       One,
       [](Tensors x) -> absl::StatusOr<Tensors> {
         functional::Tensor mine = x[0];
         mine = mine.Reshape({2, 2}).Transpose();
         return Tensors{mine};
       },
       {kRead},
       {OutputKind::kAliasOfInput}},
  };
}

TEST_F(AliasingTest, InferenceLeavesWhatTheFunctionLeaves) {
  for (const Case& test : Cases()) {
    ExpectBehavesAsEager(test, {}, /*inference=*/true);
    AotOptions keep;
    keep.keep_inference_input_mutations = true;
    ExpectBehavesAsEager(test, keep, /*inference=*/true);
  }
}

TEST_F(AliasingTest, DifferentiatedCallsLeaveWhatTheFunctionLeaves) {
  for (const Case& test : Cases()) {
    if (test.mutations[0] == kWithin) continue;  // the next test
    ExpectBehavesAsEager(test, {}, /*inference=*/false);
    AotOptions dynamic;
    dynamic.dynamic = true;
    ExpectBehavesAsEager(test, dynamic, /*inference=*/false);
  }
}

TEST_F(AliasingTest, NoGradientsOfWrittenInputsThatShareAStorage) {
  const auto f = AotFunction::Make(
      [](Tensors x) {
        x[0] += x[1];
        return x[0] * 2;
      },
      Interpreting(), rules());
  ASSERT_OK(f);
  EXPECT_THAT(f->Call(functional::ToTree(Overlapping())).status().message(),
              HasSubstr("argument x0 shares its storage with another one"));
  EXPECT_OK(f->Call(functional::ToTree(Two())));
}

TEST_F(AliasingTest, GradientsFlowThroughWritesAndViews) {
  const auto f = AotFunction::Make(
      [](functional::Tensor x) {
        functional::Tensor part = x[{{0, 2}}];
        part *= x[{{2, 4}}];
        return Tensors{x * x, x[{{0, 2}}]};
      },
      Interpreting(), rules());
  ASSERT_OK(f);
  functional::Tensor x = Vector({1, 2, 3, 4});
  const auto y = (*f)(x);
  ASSERT_OK(y);
  ExpectEqual(x, Vector({3, 8, 3, 4}));
  // z = (a c, b d, c, d): dy/da = 2 z0 c + v0 c, ..
  const auto dx = y->backward(
      functional::ToTree(Tensors{Vector({1, 1, 1, 1}), Vector({1, 1})}));
  ASSERT_OK(dx);
  ExpectEqual(Leaf(dx->outputs),
              Vector({6 * 3 + 3, 16 * 4 + 4, 6 * 1 + 1 + 6, 16 * 2 + 2 + 8}));
  // Cotangents of the written value, as of a further result.
  const auto written = y->backward(
      functional::ToTree(Tensors{functional::Tensor(), functional::Tensor()}),
      {{0, Vector({1, 0, 0, 0})}});
  ASSERT_OK(written);
  ExpectEqual(Leaf(written->outputs), Vector({3, 0, 1, 0}));
}

TEST_F(AliasingTest, BroadcastViewsCannotBeWritten) {
  const auto f = AotFunction::Make(
      [](functional::Tensor x) {
        functional::Tensor wide = x.BroadcastTo({3, 4});
        wide += 1;
        return wide;
      },
      Interpreting(), rules());
  ASSERT_OK(f);
  EXPECT_FALSE((*f)(Vector({1, 2, 3, 4})).ok());
}

}  // namespace
}  // namespace cleave::aot
