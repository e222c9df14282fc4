#include "engine/codegen/sums_of_loops.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/codegen/contracted_axes.h"
#include "engine/ir/filled_with.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/loop_operands.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/check.h"
#include "ops/dim.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/tensor_type.h"

namespace cleave {
namespace {

std::optional<int64_t> Elements(const Graph& graph, Value v) {
  const absl::StatusOr<Dim> size = NumElements(graph.type(v).shape);
  return size.ok() ? size->Value() : std::nullopt;
}

// A scan, and which of its carries are sums of `terms`, nodes of its body.
class Loop {
 public:
  Loop(const Graph& graph, Value scan)
      : operands_(LoopOperands::Of(graph, scan)),
        body_(*graph.attributes(scan).Get("body").AsRegion().graph),
        uses_(body_.size()),
        input_of_(body_.size(), -1) {
    for (uint32_t id = 0; id < body_.size(); ++id) {
      for (const Value operand : body_.operands(Value{id})) {
        ++uses_[operand.id];
      }
    }
    for (size_t i = 0; i < body_.inputs().size(); ++i) {
      input_of_[body_.inputs()[i].value.id] = static_cast<int>(i);
    }
    for (const NamedValue& output : body_.outputs()) ++uses_[output.value.id];
    for (size_t i = operands_.carries; i < body_.outputs().size(); ++i) {
      stacked_.insert(body_.outputs()[i].value);
    }
    const auto length = graph.attributes(scan).Get("length").AsDim().Value();
    for (int i = 0; i < operands_.carries; ++i) {
      const Value init = graph.operands(scan)[operands_.consts + i];
      // A loop without steps leaves a negative zero as it is.
      if (length.value_or(0) > 0 || FilledWith(graph, init) == Exact(0)) {
        Add(i);
      }
    }
  }

  const LoopOperands& operands() const { return operands_; }
  const Graph& body() const { return body_; }
  // By the number of a carry.
  const std::map<int, std::vector<Value>>& sums() const { return sums_; }
  // The values of the body that are stacked for the sums alone.
  const std::vector<Value>& stacks() const { return stacks_; }
  // The number of the body's input that v is; -1 for others.
  int InputOf(Value v) const { return input_of_[v.id]; }

 private:
  void Add(int carry) {
    const Value x = body_.inputs()[operands_.consts + carry].value;
    const Value sum = body_.outputs()[carry].value;
    const DType dtype = body_.type(x).dtype;
    const auto size = Elements(body_, x);
    if (uses_[x.id] != 1 || !size.has_value() || sum == x ||
        (dtype != DType::kF32 && dtype != DType::kF64)) {
      return;
    }
    std::vector<Value> terms;
    if (!FindTerms(sum, x, &terms)) return;
    std::vector<Value> stacks;
    int64_t stacked = 0;
    for (const Value term : terms) {
      for (const Value operand : body_.operands(term)) {
        const auto more = ElementsToStack(operand);
        if (!more.has_value()) return;
        if (*more == 0 ||
            std::count(stacks.begin(), stacks.end(), operand) > 0) {
          continue;
        }
        stacked += *more;
        stacks.push_back(operand);
      }
    }
    if (stacked > *size) return;
    stacked_.insert(stacks.begin(), stacks.end());
    stacks_.insert(stacks_.end(), stacks.begin(), stacks.end());
    sums_[carry] = std::move(terms);
  }

  // Whether `sum` adds terms to x, each node for that alone.
  bool FindTerms(Value sum, Value x, std::vector<Value>* terms) const {
    std::vector<Value> stack = {sum};
    bool found = false;
    while (!stack.empty()) {
      const Value at = stack.back();
      stack.pop_back();
      if (at == x) {
        found = true;
        continue;
      }
      if (uses_[at.id] != 1) return false;
      if (body_.node(at).op == ToOpId(Primitive::kAdd)) {
        for (const Value operand : body_.operands(at)) stack.push_back(operand);
        continue;
      }
      if (!IsTerm(at)) return false;
      terms->push_back(at);
    }
    return found && !terms->empty();
  }

  bool IsTerm(Value v) const {
    if (body_.node(v).op == ToOpId(Primitive::kReduceSum)) return true;
    return body_.node(v).op == ToOpId(Primitive::kDotGeneral) &&
           ContractedAxesOf(body_, v, 0).batch.empty();
  }

  // Nullopt for what all steps share.
  std::optional<int64_t> ElementsToStack(Value v) const {
    const int input = InputOf(v);
    if (input >= 0 && operands_.IsConst(input)) return std::nullopt;
    if (input >= 0 && operands_.IsSlice(input)) return 0;
    if (stacked_.count(v) > 0) return 0;
    return Elements(body_, v);
  }

