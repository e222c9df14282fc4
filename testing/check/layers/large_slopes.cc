#include "testing/check/layers/large_slopes.h"

#include <utility>

#include "absl/status/statusor.h"
#include "engine/rewrite/expand.h"
#include "ops/status_macros.h"
#include "testing/check/layers/jvp_laws.h"
#include "testing/check/layers/prepare_call.h"
#include "testing/check/reference/work.h"
#include "testing/check/samples/value_sampler.h"
#include "transforms/table/names.h"
#include "transforms/vjp/vjp.h"

namespace cleave {
namespace {

// The call's transforms, by all operands that are `active`.
absl::StatusOr<CallSlopes> SlopesOf(const OpContext& context, const Graph& call,
                                    const std::vector<bool>& active,
                                    const RuleSet& rules) {
  CLEAVE_ASSIGN_OR_RETURN(JvpGraphs jvp,
                          Differentiate(context, call, active, rules));
  CLEAVE_ASSIGN_OR_RETURN(const VjpResult vjp, Vjp(call, active, rules));
  CLEAVE_ASSIGN_OR_RETURN(
      Graph pull, Expand(WithoutOutputsBefore(vjp.graph, call.outputs().size()),
                         context.rules()));
  return CallSlopes{std::move(jvp.graph), std::move(jvp.has_tangent),
                    std::move(pull)};
}

std::vector<Tensor> Draw(const std::vector<TensorType>& types,
                         ValueSampler& sampler) {
  std::vector<Tensor> tensors;
  for (const TensorType& type : types) tensors.push_back(sampler.Tangent(type));
  return tensors;
}

}  // namespace

SampledCall InF64(SampledCall call) {
  for (SampledInput& input : call.inputs) {
    for (std::optional<TensorType>& type : input.types) {
      if (type && IsFloat(type->dtype)) type->dtype = DType::kF64;
    }
  }
  for (auto& [name, dtype] : call.dtypes) {
    if (IsFloat(dtype)) dtype = DType::kF64;
  }
  return call;
}

LargeSlopes::LargeSlopes(const OpContext& context, const PreparedCall& large,
                         double most_work, const RuleSet& rules) {
  PreparedCalls in_f64;
  if (!context.Wants(DType::kF64) ||
      !Prepare(context, InF64(large.call), false, in_f64)) {
    return;
  }
  call_ = std::move(in_f64.calls[0]);
  const Graph& graph = call_->graphs.call;
  std::vector<bool> active;
  for (const NamedValue& input : graph.inputs()) {
    const TensorType& type = graph.type(input.value);
    active.push_back(IsFloat(type.dtype));
    if (active.back()) operands_.push_back(type);
  }
  for (const NamedValue& output : graph.outputs()) {
    const DType dtype = graph.type(output.value).dtype;
    // An attribute may name a narrower one, whose differences say little.
    if (IsFloat(dtype) && dtype != DType::kF64) return;
  }
  if (operands_.empty()) return;
  absl::StatusOr<CallSlopes> slopes = SlopesOf(context, graph, active, rules);
  status_ = slopes.status();
  if (!slopes.ok() || WorkOf(slopes->jvp) + WorkOf(slopes->vjp) > most_work) {
    return;
  }
  const std::vector<NamedValue>& outputs = slopes->jvp.outputs();
  for (size_t r = graph.outputs().size(); r < outputs.size(); ++r) {
    tangents_.push_back(slopes->jvp.type(outputs[r].value));
  }
  if (!tangents_.empty()) slopes_ = *std::move(slopes);
}

std::optional<ScreenedInputs> LargeSlopes::Screen(
    DomainSampler& sampler) const {
  if (!slopes_) return std::nullopt;
  std::optional<std::vector<Tensor>> inputs =
      sampler.Tensors(*call_, Pattern::kNormal);
  if (!inputs) return std::nullopt;
  const std::vector<Tensor> directions = Draw(operands_, sampler.values());
  const std::vector<Tensor> cotangents = Draw(tangents_, sampler.values());
  absl::StatusOr<SlopeScreen> screen = ScreenSlopes(
      call_->graphs.body, *slopes_, *inputs, directions, cotangents);
  return ScreenedInputs{*std::move(inputs), std::move(screen)};
}

}  // namespace cleave
