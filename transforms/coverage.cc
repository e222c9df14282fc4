#include "transforms/coverage.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/rewrite/call_search.h"
#include "ops/status_macros.h"
#include "transforms/emit.h"
#include "transforms/jvp.h"
#include "transforms/vjp.h"
#include "transforms/vmap.h"

namespace cleave {
namespace {

// The reason of a refusal in one line: what it says of a place in a rule goes
// behind it.
Coverage Refused(const absl::Status& status) {
  const absl::string_view message = status.message();
  const absl::string_view line = message.substr(0, message.find('\n'));
  for (const auto& [mark, kind] :
       {std::pair("impossible: ", Coverage::Kind::kImpossible),
        std::pair("not supported: ", Coverage::Kind::kNotSupported)}) {
    const size_t at = line.find(mark);
    if (at == absl::string_view::npos) continue;
    absl::string_view place = line.substr(0, at);
    std::string why(line.substr(at + absl::string_view(mark).size()));
    if (absl::ConsumeSuffix(&place, ": ")) {
      absl::StrAppend(&why, " (", place, ")");
    }
    return {kind, std::move(why)};
  }
  return {Coverage::Kind::kNotSupported, std::string(line)};
}

bool Declares(const Item* item, StatementKind kind) {
  if (item == nullptr || item->body == nullptr) return false;
  for (const Statement& statement : item->body->statements) {
    if (statement.kind == kind) return true;
  }
  return false;
}

Coverage Covered(const Item* item, StatementKind kind) {
  return {
      Declares(item, kind) ? Coverage::Kind::kGiven : Coverage::Kind::kDerived,
      ""};
}

absl::Status TryVmap(const Graph& call, SyntheticRules& rules) {
  return Vmap(call, std::vector<int>(call.inputs().size(), 0),
              Dim::Variable("batch"),
              std::vector<int>(call.outputs().size(), 0), rules)
      .status();
}

// All inexact inputs active; where that is impossible, each alone. A tangent
// that is 0 everywhere (of round) is a derivative, too; a result that can have
// none makes the op discrete.
template <typename Derive>
absl::Status TryDerivative(const Graph& call, const Derive& derive) {
  std::vector<bool> all;
  std::vector<size_t> inexact;
  for (size_t i = 0; i < call.inputs().size(); ++i) {
    const DType dtype = call.type(call.inputs()[i].value).dtype;
    all.push_back(emit::IsInexact(dtype));
    if (all.back()) inexact.push_back(i);
  }
  const bool inexact_result =
      std::any_of(call.outputs().begin(), call.outputs().end(),
                  [&](const NamedValue& output) {
                    return emit::IsInexact(call.type(output.value).dtype);
                  });
  if (inexact.empty() || !inexact_result) {
    return absl::UnimplementedError("impossible: discrete");
  }
  const absl::Status status = derive(all);
  if (status.ok()) return status;
  for (size_t i : inexact) {
    std::vector<bool> one(all.size(), false);
    one[i] = true;
    if (derive(one).ok()) return absl::OkStatus();
  }
  return status;
}

absl::Status TryJvp(const Graph& call, SyntheticRules& rules) {
  return TryDerivative(call, [&](const std::vector<bool>& active) {
    return Jvp(call, active, rules).status();
  });
}

absl::Status TryVjp(const Graph& call, SyntheticRules& rules) {
  return TryDerivative(call, [&](const std::vector<bool>& active) {
    return Vjp(call, active, rules).status();
  });
}

// One transform of one op, as the calls are tried.
struct Attempts {
  Coverage coverage;
  bool done = false;  // given or derived

  void Add(const absl::Status& status, const Item* item, StatementKind kind) {
    if (done) return;
    done = status.ok();
    if (done) {
      coverage = Covered(item, kind);
      return;
    }
    // What is impossible for one call is what to say, before what only some
    // other call's types do not support.
    const Coverage refused = Refused(status);
    if (coverage.kind != Coverage::Kind::kImpossible) coverage = refused;
  }
};

}  // namespace

absl::StatusOr<OpCoverage> TransformCoverage(const RuleSet& rules,
                                             absl::string_view op) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Graph> calls,
                          rules.SymbolicCalls(op));
  CLEAVE_ASSIGN_OR_RETURN(CallSearch search, CallSearch::Create(rules, op));
  SyntheticRules synthetic(rules);
  const Item* item = rules.Find(op);
  Attempts vmap;
  Attempts jvp;
  Attempts vjp;
  const absl::Status no_inputs =
      absl::UnimplementedError("not supported: it has no tensor inputs");
  const auto attempt = [&](const Graph& call) {
    const bool none = call.inputs().empty();
    if (!vmap.done) {
      vmap.Add(none ? no_inputs : TryVmap(call, synthetic), item,
               StatementKind::kVmap);
    }
    if (!jvp.done) {
      jvp.Add(none ? no_inputs : TryJvp(call, synthetic), item,
              StatementKind::kJvp);
    }
    if (!vjp.done) {
      vjp.Add(none ? no_inputs : TryVjp(call, synthetic), item,
              StatementKind::kVjp);
    }
    return vmap.done && jvp.done && vjp.done;
  };
  bool any = !calls.empty();
  bool done = std::any_of(calls.begin(), calls.end(), attempt);
  // Calls found by trial, where declarations have no shapes, or where symbolic
  // ones are not supported.
  const auto settled = [](const Attempts& attempts) {
    return attempts.done ||
           attempts.coverage.kind == Coverage::Kind::kImpossible;
  };
  while (!done && !(any && !calls.empty() && settled(vmap) && settled(jvp) &&
                    settled(vjp))) {
    const std::optional<Graph> call = search.Next();
    if (!call) break;
    any = true;
    done = attempt(*call);
  }
  if (!any) {
    const absl::Status obstacle = search.Obstacle();
    Coverage refused = Refused(obstacle);
    if (!absl::IsUnimplemented(obstacle)) {
      refused.why = absl::StrCat(
          "no call that it accepts was found; most met: ", refused.why);
    }
    return OpCoverage{refused, refused, refused};
  }
  return OpCoverage{vmap.coverage, jvp.coverage, vjp.coverage};
}

}  // namespace cleave
