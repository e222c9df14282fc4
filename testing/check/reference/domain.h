// Domain: where an op means what its spec says, by its `domain` clauses.

#ifndef CLEAVE_TESTING_CHECK_REFERENCE_DOMAIN_H_
#define CLEAVE_TESTING_CHECK_REFERENCE_DOMAIN_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"
#include "testing/check/reference/clause_rules.h"
#include "testing/check/samples/sampled_call.h"

namespace cleave {

class Domain {
 public:
  // All inputs.
  Domain() = default;

  // The domain of a call whose body is `body`.
  static absl::StatusOr<Domain> Make(const ClauseRules& clauses,
                                     const SampledCall& call,
                                     const Graph& body);

  // The elements that the clauses leave out, per result; no entries where no
  // clause does. Conditions are evaluated in the dtypes of the inputs; of
  // `results` only the shapes are taken.
  absl::StatusOr<std::vector<std::vector<bool>>> Outside(
      absl::Span<const Tensor> inputs, absl::Span<const Tensor> results) const;

  // Whether no element of a result is left out. The shapes of the results are
  // those of the body's types, and that of the first input where those are
  // symbolic.
  absl::StatusOr<bool> Contains(absl::Span<const Tensor> inputs) const;

  // The constants that the clauses compare with: ends of ranges, mostly.
  std::vector<double> Guards() const;

  // Whether the clauses hold because no result that they are about has an
  // element: they tell nothing of the inputs then.
  bool HoldsOfNothing() const;

  // The first inputs within that `draw` makes; it is told how many it has made
  // before. Nullopt where none of kDraws is: the domain is a rare one.
  static constexpr int kDraws = 24;
  std::optional<std::vector<Tensor>> FirstWithin(
      absl::FunctionRef<std::vector<Tensor>(int)> draw) const;

  // The same for an elementwise call, whose elements may come from different
  // draws: of many elements at once few are within a domain.
  std::optional<std::vector<Tensor>> ElementsWithin(
      absl::FunctionRef<std::vector<Tensor>(int)> draw) const;

  // The points of an elementwise call, at [n], where no result is left out.
  absl::StatusOr<std::vector<Tensor>> Within(std::vector<Tensor> points) const;

 private:
  struct Clause {
    int result;
    Graph graph;
    // The call is elementwise, and its condition is not: on a maximum, say.
    bool by_points;
  };

  // Marks the elements of `result` that the clause leaves out.
  static absl::Status LeaveOutOf(const Clause& clause,
                                 absl::Span<const Tensor> inputs,
                                 const Tensor& result,
                                 std::vector<bool>& left_out);
  // The elements of an elementwise call where no result is left out.
  absl::StatusOr<std::vector<int64_t>> KeptOf(
      const std::vector<Tensor>& points) const;
  std::vector<Tensor> ResultsAt(absl::Span<const Tensor> inputs) const;

  std::vector<TensorType> result_types_;
  std::vector<Clause> clauses_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_REFERENCE_DOMAIN_H_
