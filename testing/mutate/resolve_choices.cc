#include "testing/mutate/resolve_choices.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/ir/filled_with.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"
#include "testing/mutate/known_range.h"

namespace cleave {
namespace {

// Nodes under conditions. The largest body of the library has some thousand
// nodes, most of them under few.
constexpr int64_t kMaxResolved = 200'000;
// How deep a condition or a range is looked into.
constexpr int kMaxDepth = 12;
// Whole numbers up to here are doubles.
constexpr int64_t kMaxWhole = int64_t{1} << 53;

// Facts that hold for the elements that are looked at: nodes of the graph that
// are true or false there, and ranges of others.
struct Facts {
  std::map<uint32_t, bool> decided;
  std::map<uint32_t, KnownRange> ranges;

  // One text for equal facts.
  std::string Key() const {
    std::string key;
    for (const auto& [id, holds] : decided)
      absl::StrAppend(&key, id, holds ? "t" : "f");
    for (const auto& [id, range] : ranges)
      absl::StrAppend(&key, id, range.Key());
    return key;
  }
};

// The comparison whose operands have changed places.
Primitive Mirrored(Primitive comparison) {
  switch (comparison) {
    case Primitive::kLt:
      return Primitive::kGt;
    case Primitive::kLe:
      return Primitive::kGe;
    case Primitive::kGt:
      return Primitive::kLt;
    case Primitive::kGe:
      return Primitive::kLe;
    default:
      return comparison;
  }
}

// The graph with its nodes in the order in which the outputs come to them.
absl::StatusOr<Graph> InOrderOfUse(const Graph& graph) {
  GraphBuilder builder(graph.context());
  std::vector<Value> values(graph.size());
  std::vector<bool> is_built(graph.size());
  for (const NamedValue& input : graph.inputs()) {
    values[input.value.id] = builder.Input(input.name, graph.type(input.value));
    is_built[input.value.id] = true;
  }
  std::vector<Value> waiting;
  std::vector<NamedValue> outputs;
  for (const NamedValue& output : graph.outputs()) {
    waiting.push_back(output.value);
    while (!waiting.empty()) {
      const Value value = waiting.back();
      std::vector<Value> operands;
      for (const Value operand : graph.operands(value)) {
        if (!is_built[operand.id]) waiting.push_back(operand);
        operands.push_back(values[operand.id]);
      }
      if (waiting.back() != value) continue;
      waiting.pop_back();
      if (is_built[value.id]) continue;
      const Node& node = graph.node(value);
      values[value.id] = builder.AddTyped(node.op, node.attributes, node.type,
                                          operands, node.provenance);
      is_built[value.id] = true;
    }
    outputs.push_back({output.name, values[output.value.id]});
  }
  for (const ShapeGuard& guard : graph.guards()) builder.AddGuard(guard);
  return std::move(builder).Build(std::move(outputs));
}

class Resolver {
 public:
  Resolver(const Graph& graph, const std::set<std::string>& numbers)
      : graph_(graph), builder_(graph.context()) {
    for (const NamedValue& input : graph.inputs()) {
      if (numbers.count(input.name) != 0) numbers_.insert(input.value.id);
    }
  }

  absl::StatusOr<Graph> Run() {
    for (const NamedValue& input : graph_.inputs()) {
      inputs_[input.value.id] =
          builder_.Input(input.name, graph_.type(input.value));
    }
    std::vector<NamedValue> outputs;
    for (const NamedValue& output : graph_.outputs()) {
      CLEAVE_ASSIGN_OR_RETURN(const Value value,
                              Resolve(output.value, Facts()));
      outputs.push_back({output.name, value});
    }
    for (const ShapeGuard& guard : graph_.guards()) builder_.AddGuard(guard);
    return std::move(builder_).Build(std::move(outputs));
  }

 private:
  absl::StatusOr<Value> Resolve(Value value, const Facts& facts) {
    const std::string key = absl::StrCat(value.id, ":", facts.Key());
    const auto it = resolved_.find(key);
    if (it != resolved_.end()) return it->second;
    if (static_cast<int64_t>(resolved_.size()) >= kMaxResolved) {
      return absl::ResourceExhaustedError("too many nodes under conditions");
    }
    CLEAVE_ASSIGN_OR_RETURN(const Value result, Make(value, facts));
    resolved_.emplace(key, result);
    return result;
  }

