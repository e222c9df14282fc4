#include "testing/check/domain.h"

#include <algorithm>
#include <string>

#include "engine/ir/interpreter.h"
#include "ops/status_macros.h"
#include "testing/check/tensor_slices.h"

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
      CLEAVE_ASSIGN_OR_RETURN(
          Graph graph,
          MakeClauseGraph(clauses, call, clause.op, domain.result_types_[r]));
      domain.clauses_.emplace_back(static_cast<int>(r), std::move(graph));
    }
  }
  return domain;
}

absl::StatusOr<std::vector<std::vector<bool>>> Domain::Outside(
    absl::Span<const Tensor> inputs, absl::Span<const Tensor> results) const {
  std::vector<std::vector<bool>> outside(results.size());
  for (const auto& [place, graph] : clauses_) {
    std::vector<Tensor> arguments(inputs.begin(), inputs.end());
    arguments.emplace_back(results[place].dtype(), results[place].shape());
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tensor> held,
                            Interpret(graph, arguments));
    std::vector<bool>& left_out = outside[place];
    left_out.resize(held[0].size());
    for (int64_t i = 0; i < held[0].size(); ++i) {
      const bool is_within = IsFloat(held[0].dtype())
                                 ? held[0].GetDouble(i) == 1
                                 : held[0].GetInt(i) == 1;
      if (!is_within) left_out[i] = true;
    }
  }
  return outside;
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
  CLEAVE_ASSIGN_OR_RETURN(const auto outside,
                          Outside(inputs, ResultsAt(inputs)));
  return std::none_of(
      outside.begin(), outside.end(), [](const std::vector<bool>& left_out) {
        return std::find(left_out.begin(), left_out.end(), true) !=
               left_out.end();
      });
}

absl::StatusOr<std::vector<Tensor>> Domain::Within(
    std::vector<Tensor> points) const {
  if (clauses_.empty()) return points;
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
  return SelectElements(points, kept);
}

}  // namespace cleave
