#include "transforms/vjp/partial_evaluation.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/is_primitive.h"
#include "engine/ir/loop_operands.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"
#include "transforms/table/names.h"
#include "transforms/vjp/bounded_while.h"
#include "transforms/vjp/branch_residuals.h"
#include "transforms/vjp/recomputed_step.h"
#include "transforms/vjp/unknown_outputs.h"

namespace cleave {
namespace {

// `graph` with other inputs and outputs: `make_inputs` adds the new inputs and
// gives a value for each of the old ones.
template <typename MakeInputs, typename ChooseOutputs>
Graph Rearranged(const Graph& graph, const MakeInputs& make_inputs,
                 const ChooseOutputs& choose_outputs) {
  GraphBuilder builder(graph.context());
  const std::vector<Value> arguments = make_inputs(builder);
  const std::vector<Value> outputs = builder.Inline(graph, arguments);
  return *std::move(builder).Build(Numbered(choose_outputs(outputs)));
}

Value AddInput(GraphBuilder& builder, const Graph& graph, int i, int* count) {
  return builder.Input(absl::StrCat("x", (*count)++),
                       graph.type(graph.inputs()[i].value));
}

class Evaluator {
 public:
  Evaluator(const Graph& graph, const std::vector<bool>& unknown,
            const PartialEvaluationOptions& options)
      : graph_(graph),
        options_(options),
        known_(graph.context()),
        unknown_(graph.context()),
        known_of_(graph.size()),
        unknown_of_(graph.size()),
        free_(graph.size(), false) {
    for (size_t i = 0; i < unknown.size(); ++i) {
      const NamedValue& input = graph.inputs()[i];
      const TensorType& type = graph.type(input.value);
      if (unknown[i]) {
        unknown_of_[input.value.id] = unknown_.Input(input.name, type);
        taken_.insert(input.name);
      } else {
        known_of_[input.value.id] = known_.Input(input.name, type);
      }
    }
  }

  absl::StatusOr<PartialEvaluation> Run(
      const std::vector<bool>& outputs_unknown) {
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      CLEAVE_RETURN_IF_ERROR(PollBudget());
      CLEAVE_RETURN_IF_ERROR(Visit(Value{id}));
    }
    PartialEvaluation result;
    std::vector<NamedValue> known;
    std::vector<NamedValue> unknown;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const NamedValue& output = graph_.outputs()[i];
      const bool is_unknown = !known_of_[output.value.id].valid() ||
                              (!outputs_unknown.empty() && outputs_unknown[i]);
      result.output_unknown.push_back(is_unknown);
      if (is_unknown) {
        unknown.push_back({output.name, Unknown(output.value)});
      } else {
        known.push_back({output.name, known_of_[output.value.id]});
      }
    }
    absl::flat_hash_set<std::string> names;
    for (const NamedValue& output : known) names.insert(output.name);
    for (Value residual : residuals_) {
      known.push_back({FreshName(names), residual});
    }
    for (const ShapeGuard& guard : graph_.guards()) known_.AddGuard(guard);
    result.residuals = static_cast<int>(residuals_.size());
    CLEAVE_ASSIGN_OR_RETURN(result.known,
                            std::move(known_).Build(std::move(known)));
    CLEAVE_ASSIGN_OR_RETURN(result.unknown,
                            std::move(unknown_).Build(std::move(unknown)));
    return result;
  }

 private:
  static std::string FreshName(absl::flat_hash_set<std::string>& taken) {
    for (size_t i = taken.size();; ++i) {
      std::string name = absl::StrCat("residual", i);
      if (taken.insert(name).second) return name;
    }
  }

  bool IsKnown(Value v) const { return known_of_[v.id].valid(); }

  absl::Status Visit(Value v) {
    const Node& node = graph_.node(v);
    if (Is(graph_, v, Primitive::kInput)) return absl::OkStatus();
    const absl::Span<const Value> operands = graph_.operands(v);
    if (Is(graph_, v, Primitive::kResult)) {
      const auto it = cut_.find(operands[0].id);
      if (it != cut_.end()) {
        const int64_t index = graph_.attributes(v).GetInt("index");
        known_of_[v.id] = it->second[index].first;
        unknown_of_[v.id] = it->second[index].second;
        return absl::OkStatus();
      }
    }
    bool any_unknown = false;
    bool any_known = false;
    bool all_free = true;
    for (Value operand : operands) {
      any_unknown |= !IsKnown(operand);
      any_known |= IsKnown(operand);
      all_free = all_free && free_[operand.id];
    }
    if (any_unknown && any_known) {
      if (Is(graph_, v, Primitive::kScan)) return CutScan(v);
      if (Is(graph_, v, Primitive::kWhile)) return CutWhile(v);
      if (Is(graph_, v, Primitive::kCond) && IsKnown(operands[0])) {
        return CutCond(v);
      }
    }
    std::vector<Value> arguments;
    for (Value operand : operands) {
      arguments.push_back(any_unknown ? Unknown(operand)
                                      : known_of_[operand.id]);
    }
    GraphBuilder& builder = any_unknown ? unknown_ : known_;
    (any_unknown ? unknown_of_ : known_of_)[v.id] = builder.AddTyped(
        node.op, node.attributes, node.type, arguments, node.provenance);
    free_[v.id] = !any_unknown && all_free;
    return absl::OkStatus();
  }