  absl::StatusOr<Value> Make(Value value, const Facts& facts) {
    const Node& node = graph_.node(value);
    const Primitive primitive = ToPrimitive(node.op);
    const auto operands = graph_.operands(value);
    if (const std::optional<Exact> number = NumberOf(value, facts)) {
      return builder_.Constant(*number, graph_.type(value));
    }
    if (primitive == Primitive::kInput) return inputs_.at(value.id);
    if (primitive == Primitive::kSelect) {
      const std::optional<bool> holds = Decide(operands[0], facts);
      if (holds) return Resolve(operands[*holds ? 1 : 2], facts);
      CLEAVE_ASSIGN_OR_RETURN(const Value condition,
                              Resolve(operands[0], facts));
      Facts then = facts;
      Assume(operands[0], true, then);
      CLEAVE_ASSIGN_OR_RETURN(const Value a, Resolve(operands[1], then));
      Facts otherwise = facts;
      Assume(operands[0], false, otherwise);
      CLEAVE_ASSIGN_OR_RETURN(const Value b, Resolve(operands[2], otherwise));
      return a == b ? a : Again(node, {condition, a, b});
    }
    if (primitive == Primitive::kMax || primitive == Primitive::kMin) {
      if (const auto chosen = ChosenOf(value, facts)) {
        return Resolve(*chosen, facts);
      }
    }
    if (const auto other = OneOf(value, facts)) return Resolve(*other, facts);
    const Facts inner = FactsOfOperands(value, facts);
    std::vector<Value> taken;
    for (const Value operand : operands) {
      CLEAVE_ASSIGN_OR_RETURN(taken.emplace_back(), Resolve(operand, inner));
    }
    return Again(node, taken);
  }

  Value Again(const Node& node, absl::Span<const Value> operands) {
    return builder_.AddTyped(node.op, node.attributes, node.type, operands,
                             node.provenance);
  }

  // The facts that hold for the operands' elements where `facts` hold for the
  // value's: the same, where there is one element for each; of the values that
  // are broadcast alike, where it is broadcast; nothing elsewhere.
  Facts FactsOfOperands(Value value, const Facts& facts) const {
    const Node& node = graph_.node(value);
    const Primitive primitive = ToPrimitive(node.op);
    if (ClassOf(primitive) == PrimitiveClass::kPointwise) return facts;
    Facts inner;
    if (primitive != Primitive::kBroadcastInDim) return inner;
    const auto is_alike = [&](uint32_t id) {
      const Node& other = graph_.node(Value{id});
      return other.op == node.op && other.attributes == node.attributes &&
             graph_.type(graph_.operands(Value{id})[0]).shape ==
                 graph_.type(graph_.operands(value)[0]).shape;
    };
    for (const auto& [id, holds] : facts.decided) {
      if (!is_alike(id)) continue;
      Assume(graph_.operands(Value{id})[0], holds, inner);
    }
    for (const auto& [id, range] : facts.ranges) {
      if (is_alike(id)) Narrow(graph_.operands(Value{id})[0], range, inner, 0);
    }
    return inner;
  }

  // The number that a constant is, broadcast or not.
  std::optional<double> ConstantOf(Value value) const {
    while (ToPrimitive(graph_.node(value).op) == Primitive::kNograd) {
      value = graph_.operands(value)[0];
    }
    const DType dtype = graph_.type(value).dtype;
    const std::optional<Exact> exact = FilledWith(graph_, value);
    if (!exact) return std::nullopt;
    if (IsFloat(dtype)) return exact->RoundTo(dtype);
    const std::optional<int64_t> whole = exact->ToInt64();
    if (!whole || !InClass(dtype, DTypeClass::kInt) ||
        std::abs(*whole) > kMaxWhole) {
      return std::nullopt;
    }
    return static_cast<double>(*whole);
  }

