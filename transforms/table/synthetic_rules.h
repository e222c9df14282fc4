// SyntheticRules: how single nodes are batched and differentiated, forward and
// in reverse: made once per signature, rule to rule, and never per graph. A
// composite's rule comes from its override, or from the transform of its body;
// the primitives' from the functions of this folder and from rules/derivative.
//
// Passing one table to several transforms lets them share it; nested ones
// always do.

#ifndef CLEAVE_TRANSFORMS_TABLE_SYNTHETIC_RULES_H_
#define CLEAVE_TRANSFORMS_TABLE_SYNTHETIC_RULES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// A node with a batch in front of some of its operands: inputs are all
// operands, those with the batch so typed; outputs are the node's results.
struct BatchRule {
  // kDerived from the body, kGiven by an override, kKept: a call of the op.
  enum class Kind { kDerived, kGiven, kKept };

  Graph graph;
  std::vector<bool> batched;  // per result: whether it has the batch in front
  Kind kind = Kind::kDerived;
  // Of a composite: how the kept call differs from that of one example, or why
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

struct SyntheticOptions {
  // Batched composites stay calls where they can. Without it all of them become
  // what their bodies do: for measuring and testing what keeping them is worth.
  bool keep_identity = true;
  // Reverse mode saves the carries before each step of a scan, and computes the
  // rest of the step again, instead of saving what its derivative needs: less
  // memory for about one more run of the loop.
  bool recompute_loops = false;
  // Rules are simplified when they are made (engine/rewrite/simplify.h).
  bool simplify = true;
};

class IdentityFinder;

// Not thread-safe. The rule set must outlive the table.
class SyntheticRules {
 public:
  explicit SyntheticRules(const RuleSet& rules,
                          const SyntheticOptions& options = {});
  ~SyntheticRules();
  SyntheticRules(const SyntheticRules&) = delete;
  SyntheticRules& operator=(const SyntheticRules&) = delete;

  const RuleSet& rules() const { return rules_; }
  const SyntheticOptions& options() const { return options_; }
  // The small number that stands for a batch extent in keys.
  uint32_t BatchId(const Dim& batch);

  // The rule of a node of `graph` with at least one batched operand. Pointers
  // live as long as the table. Unimplemented("impossible: ragged ...") for
  // data-dependent shapes; errors of the rules' bodies.
  absl::StatusOr<const BatchRule*> Batch(const Graph& graph, Value node,
                                         absl::Span<const bool> batched,
                                         uint32_t batch_id);
  // The same for a node with at least one active operand.
  // Unimplemented("impossible: ...") where there is no derivative.
  absl::StatusOr<const TangentRule*> Tangent(const Graph& graph, Value node,
                                             absl::Span<const bool> active);

  // A node, no loop or branch, with at least one active operand and one result
  // that is `live`: cotangents of the active operands.
  absl::StatusOr<const CotangentRule*> Cotangent(const Graph& graph, Value node,
                                                 absl::Span<const bool> active,
                                                 absl::Span<const bool> live);
  // The same for a composite node that is linear in the operands marked:
  // its inputs are the other operands, then the cotangents of the live results.
  absl::StatusOr<const CotangentRule*> Transposed(const Graph& graph,
                                                  Value node,
                                                  absl::Span<const bool> linear,
                                                  absl::Span<const bool> live);
  // The rule of a loop or branch with at least one active operand.
  absl::StatusOr<const ControlRule*> Control(const Graph& graph, Value node,
                                             absl::Span<const bool> active);
  // Whether reverse mode walks through the body of a composite node instead of
  // taking a rule for it: loops in it must run once for both directions.
  absl::StatusOr<bool> WalksThrough(const Graph& graph, Value node,
                                    absl::Span<const bool> active);

  int64_t size() const {
    return static_cast<int64_t>(batch_rules_.size() + tangent_rules_.size() +
                                cotangent_rules_.size());
  }

 private:
  using Key = absl::InlinedVector<uint32_t, 12>;

  absl::StatusOr<BatchRule> MakeBatchRule(const Signature& signature,
                                          const std::vector<bool>& batched,
                                          const Dim& batch);
  // The rule as one call that goes on having the derivatives that the op
  // declares (RuleSet::BatchOf), all results with the batch.
  void MakeBatchCall(const Signature& signature,
                     const std::vector<bool>& batched, const Dim& batch,
                     BatchRule& rule) const;
  absl::StatusOr<TangentRule> MakeTangentRule(const Signature& signature,
                                              TypeId results,
                                              const std::vector<bool>& active);
  absl::StatusOr<TangentRule> MakeCompositeTangent(
      const Signature& signature, const std::vector<bool>& active);

  absl::StatusOr<CotangentRule> MakeCotangentRule(
      const Signature& signature, TypeId results,
      const std::vector<bool>& active, const std::vector<bool>& live);
  // Once, before a rule goes into its table.
  void SimplifyRule(Graph& graph) const;
  // Whether the body holds a loop or a branch, at any depth.
  absl::StatusOr<bool> HasControl(const Signature& signature);

  const RuleSet& rules_;
  const SyntheticOptions options_;
  std::unique_ptr<IdentityFinder> identity_;  // null: nothing is kept
  std::vector<Dim> batches_;
  absl::flat_hash_map<Dim, uint32_t> batch_ids_;
  absl::flat_hash_map<Key, std::unique_ptr<const BatchRule>> batch_rules_;
  absl::flat_hash_map<Key, std::unique_ptr<const TangentRule>> tangent_rules_;
  absl::flat_hash_map<Key, std::unique_ptr<const CotangentRule>>
      cotangent_rules_;
  absl::flat_hash_map<Key, std::unique_ptr<const CotangentRule>> transposed_;
  absl::flat_hash_map<Key, std::unique_ptr<const ControlRule>> control_rules_;
  absl::flat_hash_map<Signature, bool> has_control_;
  Key key_;  // scratch
};

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_TABLE_SYNTHETIC_RULES_H_
