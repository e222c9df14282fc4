// Expand: composite calls to primitives, in one topological pass over cached
// bodies. Linear in the size of the result.

#ifndef CLEAVE_ENGINE_REWRITE_EXPAND_H_
#define CLEAVE_ENGINE_REWRITE_EXPAND_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

struct ExpandOptions {
  // Ops that stay calls.
  std::set<std::string> preserve;
  // The ops that are decomposed, where not all are: others stay calls.
  std::optional<std::set<std::string>> only;
  // Ops that are decomposed by the body of another one, which takes the same
  // inputs and attributes and gives the same types: {"gelu", "my_gelu"}. An
  // attribute that it does not declare has its default in the calls.
  std::map<std::string, std::string> replace;
};

// Regions are expanded, too. Errors of the rules' bodies; InvalidArgument where
// an op cannot take the place of another.
absl::StatusOr<Graph> Expand(const Graph& graph, const RuleSet& rules,
                             const ExpandOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_ENGINE_REWRITE_EXPAND_H_