  // The number that every element is, where a condition says so. A zero is
  // none: it has two signs.
  std::optional<Exact> NumberOf(Value value, const Facts& facts) const {
    const TensorType& type = graph_.type(value);
    if (type.dtype == DType::kBool) {
      const std::optional<bool> holds = Decide(value, facts);
      return holds ? std::optional<Exact>(*holds ? 1 : 0) : std::nullopt;
    }
    const auto it = facts.ranges.find(value.id);
    if (it == facts.ranges.end() || !it->second.IsOneNumber() ||
        it->second.low == 0 || std::isinf(it->second.low)) {
      return std::nullopt;
    }
    return Exact::FromDouble(it->second.low);
  }

  KnownRange RangeOf(Value value, const Facts& facts, int depth = 0) const {
    const TensorType& type = graph_.type(value);
    KnownRange range = KnownRange::OfDType(type.dtype);
    if (const std::optional<double> number = ConstantOf(value)) {
      return KnownRange::Of(*number);
    }
    if (numbers_.count(value.id) != 0) range.may_be_nan = false;
    const auto it = facts.ranges.find(value.id);
    if (it != facts.ranges.end()) range.Meet(it->second);
    if (depth == kMaxDepth) return range;
    const auto operands = graph_.operands(value);
    const auto operand = [&](int i) {
      return RangeOf(operands[i], facts, depth + 1);
    };
    switch (ToPrimitive(graph_.node(value).op)) {
      case Primitive::kNeg:
        if (IsFloat(type.dtype)) range.Meet(operand(0).Negated());
        break;
      case Primitive::kAbs:
        if (IsFloat(type.dtype)) range.Meet(operand(0).Magnitude());
        break;
      case Primitive::kNograd:
        range.Meet(operand(0));
        break;
      case Primitive::kMax:
      case Primitive::kMin: {
        const bool max = ToPrimitive(graph_.node(value).op) == Primitive::kMax;
        range.Meet(KnownRange::Extremum(operand(0), operand(1), max));
        break;
      }
      case Primitive::kSelect: {
        KnownRange both = operand(1);
        both.Join(operand(2));
        range.Meet(both);
        break;
      }
      case Primitive::kExp:
        if (IsFloat(type.dtype)) {
          range.Meet(KnownRange::AtLeast(0, operand(0).may_be_nan));
        }
        break;
      case Primitive::kMul:
        if (IsFloat(type.dtype) && operands[0] == operands[1]) {
          range.Meet(KnownRange::AtLeast(0, operand(0).may_be_nan));
        }
        break;
      case Primitive::kIota:
        range.Meet(KnownRange::AtLeast(0, false));
        break;
      case Primitive::kBroadcastInDim:
        // Nothing is known of one element that is not known of all.
        range.Meet(RangeOf(operands[0], Facts(), depth + 1));
        break;
      default:
        break;
    }
    return range;
  }

