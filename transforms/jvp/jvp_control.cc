// Tangents of scan, cond and while: one loop, one branch, for both the primals
// and the tangents.

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/loop_operands.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp_primitive.h"
#include "transforms/jvp/tangent_graph.h"
#include "transforms/table/emit.h"
#include "transforms/table/names.h"

namespace cleave {
namespace {

// A region's inputs, with the tangents of the active ones behind each group
// [begin, end) of `groups`, and what comes out.
struct JointRegion {
  GraphBuilder builder;
  TangentGraphResult results;

  // The tangent of output i, zeros where it has none.
  Value DenseTangent(int i) {
    const Value tangent = results.tangents[i];
    if (tangent.valid()) return tangent;
    const TensorType type = builder.type(results.outputs[i]);
    return builder.Zeros(type);
  }
};

// The inputs of a joint region in their order.
struct JointInputs {
  std::vector<Value> primals;
  std::vector<Value> tangents;  // invalid where not active
};

JointInputs AddInputs(GraphBuilder& builder, const Graph& region,
                      const std::vector<bool>& active,
                      const std::vector<int>& group_ends) {
  JointInputs inputs;
  int begin = 0;
  for (int end : group_ends) {
    for (int i = begin; i < end; ++i) {
      inputs.primals.push_back(builder.Input(
          absl::StrCat("x", i), region.type(region.inputs()[i].value)));
    }
    for (int i = begin; i < end; ++i) {
      inputs.tangents.push_back(
          active[i] ? builder.Input(absl::StrCat("dx", i),
                                    region.type(region.inputs()[i].value))
                    : Value());
    }
    begin = end;
  }
  return inputs;
}

absl::StatusOr<JointRegion> DifferentiateRegion(
    const Graph& region, const std::vector<bool>& active,
    const std::vector<int>& group_ends, RuleTable& rules) {
  GraphBuilder builder(region.context());
  const JointInputs inputs = AddInputs(builder, region, active, group_ends);
  CLEAVE_ASSIGN_OR_RETURN(
      TangentGraphResult results,
      TangentGraph(builder, region, inputs.primals, inputs.tangents, rules));
  return JointRegion{std::move(builder), std::move(results)};
}

// The body of a loop whose carries are active where a step makes them so: at
// most one round per carry. `active` comes to say which are.
absl::StatusOr<JointRegion> DifferentiateLoop(const Graph& body,
                                              const LoopOperands& loop,
                                              const std::vector<int>& groups,
                                              RuleTable& rules,
                                              std::vector<bool>& active) {
  for (;;) {
    CLEAVE_ASSIGN_OR_RETURN(JointRegion region,
                            DifferentiateRegion(body, active, groups, rules));
    bool changed = false;
    for (int i = 0; i < loop.carries; ++i) {
      if (region.results.tangents[i].valid() && !active[loop.consts + i]) {
        active[loop.consts + i] = true;
        changed = true;
      }
    }
    if (!changed) return region;
  }
}

// The operands of a joint loop, group by group as AddInputs takes them.
std::vector<Value> JointOperands(const JvpNode& node,
                                 const std::vector<bool>& active,
                                 const std::vector<int>& group_ends) {
  std::vector<Value> operands;
  int begin = 0;
  for (int end : group_ends) {
    for (int i = begin; i < end; ++i) operands.push_back(node.x(i));
    for (int i = begin; i < end; ++i) {
      if (active[i]) operands.push_back(node.DenseTangent(i));
    }
    begin = end;
  }
  return operands;
}

}  // namespace

absl::StatusOr<JvpNodeResult> JvpScan(const JvpNode& node) {
  GraphBuilder& b = node.builder;
  const Graph& body = *node.attributes.Get("body").AsRegion().graph;
  const LoopOperands loop =
      LoopOperands::Of(node.attributes, node.operands.size());
  const int count = loop.count();
  const int results = static_cast<int>(node.result_types.size());
  const std::vector<int> groups = {loop.consts, loop.first_slice(), count};
  std::vector<bool> active(count);
  for (int i = 0; i < count; ++i) active[i] = node.active(i);
  CLEAVE_ASSIGN_OR_RETURN(
      JointRegion region,
      DifferentiateLoop(body, loop, groups, node.rules, active));
  // carries, their tangents; stacked values, their tangents.
  std::vector<Value> outputs(region.results.outputs.begin(),
                             region.results.outputs.begin() + loop.carries);
  std::vector<int> tangent_at(results, -1);
  int active_consts = 0;
  for (int i = 0; i < loop.consts; ++i) active_consts += active[i] ? 1 : 0;
  for (int i = 0; i < loop.carries; ++i) {
    if (!active[loop.consts + i]) continue;
    tangent_at[i] = static_cast<int>(outputs.size());
    outputs.push_back(region.DenseTangent(i));
  }
  const int all_carries = static_cast<int>(outputs.size());
  outputs.insert(outputs.end(), region.results.outputs.begin() + loop.carries,
                 region.results.outputs.end());
  for (int i = loop.carries; i < results; ++i) {
    if (!region.results.tangents[i].valid()) continue;
    tangent_at[i] = static_cast<int>(outputs.size());
    outputs.push_back(region.results.tangents[i]);
  }
  const std::vector<Value> operands = JointOperands(node, active, groups);
  Attributes attributes = node.attributes;
  CLEAVE_ASSIGN_OR_RETURN(
      Region joint, BuildRegion(std::move(region.builder), Numbered(outputs)));
  attributes.Set("body", std::move(joint));
  attributes.Set("consts", loop.consts + active_consts);
  attributes.Set("carries", all_carries);
  CLEAVE_ASSIGN_OR_RETURN(const Value scan,
                          b.Add(Primitive::kScan, attributes, operands));
  JvpNodeResult result;
  for (int i = 0; i < results; ++i) {
    const int at = i < loop.carries ? i : i - loop.carries + all_carries;
    result.results.push_back(b.Result(scan, at));
    result.tangents.push_back(
        tangent_at[i] < 0 ? Value() : b.Result(scan, tangent_at[i]));
  }
  return result;
}

absl::StatusOr<JvpNodeResult> JvpCond(const JvpNode& node) {
  GraphBuilder& b = node.builder;
  const std::vector<bool> active = [&] {
    std::vector<bool> mask;
    for (size_t i = 1; i < node.operands.size(); ++i) {
      mask.push_back(node.active(static_cast<int>(i)));
    }
    return mask;
  }();
  const std::vector<int> groups = {static_cast<int>(active.size())};
  std::vector<JointRegion> branches;
  for (const char* name : {"then", "else"}) {
    CLEAVE_ASSIGN_OR_RETURN(
        JointRegion branch,
        DifferentiateRegion(*node.attributes.Get(name).AsRegion().graph, active,
                            groups, node.rules));
    branches.push_back(std::move(branch));
  }
  const int results = static_cast<int>(node.result_types.size());
  std::vector<int> tangent_at(results, -1);
  std::vector<std::vector<Value>> outputs = {branches[0].results.outputs,
                                             branches[1].results.outputs};
  for (int i = 0; i < results; ++i) {
    if (!branches[0].results.tangents[i].valid() &&
        !branches[1].results.tangents[i].valid()) {
      continue;
    }
    tangent_at[i] = static_cast<int>(outputs[0].size());
    for (int k = 0; k < 2; ++k) {
      outputs[k].push_back(branches[k].DenseTangent(i));
    }
  }
  std::vector<Value> operands = node.operands;
  for (size_t i = 1; i < node.operands.size(); ++i) {
    if (active[i - 1]) operands.push_back(node.dx(static_cast<int>(i)));
  }
  CLEAVE_ASSIGN_OR_RETURN(
      Region then,
      BuildRegion(std::move(branches[0].builder), Numbered(outputs[0])));
  CLEAVE_ASSIGN_OR_RETURN(
      Region otherwise,
      BuildRegion(std::move(branches[1].builder), Numbered(outputs[1])));
  CLEAVE_ASSIGN_OR_RETURN(
      const Value cond,
      b.Add(Primitive::kCond,
            {{"then", std::move(then)}, {"else", std::move(otherwise)}},
            operands));
  JvpNodeResult result;
  for (int i = 0; i < results; ++i) {
    result.results.push_back(b.Result(cond, i));
    result.tangents.push_back(
        tangent_at[i] < 0 ? Value() : b.Result(cond, tangent_at[i]));
  }
  return result;
}

// The condition reads the primals alone.
absl::StatusOr<JvpNodeResult> JvpWhile(const JvpNode& node) {
  GraphBuilder& b = node.builder;
  const Graph& condition = *node.attributes.Get("cond").AsRegion().graph;
  const Graph& body = *node.attributes.Get("body").AsRegion().graph;
  const LoopOperands loop =
      LoopOperands::Of(node.attributes, node.operands.size());
  const int count = loop.count();
  const std::vector<int> groups = {loop.consts, count};
  std::vector<bool> active(count);
  for (int i = 0; i < count; ++i) active[i] = node.active(i);
  CLEAVE_ASSIGN_OR_RETURN(
      JointRegion region,
      DifferentiateLoop(body, loop, groups, node.rules, active));
  std::vector<Value> outputs = region.results.outputs;
  std::vector<int> tangent_at(loop.carries, -1);
  for (int i = 0; i < loop.carries; ++i) {
    if (!active[loop.consts + i]) continue;
    tangent_at[i] = static_cast<int>(outputs.size());
    outputs.push_back(region.DenseTangent(i));
  }
  GraphBuilder goes_on(condition.context());
  const JointInputs inputs = AddInputs(goes_on, condition, active, groups);
  const std::vector<Value> holds = goes_on.Inline(condition, inputs.primals);
  int active_consts = 0;
  for (int i = 0; i < loop.consts; ++i) active_consts += active[i] ? 1 : 0;
  Attributes attributes = node.attributes;
  CLEAVE_ASSIGN_OR_RETURN(Region cond,
                          BuildRegion(std::move(goes_on), Numbered(holds)));
  attributes.Set("cond", std::move(cond));
  CLEAVE_ASSIGN_OR_RETURN(
      Region step, BuildRegion(std::move(region.builder), Numbered(outputs)));
  attributes.Set("body", std::move(step));
  attributes.Set("consts", loop.consts + active_consts);
  CLEAVE_ASSIGN_OR_RETURN(const Value joint,
                          b.Add(Primitive::kWhile, attributes,
                                JointOperands(node, active, groups)));
  JvpNodeResult result;
  for (int i = 0; i < loop.carries; ++i) {
    result.results.push_back(b.Result(joint, i));
    result.tangents.push_back(
        tangent_at[i] < 0 ? Value() : b.Result(joint, tangent_at[i]));
  }
  return result;
}

}  // namespace cleave
