// Transposes of loops and branches whose known half runs elsewhere: of the
// operands that are not linear, nothing changes from step to step but slices.

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/loop_operands.h"
#include "ops/status_macros.h"
#include "transforms/table/emit.h"
#include "transforms/table/names.h"
#include "transforms/vjp/transpose.h"
#include "transforms/vjp/transpose_primitive.h"

namespace cleave {
namespace {

Value Dense(GraphBuilder& b, Value cotangent, const TensorType& type) {
  return cotangent.valid() ? cotangent : b.Zeros(type);
}

}  // namespace

// Backwards through the steps: the carries' cotangents are carried, those of
// the consts summed, those of the slices stacked. Every carry is linear; one
// that begins as a known value begins as 0.
Cotangents TransposeScan(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  const Graph& body = *node.attributes.Get("body").AsRegion().graph;
  const LoopOperands loop =
      LoopOperands::Of(node.attributes, node.operands.size());
  const int count = loop.count();
  const int results = static_cast<int>(node.result_types.size());
  const auto type = [&](int i) { return body.type(body.inputs()[i].value); };
  // Consts: the known ones. Carries: sums for the linear consts, the carries.
  // Slices: the known ones, the cotangents of what was stacked.
  GraphBuilder step(b.context());
  std::vector<Value> arguments(count);
  std::vector<Value> operands;
  int inputs = 0;
  const auto add_input = [&](const TensorType& of) {
    return step.Input(absl::StrCat("x", inputs++), of);
  };
  for (int i = 0; i < loop.consts; ++i) {
    if (node.linear[i]) continue;
    arguments[i] = add_input(type(i));
    operands.push_back(node.x(i));
  }
  const int known_consts = inputs;
  std::vector<Value> sums(loop.consts);
  for (int i = 0; i < loop.consts; ++i) {
    if (!node.linear[i]) continue;
    sums[i] = add_input(type(i));
    operands.push_back(b.Zeros(type(i)));
  }
  std::vector<Value> cotangents(results);
  for (int i = 0; i < loop.carries; ++i) {
    cotangents[i] = add_input(type(loop.consts + i));
    operands.push_back(Dense(b, node.cotangents[i], type(loop.consts + i)));
  }
  const int new_carries = inputs - known_consts;
  for (int i = loop.first_slice(); i < count; ++i) {
    if (node.linear[i]) continue;
    arguments[i] = add_input(type(i));
    operands.push_back(node.x(i));
  }
  for (int i = loop.carries; i < results; ++i) {
    if (!node.cotangents[i].valid()) continue;
    cotangents[i] = add_input(body.type(body.outputs()[i].value));
    operands.push_back(node.cotangents[i]);
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Value> of_step,
      TransposeGraph(step, body, arguments, cotangents, node.rules));
  std::vector<Value> outputs;
  std::vector<int> result_of(count, -1);
  for (int i = 0; i < loop.consts; ++i) {
    if (!node.linear[i]) continue;
    result_of[i] = static_cast<int>(outputs.size());
    outputs.push_back(emit::AddTangents(step, sums[i], of_step[i]));
  }
  for (int i = loop.consts; i < loop.first_slice(); ++i) {
    result_of[i] = static_cast<int>(outputs.size());
    outputs.push_back(Dense(step, of_step[i], type(i)));
  }
  for (int i = loop.first_slice(); i < count; ++i) {
    if (!node.linear[i] || !of_step[i].valid()) continue;
    result_of[i] = static_cast<int>(outputs.size());
    outputs.push_back(of_step[i]);
  }
  if (outputs.empty()) return std::vector<Value>(count);
  CLEAVE_ASSIGN_OR_RETURN(Region transposed,
                          BuildRegion(std::move(step), Numbered(outputs)));
  CLEAVE_ASSIGN_OR_RETURN(
      const Value scan,
      b.Add(Primitive::kScan,
            {{"body", std::move(transposed)},
             {"consts", known_consts},
             {"carries", new_carries},
             {"length", node.attributes.Get("length")},
             {"reverse", !node.attributes.GetBool("reverse")}},
            operands));
  std::vector<Value> given(count);
  for (int i = 0; i < count; ++i) {
    if (node.linear[i] && result_of[i] >= 0) {
      given[i] = b.Result(scan, result_of[i]);
    }
  }
  return given;
}

Cotangents TransposeCond(const TransposeNode& node) {
  GraphBuilder& b = node.builder;
  const size_t count = node.operands.size() - 1;
  if (node.linear[0]) {
    return absl::InternalError("transpose: a condition is not linear");
  }
  std::vector<Value> operands = {node.x(0)};
  for (size_t i = 0; i < count; ++i) {
    if (!node.linear[i + 1]) {
      operands.push_back(node.x(static_cast<int>(i) + 1));
    }
  }
  for (Value cotangent : node.cotangents) {
    if (cotangent.valid()) operands.push_back(cotangent);
  }
  Attributes attributes;
  for (const char* name : {"then", "else"}) {
    const Graph& region = *node.attributes.Get(name).AsRegion().graph;
    GraphBuilder branch(b.context());
    int inputs = 0;
    std::vector<Value> arguments(count);
    for (size_t i = 0; i < count; ++i) {
      if (node.linear[i + 1]) continue;
      arguments[i] = branch.Input(absl::StrCat("x", inputs++),
                                  region.type(region.inputs()[i].value));
    }
    std::vector<Value> cotangents(node.cotangents.size());
    for (size_t i = 0; i < cotangents.size(); ++i) {
      if (!node.cotangents[i].valid()) continue;
      cotangents[i] = branch.Input(absl::StrCat("x", inputs++),
                                   region.type(region.outputs()[i].value));
    }
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<Value> given,
        TransposeGraph(branch, region, arguments, cotangents, node.rules));
    std::vector<Value> outputs;
    for (size_t i = 0; i < count; ++i) {
      if (!node.linear[i + 1]) continue;
      outputs.push_back(
          Dense(branch, given[i], region.type(region.inputs()[i].value)));
    }
    CLEAVE_ASSIGN_OR_RETURN(Region transposed,
                            BuildRegion(std::move(branch), Numbered(outputs)));
    attributes.Set(name, std::move(transposed));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value cond,
                          b.Add(Primitive::kCond, attributes, operands));
  std::vector<Value> given(count + 1);
  int next = 0;
  for (size_t i = 0; i < count; ++i) {
    if (node.linear[i + 1]) given[i + 1] = b.Result(cond, next++);
  }
  return given;
}

}  // namespace cleave
