#include "transforms/coverage.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ops/status_macros.h"
#include "transforms/emit.h"
#include "transforms/jvp.h"
#include "transforms/vmap.h"

namespace cleave {
namespace {

Coverage Refused(const absl::Status& status) {
  absl::string_view why = status.message();
  if (absl::ConsumePrefix(&why, "impossible: ")) {
    return {Coverage::Kind::kImpossible, std::string(why)};
  }
  absl::ConsumePrefix(&why, "not supported: ");
  return {Coverage::Kind::kNotSupported, std::string(why)};
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
  if (call.inputs().empty()) {
    return absl::UnimplementedError("not supported: it has no tensor inputs");
  }
  return Vmap(call, std::vector<int>(call.inputs().size(), 0),
              Dim::Variable("batch"),
              std::vector<int>(call.outputs().size(), 0), rules)
      .status();
}

// All inexact inputs active; where that is impossible, each alone.
absl::Status TryJvp(const Graph& call, SyntheticRules& rules) {
  std::vector<bool> all;
  std::vector<size_t> inexact;
  for (size_t i = 0; i < call.inputs().size(); ++i) {
    const DType dtype = call.type(call.inputs()[i].value).dtype;
    all.push_back(emit::IsInexact(dtype));
    if (all.back()) inexact.push_back(i);
  }
  const auto attempt = [&](const std::vector<bool>& active) {
    const absl::StatusOr<JvpResult> jvp = Jvp(call, active, rules, {false});
    if (!jvp.ok()) return jvp.status();
    for (bool has : jvp->has_tangent) {
      if (has) return absl::OkStatus();
    }
    return absl::UnimplementedError("impossible: discrete");
  };
  if (inexact.empty()) {
    return absl::UnimplementedError("impossible: discrete");
  }
  const absl::Status status = attempt(all);
  if (status.ok()) return status;
  for (size_t i : inexact) {
    std::vector<bool> one(all.size(), false);
    one[i] = true;
    if (attempt(one).ok()) return absl::OkStatus();
  }
  return status;
}

}  // namespace

absl::StatusOr<OpCoverage> TransformCoverage(const RuleSet& rules,
                                             absl::string_view op) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Graph> calls,
                          rules.SymbolicCalls(op));
  const Coverage none = {Coverage::Kind::kNotSupported,
                         "no symbolic call of it types"};
  OpCoverage coverage = {none, none, none};
  SyntheticRules synthetic(rules);
  const Item* item = rules.Find(op);
  bool vmap = false;
  bool jvp = false;
  for (const Graph& call : calls) {
    if (!vmap) {
      const absl::Status status = TryVmap(call, synthetic);
      vmap = status.ok();
      coverage.vmap =
          vmap ? Covered(item, StatementKind::kVmap) : Refused(status);
    }
    if (!jvp) {
      const absl::Status status = TryJvp(call, synthetic);
      jvp = status.ok();
      coverage.jvp = jvp ? Covered(item, StatementKind::kJvp) : Refused(status);
    }
    if (vmap && jvp) break;
  }
  coverage.vjp = jvp ? Coverage{Coverage::Kind::kNotSupported,
                                "reverse mode is not built yet"}
                     : coverage.jvp;
  return coverage;
}

}  // namespace cleave
