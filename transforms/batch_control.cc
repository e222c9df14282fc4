// Batching of scan and cond: their regions are batched as graphs.

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/batch.h"
#include "transforms/emit.h"

namespace cleave {
namespace {

struct BatchedRegion {
  Graph graph;
  std::vector<bool> batched;  // per output
};

// The region with the batch in front of the inputs in `batched`, and of each
// output that depends on them or is in `forced`.
absl::StatusOr<BatchedRegion> BatchRegion(const Graph& region,
                                          const std::vector<bool>& batched,
                                          const std::vector<bool>& forced,
                                          const BatchNode& node) {
  GraphBuilder builder(region.context());
  std::vector<BatchedValue> arguments;
  for (size_t i = 0; i < region.inputs().size(); ++i) {
    const NamedValue& input = region.inputs()[i];
    TensorType type = region.type(input.value);
    if (batched[i]) type = WithBatch(type, node.batch);
    arguments.push_back({builder.Input(input.name, type), batched[i]});
  }
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
  result.graph = std::move(builder).Build(std::move(outputs));
  return result;
}

// Carries become batched until none is missing: at most one round per carry.
BatchedResults BatchScanLoop(const BatchNode& node) {
  GraphBuilder& b = node.builder;
  const Graph& body = *node.attributes.Get("body").AsRegion().graph;
  const int consts = static_cast<int>(node.attributes.GetInt("consts"));
  const int carries = static_cast<int>(node.attributes.GetInt("carries"));
  const int count = static_cast<int>(node.operands.size());
  std::vector<bool> inputs(count);
  for (int i = 0; i < count; ++i) inputs[i] = node.batched(i);
  std::vector<bool> forced(body.outputs().size(), false);
  BatchedRegion region;
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = 0; i < carries; ++i) forced[i] = inputs[consts + i];
    CLEAVE_ASSIGN_OR_RETURN(region, BatchRegion(body, inputs, forced, node));
    for (int i = 0; i < carries; ++i) {
      if (region.batched[i] && !inputs[consts + i]) {
        inputs[consts + i] = true;
        changed = true;
      }
    }
  }
  std::vector<Value> operands;
  for (int i = 0; i < count; ++i) {
    const Value front = inputs[i] ? node.front(i) : node.value(i);
    // xs are scanned along axis 0: the batch stands behind it.
    const bool sliced = i >= consts + carries;
    operands.push_back(sliced && inputs[i] ? emit::MoveAxis(b, front, 0, 1)
                                           : front);
  }
  Attributes attributes = node.attributes;
  attributes.Set("body", MakeRegion(std::move(region.graph)));
  CLEAVE_ASSIGN_OR_RETURN(const Value scan,
                          b.Add(Primitive::kScan, attributes, operands));
  std::vector<BatchedValue> results;
  for (int i = 0; i < static_cast<int>(region.batched.size()); ++i) {
    Value y = b.Result(scan, i);
    const bool stacked = i >= carries;
    if (stacked && region.batched[i]) y = emit::MoveAxis(b, y, 1, 0);
    results.push_back({y, region.batched[i]});
  }
  return results;
}

// With one predicate for all examples a cond stays one. With one each, both
// branches are computed and selected from.
BatchedResults BatchCond(const BatchNode& node) {
  GraphBuilder& b = node.builder;
  const Graph& then_branch = *node.attributes.Get("then").AsRegion().graph;
  const Graph& else_branch = *node.attributes.Get("else").AsRegion().graph;
  if (node.batched(0)) {
    const absl::Span<const BatchedValue> arguments =
        absl::MakeConstSpan(node.operands).subspan(1);
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<BatchedValue> yes,
        BatchGraph(b, then_branch, arguments, node.batch, node.rules));
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<BatchedValue> no,
        BatchGraph(b, else_branch, arguments, node.batch, node.rules));
    std::vector<BatchedValue> results;
    for (size_t i = 0; i < yes.size(); ++i) {
      const Value x = InFront(b, yes[i], node.batch);
      const Value y = InFront(b, no[i], node.batch);
      const Shape shape = b.type(x).shape;
      const Value p = emit::Broadcast(b, node.value(0), shape, {0});
      results.push_back({emit::Select(b, p, x, y), true});
    }
    return results;
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

}  // namespace

BatchedResults BatchControl(const BatchNode& node) {
  return node.primitive == Primitive::kScan ? BatchScanLoop(node)
                                            : BatchCond(node);
}

}  // namespace cleave
