#include "transforms/report/coverage.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/rules/call_search.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp.h"
#include "transforms/table/emit.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

// The reason of a refusal in one line: what it says of a place in a rule goes
// behind it.
Coverage Refused(const absl::Status& status) {
  const auto line = [](absl::string_view text) {
    return std::string(text.substr(0, text.find('\n')));
  };
  const std::optional<Refusal> refusal = RefusalOf(status);
  if (!refusal.has_value()) {
    return {Coverage::Kind::kNotSupported, line(status.message())};
  }
  std::string why = line(refusal->reason);
  if (!refusal->place.empty()) {
    absl::StrAppend(&why, " (", refusal->place, ")");
  }
  return {refusal->kind == RefusalKind::kImpossible
              ? Coverage::Kind::kImpossible
              : Coverage::Kind::kNotSupported,
          std::move(why)};
}

// Given, and where, or derived.
Coverage Covered(const RuleSet& rules, absl::string_view op,
                 StatementKind kind) {
  const std::vector<RuleSet::Line> lines = rules.Lines(op, kind);
  if (lines.empty()) return {Coverage::Kind::kDerived, ""};
  const Source& source = rules.SourceOf(*lines[0].item);
  return {
      Coverage::Kind::kGiven,
      absl::StrCat(source.name(), ":",
                   source.PositionOf(lines[0].statement->range.begin).line)};
}

StatementKind OverrideOf(Transform transform) {
  switch (transform) {
    case Transform::kVmap:
      return StatementKind::kVmap;
    case Transform::kJvp:
      return StatementKind::kJvp;
    case Transform::kVjp:
      break;
  }
  return StatementKind::kVjp;
}

// Over a batch, in all inputs.
absl::StatusOr<Graph> Batched(const Graph& graph, absl::string_view batch,
                              const RuleSet& rules) {
  return Vmap(graph, std::vector<int>(graph.inputs().size(), 0),
              Dim::Variable(batch), std::vector<int>(graph.outputs().size(), 0),
              rules);
}

absl::StatusOr<Graph> DerivativeIn(const Graph& graph, Transform transform,
                                   const std::vector<bool>& active,
                                   const RuleSet& rules) {
  if (transform == Transform::kJvp) {
    CLEAVE_ASSIGN_OR_RETURN(JvpResult jvp, Jvp(graph, active, rules));
    return std::move(jvp.graph);
  }
  CLEAVE_ASSIGN_OR_RETURN(VjpResult vjp, Vjp(graph, active, rules));
  return std::move(vjp.graph);
}

// In all inexact inputs; where that is impossible, in the first in which it is
// possible. A derivative that is 0 everywhere (of round) is one, too; a result
// that can have none makes the op discrete.
absl::StatusOr<Graph> Differentiated(const Graph& graph, Transform transform,
                                     const RuleSet& rules) {
  std::vector<bool> all;
  std::vector<size_t> inexact;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const DType dtype = graph.type(graph.inputs()[i].value).dtype;
    all.push_back(emit::IsInexact(dtype));
    if (all.back()) inexact.push_back(i);
  }
  const bool inexact_result =
      std::any_of(graph.outputs().begin(), graph.outputs().end(),
                  [&](const NamedValue& output) {
                    return emit::IsInexact(graph.type(output.value).dtype);
                  });
  if (inexact.empty() || !inexact_result) {
    return Impossible("discrete");
  }
  absl::StatusOr<Graph> whole = DerivativeIn(graph, transform, all, rules);
  if (whole.ok()) return whole;
  for (size_t i : inexact) {
    std::vector<bool> one(all.size(), false);
    one[i] = true;
    absl::StatusOr<Graph> part = DerivativeIn(graph, transform, one, rules);
    if (part.ok()) return part;
  }
  return whole;
}

absl::StatusOr<Graph> Transformed(const Graph& graph, Transform transform,
                                  absl::string_view batch,
                                  const RuleSet& rules) {
  if (graph.inputs().empty()) {
    // Only sizes and other statics could differ between examples.
    return Impossible(transform == Transform::kVmap
                          ? "ragged: all of its inputs are static"
                          : "discrete");
  }
  return transform == Transform::kVmap
             ? Batched(graph, batch, rules)
             : Differentiated(graph, transform, rules);
}

// One transform, or pair of them, of one op, as the calls are tried.
struct Attempts {
  Coverage coverage;
  bool done = false;  // given or derived