  // v in the unknown graph: a residual where it is known.
  Value Unknown(Value v) {
    Value& unknown = unknown_of_[v.id];
    if (unknown.valid()) return unknown;
    const Node& node = graph_.node(v);
    if (free_[v.id] || Is(graph_, v, Primitive::kBroadcastInDim)) {
      std::vector<Value> arguments;
      for (Value operand : graph_.operands(v)) {
        arguments.push_back(Unknown(operand));
      }
      return unknown_of_[v.id] =
                 unknown_.AddTyped(node.op, node.attributes, node.type,
                                   arguments, node.provenance);
    }
    return unknown_of_[v.id] = Residual(known_of_[v.id]);
  }

  // A value of the known graph as an input of the unknown one.
  Value Residual(Value known) {
    const auto [it, added] = residual_of_.emplace(known.id, Value());
    if (added) {
      it->second = unknown_.Input(FreshName(taken_), known_.type(known));
      residuals_.push_back(known);
    }
    return it->second;
  }

  void SetResults(Value v, std::vector<std::pair<Value, Value>> results) {
    if (results.size() == 1) {
      known_of_[v.id] = results[0].first;
      unknown_of_[v.id] = results[0].second;
    } else {
      cut_[v.id] = std::move(results);
    }
  }

  // The results of a node that was cut, from those of its halves in order.
  template <typename Known, typename Unknown>
  void SetCutResults(Value v, const std::vector<bool>& unknown,
                     const Known& known_result, const Unknown& unknown_result) {
    std::vector<std::pair<Value, Value>> all;
    int known_at = 0;
    int unknown_at = 0;
    for (bool is_unknown : unknown) {
      if (is_unknown) {
        all.emplace_back(Value(), unknown_result(unknown_at++));
      } else {
        all.emplace_back(known_result(known_at++), Value());
      }
    }
    SetResults(v, std::move(all));
  }
  // The same for halves that are one node each.
  void SetCutResults(Value v, const std::vector<bool>& unknown,
                     Value known_node, Value unknown_node) {
    SetCutResults(
        v, unknown, [&](int i) { return known_.Result(known_node, i); },
        [&](int i) { return unknown_.Result(unknown_node, i); });
  }

  absl::Status CutScan(Value v);
  absl::Status CutCond(Value v);
  absl::Status CutWhile(Value v);

  const Graph& graph_;
  const PartialEvaluationOptions options_;
  GraphBuilder known_;
  GraphBuilder unknown_;
  std::vector<Value> known_of_;    // by node; invalid: unknown
  std::vector<Value> unknown_of_;  // by node; invalid: not needed there so far
  std::vector<bool> free_;         // by node: depends on no input
  // Results of loops and branches that were cut: known or unknown.
  absl::flat_hash_map<uint32_t, std::vector<std::pair<Value, Value>>> cut_;
  absl::flat_hash_set<std::string> taken_;
  absl::flat_hash_map<uint32_t, Value> residual_of_;  // by known value
  std::vector<Value> residuals_;                      // known values
};

// How a residual of a scan's body reaches the unknown scan.
enum class Passage {
  kConst,      // a const of the scan as it is
  kInvariant,  // made of consts alone: computed once, before the scan
  kSlice,      // of an operand that is sliced anyway
  kStacked,    // an output of the known scan
};

