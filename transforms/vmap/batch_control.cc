// Batching of scan, cond and while: their regions are batched as graphs.
//
// Where examples part, all of them run what only some do, and select chooses.
// A select alone would let two things through: failures, and in reverse mode
// the derivative at points where a branch was never meant to be evaluated,
// which may be infinite: the cotangent 0 times that is NaN. So the others run
// it on the operands of an example that does take it, behind nograd: there the
// branch is evaluated anyway, and what flows back is dropped by a select, not
// multiplied by 0.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/loop_operands.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/vmap/batch.h"
#include "transforms/vmap/region_safety.h"

namespace cleave {
namespace {

struct BatchedRegion {
  Graph graph;
  std::vector<bool> batched;  // per output
};

// The inputs of `region`, with the batch in front of those in `batched`.
std::vector<BatchedValue> AddInputs(GraphBuilder& builder, const Graph& region,
                                    const std::vector<bool>& batched,
                                    const Dim& batch) {
  std::vector<BatchedValue> inputs;
  for (size_t i = 0; i < batched.size(); ++i) {
    const NamedValue& input = region.inputs()[i];
    TensorType type = region.type(input.value);
    if (batched[i]) type = WithBatch(type, batch);
    inputs.push_back({builder.Input(input.name, type), batched[i]});
  }
  return inputs;
}

// The region with the batch in front of the inputs in `batched`, and of each
// output that depends on them or is in `forced`.
absl::StatusOr<BatchedRegion> BatchRegion(const Graph& region,
                                          const std::vector<bool>& batched,
                                          const std::vector<bool>& forced,
                                          const BatchNode& node) {
  GraphBuilder builder(region.context());
  const std::vector<BatchedValue> arguments =
      AddInputs(builder, region, batched, node.batch);
  CLEAVE_ASSIGN_OR_RETURN(
      std::vector<BatchedValue> results,
      BatchGraph(builder, region, arguments, node.batch, node.rules));
  BatchedRegion result;
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    if (forced[i]) {
      results[i] = {InFront(builder, results[i], node.batch), true};
    }
    result.batched.push_back(results[i].batched);
    outputs.push_back({region.outputs()[i].name, results[i].value});
  }
  CLEAVE_ASSIGN_OR_RETURN(result.graph,
                          std::move(builder).Build(std::move(outputs)));
  return result;
}

// The body of a loop whose carries are batched where a step makes them so: at
// most one round per carry. `inputs` comes to say which are.
absl::StatusOr<BatchedRegion> BatchLoopBody(const Graph& body,
                                            const LoopOperands& loop,
                                            const BatchNode& node,
                                            std::vector<bool>& inputs) {
  std::vector<bool> forced(body.outputs().size(), false);
  for (;;) {
    for (int i = 0; i < loop.carries; ++i) forced[i] = inputs[loop.consts + i];
    CLEAVE_ASSIGN_OR_RETURN(BatchedRegion region,
                            BatchRegion(body, inputs, forced, node));
    bool changed = false;
    for (int i = 0; i < loop.carries; ++i) {
      if (region.batched[i] && !inputs[loop.consts + i]) {
        inputs[loop.consts + i] = true;
        changed = true;
      }
    }
    if (!changed) return region;
  }
}

BatchedResults BatchScanLoop(const BatchNode& node) {
  GraphBuilder& b = node.builder;
  const Graph& body = *node.attributes.Get("body").AsRegion().graph;
  const LoopOperands loop =
      LoopOperands::Of(node.attributes, node.operands.size());
  const int count = loop.count();
  std::vector<bool> inputs(count);
  for (int i = 0; i < count; ++i) inputs[i] = node.batched(i);
  CLEAVE_ASSIGN_OR_RETURN(BatchedRegion region,
                          BatchLoopBody(body, loop, node, inputs));
  std::vector<Value> operands;
  for (int i = 0; i < count; ++i) {
    const Value front = inputs[i] ? node.front(i) : node.value(i);
    // xs are scanned along axis 0: the batch stands behind it.
    operands.push_back(
        loop.IsSlice(i) && inputs[i] ? emit::MoveAxis(b, front, 0, 1) : front);
  }
  Attributes attributes = node.attributes;
  attributes.Set("body", MakeRegion(std::move(region.graph)));
  CLEAVE_ASSIGN_OR_RETURN(const Value scan,
                          b.Add(Primitive::kScan, attributes, operands));
  std::vector<BatchedValue> results;
  for (int i = 0; i < static_cast<int>(region.batched.size()); ++i) {
    Value y = b.Result(scan, i);
    const bool stacked = i >= loop.carries;
    if (stacked && region.batched[i]) y = emit::MoveAxis(b, y, 1, 0);
    results.push_back({y, region.batched[i]});
  }
  return results;
}

// Which examples run a region: `mask` is bool[batch].
class Participants {
 public:
  Participants(GraphBuilder& builder, Value mask) : b_(builder), mask_(mask) {}

