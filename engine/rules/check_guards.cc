#include "engine/rules/check_guards.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/strings/str_join.h"
#include "engine/elaborate/signature.h"

namespace cleave {
namespace {

using Sizes = std::map<std::string, int64_t>;

// In the order in which they make plain counterexamples.
constexpr int64_t kSizes[] = {2, 3, 1, 5, 0, 4};
constexpr int64_t kMaxTrials = 20000;

// `otherwise` where a side has no value, as n // (m % k) has none at m = 0.
bool Holds(const ShapeGuard& guard, const Sizes& sizes, bool otherwise) {
  const absl::StatusOr<int64_t> lhs = guard.lhs.Evaluate(sizes);
  const absl::StatusOr<int64_t> rhs = guard.rhs.Evaluate(sizes);
  if (!lhs.ok() || !rhs.ok()) return otherwise;
  return Compare(*lhs, guard.op, *rhs) == Truth::kTrue;
}

// Sizes that fulfil the facts, and not the guard.
std::optional<Sizes> Witness(const ShapeGuard& guard,
                             const std::vector<ShapeGuard>& facts) {
  std::set<std::string> names = guard.lhs.Variables();
  names.merge(guard.rhs.Variables());
  for (const ShapeGuard& fact : facts) {
    names.merge(fact.lhs.Variables());
    names.merge(fact.rhs.Variables());
  }
  // The digits of the trial's number, to the base of how many sizes there are.
  for (int64_t trial = 0; trial < kMaxTrials; ++trial) {
    Sizes sizes;
    int64_t rest = trial;
    for (const std::string& name : names) {
      sizes[name] = kSizes[rest % std::size(kSizes)];
      rest /= static_cast<int64_t>(std::size(kSizes));
    }
    if (rest > 0) return std::nullopt;
    if (!Holds(guard, sizes, true) &&
        std::all_of(facts.begin(), facts.end(), [&](const ShapeGuard& fact) {
          return Holds(fact, sizes, false);
        })) {
      return sizes;
    }
  }
  return std::nullopt;
}

// The sizes that axes of the inputs are, and that of a batch.
std::set<std::string> NamedSizes(const Callable& callable) {
  std::set<std::string> names = {"batch"};
  for (const InputDecl& input : callable.inputs) {
    for (const AxisExpr& axis : input.type.axes) {
      if (axis.size->kind == ExprKind::kName) names.insert(axis.size->text);
    }
  }
  return names;
}

bool IsOneOf(const Dim& dim, const std::set<std::string>& names) {
  const std::set<std::string> variables = dim.Variables();
  return variables.size() == 1 && names.count(*variables.begin()) != 0 &&
         dim == Dim::Variable(*variables.begin());
}

// The facts on sizes by the declaration and by the branches that were chosen;
// nullopt where an error clause refuses the call.
std::optional<std::vector<ShapeGuard>> Facts(const Callable& callable,
                                             OpCompiler& compiler,
                                             const Callees& callees) {
  std::vector<ShapeGuard> facts = compiler.call().guards;
  const auto add = [&](const std::vector<ShapeGuard>& more) {
    facts.insert(facts.end(), more.begin(), more.end());
  };
  add(compiler.elaborator().choices());
  Elaborator elaborator(compiler.elaborator().library(),
                        compiler.elaborator().context(), callable.name,
                        &callees);
  elaborator.EnterSource(*callable.source);
  std::vector<ShapeGuard> refused;
  if (!CheckErrors(callable, compiler.call().scope, /*partial=*/true,
                   elaborator, &refused)
           .ok()) {
    return std::nullopt;
  }
  add(refused);
  add(elaborator.guards());
  return facts;
}

}  // namespace

std::optional<UnimpliedGuard> FindUnimpliedGuard(const Graph& graph,
                                                 const Callable& callable,
                                                 OpCompiler& compiler,
                                                 const Callees& callees) {
  if (graph.guards().empty()) return std::nullopt;
  const auto facts = Facts(callable, compiler, callees);
  if (!facts.has_value()) return std::nullopt;
  Constraints constraints;
  for (const ShapeGuard& fact : *facts) {
    // One that contradicts the others adds nothing: there is no such call.
    constraints.Assume(fact.lhs, fact.op, fact.rhs).IgnoreError();
  }
  const std::set<std::string> names = NamedSizes(callable);
  for (const ShapeGuard& guard : graph.guards()) {
    if (guard.op != CompareOp::kEq || !IsOneOf(guard.lhs, names) ||
        !IsOneOf(guard.rhs, names) ||
        Compare(guard.lhs, guard.op, guard.rhs, constraints) == Truth::kTrue) {
      continue;
    }
    const std::optional<Sizes> sizes = Witness(guard, *facts);
    if (!sizes.has_value()) continue;
    return UnimpliedGuard{
        guard, absl::StrJoin(*sizes, ", ", absl::PairFormatter(" = "))};
  }
  return std::nullopt;
}

}  // namespace cleave
