#include "testing/debug/loop_step.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/ir/loop_operands.h"
#include "ops/budget.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"
#include "testing/check/reference/tensor_slices.h"
#include "testing/debug/element_error.h"

namespace cleave {
namespace {

RealTensor SliceOf(const RealTensor& tensor, int64_t i) {
  RealTensor slice;
  slice.dtype = tensor.dtype;
  slice.shape.assign(tensor.shape.begin() + 1, tensor.shape.end());
  if (!IsFloat(tensor.dtype)) {
    slice.discrete = SliceOf(tensor.discrete, i);
    return slice;
  }
  const int64_t count =
      tensor.shape[0] == 0
          ? 0
          : static_cast<int64_t>(tensor.reals.size()) / tensor.shape[0];
  slice.reals.assign(tensor.reals.begin() + i * count,
                     tensor.reals.begin() + (i + 1) * count);
  return slice;
}

// Both runs of a region.
struct BothValues {
  std::vector<Tensor> computed;
  std::vector<RealTensor> exact;
};

absl::StatusOr<BothValues> RunRegion(const Region& region,
                                     const BothValues& inputs, int bits) {
  BothValues outputs;
  CLEAVE_ASSIGN_OR_RETURN(outputs.computed,
                          Interpret(*region.graph, inputs.computed));
  CLEAVE_ASSIGN_OR_RETURN(outputs.exact,
                          InterpretReal(*region.graph, inputs.exact, bits));
  return outputs;
}

// The first output with an element that is off.
std::optional<int> FirstOff(const BothValues& outputs, double ulp) {
  for (size_t i = 0; i < outputs.computed.size(); ++i) {
    if (outputs.computed[i].shape() != outputs.exact[i].shape) {
      return static_cast<int>(i);
    }
    for (int64_t k = 0; k < outputs.computed[i].size(); ++k) {
      const ElementError error =
          ErrorOf(outputs.exact[i], outputs.computed[i], k);
      if (error.relative > ulp) return static_cast<int>(i);
    }
  }
  return std::nullopt;
}

LoopStep MakeStep(std::string name, const Region& region, BothValues inputs,
                  int output) {
  LoopStep step;
  step.name = std::move(name);
  step.region = region;
  step.computed = std::move(inputs.computed);
  step.exact = std::move(inputs.exact);
  step.output = output;
  return step;
}

absl::StatusOr<std::optional<LoopStep>> InScan(const Attributes& attributes,
                                               const BothValues& operands,
                                               int result, int64_t element,
                                               int64_t slice_size, double ulp,
                                               int bits) {
  const Region& body = attributes.Get("body").AsRegion();
  const LoopOperands loop =
      LoopOperands::Of(attributes, operands.computed.size());
  const int64_t length = attributes.GetInt("length");
  const bool reverse = attributes.GetBool("reverse");
  BothValues carries;
  for (int i = loop.consts; i < loop.first_slice(); ++i) {
    carries.computed.push_back(operands.computed[i]);
    carries.exact.push_back(operands.exact[i]);
  }
  for (int64_t step = 0; step < length; ++step) {
    CLEAVE_RETURN_IF_ERROR(ChargeBudget(BudgetKind::kLoopSteps));
    const int64_t index = reverse ? length - 1 - step : step;
    BothValues inputs;
    for (int i = 0; i < loop.count(); ++i) {
      if (loop.IsSlice(i)) {
        inputs.computed.push_back(SliceOf(operands.computed[i], index));
        inputs.exact.push_back(SliceOf(operands.exact[i], index));
      } else if (loop.IsConst(i)) {
        inputs.computed.push_back(operands.computed[i]);
        inputs.exact.push_back(operands.exact[i]);
      } else {
        inputs.computed.push_back(carries.computed[i - loop.consts]);
        inputs.exact.push_back(carries.exact[i - loop.consts]);
      }
    }
    CLEAVE_ASSIGN_OR_RETURN(BothValues outputs, RunRegion(body, inputs, bits));
    BothValues watched;  // the carries, and the slice that is asked about
    watched.computed.assign(outputs.computed.begin(),
                            outputs.computed.begin() + loop.carries);
    watched.exact.assign(outputs.exact.begin(),
                         outputs.exact.begin() + loop.carries);
    const bool is_its_step = result >= loop.carries && slice_size > 0 &&
                             element / slice_size == index;
    if (is_its_step) {
      watched.computed.push_back(outputs.computed[result]);
      watched.exact.push_back(outputs.exact[result]);
    }
    if (const std::optional<int> off = FirstOff(watched, ulp)) {
      const int output = *off < loop.carries ? *off : result;
      return MakeStep(absl::StrCat("step ", step), body, std::move(inputs),
                      output);
    }
    if (is_its_step) return std::nullopt;
    carries = std::move(watched);
  }
  return std::nullopt;
}

absl::StatusOr<std::optional<LoopStep>> InWhile(const Attributes& attributes,
                                                const BothValues& operands,
                                                double ulp, int bits) {
  const Region& condition = attributes.Get("cond").AsRegion();
  const Region& body = attributes.Get("body").AsRegion();
  const int consts =
      LoopOperands::Of(attributes, operands.computed.size()).consts;
  BothValues state = operands;
  for (int64_t step = 0;; ++step) {
    CLEAVE_RETURN_IF_ERROR(ChargeBudget(BudgetKind::kLoopSteps));
    CLEAVE_ASSIGN_OR_RETURN(const BothValues goes_on,
                            RunRegion(condition, state, bits));
    if (FirstOff(goes_on, 0)) {
      return MakeStep(absl::StrCat("the condition of step ", step), condition,
                      std::move(state), 0);
    }
    if (goes_on.computed[0].GetInt(0) == 0) return std::nullopt;
    CLEAVE_ASSIGN_OR_RETURN(BothValues next, RunRegion(body, state, bits));
    if (const std::optional<int> off = FirstOff(next, ulp)) {
      return MakeStep(absl::StrCat("step ", step), body, std::move(state),
                      *off);
    }
    std::move(next.computed.begin(), next.computed.end(),
              state.computed.begin() + consts);
    std::move(next.exact.begin(), next.exact.end(),
              state.exact.begin() + consts);
  }
}

}  // namespace

absl::StatusOr<std::optional<LoopStep>> FindLoopStep(const Graph& graph,
                                                     const NodeValues& values,
                                                     Value node, int result,
                                                     int64_t element,
                                                     double ulp) {
  const Primitive primitive = ToPrimitive(graph.node(node).op);
  CLEAVE_ASSIGN_OR_RETURN(
      const Attributes attributes,
      AttributesWithDims(graph, node, values.computed_dims));
  BothValues operands;
  operands.computed = ComputedOperands(graph, node, values);
  operands.exact = ExactOperands(graph, node, values);
  if (primitive == Primitive::kCond) {
    const bool then = operands.computed[0].GetInt(0) != 0;
    operands.computed.erase(operands.computed.begin());
    operands.exact.erase(operands.exact.begin());
    const char* const name = then ? "then" : "else";
    return MakeStep(absl::StrCat("the branch `", name, "`"),
                    attributes.Get(name).AsRegion(), std::move(operands),
                    result);
  }
  if (primitive == Primitive::kWhile) {
    return InWhile(attributes, operands, ulp, values.bits);
  }
  if (primitive != Primitive::kScan) return std::nullopt;
  const std::vector<int64_t>& shape =
      values.nodes[node.id].computed[result].shape();
  int64_t slice_size = shape.empty() ? 0 : 1;
  for (size_t d = 1; d < shape.size(); ++d) slice_size *= shape[d];
  return InScan(attributes, operands, result, element, slice_size, ulp,
                values.bits);
}

}  // namespace cleave