  // x and y have the batch in front: those of x that take part, else of y.
  Value Select(Value x, Value y) {
    const Shape shape = b_.type(x).shape;
    return emit::Select(b_, emit::Broadcast(b_, mask_, shape, {0}), x, y);
  }

  // x, which has the batch in front, with the rows of examples that do not take
  // part replaced by the row of the first that does, behind nograd. Where none
  // does, by that of example 0. Keys stay: nothing fails for them.
  Value Substituted(Value x) {
    const TensorType type = b_.type(x);
    if (type.dtype == DType::kKey) return x;
    Value row = b_.Apply(Primitive::kGather,
                         {x, First(), b_.Constant(Exact(0), type.dtype)},
                         {{"axes", StaticValue::Ints(std::vector<int>{0})},
                          {"batch", 0},
                          {"mode", "fill"}});
    if (emit::IsInexact(type.dtype)) {
      row = b_.Apply(Primitive::kNograd, {row});
    }
    return Select(x, emit::Broadcast(b_, row, type.shape,
                                     emit::Range(type.rank() - 1, 1)));
  }

  // x, which all examples share, behind nograd where none takes part.
  Value SharedIfAny(Value x) {
    const TensorType type = b_.type(x);
    if (!emit::IsInexact(type.dtype)) return x;
    if (!any_.valid()) {
      any_ = b_.Apply(Primitive::kReduceAny, {mask_},
                      {{"axes", StaticValue::Ints(std::vector<int>{0})}});
    }
    return emit::Select(b_, emit::Broadcast(b_, any_, type.shape, {}), x,
                        b_.Apply(Primitive::kNograd, {x}));
  }

 private:
  // The number of the first that takes part, as the index of a gather.
  Value First() {
    if (!first_.valid()) {
      const Value number =
          b_.Apply(Primitive::kArgmax, {emit::Convert(b_, mask_, DType::kI32)},
                   {{"axes", StaticValue::Ints(std::vector<int>{0})}});
      first_ = b_.Reshape(number, {Dim(1)});
    }
    return first_;
  }

  GraphBuilder& b_;
  Value mask_;
  Value first_;
  Value any_;
};

// Which inputs something in the region reads.
std::vector<bool> UsedInputs(const Graph& region) {
  std::vector<bool> used(region.size(), false);
  for (uint32_t id = 0; id < region.size(); ++id) {
    for (Value v : region.operands(Value{id})) used[v.id] = true;
  }
  for (const NamedValue& output : region.outputs()) {
    used[output.value.id] = true;
  }
  std::vector<bool> inputs;
  for (const NamedValue& input : region.inputs()) {
    inputs.push_back(used[input.value.id]);
  }
  return inputs;
}

// The results of a branch for all examples, right for those in `participants`.
absl::StatusOr<std::vector<Value>> RunBranch(const Graph& branch,
                                             RegionSafety safety,
                                             const BatchNode& node,
                                             Participants participants) {
  GraphBuilder& b = node.builder;
  const std::vector<bool> used = UsedInputs(branch);
  std::vector<BatchedValue> arguments(node.operands.begin() + 1,
                                      node.operands.end());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!used[i] || safety == RegionSafety::kLinear) continue;
    BatchedValue& x = arguments[i];
    x.value = x.batched ? participants.Substituted(x.value)
                        : participants.SharedIfAny(x.value);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<BatchedValue> results,
      BatchGraph(b, branch, arguments, node.batch, node.rules));
  std::vector<Value> values;
  for (const BatchedValue& result : results) {
    values.push_back(InFront(b, result, node.batch));
  }
  return values;
}