absl::Status Evaluator::CutScan(Value v) {
  const Attributes& attributes = graph_.attributes(v);
  const Graph& body = *attributes.Get("body").AsRegion().graph;
  const LoopOperands loop = LoopOperands::Of(graph_, v);
  const absl::Span<const Value> operands = graph_.operands(v);
  std::vector<bool> unknown;
  for (Value operand : operands) unknown.push_back(!IsKnown(operand));
  const std::vector<bool> outputs_unknown = UnknownOfLoop(body, loop, unknown);
  CLEAVE_ASSIGN_OR_RETURN(
      PartialEvaluation cut,
      PartiallyEvaluate(body, unknown, outputs_unknown, options_));
  // Inputs of the known body: of the body, per known input.
  std::vector<int> input_of;
  LoopOperands known;
  for (int i = 0; i < loop.count(); ++i) {
    if (unknown[i]) continue;
    input_of.push_back(i);
    known.AddLike(loop, i);
  }
  if (options_.recompute_loops) {
    cut = Recomputing(cut, VaryingResiduals(cut.known, known.consts));
  }
  const std::vector<bool> varies = Varies(cut.known, known.consts);
  absl::flat_hash_map<uint32_t, int> input_at;
  for (size_t i = 0; i < input_of.size(); ++i) {
    input_at[cut.known.inputs()[i].value.id] = input_of[i];
  }
  const int known_outputs =
      static_cast<int>(cut.known.outputs().size()) - cut.residuals;
  std::vector<Passage> passages;
  std::vector<int> stacked;     // outputs of the known body
  std::vector<int> invariants;  // likewise
  for (int i = 0; i < cut.residuals; ++i) {
    const int place = known_outputs + i;
    const Value residual = cut.known.outputs()[place].value;
    const auto input = input_at.find(residual.id);
    if (input != input_at.end() && loop.IsConst(input->second)) {
      passages.push_back(Passage::kConst);
    } else if (input != input_at.end() && loop.IsSlice(input->second)) {
      passages.push_back(Passage::kSlice);
    } else if (!varies[residual.id]) {
      passages.push_back(Passage::kInvariant);
      invariants.push_back(place);
    } else {
      passages.push_back(Passage::kStacked);
      stacked.push_back(place);
    }
  }
  std::vector<Value> known_arguments;
  for (int i : input_of) known_arguments.push_back(known_of_[operands[i].id]);
  // The known scan.
  Value known_scan;
  if (known_outputs + static_cast<int>(stacked.size()) > 0) {
    const Graph known_body = Rearranged(
        cut.known,
        [&](GraphBuilder& b) {
          std::vector<Value> inputs;
          int number = 0;
          for (size_t i = 0; i < input_of.size(); ++i) {
            inputs.push_back(
                AddInput(b, cut.known, static_cast<int>(i), &number));
          }
          return inputs;
        },
        [&](const std::vector<Value>& all) {
          std::vector<Value> kept(all.begin(), all.begin() + known_outputs);
          for (int place : stacked) kept.push_back(all[place]);
          return kept;
        });
    Attributes changed = known.InScan(attributes);
    changed.Set("body", MakeRegion(known_body));
    CLEAVE_ASSIGN_OR_RETURN(
        known_scan, known_.Add(Primitive::kScan, changed, known_arguments));
  }
  std::vector<Value> invariant_values;
  if (!invariants.empty()) {
    const Graph before = Rearranged(
        cut.known,
        [&](GraphBuilder& b) {
          std::vector<Value> inputs;
          int number = 0;
          for (size_t i = 0; i < input_of.size(); ++i) {
            inputs.push_back(
                loop.IsConst(input_of[i])
                    ? AddInput(b, cut.known, static_cast<int>(i), &number)
                    : b.Zeros(cut.known.type(cut.known.inputs()[i].value)));
          }
          return inputs;
        },
        [&](const std::vector<Value>& all) {
          std::vector<Value> kept;
          for (int place : invariants) kept.push_back(all[place]);
          return kept;
        });
    const std::vector<Value> of_consts(known_arguments.begin(),
                                       known_arguments.begin() + known.consts);
    invariant_values = known_.Inline(before, of_consts);
  }
  // The inputs of the unknown scan, one for each residual, in its own order:
  // consts first, slices last.
  std::vector<Value> arguments;
  std::vector<int> from;  // per input of the unknown scan: of cut.unknown
  std::vector<int> unknown_inputs;
  for (int i = 0; i < loop.count(); ++i) {
    if (unknown[i]) unknown_inputs.push_back(i);
  }
  const int unknown_count = static_cast<int>(unknown_inputs.size());
  const auto take_inputs = [&](int begin, int end) {
    for (int k = 0; k < unknown_count; ++k) {
      if (unknown_inputs[k] < begin || unknown_inputs[k] >= end) continue;
      arguments.push_back(Unknown(operands[unknown_inputs[k]]));
      from.push_back(k);
    }
  };
  take_inputs(0, loop.consts);
  int next_invariant = 0;
  for (int i = 0; i < cut.residuals; ++i) {
    const Value residual = cut.known.outputs()[known_outputs + i].value;
    if (passages[i] == Passage::kConst) {
      arguments.push_back(Unknown(operands[input_at[residual.id]]));
    } else if (passages[i] == Passage::kInvariant) {
      arguments.push_back(Residual(invariant_values[next_invariant++]));
    } else {
      continue;
    }
    from.push_back(unknown_count + i);
  }
  LoopOperands left;  // of the unknown scan
  left.consts = static_cast<int>(arguments.size());
  take_inputs(loop.consts, loop.first_slice());
  left.carries = static_cast<int>(arguments.size()) - left.consts;
  take_inputs(loop.first_slice(), loop.count());
  int next_stacked = 0;
  for (int i = 0; i < cut.residuals; ++i) {
    const Value residual = cut.known.outputs()[known_outputs + i].value;
    if (passages[i] == Passage::kSlice) {
      arguments.push_back(Unknown(operands[input_at[residual.id]]));
    } else if (passages[i] == Passage::kStacked) {
      arguments.push_back(
          Residual(known_.Result(known_scan, known_outputs + next_stacked++)));
    } else {
      continue;
    }
    from.push_back(unknown_count + i);
  }
  Value unknown_scan;
  if (!cut.unknown.outputs().empty()) {
    const Graph unknown_body = Rearranged(
        cut.unknown,
        [&](GraphBuilder& b) {
          std::vector<Value> inputs(cut.unknown.inputs().size());
          int number = 0;
          for (int i : from) inputs[i] = AddInput(b, cut.unknown, i, &number);
          return inputs;
        },
        [](const std::vector<Value>& all) { return all; });
    Attributes changed = left.InScan(attributes);
    changed.Set("body", MakeRegion(unknown_body));
    CLEAVE_ASSIGN_OR_RETURN(unknown_scan,
                            unknown_.Add(Primitive::kScan, changed, arguments));
  }
  SetCutResults(v, cut.output_unknown, known_scan, unknown_scan);
  return absl::OkStatus();
}

