// Two references of every shipped op with a formula agree: points of MPFR at
// 1024 bits lie within the intervals of 256. Each checks the other, and both
// the specs, at sampled calls.

#include "testing/check/reference/reference.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/rules/rule_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/check/layers/check_complex.h"
#include "testing/check/layers/op_context.h"
#include "testing/check/samples/signature_sampler.h"
#include "testing/check/samples/value_sampler.h"
#include "testing/status_matchers.h"
#include "transforms/derived_rules.h"

namespace cleave {
namespace {

constexpr int kIntervalBits = 256;
constexpr int kPointBits = 1024;
// Per op: calls that it accepts, of so many that are drawn.
constexpr int kCalls = 5;
constexpr int kDraws = 60;
constexpr Pattern kPatterns[] = {Pattern::kNormal, Pattern::kUnit,
                                 Pattern::kEdges};

// Ops whose spec no enclosure decides at any sample, and why. One that gets
// decided is to leave the list.
const std::map<std::string, std::string>& NeverDecided() {
  static const auto& ops = *new std::map<std::string, std::string>{};
  return ops;
}

struct Counts {
  int calls = 0;        // that were evaluated over points
  int undecided = 0;    // of those, without enclosures
  int64_t points = 0;   // elements that are enclosed
  int64_t open = 0;     // elements that are undecided
  int64_t narrow = 0;   // elements of which 120 bits are known
  int64_t found = 0;    // of those, that are missed by a value off by 2^-100
  std::string failure;  // the first value that is not enclosed
  std::map<std::string, int> why;
};

// The value moved by 2^-100 of itself.
Real Moved(Real value) {
  Real step(value.bits());
  mpfr_div_2ui(step.get(), value.get(), 100, MPFR_RNDN);
  mpfr_add(value.get(), value.get(), step.get(), MPFR_RNDN);
  return value;
}

void CompareElements(const RealTensor& points, const IntervalTensor& intervals,
                     Counts& counts) {
  if (!IsFloat(points.dtype)) {
    for (int64_t i = 0; i < points.discrete.size(); ++i) {
      ++counts.points;
      if (points.discrete.GetInt(i) == intervals.discrete.GetInt(i)) continue;
      counts.failure = absl::StrCat("integer ", i);
    }
    return;
  }
  ASSERT_EQ(points.reals.size(), intervals.intervals.size());
  for (size_t i = 0; i < points.reals.size(); ++i) {
    const RealInterval& interval = intervals.intervals[i];
    const Real& point = points.reals[i];
    // A zero that rounding made is not the value.
    if (interval.undecided() != nullptr ||
        point.exactness() == Exactness::kLost) {
      ++counts.open;
      continue;
    }
    ++counts.points;
    if (!interval.Contains(point) && counts.failure.empty()) {
      counts.failure = absl::StrCat("element ", i, ": ", point.ToString(90),
                                    " is not within ", interval.ToString(90));
    }
    if (!mpfr_regular_p(point.get()) || interval.KnownBits() < 120) continue;
    ++counts.narrow;
    counts.found += !interval.Contains(Moved(point));
  }
}

// Compares the references at samples of one call.
void CompareCall(const ClauseRules& clauses, const SampledCall& call,
                 const CallGraphs& graphs, ValueSampler& sampler,
                 Counts& counts) {
  const auto reference = SpecReference::Make(clauses, call, graphs);
  ASSERT_OK(reference) << call.ToString();
  for (const Pattern pattern : kPatterns) {
    const std::vector<Tensor> inputs = sampler.Tensors(call, pattern);
    const auto points = reference->Evaluate(inputs, kPointBits);
    if (!points.ok()) continue;  // an index that is none, complex numbers
    ++counts.calls;
    const auto intervals = reference->Enclose(inputs, kIntervalBits);
    if (!intervals.ok()) {
      ASSERT_TRUE(IsUndecided(intervals.status()))
          << call.ToString() << ": " << intervals.status();
      ++counts.undecided;
      ++counts.why[std::string(intervals.status().message())];
      continue;
    }
    ASSERT_EQ(points->size(), intervals->size());
    for (size_t r = 0; r < points->size(); ++r) {
      CompareElements((*points)[r], (*intervals)[r], counts);
    }
    if (!counts.failure.empty()) {
      ADD_FAILURE() << call.ToString() << ": " << counts.failure;
      return;
    }
  }
}

Counts CompareOp(const ClauseRules& clauses, const Item& item) {
  Counts counts;
  SignatureSampler sampler(item, 1);
  ValueSampler values(1);
  int accepted = 0;
  for (int draw = 0; draw < kDraws && accepted < kCalls; ++draw) {
    DrawOptions options;
    options.dtype = DType::kF64;
    options.nonempty = true;
    options.alike = draw % 2 == 0;
    const absl::StatusOr<SampledCall> call = sampler.Draw(options);
    if (!call.ok() || !MakeCallGraph(clauses.rules(), *call).ok()) continue;
    const auto graphs = MakeCallGraphs(clauses.rules(), *call);
    if (!graphs.ok() || !graphs->spec.has_value()) continue;
    ++accepted;
    CompareCall(clauses, *call, *graphs, values, counts);
  }
  if (accepted > 0) return counts;
  // Only the calls of its examples are known: the equation of einsum.
  OpContext context;
  context.clauses = &clauses;
  context.item = &item;
  context.shown = &item;
  for (const PreparedCall& known : PrepareConcreteCalls(context).calls) {
    if (!known.graphs.spec.has_value()) continue;
    CompareCall(clauses, known.call, known.graphs, values, counts);
  }
  return counts;
}

TEST(References, OfShippedOpsAgree) {
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedSource> sources,
                       ReadRuleFiles({"rules"}));
  const auto loaded =
      LoadRules(sources, std::make_shared<Context>(), WithTransforms()).rules;
  ASSERT_NE(loaded, nullptr);
  const std::vector<std::string> names = loaded->Names(ItemKind::kOp);
  const ClauseRules clauses = ClauseRules::Make(loaded, names);
  Counts all;
  int ops = 0;
  for (const std::string& name : names) {
    const Item* item = clauses.rules().Find(name);
    ASSERT_NE(item, nullptr) << name;
    if (item->spec == nullptr) continue;
    // The references have no complex numbers.
    if (TakesComplexAlone(*item)) continue;
    const Counts counts = CompareOp(clauses, *item);
    ++ops;
    all.calls += counts.calls;
    all.undecided += counts.undecided;
    all.points += counts.points;
    all.open += counts.open;
    all.narrow += counts.narrow;
    all.found += counts.found;
    std::string why;
    for (const auto& [text, count] : counts.why) {
      absl::StrAppend(&why, "\n  ", count, ": ", text);
    }
    if (NeverDecided().count(name) != 0) {
      EXPECT_EQ(counts.points, 0)
          << name << " is decided: take it off NeverDecided";
    } else {
      EXPECT_GT(counts.points, 0) << name << ": nothing is decided at "
                                  << counts.calls << " samples:" << why;
    }
  }
  for (const auto& [name, why] : NeverDecided()) {
    EXPECT_NE(clauses.rules().Find(name), nullptr) << name;
    EXPECT_FALSE(why.empty()) << name;
  }
  // A reference that is off by 2^-100 of its value does not pass for one.
  EXPECT_EQ(all.found, all.narrow);
  EXPECT_GT(all.narrow, 2000);
  EXPECT_GT(ops, 100);
  std::printf(
      "%d ops, %d calls (%d undecided), %lld elements enclosed, %lld "
      "undecided, %lld moved by 2^-100\n",
      ops, all.calls, all.undecided, static_cast<long long>(all.points),
      static_cast<long long>(all.open), static_cast<long long>(all.found));
}

}  // namespace
}  // namespace cleave
