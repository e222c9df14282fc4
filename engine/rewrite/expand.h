// Expand: composite calls to primitives, in one topological pass over cached
// bodies. Linear in the size of the result.

#ifndef CLEAVE_ENGINE_REWRITE_EXPAND_H_
#define CLEAVE_ENGINE_REWRITE_EXPAND_H_

#include <memory>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rewrite/rule_set.h"

namespace cleave {

struct ExpandOptions {
  // Ops that stay calls.
  std::set<std::string> preserve;
};

// Regions are expanded, too. Errors of the rules' bodies.
absl::StatusOr<Graph> Expand(const Graph& graph, const RuleSet& rules,
                             const ExpandOptions& options = {});

}  // namespace cleave

#endif  // CLEAVE_ENGINE_REWRITE_EXPAND_H_