// Each branch saves what its own other half needs, and zeros for what that of
// the other branch alone does. A residual that is an input is an operand.
absl::Status Evaluator::CutCond(Value v) {
  const absl::Span<const Value> operands = graph_.operands(v);
  std::vector<bool> unknown;
  std::vector<int> known_operands;
  for (size_t i = 1; i < operands.size(); ++i) {
    unknown.push_back(!IsKnown(operands[i]));
    if (!unknown.back()) known_operands.push_back(static_cast<int>(i));
  }
  const char* names[] = {"then", "else"};
  const Graph* regions[2];
  std::vector<bool> outputs_unknown(graph_.types(v).size(), false);
  for (int k = 0; k < 2; ++k) {
    regions[k] = graph_.attributes(v).Get(names[k]).AsRegion().graph.get();
    const std::vector<bool> depends = UnknownOutputs(*regions[k], unknown);
    for (size_t i = 0; i < depends.size(); ++i) {
      outputs_unknown[i] = outputs_unknown[i] || depends[i];
    }
  }
  PartialEvaluation cut[2];
  for (int k = 0; k < 2; ++k) {
    CLEAVE_ASSIGN_OR_RETURN(
        cut[k],
        PartiallyEvaluate(*regions[k], unknown, outputs_unknown, options_));
    cut[k] = Recomputing(cut[k], CheapResiduals(cut[k]));
  }
  const size_t known_outputs = cut[0].known.outputs().size() - cut[0].residuals;
  const BranchResiduals residuals = ShareResiduals(cut[0], cut[1]);
  std::vector<Value> known_arguments = {known_of_[operands[0].id]};
  std::vector<Value> unknown_arguments = {Unknown(operands[0])};
  for (int i : known_operands) {
    known_arguments.push_back(known_of_[operands[i].id]);
  }
  for (size_t i = 0; i < unknown.size(); ++i) {
    if (unknown[i]) unknown_arguments.push_back(Unknown(operands[i + 1]));
  }
  const size_t unknown_count = unknown_arguments.size() - 1;
  for (int input : residuals.inputs) {
    unknown_arguments.push_back(Unknown(operands[known_operands[input]]));
  }
  Attributes known_attributes;
  Attributes unknown_attributes;
  for (int k = 0; k < 2; ++k) {
    const std::vector<int>& places = residuals.places[k];
    GraphBuilder saves(graph_.context());
    std::vector<Value> inputs;
    int number = 0;
    for (size_t i = 0; i < cut[k].known.inputs().size(); ++i) {
      inputs.push_back(
          AddInput(saves, cut[k].known, static_cast<int>(i), &number));
    }
    const std::vector<Value> own = saves.Inline(cut[k].known, inputs);
    std::vector<Value> outputs(own.begin(), own.begin() + known_outputs);
    outputs.resize(known_outputs + residuals.slots.size());
    for (size_t i = 0; i < places.size(); ++i) {
      const int slot = places[i] - static_cast<int>(residuals.inputs.size());
      if (slot >= 0) outputs[known_outputs + slot] = own[known_outputs + i];
    }
    for (size_t i = 0; i < residuals.slots.size(); ++i) {
      Value& output = outputs[known_outputs + i];
      if (!output.valid()) output = saves.Zeros(residuals.slots[i]);
    }
    CLEAVE_ASSIGN_OR_RETURN(Region saving,
                            BuildRegion(std::move(saves), Numbered(outputs)));
    known_attributes.Set(names[k], std::move(saving));
    GraphBuilder uses(graph_.context());
    std::vector<Value> arguments;
    number = 0;
    for (size_t i = 0; i < unknown_count; ++i) {
      arguments.push_back(
          AddInput(uses, cut[k].unknown, static_cast<int>(i), &number));
    }
    std::vector<Value> given;
    for (int input : residuals.inputs) {
      given.push_back(AddInput(uses, cut[k].known, input, &number));
    }
    for (const TensorType& type : residuals.slots) {
      given.push_back(uses.Input(absl::StrCat("x", number++), type));
    }
    for (int place : places) arguments.push_back(given[place]);
    outputs = uses.Inline(cut[k].unknown, arguments);
    CLEAVE_ASSIGN_OR_RETURN(Region using_saved,
                            BuildRegion(std::move(uses), Numbered(outputs)));
    unknown_attributes.Set(names[k], std::move(using_saved));
  }
  Value known_cond;
  if (known_outputs + residuals.slots.size() > 0) {
    CLEAVE_ASSIGN_OR_RETURN(
        known_cond,
        known_.Add(Primitive::kCond, known_attributes, known_arguments));
  }
  for (size_t i = 0; i < residuals.slots.size(); ++i) {
    unknown_arguments.push_back(Residual(
        known_.Result(known_cond, static_cast<int>(known_outputs + i))));
  }
  Value unknown_cond;
  if (!cut[0].unknown.outputs().empty()) {
    CLEAVE_ASSIGN_OR_RETURN(
        unknown_cond,
        unknown_.Add(Primitive::kCond, unknown_attributes, unknown_arguments));
  }
  SetCutResults(v, outputs_unknown, known_cond, unknown_cond);
  return absl::OkStatus();
}