// Both branches for all examples, and select.
BatchedResults BatchCondBySelect(const BatchNode& node,
                                 const Graph& then_branch,
                                 RegionSafety then_safety,
                                 const Graph& else_branch,
                                 RegionSafety else_safety) {
  GraphBuilder& b = node.builder;
  const Value p = node.value(0);
  Participants yes(b, p);
  const Participants no(b, b.Apply(Primitive::kNot, {p}));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Value> xs,
                          RunBranch(then_branch, then_safety, node, yes));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<Value> ys,
                          RunBranch(else_branch, else_safety, node, no));
  std::vector<BatchedValue> results;
  for (size_t i = 0; i < xs.size(); ++i) {
    results.push_back({yes.Select(xs[i], ys[i]), true});
  }
  return results;
}

// The cond of one example after the other: what fails or does not end in one
// branch must not run for examples that take the other, not even where all do.
BatchedResults BatchCondByLoop(const BatchNode& node) {
  GraphBuilder& b = node.builder;
  GraphBuilder inner(b.context());
  std::vector<Value> consts;
  std::vector<Value> slices;
  std::vector<Value> operands(node.operands.size());
  for (const bool batched : {false, true}) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (node.operands[i].batched != batched) continue;
      operands[i] = inner.Input(absl::StrCat("x", i), node.types[i]);
      (batched ? slices : consts).push_back(node.operands[i].value);
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const Value cond, inner.Add(Primitive::kCond, node.attributes, operands));
  const int results = static_cast<int>(inner.graph().types(cond).size());
  std::vector<NamedValue> outputs;
  for (int i = 0; i < results; ++i) {
    outputs.push_back({absl::StrCat("y", i), inner.Result(cond, i)});
  }
  std::vector<Value> all = consts;
  all.insert(all.end(), slices.begin(), slices.end());
  CLEAVE_ASSIGN_OR_RETURN(Region body,
                          BuildRegion(std::move(inner), std::move(outputs)));
  CLEAVE_ASSIGN_OR_RETURN(const Value scan,
                          b.Add(Primitive::kScan,
                                {{"body", std::move(body)},
                                 {"consts", static_cast<int>(consts.size())},
                                 {"carries", 0},
                                 {"length", node.batch},
                                 {"reverse", false}},
                                all));
  std::vector<BatchedValue> stacked;
  for (int i = 0; i < results; ++i) {
    stacked.push_back({b.Result(scan, i), true});
  }
  return stacked;
}

// With one predicate for all examples a cond stays one.
BatchedResults BatchCond(const BatchNode& node) {
  GraphBuilder& b = node.builder;
  const Graph& then_branch = *node.attributes.Get("then").AsRegion().graph;
  const Graph& else_branch = *node.attributes.Get("else").AsRegion().graph;
  if (node.batched(0)) {
    const RuleSet& rules = node.rules.rules();
    CLEAVE_ASSIGN_OR_RETURN(const RegionSafety then_safety,
                            SafetyOf(then_branch, rules));
    CLEAVE_ASSIGN_OR_RETURN(const RegionSafety else_safety,
                            SafetyOf(else_branch, rules));
    if (then_safety == RegionSafety::kMayFail ||
        else_safety == RegionSafety::kMayFail) {
      return BatchCondByLoop(node);
    }
    return BatchCondBySelect(node, then_branch, then_safety, else_branch,
                             else_safety);
  }
  std::vector<bool> inputs;
  std::vector<Value> operands = {node.value(0)};
  for (size_t i = 1; i < node.operands.size(); ++i) {
    inputs.push_back(node.operands[i].batched);
    operands.push_back(node.operands[i].value);
  }
  std::vector<bool> forced(then_branch.outputs().size(), false);
  for (const Graph* branch : {&then_branch, &else_branch}) {
    CLEAVE_ASSIGN_OR_RETURN(const BatchedRegion region,
                            BatchRegion(*branch, inputs, forced, node));
    for (size_t i = 0; i < forced.size(); ++i) {
      forced[i] = forced[i] || region.batched[i];
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(BatchedRegion yes,
                          BatchRegion(then_branch, inputs, forced, node));
  CLEAVE_ASSIGN_OR_RETURN(BatchedRegion no,
                          BatchRegion(else_branch, inputs, forced, node));
  CLEAVE_ASSIGN_OR_RETURN(const Value cond,
                          b.Add(Primitive::kCond,
                                {{"then", MakeRegion(std::move(yes.graph))},
                                 {"else", MakeRegion(std::move(no.graph))}},
                                operands));
  std::vector<BatchedValue> results;
  for (size_t i = 0; i < forced.size(); ++i) {
    results.push_back({b.Result(cond, static_cast<int>(i)), forced[i]});
  }
  return results;
}

// A step of the body for the examples that go on: `goes_on` is bool[batch], of
// the inputs. Examples that have finished keep their carries.
absl::StatusOr<Graph> StepOfSome(const Graph& condition, const Graph& body,
                                 const std::vector<bool>& batched, int consts,
                                 const BatchNode& node) {
  GraphBuilder b(body.context());
  const std::vector<BatchedValue> state =
      AddInputs(b, body, batched, node.batch);
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<BatchedValue> goes_on,
      BatchGraph(b, condition, state, node.batch, node.rules));
  Participants participants(b, goes_on[0].value);
  const std::vector<bool> used = UsedInputs(body);
  // One at least goes on where the body runs: what all share needs no guard.
  std::vector<BatchedValue> arguments = state;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!used[i] || !batched[i]) continue;
    arguments[i].value = participants.Substituted(arguments[i].value);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<BatchedValue> next,
      BatchGraph(b, body, arguments, node.batch, node.rules));
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < next.size(); ++i) {
    outputs.push_back({body.outputs()[i].name,
                       participants.Select(InFront(b, next[i], node.batch),
                                           state[consts + i].value)});
  }
  return std::move(b).Build(std::move(outputs));
}

