#include "testing/mutate/equivalence.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/call_attributes.h"
#include "engine/ir/graph_key.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/simplify.h"
#include "ops/check.h"
#include "ops/dtype.h"
#include "ops/status_macros.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

// Combinations that RuleSet::SymbolicCalls makes all of.
constexpr int64_t kMaxCombinations = 64;

// The dtype variable of an input; nullopt where its dtype is computed, "" where
// it is fixed.
std::optional<std::string> VariableOf(const Item& item,
                                      const InputDecl& input) {
  const ExprPtr& dtype = input.type.dtype;
  if (dtype == nullptr || dtype->kind != ExprKind::kName) return std::nullopt;
  for (const WhereClause& where : item.where) {
    if (where.variable == dtype->text) return dtype->text;
  }
  if (ParseDType(dtype->text).ok()) return "";
  return std::nullopt;
}

// Whether SymbolicCalls has all calls of the op, but for their dtypes.
bool AreCounted(const Item& item) {
  int64_t count = 1;
  for (const WhereClause& where : item.where) {
    const auto dtype_class = ParseDTypeClass(where.dtype_class);
    if (!dtype_class.ok()) return false;
    // A class has up to three representatives.
    count *= 3;
    for (const AttributeDecl& attribute : item.attributes) {
      if (attribute.name == where.variable) return false;
    }
  }
  for (const InputDecl& input : item.inputs) {
    if (!input.variadic_index.empty() || input.is_static ||
        !VariableOf(item, input).has_value()) {
      return false;
    }
    if (input.optional) count *= 2;
    for (const AxisExpr& axis : input.type.axes) {
      if (axis.size != nullptr && axis.size->kind == ExprKind::kSpread) {
        count *= 3;
      }
    }
    if (count > kMaxCombinations) return false;
  }
  for (const AttributeDecl& attribute : item.attributes) {
    if (attribute.list) return false;
    if (attribute.type == "enum") {
      count *= static_cast<int64_t>(attribute.enum_values.size()) + 1;
    } else if (attribute.type == "bool" && !attribute.optional) {
      count *= 2;
    } else if ((attribute.type != "axis" && attribute.type != "dim") ||
               attribute.optional) {
      return false;
    }
    if (count > kMaxCombinations) return false;
  }
  return true;
}

// Every choice of a dtype for each variable.
std::vector<std::map<std::string, DType>> DTypeChoices(const Item& item) {
  std::vector<std::map<std::string, DType>> choices = {{}};
  for (const WhereClause& where : item.where) {
    const DTypeClass dtype_class = *ParseDTypeClass(where.dtype_class);
    std::vector<std::map<std::string, DType>> longer;
    for (const auto& choice : choices) {
      for (const DType dtype : AllDTypes()) {
        if (!InClass(dtype, dtype_class)) continue;
        longer.push_back(choice);
        longer.back()[where.variable] = dtype;
      }
    }
    choices = std::move(longer);
  }
  return choices;
}

// The call of `graph` at other dtypes, by the rules of `rules`.
absl::StatusOr<Graph> CallAt(const Graph& graph,
                             const std::map<std::string, DType>& dtypes,
                             const Item& item, const RuleSet& rules) {
  GraphBuilder builder(rules.context());
  std::vector<Argument> arguments;
  for (const NamedValue& given : graph.inputs()) {
    for (const InputDecl& input : item.inputs) {
      if (input.name != given.name) continue;
      TensorType type = graph.type(given.value);
      const std::string variable = *VariableOf(item, input);
      if (!variable.empty()) type.dtype = dtypes.at(variable);
      arguments.push_back({input.name, builder.Input(input.name, type)});
    }
  }
  Attributes attributes;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (IsPrimitive(graph.node(Value{id}).op)) continue;
    for (const auto& [name, value] : graph.attributes(Value{id}).values()) {
      if (name != kLayout) attributes.Set(name, value);
    }
  }
  CLEAVE_ASSIGN_OR_RETURN(
      const auto results,
      rules.Call(builder, item.name, arguments, attributes));
  const std::vector<std::string> names = rules.ResultNames(item.name);
  std::vector<NamedValue> outputs;
  for (size_t r = 0; r < results.size(); ++r) {
    if (results[r]) outputs.push_back({names[r], *results[r]});
  }
  return std::move(builder).Build(std::move(outputs));
}

std::string KeyOf(const absl::StatusOr<Graph>& graph, const RuleSet& rules) {
  if (!graph.ok()) return absl::StrCat("error: ", graph.status().message());
  const absl::StatusOr<Graph> expanded = Expand(*graph, rules);
  if (!expanded.ok()) {
    return absl::StrCat("error: ", expanded.status().message());
  }
  return absl::StrCat("graph: ", GraphKey(Simplify(*expanded, rules)));
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

// What the rules make of a call, stage by stage: `stage` counts from 0.
// Nullopt: there is no such stage.
std::optional<std::string> KeyOfStage(const Graph& call, int stage,
                                      const RuleSet& rules) {
  switch (stage) {
    case 0:
      return KeyOf(call, rules);
    case 1:
      return KeyOf(JvpOf(call, rules), rules);
    case 2:
      return KeyOf(VjpOf(call, rules), rules);
    case 3:
      return KeyOf(JvpOf(JvpOf(call, rules), rules), rules);
    case 4: {
      if (call.inputs().empty()) return "no batch";
      const std::vector<int> in_axes(call.inputs().size(), 0);
      const std::vector<int> out_axes(call.outputs().size(), 0);
      return KeyOf(
          Vmap(call, in_axes, Dim::Variable(FreshBatch(call)), out_axes, rules),
          rules);
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

bool ProveEquivalent(const RuleSet& original, const RuleSet& mutant,
                     const Item& item) {
  CLEAVE_CHECK(original.context() == mutant.context()) << item.name;
  if (item.kind != ItemKind::kOp || !AreCounted(item)) return false;
  const absl::StatusOr<std::vector<Graph>> calls =
      original.SymbolicCalls(item.name);
  if (!calls.ok() || calls->empty()) return false;
  for (const auto& dtypes : DTypeChoices(item)) {
    for (const Graph& at : *calls) {
      const auto call = CallAt(at, dtypes, item, original);
      const auto other = CallAt(at, dtypes, item, mutant);
      if (call.ok() != other.ok()) return false;
      if (!call.ok()) continue;
      for (int stage = 0;; ++stage) {
        const auto key = KeyOfStage(*call, stage, original);
        if (!key.has_value()) break;
        if (key != KeyOfStage(*other, stage, mutant)) return false;
      }
    }
  }
  return true;
}

}  // namespace cleave