// The loop as the scan that it is within its bound, cut in place.
absl::Status Evaluator::CutWhile(Value v) {
  const absl::Span<const Value> operands = graph_.operands(v);
  GraphBuilder builder(graph_.context());
  std::vector<Value> inputs;
  std::vector<bool> unknown;
  for (Value operand : operands) {
    inputs.push_back(
        builder.Input(absl::StrCat("x", inputs.size()), graph_.type(operand)));
    unknown.push_back(!IsKnown(operand));
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Value> results,
      BoundedWhileAsScan(builder, graph_.attributes(v), inputs));
  CLEAVE_ASSIGN_OR_RETURN(const Graph scan,
                          std::move(builder).Build(Numbered(results)));
  CLEAVE_ASSIGN_OR_RETURN(const PartialEvaluation cut,
                          PartiallyEvaluate(scan, unknown, {}, options_));
  std::vector<Value> known_arguments;
  std::vector<Value> unknown_arguments;
  for (Value operand : operands) {
    if (IsKnown(operand)) {
      known_arguments.push_back(known_of_[operand.id]);
    } else {
      unknown_arguments.push_back(Unknown(operand));
    }
  }
  const std::vector<Value> known = known_.Inline(cut.known, known_arguments);
  for (size_t i = known.size() - cut.residuals; i < known.size(); ++i) {
    unknown_arguments.push_back(Residual(known[i]));
  }
  const std::vector<Value> others =
      unknown_.Inline(cut.unknown, unknown_arguments);
  SetCutResults(
      v, cut.output_unknown, [&](int i) { return known[i]; },
      [&](int i) { return others[i]; });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PartialEvaluation> PartiallyEvaluate(
    const Graph& graph, const std::vector<bool>& unknown,
    const std::vector<bool>& outputs_unknown,
    const PartialEvaluationOptions& options) {
  CLEAVE_CHECK(unknown.size() == graph.inputs().size());
  return Evaluator(graph, unknown, options).Run(outputs_unknown);
}

}  // namespace cleave
