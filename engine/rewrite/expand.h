// Expand: composite calls to primitives, in one topological pass over cached
// bodies. Linear in the size of the result. Calls of ops without a body, which
// hosts compute, stay calls.

#ifndef CLEAVE_ENGINE_REWRITE_EXPAND_H_
#define CLEAVE_ENGINE_REWRITE_EXPAND_H_

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// A decomposition written in C++: adds to `builder` what a call of an op is,
// and returns its results. It may call other ops (RuleSet::Call).
//
//   options.replace["twice"] = BodyFunction(
//       [](GraphBuilder& b, absl::Span<const Value> x, const Attributes&) {
//         return absl::StatusOr<std::vector<Value>>(
//             {b.Apply(Primitive::kAdd, {x[0], x[0]})});
//       });
using BodyFunction = std::function<absl::StatusOr<std::vector<Value>>(
    GraphBuilder& builder, absl::Span<const Value> operands,
    const Attributes& attributes)>;

// The decomposition of an op in the place of its own body: the name of another
// op, which takes the same inputs and attributes and gives the same types, or a
// function. An attribute that the other op does not declare has its default in
// the calls.
using Replacement = std::variant<std::string, BodyFunction>;

struct ExpandOptions {
  // Ops that stay calls, as those with host kernels.
  std::set<std::string> preserve;
  // The ops that are decomposed, where not all are: others stay calls.
  std::optional<std::set<std::string>> only;
  // {"gelu", "my_gelu"}: ops that are decomposed by something else.
  std::map<std::string, Replacement> replace;
  // The calls that become the specs of their ops, which say what is meant,
  // where these have one, and `replace` does not name them.
  std::function<bool(const Signature& call)> by_spec = nullptr;
};

// Regions are expanded, too. Errors of the rules' bodies and of functions;
// InvalidArgument where an op cannot take the place of another, or a function
// gives other results than the call has.
absl::StatusOr<Graph> Expand(const Graph& graph, const RuleSet& rules,
                             const ExpandOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_ENGINE_REWRITE_EXPAND_H_