  // Whether the elements are true, or false, wherever the facts hold.
  std::optional<bool> Decide(Value value, const Facts& facts,
                             int depth = 0) const {
    const auto it = facts.decided.find(value.id);
    if (it != facts.decided.end()) return it->second;
    if (depth == kMaxDepth || graph_.type(value).dtype != DType::kBool) {
      return std::nullopt;
    }
    const Node& node = graph_.node(value);
    const Primitive primitive = ToPrimitive(node.op);
    const auto operands = graph_.operands(value);
    const auto operand = [&](int i) {
      return Decide(operands[i], facts, depth + 1);
    };
    if (IsComparison(primitive)) {
      const DType dtype = graph_.type(operands[0]).dtype;
      if (!InClass(dtype, DTypeClass::kReal)) return std::nullopt;
      if (operands[0] == operands[1] &&
          !RangeOf(operands[0], facts).may_be_nan) {
        return primitive == Primitive::kEq || primitive == Primitive::kLe ||
               primitive == Primitive::kGe;
      }
      return Compared(primitive, RangeOf(operands[0], facts),
                      RangeOf(operands[1], facts));
    }
    switch (primitive) {
      case Primitive::kConstant:
        return graph_.attributes(value).Get("value").AsBool();
      case Primitive::kBroadcastInDim:
      case Primitive::kReshape:
        return Decide(operands[0], Facts(), depth + 1);
      case Primitive::kNograd:
        return operand(0);
      case Primitive::kNot: {
        const std::optional<bool> x = operand(0);
        return x ? std::optional<bool>(!*x) : std::nullopt;
      }
      case Primitive::kAnd:
      case Primitive::kOr: {
        // The value that decides alone.
        const bool strong = primitive == Primitive::kOr;
        const std::optional<bool> a = operand(0);
        const std::optional<bool> b = operand(1);
        if (a == strong || b == strong) return strong;
        if (a && b) return !strong;
        if (depth > 0) return std::nullopt;
        // The second one matters where the first one does not decide alone.
        Facts open = facts;
        Assume(operands[0], !strong, open);
        return Decide(operands[1], open, depth + 1) == strong
                   ? std::optional<bool>(strong)
                   : std::nullopt;
      }
      case Primitive::kIsnan:
        if (IsFloat(graph_.type(operands[0]).dtype) &&
            !RangeOf(operands[0], facts).may_be_nan) {
          return false;
        }
        return std::nullopt;
      case Primitive::kIsinf: {
        if (!IsFloat(graph_.type(operands[0]).dtype)) return std::nullopt;
        return RangeOf(operands[0], facts).IsFinite()
                   ? std::optional<bool>(false)
                   : std::nullopt;
      }
      default:
        return std::nullopt;
    }
  }

  // Adds to `facts` that a bool holds, or does not, and what follows from it.
  void Assume(Value value, bool holds, Facts& facts, int depth = 0) const {
    const Primitive primitive = ToPrimitive(graph_.node(value).op);
    if (primitive == Primitive::kConstant || depth == kMaxDepth) return;
    facts.decided[value.id] = holds;
    const auto operands = graph_.operands(value);
    if (IsComparison(primitive)) {
      if (!InClass(graph_.type(operands[0]).dtype, DTypeClass::kReal)) return;
      if (operands[0] == operands[1]) {
        // x == x says that x is a number.
        if ((primitive == Primitive::kEq && holds) ||
            (primitive == Primitive::kNe && !holds)) {
          NarrowToNumber(operands[0], facts);
        }
        return;
      }
      for (const int side : {0, 1}) {
        const std::optional<double> number = ConstantOf(operands[1 - side]);
        if (!number || std::isnan(*number)) continue;
        const Primitive as_left = side == 0 ? primitive : Mirrored(primitive);
        NarrowBy(operands[side], as_left, *number, holds, facts);
      }
      return;
    }
    switch (primitive) {
      case Primitive::kNograd:
        Assume(operands[0], holds, facts, depth + 1);
        return;
      case Primitive::kNot:
        Assume(operands[0], !holds, facts, depth + 1);
        return;
      case Primitive::kAnd:
      case Primitive::kOr: {
        const bool strong = primitive == Primitive::kOr;
        if (holds != strong) {
          Assume(operands[0], holds, facts, depth + 1);
          Assume(operands[1], holds, facts, depth + 1);
          return;
        }
        // The other one decides it.
        for (const int side : {0, 1}) {
          if (Decide(operands[side], facts, depth + 1) == !strong) {
            Assume(operands[1 - side], holds, facts, depth + 1);
          }
        }
        return;
      }
      case Primitive::kIsnan:
        if (!holds) NarrowToNumber(operands[0], facts);
        return;
      default:
        return;
    }
  }

  void NarrowToNumber(Value value, Facts& facts) const {
    KnownRange range;
    range.may_be_nan = false;
    Narrow(value, range, facts, 0);
  }