// Whether any example goes on.
absl::StatusOr<Graph> AnyGoesOn(const Graph& condition,
                                const std::vector<bool>& batched,
                                const BatchNode& node) {
  GraphBuilder b(condition.context());
  const std::vector<BatchedValue> state =
      AddInputs(b, condition, batched, node.batch);
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<BatchedValue> goes_on,
      BatchGraph(b, condition, state, node.batch, node.rules));
  const Value any = b.Apply(Primitive::kReduceAny, {goes_on[0].value},
                            {{"axes", StaticValue::Ints(std::vector<int>{0})}});
  return std::move(b).Build({{condition.outputs()[0].name, any}});
}

// With one condition for all examples a while stays one. With one each, it goes
// on until no example does; all carries are then batched.
BatchedResults BatchWhile(const BatchNode& node) {
  GraphBuilder& b = node.builder;
  const Graph& condition = *node.attributes.Get("cond").AsRegion().graph;
  const Graph& body = *node.attributes.Get("body").AsRegion().graph;
  const LoopOperands loop =
      LoopOperands::Of(node.attributes, node.operands.size());
  const int count = loop.count();
  std::vector<bool> inputs(count);
  for (int i = 0; i < count; ++i) inputs[i] = node.batched(i);
  CLEAVE_ASSIGN_OR_RETURN(BatchedRegion step,
                          BatchLoopBody(body, loop, node, inputs));
  CLEAVE_ASSIGN_OR_RETURN(BatchedRegion goes_on,
                          BatchRegion(condition, inputs, {false}, node));
  if (goes_on.batched[0]) {
    for (int i = loop.consts; i < count; ++i) inputs[i] = true;
    CLEAVE_ASSIGN_OR_RETURN(goes_on.graph, AnyGoesOn(condition, inputs, node));
    CLEAVE_ASSIGN_OR_RETURN(
        step.graph, StepOfSome(condition, body, inputs, loop.consts, node));
  }
  std::vector<Value> operands;
  for (int i = 0; i < count; ++i) {
    operands.push_back(inputs[i] ? node.front(i) : node.value(i));
  }
  Attributes attributes = node.attributes;
  attributes.Set("cond", MakeRegion(std::move(goes_on.graph)));
  attributes.Set("body", MakeRegion(std::move(step.graph)));
  CLEAVE_ASSIGN_OR_RETURN(const Value result,
                          b.Add(Primitive::kWhile, attributes, operands));
  std::vector<BatchedValue> results;
  for (int i = loop.consts; i < count; ++i) {
    results.push_back({b.Result(result, i - loop.consts), inputs[i]});
  }
  return results;
}

}  // namespace

BatchedResults BatchControl(const BatchNode& node) {
  if (node.primitive == Primitive::kScan) return BatchScanLoop(node);
  if (node.primitive == Primitive::kWhile) return BatchWhile(node);
  return BatchCond(node);
}

}  // namespace cleave
