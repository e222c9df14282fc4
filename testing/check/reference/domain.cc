#include "testing/check/reference/domain.h"

#include <algorithm>
#include <string>

#include "engine/ir/interpreter.h"
#include "ops/status_macros.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/check/reference/work.h"

namespace cleave {

absl::StatusOr<Domain> Domain::Make(const ClauseRules& clauses,
                                    const SampledCall& call,
                                    const Graph& body) {
  Domain domain;
  for (const NamedValue& output : body.outputs()) {
    domain.result_types_.push_back(body.type(output.value));
  }
  for (const ResultClauseOp& clause : clauses.Of(call.op).domains) {
    for (size_t r = 0; r < body.outputs().size(); ++r) {
      // The result of an op with one may have no name.
      if (!clause.result.empty() && body.outputs()[r].name != clause.result) {
        continue;
      }
      CLEAVE_ASSIGN_OR_RETURN(const DType dtype, ParseDType(kDomainDType));
      CLEAVE_ASSIGN_OR_RETURN(
          Graph graph, MakeClauseGraph(clauses, call, clause.op,
                                       {dtype, domain.result_types_[r].shape}));
      // A condition on a whole tensor holds for each point by itself.
      const bool by_points =
          IsElementwise(body) && domain.result_types_[r].shape.size() == 1 &&
          !domain.result_types_[r].shape[0].Value() && !IsElementwise(graph);
      domain.clauses_.push_back(
          {static_cast<int>(r), std::move(graph), by_points});
    }
  }
  std::stable_sort(domain.clauses_.begin(), domain.clauses_.end(),
                   [](const Clause& a, const Clause& b) {
                     return WorkOf(a.graph) < WorkOf(b.graph);
                   });
  return domain;
}

namespace {

// Marks the elements of `result`, the first of which is number `first`, where
// the clause does not hold.
absl::Status LeaveOut(const Graph& clause, std::vector<Tensor> inputs,
                      const Tensor& result, int64_t first,
                      std::vector<bool>& left_out) {
  CLEAVE_ASSIGN_OR_RETURN(const DType dtype, ParseDType(kDomainDType));
  inputs.emplace_back(dtype, result.shape());
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> held,
                          Interpret(clause, inputs));
  for (int64_t i = 0; i < held[0].size(); ++i) {
    if (held[0].GetInt(i) != 1) left_out[first + i] = true;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::vector<bool>>> Domain::Outside(
    absl::Span<const Tensor> inputs, absl::Span<const Tensor> results) const {
  std::vector<std::vector<bool>> outside(results.size());
  for (const Clause& clause : clauses_) {
    CLEAVE_RETURN_IF_ERROR(LeaveOutOf(clause, inputs, results[clause.result],
                                      outside[clause.result]));
  }
  return outside;
}

absl::Status Domain::LeaveOutOf(const Clause& clause,
                                absl::Span<const Tensor> inputs,
                                const Tensor& result,
                                std::vector<bool>& left_out) {
  left_out.resize(result.size());
  if (!clause.by_points) {
    return LeaveOut(clause.graph,
                    std::vector<Tensor>(inputs.begin(), inputs.end()), result,
                    0, left_out);
  }
  for (int64_t i = 0; i < result.size(); ++i) {
    CLEAVE_RETURN_IF_ERROR(LeaveOut(clause.graph, SelectElements(inputs, {i}),
                                    Tensor(result.dtype(), {1}), i, left_out));
  }
  return absl::OkStatus();
}

std::vector<Tensor> Domain::ResultsAt(absl::Span<const Tensor> inputs) const {
  std::vector<Tensor> results;
  for (const TensorType& type : result_types_) {
    std::vector<int64_t> shape;
    for (const Dim& dim : type.shape) {
      shape.push_back(dim.Value().value_or(inputs[0].size()));
    }
    results.emplace_back(type.dtype, shape);
  }
  return results;
}

absl::StatusOr<bool> Domain::Contains(absl::Span<const Tensor> inputs) const {
  if (clauses_.empty()) return true;
  const std::vector<Tensor> results = ResultsAt(inputs);
  // The first clauses are cheap, and the others may be dear.
  for (const Clause& clause : clauses_) {
    std::vector<bool> left_out;
    CLEAVE_RETURN_IF_ERROR(
        LeaveOutOf(clause, inputs, results[clause.result], left_out));
    if (std::find(left_out.begin(), left_out.end(), true) != left_out.end()) {
      return false;
    }
  }
  return true;
}

std::vector<double> Domain::Guards() const {
  std::vector<double> guards;
  for (const Clause& clause : clauses_) {
    const std::vector<double> more = GuardConstants(clause.graph);
    guards.insert(guards.end(), more.begin(), more.end());
  }
  return guards;
}

bool Domain::HoldsOfNothing() const {
  return !clauses_.empty() &&
         std::all_of(clauses_.begin(), clauses_.end(), [&](const Clause& c) {
           const Shape& shape = result_types_[c.result].shape;
           return std::any_of(
               shape.begin(), shape.end(),
               [](const Dim& extent) { return extent.Value() == 0; });
         });
}

std::optional<std::vector<Tensor>> Domain::FirstWithin(
    absl::FunctionRef<std::vector<Tensor>(int)> draw) const {
  for (int drawn = 0; drawn < kDraws; ++drawn) {
    std::vector<Tensor> inputs = draw(drawn);
    // Where a condition cannot be evaluated, nothing is left out.
    if (Contains(inputs).value_or(true)) return inputs;
  }
  return std::nullopt;
}

std::optional<std::vector<Tensor>> Domain::ElementsWithin(
    absl::FunctionRef<std::vector<Tensor>(int)> draw) const {
  std::vector<Tensor> inputs = draw(0);
  if (clauses_.empty()) return inputs;
  std::vector<Tensor> drawn = inputs;
  std::vector<bool> within(inputs[0].size());
  for (int draws = 1;; ++draws) {
    const absl::StatusOr<std::vector<int64_t>> kept = KeptOf(drawn);
    // Where a condition cannot be evaluated, nothing is left out.
    if (!kept.ok()) return drawn;
    for (const int64_t i : *kept) {
      if (!within[i]) CopyElements(drawn, i, inputs, i);
      within[i] = true;
    }
    if (draws == kDraws ||
        std::find(within.begin(), within.end(), false) == within.end()) {
      break;
    }
    drawn = draw(draws);
  }
  const auto one = std::find(within.begin(), within.end(), true);
  for (size_t i = 0; i < within.size(); ++i) {
    if (within[i] || one == within.end()) continue;
    CopyElements(inputs, one - within.begin(), inputs, static_cast<int64_t>(i));
  }
  // A condition on the whole of the inputs may not hold of parts of several.
  if (Contains(inputs).value_or(true)) return inputs;
  return FirstWithin(draw);
}

absl::StatusOr<std::vector<int64_t>> Domain::KeptOf(
    const std::vector<Tensor>& points) const {
  CLEAVE_ASSIGN_OR_RETURN(const auto outside,
                          Outside(points, ResultsAt(points)));
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < points[0].size(); ++i) {
    if (std::none_of(outside.begin(), outside.end(),
                     [&](const std::vector<bool>& left_out) {
                       return !left_out.empty() && left_out[i];
                     })) {
      kept.push_back(i);
    }
  }
  return kept;
}

absl::StatusOr<std::vector<Tensor>> Domain::Within(
    std::vector<Tensor> points) const {
  if (clauses_.empty()) return points;
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int64_t> kept, KeptOf(points));
  return SelectElements(points, kept);
}

}  // namespace cleave
