#include "testing/mutate/equal_graphs.h"

#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/ir/graph_key.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/simplify.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/status_macros.h"
#include "testing/mutate/fold_at.h"
#include "testing/mutate/resolve_choices.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

// Choices among ties that stay, and the marks of what has no derivative, which
// stay where any of them do.
enum class Kept { kAll, kSlopeTies, kNone };

// By value, whether a derivative passes through it: from an inexact input to an
// inexact output, by inexact values alone.
std::vector<bool> HaveSlopes(const Graph& graph) {
  const auto is_inexact = [&](Value v) {
    const auto types = graph.types(v);
    return std::any_of(types.begin(), types.end(), [](const TensorType& type) {
      return InClass(type.dtype, DTypeClass::kInexact);
    });
  };
  std::vector<bool> reached(graph.size(), false);
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    if (!is_inexact(v) || graph.node(v).op == ToOpId(Primitive::kNograd)) {
      continue;
    }
    const auto operands = graph.operands(v);
    reached[id] =
        graph.node(v).op == ToOpId(Primitive::kInput) ||
        std::any_of(operands.begin(), operands.end(),
                    [&](Value operand) { return reached[operand.id]; });
  }
  std::vector<bool> wanted(graph.size(), false);
  for (const NamedValue& output : graph.outputs()) {
    wanted[output.value.id] = reached[output.value.id];
  }
  for (uint32_t id = graph.size(); id-- > 0;) {
    if (!wanted[id]) continue;
    for (const Value operand : graph.operands(Value{id})) {
      wanted[operand.id] = wanted[operand.id] || reached[operand.id];
    }
  }
  return wanted;
}

// The graph without what its values do not depend on.
absl::StatusOr<Graph> ValuesOf(const Graph& graph, Kept kept) {
  GraphBuilder builder(graph.context());
  const std::vector<bool> have_slopes =
      kept == Kept::kSlopeTies ? HaveSlopes(graph) : std::vector<bool>();
  std::vector<Value> values(graph.size());
  for (const NamedValue& input : graph.inputs()) {
    values[input.value.id] = builder.Input(input.name, graph.type(input.value));
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value value{id};
    const Node& node = graph.node(value);
    if (node.op == ToOpId(Primitive::kInput)) continue;
    std::vector<Value> operands;
    for (const Value operand : graph.operands(value)) {
      operands.push_back(values[operand.id]);
    }
    if (node.op == ToOpId(Primitive::kNograd) && kept == Kept::kNone) {
      values[id] = operands[0];
      continue;
    }
    AttributesId attributes = node.attributes;
    if (graph.attributes(value).Find("tie") != nullptr &&
        (kept == Kept::kNone ||
         (kept == Kept::kSlopeTies && !have_slopes[id]))) {
      Attributes others;
      for (const auto& [name, attribute] : graph.attributes(value).values()) {
        if (name != "tie") others.Set(name, attribute);
      }
      attributes = graph.context()->Intern(others);
    }
    values[id] = builder.AddTyped(node.op, attributes, node.type, operands,
                                  node.provenance);
  }
  for (const ShapeGuard& guard : graph.guards()) builder.AddGuard(guard);
  std::vector<NamedValue> outputs;
  for (const NamedValue& output : graph.outputs()) {
    outputs.push_back({output.name, values[output.value.id]});
  }
  return std::move(builder).Build(std::move(outputs));
}

// The values of a graph as a key, or why there are none. Both sides may be
// refused for one reason: then they are equal. A limit that ended the work says
// nothing, and equals nothing.
struct Keyed {
  absl::StatusOr<std::string> key;

  friend bool operator==(const Keyed& a, const Keyed& b) {
    if (a.key.ok() || b.key.ok()) {
      return a.key.ok() && b.key.ok() && *a.key == *b.key;
    }
    return !absl::IsResourceExhausted(a.key.status()) &&
           a.key.status() == b.key.status();
  }
};

// A graph of primitives, simplified.
absl::StatusOr<Graph> BareOf(const absl::StatusOr<Graph>& graph,
                             const RuleSet& rules, Kept kept) {
  CLEAVE_RETURN_IF_ERROR(graph.status());
  CLEAVE_ASSIGN_OR_RETURN(const Graph expanded, Expand(*graph, rules));
  CLEAVE_ASSIGN_OR_RETURN(const Graph bare, ValuesOf(expanded, kept));
  return Simplify(bare, rules);
}

// `bare` where its inputs of these names are numbers.
absl::StatusOr<Graph> ResolvedOf(const absl::StatusOr<Graph>& bare,
                                 const RuleSet& rules,
                                 const std::set<std::string>& numbers) {
  CLEAVE_RETURN_IF_ERROR(bare.status());
  CLEAVE_ASSIGN_OR_RETURN(const Graph resolved, ResolveChoices(*bare, numbers));
  return Simplify(resolved, rules);
}

absl::StatusOr<Graph> FoldedOf(const absl::StatusOr<Graph>& bare,
                               const RuleSet& rules, const OperandNumber& at) {
  CLEAVE_RETURN_IF_ERROR(bare.status());
  CLEAVE_ASSIGN_OR_RETURN(const Graph folded,
                          FoldAt(*bare, at.operand, at.number));
  return Simplify(folded, rules);
}