  void Add(const absl::Status& status, const Coverage& if_ok) {
    if (done) return;
    done = status.ok();
    if (done) {
      coverage = if_ok;
      return;
    }
    // A refusal that one call finds impossible comes before one that only
    // another call's types do not support.
    const Coverage refused = Refused(status);
    if (coverage.kind != Coverage::Kind::kImpossible) coverage = refused;
  }
};

// Calls `try_call` with calls of the op until `settled` says that they suffice:
// those that stand for all of them, then those that a search finds. Nullopt, or
// why there is no call.
template <typename TryCall, typename IsDone, typename IsSettled>
absl::StatusOr<std::optional<Coverage>> TryCalls(const RuleSet& rules,
                                                 absl::string_view op,
                                                 const TryCall& try_call,
                                                 const IsDone& is_done,
                                                 const IsSettled& is_settled) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Graph> calls,
                          rules.SymbolicCalls(op));
  CLEAVE_ASSIGN_OR_RETURN(CallSearch search, CallSearch::Create(rules, op));
  for (const Graph& call : calls) {
    try_call(call);
    if (is_done()) return std::optional<Coverage>();
  }
  // Calls found by trial, where declarations have no shapes, or where symbolic
  // ones are not supported.
  bool any = !calls.empty();
  while (calls.empty() || !is_settled()) {
    const std::optional<Graph> call = search.Next();
    if (!call) break;
    any = true;
    try_call(*call);
    if (is_done()) break;
  }
  if (any) return std::optional<Coverage>();
  const absl::Status obstacle = search.Obstacle();
  Coverage refused = Refused(obstacle);
  if (!absl::IsUnimplemented(obstacle)) {
    refused.why = absl::StrCat("no call that it accepts was found; most met: ",
                               refused.why);
  }
  return std::optional<Coverage>(std::move(refused));
}

bool AllDone(absl::Span<const Attempts> attempts) {
  return std::all_of(attempts.begin(), attempts.end(),
                     [](const Attempts& a) { return a.done; });
}

bool AllSettled(absl::Span<const Attempts> attempts) {
  return std::all_of(attempts.begin(), attempts.end(), [](const Attempts& a) {
    return a.done || a.coverage.kind == Coverage::Kind::kImpossible;
  });
}

}  // namespace

absl::StatusOr<OpCoverage> TransformCoverage(const RuleSet& rules,
                                             absl::string_view op) {
  std::vector<Attempts> attempts(std::size(kTransforms));
  const auto try_call = [&](const Graph& call) {
    for (size_t i = 0; i < attempts.size(); ++i) {
      if (attempts[i].done) continue;
      attempts[i].Add(
          Transformed(call, kTransforms[i], "batch", rules).status(),
          Covered(rules, op, OverrideOf(kTransforms[i])));
    }
  };
  CLEAVE_ASSIGN_OR_RETURN(
      const std::optional<Coverage> none,
      TryCalls(
          rules, op, try_call, [&] { return AllDone(attempts); },
          [&] { return AllSettled(attempts); }));
  if (none.has_value()) return OpCoverage{*none, *none, *none};
  return OpCoverage{attempts[0].coverage, attempts[1].coverage,
                    attempts[2].coverage};
}

absl::StatusOr<std::vector<PairCoverage>> TransformPairs(const RuleSet& rules,
                                                         absl::string_view op) {
  constexpr size_t kCount = std::size(kTransforms);
  std::vector<Attempts> attempts(kCount * kCount);
  const auto try_call = [&](const Graph& call) {
    for (size_t inner = 0; inner < kCount; ++inner) {
      const absl::StatusOr<Graph> once =
          Transformed(call, kTransforms[inner], "batch", rules);
      for (size_t outer = 0; outer < kCount; ++outer) {
        Attempts& pair = attempts[outer * kCount + inner];
        if (pair.done) continue;
        pair.Add(once.ok() ? Transformed(*once, kTransforms[outer],
                                         "outer_batch", rules)
                                 .status()
                           : once.status(),
                 {Coverage::Kind::kDerived, ""});
      }
    }
  };
  CLEAVE_ASSIGN_OR_RETURN(
      const std::optional<Coverage> none,
      TryCalls(
          rules, op, try_call, [&] { return AllDone(attempts); },
          [&] { return AllSettled(attempts); }));
  std::vector<PairCoverage> pairs;
  for (size_t outer = 0; outer < kCount; ++outer) {
    for (size_t inner = 0; inner < kCount; ++inner) {
      pairs.push_back(
          {kTransforms[outer], kTransforms[inner],
           none.value_or(attempts[outer * kCount + inner].coverage)});
    }
  }
  return pairs;
}

}  // namespace cleave