  // `value comparison number` holds, or does not.
  void NarrowBy(Value value, Primitive comparison, double number, bool holds,
                Facts& facts) const {
    KnownRange range;
    // No comparison but `ne` holds for a NaN.
    range.may_be_nan = (comparison == Primitive::kNe) == holds;
    const bool equal = (comparison == Primitive::kEq && holds) ||
                       (comparison == Primitive::kNe && !holds);
    const bool differ = (comparison == Primitive::kEq && !holds) ||
                        (comparison == Primitive::kNe && holds);
    if (equal) {
      range.low = range.high = number;
    } else if (differ) {
      const KnownRange now = RangeOf(value, facts);
      range = now;
      if (now.low == number) range.low_open = true;
      if (now.high == number) range.high_open = true;
    } else {
      const bool below = (comparison == Primitive::kLt ||
                          comparison == Primitive::kLe) == holds;
      const bool open = (comparison == Primitive::kLt ||
                         comparison == Primitive::kGt) == holds;
      (below ? range.high : range.low) = number;
      (below ? range.high_open : range.low_open) = open;
    }
    Narrow(value, range, facts, 0);
  }

  void Narrow(Value value, const KnownRange& range, Facts& facts,
              int depth) const {
    if (depth == kMaxDepth || ConstantOf(value)) return;
    const auto [it, is_new] = facts.ranges.try_emplace(value.id, range);
    if (!is_new) it->second.Meet(range);
    const auto operands = graph_.operands(value);
    const bool is_float = IsFloat(graph_.type(value).dtype);
    switch (ToPrimitive(graph_.node(value).op)) {
      case Primitive::kNeg:
        if (is_float) Narrow(operands[0], range.Negated(), facts, depth + 1);
        return;
      case Primitive::kNograd:
        Narrow(operands[0], range, facts, depth + 1);
        return;
      case Primitive::kAbs:
        if (is_float) {
          Narrow(operands[0], range.WhereMagnitudeIs(), facts, depth + 1);
        }
        return;
      default:
        return;
    }
  }

  // The operand that `and` or `or` of bools is: the one that the other one
  // follows from, or that follows from the other one. Nullopt if there is none.
  std::optional<Value> OneOf(Value value, const Facts& facts) const {
    const Primitive primitive = ToPrimitive(graph_.node(value).op);
    if (graph_.type(value).dtype != DType::kBool ||
        (primitive != Primitive::kAnd && primitive != Primitive::kOr)) {
      return std::nullopt;
    }
    const bool strong = primitive == Primitive::kOr;
    const auto operands = graph_.operands(value);
    for (const int side : {0, 1}) {
      Facts open = facts;
      Assume(operands[side], !strong, open);
      if (Decide(operands[1 - side], open) == !strong) return operands[side];
    }
    return std::nullopt;
  }

  // The operand that a maximum or minimum is, bit by bit; nullopt where that
  // depends on the element. max(-0, 0) is 0, and min(0, -0) is -0.
  std::optional<Value> ChosenOf(Value value, const Facts& facts) const {
    const bool max = ToPrimitive(graph_.node(value).op) == Primitive::kMax;
    const auto operands = graph_.operands(value);
    for (const int side : {0, 1}) {
      const std::optional<double> number = ConstantOf(operands[side]);
      if (!number || std::isnan(*number) ||
          (*number == 0 && std::signbit(*number))) {
        continue;
      }
      const Value other = operands[1 - side];
      KnownRange x = RangeOf(other, facts);
      double k = *number;
      if (!max) {
        x = x.Negated();
        k = -k;
      }
      // Now the larger of x and k. A zero k is +0 in a maximum, and counts as
      // -0 here in a minimum: the larger there is x, if it is 0 too.
      const bool x_is_larger =
          x.low > k || (x.low == k && (x.low_open || k != 0 || !max));
      if (x_is_larger) return other;
      const bool k_is_larger =
          x.high < k || (x.high == k && (x.high_open || k != 0 || max));
      if (k_is_larger && !x.may_be_nan) return operands[side];
    }
    return std::nullopt;
  }

  const Graph& graph_;
  GraphBuilder builder_;
  // Inputs that hold no NaN.
  std::set<uint32_t> numbers_;
  std::map<uint32_t, Value> inputs_;
  std::map<std::string, Value> resolved_;
};

}  // namespace

absl::StatusOr<Graph> ResolveChoices(const Graph& graph,
                                     const std::set<std::string>& numbers) {
  CLEAVE_ASSIGN_OR_RETURN(const Graph resolved, Resolver(graph, numbers).Run());
  return InOrderOfUse(resolved);
}

}  // namespace cleave