Keyed KeyOf(const absl::StatusOr<Graph>& graph) {
  return {graph.ok() ? absl::StatusOr<std::string>(GraphKey(*graph))
                     : absl::StatusOr<std::string>(graph.status())};
}

// Two graphs with the rules of each.
struct Sides {
  absl::StatusOr<Graph> a;
  const RuleSet& rules_a;
  absl::StatusOr<Graph> b;
  const RuleSet& rules_b;

  template <typename F>
  bool AreEqual(const F& made) const {
    return KeyOf(made(a, rules_a)) == KeyOf(made(b, rules_b));
  }
};

// Whether both are one where no operand of these names is a NaN, and one where
// any of them is. Every element is in one of these cases.
bool AreEqualByCases(const Sides& bare, const std::vector<std::string>& names) {
  const std::set<std::string> numbers(names.begin(), names.end());
  const auto resolved = [&](const auto& graph, const RuleSet& rules) {
    return ResolvedOf(graph, rules, numbers);
  };
  if (!bare.AreEqual(resolved)) return false;
  for (const std::string& name : names) {
    const auto at_nan = [&](const auto& graph, const RuleSet& rules) {
      return ResolvedOf(FoldedOf(graph, rules, {name, std::nan("")}), rules,
                        {});
    };
    if (!bare.AreEqual(at_nan)) return false;
  }
  return true;
}

absl::StatusOr<Graph> JvpOf(const absl::StatusOr<Graph>& graph,
                            const RuleSet& rules) {
  CLEAVE_RETURN_IF_ERROR(graph.status());
  std::vector<bool> active;
  for (const NamedValue& input : graph->inputs()) {
    const DType dtype = graph->type(input.value).dtype;
    active.push_back(InClass(dtype, DTypeClass::kInexact));
  }
  CLEAVE_ASSIGN_OR_RETURN(JvpResult jvp, Jvp(*graph, active, rules));
  return std::move(jvp.graph);
}

absl::StatusOr<Graph> VjpOf(const Graph& graph, const RuleSet& rules) {
  std::vector<bool> active;
  for (const NamedValue& input : graph.inputs()) {
    const DType dtype = graph.type(input.value).dtype;
    active.push_back(InClass(dtype, DTypeClass::kInexact));
  }
  CLEAVE_ASSIGN_OR_RETURN(VjpResult vjp, Vjp(graph, active, rules));
  return std::move(vjp.graph);
}

// The graph that the rules make of a call at `stage`, which counts from 0.
// Nullopt: there is no such stage.
std::optional<absl::StatusOr<Graph>> StageOf(const Graph& call, int stage,
                                             const RuleSet& rules) {
  switch (stage) {
    case 0:
      return call;
    case 1:
      return JvpOf(call, rules);
    case 2:
      return VjpOf(call, rules);
    case 3:
      return JvpOf(JvpOf(call, rules), rules);
    case 4: {
      const std::vector<int> in_axes(call.inputs().size(), 0);
      const std::vector<int> out_axes(call.outputs().size(), 0);
      return call.inputs().empty()
                 ? call
                 : Vmap(call, in_axes, Dim::Variable(FreshBatch(call)),
                        out_axes, rules);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

bool HaveEqualValues(const Graph& graph, const RuleSet& rules,
                     const Graph& other, const RuleSet& other_rules,
                     Ties ties) {
  const Kept kept = ties == Ties::kAll ? Kept::kAll : Kept::kSlopeTies;
  return KeyOf(BareOf(graph, rules, kept)) ==
         KeyOf(BareOf(other, other_rules, kept));
}

bool AreEqualGraphs(const Graph& call, const RuleSet& rules, const Graph& other,
                    const RuleSet& other_rules,
                    const std::vector<OperandNumber>& numbers,
                    bool elementwise) {
  std::vector<std::string> names;
  for (const NamedValue& input : call.inputs()) {
    if (IsFloat(call.type(input.value).dtype)) names.push_back(input.name);
  }
  const auto as_it_is = [](const auto& graph, const RuleSet&) { return graph; };
  for (int stage = 0;; ++stage) {
    const auto graph = StageOf(call, stage, rules);
    if (!graph.has_value()) return true;
    const Sides bare = {
        BareOf(*graph, rules, Kept::kNone), rules,
        BareOf(*StageOf(other, stage, other_rules), other_rules, Kept::kNone),
        other_rules};
    for (const OperandNumber& at : numbers) {
      const auto folded = [&](const auto& side, const RuleSet& side_rules) {
        return FoldedOf(side, side_rules, at);
      };
      if (!bare.AreEqual(folded)) return false;
    }
    if (!numbers.empty() || bare.AreEqual(as_it_is)) continue;
    const auto resolved = [](const auto& side, const RuleSet& side_rules) {
      return ResolvedOf(side, side_rules, {});
    };
    if (!bare.AreEqual(resolved) &&
        !(elementwise && AreEqualByCases(bare, names))) {
      return false;
    }
  }
}

}  // namespace cleave
