// RuleTable: how single nodes are batched and differentiated, forward and in
// reverse. A rule is a small graph, made once for an op, its attributes, its
// operands' types and a mask of its operands, and never per graph.
//
//   RuleTable* table = *TableOf(rules);   // transforms/table/rule_tables.h
//   auto rule = table->Tangent(graph, node, active);   // (*rule)->graph
//
// The table finds rules and keeps them. A RuleMaker makes them: it is handed in
// by transforms/derived_rules.cc, which knows of the folders above this one.
// Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_TABLE_RULE_TABLE_H_
#define CLEAVE_TRANSFORMS_TABLE_RULE_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"
#include "transforms/table/rule_cache.h"
#include "transforms/table/transform_options.h"

namespace cleave {

// A node with a batch in front of some of its operands: inputs are all
// operands, those with the batch so typed; outputs are the node's results.
struct BatchRule {
  // kDerived from the body, kGiven by an override, kKept: a call of the op.
  enum class Kind { kDerived, kGiven, kKept };

  Graph graph;
  std::vector<bool> batched;  // per result: whether it has the batch in front
  Kind kind = Kind::kDerived;
  // For a composite: how the kept call differs from that of one example, or why
  // there is none.
  std::string how;
};

// A node's tangent: inputs are the operands, then the results if
// `takes_results`, then the tangents of the active operands. Outputs are the
// tangents of the results that have one; if `joint`, behind all the primal
// results, which then replace the node's (loops run once for both).
struct TangentRule {
  Graph graph;
  bool takes_results = false;
  bool joint = false;
  std::vector<bool> has_tangent;  // per result
};

// A node in reverse: inputs are the operands, then the results if
// `takes_results`, then the cotangents of the results that are live. Outputs
// are the cotangents of the operands that have one, then the masks of those
// that have one: where a mask does not hold, the cotangent is 0, whatever the
// output is (guarded.h).
struct CotangentRule {
  Graph graph;
  bool takes_results = false;
  std::vector<bool> has_cotangent;  // per operand
  std::vector<bool> has_mask;       // per operand
};

// A loop or branch in reverse: `forward` replaces it, and gives its results,
// then what `linear` needs of them. `linear` takes the tangents of the active
// operands, then those residuals, and gives the tangents of the results that
// have one: reverse mode transposes it.
struct ControlRule {
  Graph forward;
  Graph linear;
  std::vector<bool> has_tangent;  // per result
};

class RuleTable;

// Makes what a table has not. `signature` is the node's, `results` its result
// types; masks have an entry per operand, `live` one per result. Rules that a
// rule needs are those of `table`. Thread-safe.
class RuleMaker {
 public:
  virtual ~RuleMaker() = default;
  virtual absl::StatusOr<BatchRule> Batch(const Signature& signature,
                                          const std::vector<bool>& batched,
                                          const Dim& batch,
                                          RuleTable& table) = 0;
  virtual absl::StatusOr<TangentRule> Tangent(const Signature& signature,
                                              TypeId results,
                                              const std::vector<bool>& active,
                                              RuleTable& table) = 0;
  virtual absl::StatusOr<CotangentRule> Cotangent(
      const Signature& signature, TypeId results,
      const std::vector<bool>& active, const std::vector<bool>& live,
      RuleTable& table) = 0;
  virtual absl::StatusOr<CotangentRule> Transposed(
      const Signature& signature, TypeId results,
      const std::vector<bool>& linear, const std::vector<bool>& live,
      RuleTable& table) = 0;
  virtual absl::StatusOr<ControlRule> Control(const Signature& signature,
                                              TypeId results,
                                              const std::vector<bool>& active,
                                              RuleTable& table) = 0;
};

// Rules are found or made. A rule stays as long as it is held; the table keeps
// the kMaxRules of each kind that were asked for last.
//
// Thread-safe. Nothing is locked while a rule is made, which takes locks of the
// rule set; so threads may make one twice.
class RuleTable {
 public:
  static constexpr int64_t kMaxRules = 1 << 16;

  template <typename Rule>
  using Found = absl::StatusOr<std::shared_ptr<const Rule>>;

  // The rule set must outlive the table.
  RuleTable(const RuleSet& rules, const TransformOptions& options,
            std::unique_ptr<RuleMaker> maker)
      : rules_(rules), options_(options), maker_(std::move(maker)) {}
  RuleTable(const RuleTable&) = delete;
  RuleTable& operator=(const RuleTable&) = delete;

  const RuleSet& rules() const { return rules_; }
  const TransformOptions& options() const { return options_; }
  // The number that stands for a batch extent in keys.
  uint32_t BatchId(const Dim& batch) const;

  // The rule of a node of `graph` with at least one batched operand.
  // Unimplemented("impossible: ragged ...") for data-dependent shapes; errors
  // of the rules' bodies.
  Found<BatchRule> Batch(const Graph& graph, Value node,
                         absl::Span<const bool> batched, uint32_t batch_id);
  // The same for a node with at least one active operand.
  // Unimplemented("impossible: ...") where there is no derivative.
  Found<TangentRule> Tangent(const Graph& graph, Value node,
                             absl::Span<const bool> active);
  // A node, no loop or branch, with at least one active operand and one result
  // that is `live`: cotangents of the active operands.
  Found<CotangentRule> Cotangent(const Graph& graph, Value node,
                                 absl::Span<const bool> active,
                                 absl::Span<const bool> live);
  // The same for a composite node that is linear in the operands marked:
  // its inputs are the other operands, then the cotangents of the live results.
  Found<CotangentRule> Transposed(const Graph& graph, Value node,
                                  absl::Span<const bool> linear,
                                  absl::Span<const bool> live);
  // The rule of a loop or branch with at least one active operand.
  Found<ControlRule> Control(const Graph& graph, Value node,
                             absl::Span<const bool> active);
  // Whether reverse mode walks through the body of a composite node instead of
  // taking a rule for it: loops in it must run once for both directions.
  absl::StatusOr<bool> WalksThrough(const Graph& graph, Value node,
                                    absl::Span<const bool> active);

  // A rule's graph as `options` would have it.
  Graph Simplified(Graph graph) const;
  template <typename Rule>
  absl::StatusOr<Rule> Simplified(absl::StatusOr<Rule> rule) const;

  // How many rules of batches, tangents and cotangents there are.
  int64_t size() const {
    return batch_rules_.size() + tangent_rules_.size() +
           cotangent_rules_.size();
  }

 private:
  using Key = absl::InlinedVector<uint32_t, 12>;
  template <typename Rule>
  using Rules = RuleCache<Key, Rule>;

  // Whether the body holds a loop or a branch, at any depth.
  absl::StatusOr<bool> HasControl(const Signature& signature);

  const RuleSet& rules_;
  const TransformOptions options_;
  const std::unique_ptr<RuleMaker> maker_;
  Rules<BatchRule> batch_rules_{kMaxRules};
  Rules<TangentRule> tangent_rules_{kMaxRules};
  Rules<CotangentRule> cotangent_rules_{kMaxRules};
  Rules<CotangentRule> transposed_{kMaxRules};
  Rules<ControlRule> control_rules_{kMaxRules};
  RuleCache<Signature, bool> has_control_{kMaxRules};
};

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_TABLE_RULE_TABLE_H_
