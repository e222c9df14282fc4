// DerivedGraphs: the graphs that transforms made of functions' graphs, found
// again by the structure of what they were made of. Internal to
// transforms/functions.

#ifndef CLEAVE_TRANSFORMS_FUNCTIONS_DERIVED_GRAPHS_H_
#define CLEAVE_TRANSFORMS_FUNCTIONS_DERIVED_GRAPHS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "transforms/table/rule_cache.h"

namespace cleave::functional {

// A transform's result: a graph, or the two halves of reverse mode.
struct DerivedGraph {
  Graph graph;
  Graph backward;  // of Vjp alone
  int saved = 0;
  std::vector<bool> has_tangent;  // of Jvp alone, per output
};

// Not thread-safe. The rule set must outlive its use, but not the object.
class DerivedGraphs {
 public:
  // The graphs that are kept, at most: the recently used half and others.
  static constexpr int64_t kMaxGraphs = 256;

  // The graphs of a rule set on this thread, kept as long as the rule set
  // lives.
  static DerivedGraphs& Of(const std::shared_ptr<const RuleSet>& rules);

  // The result of `make`, which transforms `graph`; `transform` names the
  // transform with all that it depends on. Errors of `make`, which are not
  // kept.
  absl::StatusOr<std::shared_ptr<const DerivedGraph>> Get(
      const Graph& graph, const std::string& transform,
      absl::FunctionRef<absl::StatusOr<DerivedGraph>()> make);

  int64_t size() const { return kept_->size(); }
  // How often `make` was called.
  int64_t made() const { return made_; }

 private:
  explicit DerivedGraphs(const std::shared_ptr<const RuleSet>& rules);

  const std::weak_ptr<const RuleSet> rules_;
  // A pointer, since a mutex does not move.
  std::unique_ptr<RuleCache<std::string, DerivedGraph>> kept_;
  int64_t made_ = 0;
};

}  // namespace cleave::functional

#endif  // CLEAVE_TRANSFORMS_FUNCTIONS_DERIVED_GRAPHS_H_