  const LoopOperands operands_;
  const Graph& body_;
  std::vector<int> uses_;
  std::vector<int> input_of_;
  std::set<Value> stacked_;
  std::vector<Value> stacks_;
  std::map<int, std::vector<Value>> sums_;
};

// The body without the carries that are sums, with what is stacked for them.
Region Body(const Loop& loop) {
  const Graph& body = loop.body();
  GraphBuilder builder(body.context());
  std::vector<Value> values(body.size());
  std::set<Value> terms;
  for (const auto& [carry, of_carry] : loop.sums()) {
    terms.insert(of_carry.begin(), of_carry.end());
  }
  const auto is_sum = [&](int carry) { return loop.sums().count(carry) > 0; };
  for (size_t i = 0; i < body.inputs().size(); ++i) {
    const NamedValue& input = body.inputs()[i];
    if (is_sum(static_cast<int>(i) - loop.operands().consts)) continue;
    values[input.value.id] = builder.Input(input.name, body.type(input.value));
  }
  for (uint32_t id = 0; id < body.size(); ++id) {
    const Value v{id};
    if (loop.InputOf(v) >= 0 || terms.count(v) > 0) continue;
    std::vector<Value> operands;
    for (const Value operand : body.operands(v)) {
      operands.push_back(values[operand.id]);
    }
    // An addition to a sum goes with it.
    if (std::any_of(operands.begin(), operands.end(),
                    [](Value operand) { return !operand.valid(); })) {
      continue;
    }
    const Node& node = body.node(v);
    values[id] = builder.AddTyped(node.op, node.attributes, node.type, operands,
                                  node.provenance);
  }
  for (const ShapeGuard& guard : body.guards()) builder.AddGuard(guard);
  std::vector<NamedValue> outputs;
  const auto add = [&](Value v) {
    outputs.push_back({absl::StrCat("y", outputs.size()), values[v.id]});
  };
  for (size_t i = 0; i < body.outputs().size(); ++i) {
    if (!is_sum(static_cast<int>(i))) add(body.outputs()[i].value);
  }
  for (const Value v : loop.stacks()) add(v);
  absl::StatusOr<Region> region = BuildRegion(std::move(builder), outputs);
  CLEAVE_CHECK(region.ok()) << region.status().message();
  return *std::move(region);
}

// Axes of a value as those of the values of all steps, which come first.
StaticValue AxesOfAll(const std::vector<int>& axes) {
  std::vector<int> all = {0};
  for (const int axis : axes) all.push_back(axis + 1);
  return StaticValue::Ints(all);
}

class Writer {
 public:
  Writer(GraphCopy& copy, Value scan)
      : graph_(copy.graph()),
        copy_(copy),
        builder_(copy.builder()),
        scan_(scan),
        loop_(copy.graph(), scan) {}

  Value Write() {
    const LoopOperands& given = loop_.operands();
    const auto operands = graph_.operands(scan_);
    LoopOperands kept;
    std::vector<Value> inputs;
    for (int i = 0; i < given.count(); ++i) {
      if (loop_.sums().count(i - given.consts) > 0) continue;
      kept.AddLike(given, i);
      inputs.push_back(copy_.of(operands[i]));
    }
    const size_t outputs = loop_.body().outputs().size();
    Value scan;  // none where nothing is left of it
    if (outputs + loop_.stacks().size() > loop_.sums().size()) {
      Attributes attributes = kept.InScan(graph_.attributes(scan_));
      attributes.Set("body", Body(loop_));
      scan = builder_.Apply(Primitive::kScan, inputs, attributes);
    }
    std::vector<Value> results(outputs);
    int next = 0;
    for (size_t i = 0; i < outputs; ++i) {
      if (loop_.sums().count(static_cast<int>(i)) > 0) continue;
      results[i] = builder_.Result(scan, next++);
      // Also what is stacked in any case.
      if (static_cast<int>(i) >= given.carries) {
        all_[loop_.body().outputs()[i].value] = results[i];
      }
    }
    for (const Value v : loop_.stacks()) {
      all_[v] = builder_.Result(scan, next++);
    }
    for (const auto& [carry, terms] : loop_.sums()) {
      Value sum = copy_.of(operands[given.consts + carry]);
      for (const Value term : terms) {
        sum = builder_.Apply(Primitive::kAdd, {sum, OfAll(term)});
      }
      results[carry] = sum;
    }
    if (outputs == 1) return results[0];
    return copy_.Replace(scan_, std::move(results));
  }

 private:
  // The values of all steps.
  Value All(Value v) const {
    const int input = loop_.InputOf(v);
    if (input >= 0 && loop_.operands().IsSlice(input)) {
      return copy_.of(graph_.operands(scan_)[input]);
    }
    return all_.at(v);
  }

  // The sum of a term over all steps.
  Value OfAll(Value term) {
    const Graph& body = loop_.body();
    std::vector<Value> operands;
    for (const Value operand : body.operands(term)) {
      operands.push_back(All(operand));
    }
    const Primitive primitive = ToPrimitive(body.node(term).op);
    Attributes attributes = body.attributes(term);
    if (primitive == Primitive::kReduceSum) {
      const std::vector<int64_t> axes = attributes.GetInts("axes");
      attributes.Set("axes", AxesOfAll({axes.begin(), axes.end()}));
    } else {
      attributes.Set("contract_a",
                     AxesOfAll(ContractedAxesOf(body, term, 0).contract));
      attributes.Set("contract_b",
                     AxesOfAll(ContractedAxesOf(body, term, 1).contract));
    }
    return builder_.Apply(primitive, operands, attributes);
  }

  const Graph& graph_;
  GraphCopy& copy_;
  GraphBuilder& builder_;
  const Value scan_;
  const Loop loop_;
  std::map<Value, Value> all_;
};

bool CarriesSums(const Graph& graph, Value v) {
  return graph.node(v).op == ToOpId(Primitive::kScan) &&
         !Loop(graph, v).sums().empty();
}

}  // namespace

Graph SumsOfLoops(const Graph& graph) {
  return RewriteNodes(
      graph, [&](Value v) { return CarriesSums(graph, v); },
      [](GraphCopy& copy, Value v) { return Writer(copy, v).Write(); });
}

}  // namespace cleave
