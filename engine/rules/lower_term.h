// Terms to nodes of a graph.

#ifndef CLEAVE_ENGINE_RULES_LOWER_TERM_H_
#define CLEAVE_ENGINE_RULES_LOWER_TERM_H_

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/elaborate/callees.h"
#include "engine/index/lower_index.h"
#include "engine/index/term.h"
#include "engine/ir/graph.h"

namespace cleave {

// Adds a call, of results of these types, and gives its results.
std::vector<Value> AddCall(GraphBuilder& builder, absl::string_view op,
                           AttributesId attributes,
                           const std::vector<TensorType>& results,
                           absl::Span<const Value> operands);

// Lowers each term once. Terms must be complete: dtypes that are still open
// become i64. InvalidArgument where a number has no place that asks for its
// dtype, or an inference fails; errors of LowerComprehension. Callees are null
// where no term is a call of an op.
class TermLowerer : public TermLowering {
 public:
  TermLowerer(GraphBuilder& builder, const Callees* callees)
      : builder_(builder), callees_(callees) {}

  GraphBuilder& builder() override { return builder_; }
  absl::StatusOr<Value> Lower(const TermPtr& array) override;
  absl::StatusOr<Value> CallElementwise(
      const Term& call, absl::Span<const Value> arguments) override;

 private:
  absl::StatusOr<Value> LowerNew(const TermPtr& term);
  absl::StatusOr<Value> LowerNumber(const Term& term);
  absl::StatusOr<Value> LowerPointwise(const Term& term);
  // The results that are present.
  absl::StatusOr<std::vector<Value>> LowerCall(const Term& term);
  absl::StatusOr<std::vector<Value>> CallComposite(
      const CallTerm& call, const std::vector<Value>& operands);
  // Adds the call of "jvp:f" or "vjp:f" that the jvp or vjp of a call of f is.
  absl::StatusOr<std::vector<Value>> CallDerivative(
      const CallTerm& call, const std::vector<Value>& operands);
  absl::StatusOr<std::vector<Value>> LowerControl(const Term& term,
                                                  std::vector<Value> operands);
  // The region as a graph; `captures`: what its first inputs stand for, capture
  // i of input operands[i].
  absl::StatusOr<Graph> LowerRegion(const RegionTerm& region,
                                    const std::vector<TermPtr>& captures,
                                    const std::vector<size_t>& operands);
  void CollectCaptures(const TermPtr& root, uint32_t first_order,
                       absl::flat_hash_map<const Term*, bool>* seen,
                       std::vector<TermPtr>* captures) const;
  // Captures `term`, or says what of it is to be looked at.
  void AppendCaptures(const TermPtr& term, uint32_t first_order,
                      std::vector<TermPtr>* inner,
                      std::vector<TermPtr>* captures) const;

  GraphBuilder& builder_;
  const Callees* callees_;
  // Terms are kept alive: addresses are keys.
  absl::flat_hash_map<const Term*, std::pair<TermPtr, Value>> values_;
  absl::flat_hash_map<const Term*, std::vector<Value>> calls_;
  // Parameters by their `order`, which copies of a term share.
  absl::flat_hash_map<uint32_t, Value> parameters_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_LOWER_TERM_H_
