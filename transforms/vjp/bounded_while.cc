#include "transforms/vjp/bounded_while.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/loop_operands.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/table/names.h"

namespace cleave {
namespace {

// The carries as they are.
absl::StatusOr<Region> Identity(const Graph& body, int consts) {
  GraphBuilder builder(body.context());
  const std::vector<Value> inputs = AddInputsOf(builder, body);
  return BuildRegion(std::move(builder),
                     Numbered({inputs.begin() + consts, inputs.end()}));
}

// One step: the body where the condition holds.
absl::StatusOr<Region> Step(const Graph& condition, const Region& body,
                            int consts) {
  GraphBuilder builder(condition.context());
  const std::vector<Value> inputs = AddInputsOf(builder, condition);
  std::vector<Value> operands = builder.Inline(condition, inputs);
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  CLEAVE_ASSIGN_OR_RETURN(Region stays, Identity(*body.graph, consts));
  CLEAVE_ASSIGN_OR_RETURN(
      const Value cond,
      builder.Add(Primitive::kCond,
                  {{"then", body}, {"else", std::move(stays)}}, operands));
  std::vector<Value> next;
  const int carries = static_cast<int>(inputs.size()) - consts;
  for (int i = 0; i < carries; ++i) next.push_back(builder.Result(cond, i));
  return BuildRegion(std::move(builder), Numbered(next));
}

// `true`, by a loop of no steps that fails where the condition holds of
// `state`. It reads only what the condition reads.
absl::StatusOr<Value> CheckEnded(GraphBuilder& b, const Graph& condition,
                                 const std::vector<Value>& state) {
  std::vector<bool> used(condition.size(), false);
  for (uint32_t id = 0; id < condition.size(); ++id) {
    for (Value v : condition.operands(Value{id})) used[v.id] = true;
  }
  used[condition.outputs()[0].value.id] = true;
  GraphBuilder goes_on(condition.context());
  GraphBuilder step(condition.context());
  std::vector<Value> arguments;
  std::vector<Value> operands;
  for (size_t i = 0; i < state.size(); ++i) {
    const Value input = condition.inputs()[i].value;
    const TensorType type = condition.type(input);
    // No constant is a key.
    if (!used[input.id] && type.dtype != DType::kKey) {
      arguments.push_back(goes_on.Zeros(type));
      continue;
    }
    const std::string name = absl::StrCat("x", i);
    arguments.push_back(goes_on.Input(name, type));
    step.Input(name, type);
    operands.push_back(state[i]);
  }
  const TensorType flag{DType::kBool, {}};
  goes_on.Input("ended", flag);
  const Value ended = step.Input("ended", flag);
  const int consts = static_cast<int>(operands.size());
  operands.push_back(b.Constant(Exact(1), flag));
  const std::vector<Value> holds = goes_on.Inline(condition, arguments);
  CLEAVE_ASSIGN_OR_RETURN(Region cond,
                          BuildRegion(std::move(goes_on), Numbered(holds)));
  CLEAVE_ASSIGN_OR_RETURN(Region body,
                          BuildRegion(std::move(step), Numbered({ended})));
  return b.Add(Primitive::kWhile,
               {{"cond", std::move(cond)},
                {"body", std::move(body)},
                {"consts", consts},
                {"max", 0}},
               operands);
}

}  // namespace

absl::StatusOr<std::vector<Value>> BoundedWhileAsScan(
    GraphBuilder& builder, const Attributes& attributes,
    absl::Span<const Value> operands) {
  const StaticValue* max = attributes.Find("max");
  if (max == nullptr) {
    return Impossible("unbounded loop in reverse: `while` without `max`");
  }
  const Graph& condition = *attributes.Get("cond").AsRegion().graph;
  const Region& body = attributes.Get("body").AsRegion();
  const LoopOperands loop = LoopOperands::Of(attributes, operands.size());
  CLEAVE_ASSIGN_OR_RETURN(Region step, Step(condition, body, loop.consts));
  CLEAVE_ASSIGN_OR_RETURN(const Value scan,
                          builder.Add(Primitive::kScan,
                                      loop.InScan({{"body", std::move(step)},
                                                   {"length", *max},
                                                   {"reverse", false}}),
                                      operands));
  std::vector<Value> state(operands.begin(), operands.begin() + loop.consts);
  for (int i = 0; i < loop.carries; ++i)
    state.push_back(builder.Result(scan, i));
  CLEAVE_ASSIGN_OR_RETURN(const Value ended,
                          CheckEnded(builder, condition, state));
  std::vector<Value> results;
  for (int i = 0; i < loop.carries; ++i) {
    const Value y = state[loop.consts + i];
    const TensorType type = builder.type(y);
    // The value that stands for it if the loop has not ended; a run fails
    // before it reads that.
    const Value never = emit::IsInexact(type.dtype) ? builder.Zeros(type)
                                                    : operands[loop.consts + i];
    results.push_back(emit::Select(
        builder, emit::Broadcast(builder, ended, type.shape, {}), y, never));
  }
  return results;
}

}  // namespace cleave
