#include "engine/rewrite/expand.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/ir/call_attributes.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/rewrite_graph.h"
#include "engine/rules/call_of.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// One expansion. Bodies are expanded once per signature, so that a call becomes
// one copy of a graph of primitives.
class Expander {
 public:
  Expander(const RuleSet& rules, const ExpandOptions& options)
      : rules_(rules), options_(options) {}

  absl::StatusOr<Graph> Run(const Graph& graph) {
    return Deeper([&] { return Expanded(graph); });
  }

 private:
  absl::StatusOr<Graph> Expanded(const Graph& graph) {
    return RewriteGraph(
        graph, [this](GraphCopy& copy, Value v) { return Visit(copy, v); });
  }

  absl::StatusOr<Value> Visit(GraphCopy& copy, Value v) {
    CLEAVE_RETURN_IF_ERROR(PollBudget());
    const Graph& graph = copy.graph();
    const OpId op = graph.node(v).op;
    if (IsPrimitive(op)) {
      if (ClassOf(ToPrimitive(op)) != PrimitiveClass::kControl) {
        return copy.Keep(v);
      }
      CLEAVE_ASSIGN_OR_RETURN(
          const AttributesId attributes,
          RewriteRegions(graph, v,
                         [this](const Graph& region) { return Run(region); }));
      return copy.Keep(v, attributes);
    }
    CLEAVE_ASSIGN_OR_RETURN(const Graph* body, BodyOf(graph, v));
    if (body == nullptr) return copy.Keep(v);  // preserved
    std::vector<Value> results =
        copy.builder().Inline(*body, copy.Operands(v), graph.types(v));
    if (results.size() != graph.types(v).size()) {
      return absl::InternalError(absl::StrCat(
          "the body of `", graph.context()->op_name(op), "` gives ",
          results.size(), " results, not ", graph.types(v).size()));
    }
    return copy.Replace(v, std::move(results));
  }

  // (op, attributes, operand types...)
  using Key = absl::InlinedVector<uint32_t, 8>;

  // The expanded body of a call; null if the op is preserved.
  absl::StatusOr<const Graph*> BodyOf(const Graph& graph, Value v) {
    const Node& node = graph.node(v);
    key_.clear();
    key_.push_back(node.op);
    key_.push_back(node.attributes);
    for (const Value operand : graph.operands(v)) {
      key_.push_back(graph.node(operand).type);
    }
    const auto it = bodies_.find(key_);
    if (it != bodies_.end()) return it->second.get();
    const Key key = key_;
    const std::string name(graph.context()->op_name(node.op));
    std::unique_ptr<const Graph> expanded;
    if (Decomposes(name, node.op)) {
      CLEAVE_ASSIGN_OR_RETURN(const Graph* body, BodyFor(graph, v, name));
      if (!open_.insert(name).second && !options_.replace.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "what takes the place of `", name, "` calls `", name, "`"));
      }
      const BudgetFrame frame(name);
      CLEAVE_ASSIGN_OR_RETURN(Graph inner, Run(*body));
      open_.erase(name);
      expanded = std::make_unique<const Graph>(std::move(inner));
    }
    return bodies_.emplace(key, std::move(expanded)).first->second.get();
  }

  bool Decomposes(const std::string& name, OpId op) const {
    if (options_.preserve.count(name) > 0) return false;
    if (rules_.NeedsHost(op) && options_.replace.count(name) == 0) return false;
    return !options_.only || options_.only->count(name) > 0 ||
           options_.replace.count(name) > 0;
  }

  // One level of the op's own body, or of what replaces it.
  absl::StatusOr<const Graph*> BodyFor(const Graph& graph, Value v,
                                       const std::string& name) {
    Signature signature = RuleSet::SignatureOf(graph, v);
    const auto it = options_.replace.find(name);
    if (it == options_.replace.end()) {
      if (options_.by_spec && options_.by_spec(signature)) {
        CLEAVE_ASSIGN_OR_RETURN(const Graph* spec, rules_.Spec(signature));
        if (spec != nullptr) return spec;
      }
      return rules_.Body(signature);
    }
    if (const auto* function = std::get_if<BodyFunction>(&it->second)) {
      return BodyBy(*function, graph, v, name);
    }
    const std::string& other = std::get<std::string>(it->second);
    const auto mistake = [&](absl::string_view why) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", other, "` cannot take the place of `", name, "`: ", why));
    };
    for (const auto& [key, value] : graph.attributes(v).values()) {
      if (key == kLayout || TakesAttribute(other, key)) continue;
      CLEAVE_ASSIGN_OR_RETURN(const bool is_default,
                              DropDefault(signature, key));
      if (!is_default) {
        return mistake(absl::StrCat("it has no attribute `", key,
                                    "`, which is ", value.ToString()));
      }
    }
    signature.op = graph.context()->InternOp(other);
    const absl::StatusOr<Graph> call = CallOf(rules_, signature);
    if (!call.ok()) return mistake(call.status().message());
    const Value node = CallNode(*call);
    if (call->types(node) != graph.types(v)) {
      return mistake("the types of its results are others");
    }
    return rules_.Body(RuleSet::SignatureOf(*call, node));
  }

  // The body that a function gives for the call.
  absl::StatusOr<const Graph*> BodyBy(const BodyFunction& function,
                                      const Graph& graph, Value v,
                                      const std::string& name) {
    const auto mistake = [&](const auto&... why) {
      return absl::InvalidArgumentError(
          absl::StrCat("the function that decomposes `", name, "` ", why...));
    };
    if (function == nullptr) return mistake("is none");
    GraphBuilder builder(graph.context());
    std::vector<Value> operands;
    for (const Value operand : graph.operands(v)) {
      operands.push_back(builder.Input(absl::StrCat("x", operands.size()),
                                       graph.type(operand)));
    }
    const absl::StatusOr<std::vector<Value>> results =
        function(builder, operands, graph.attributes(v));
    if (!results.ok()) {
      return absl::Status(
          results.status().code(),
          mistake("failed: ", results.status().message()).message());
    }
    const std::vector<TensorType>& types = graph.types(v);
    if (results->size() != types.size()) {
      return mistake("gave ", results->size(), " results, not ", types.size());
    }
    std::vector<NamedValue> outputs;
    for (size_t i = 0; i < types.size(); ++i) {
      const Value result = (*results)[i];
      if (result.id >= builder.graph().size() ||
          builder.graph().types(result).size() != 1) {
        return mistake("gave no value of its builder for result ", i);
      }
      if (builder.type(result) != types[i]) {
        return mistake("gave ", builder.type(result).ToString(), " for result ",
                       i, ", which is ", types[i].ToString());
      }
      outputs.push_back({absl::StrCat("y", i), result});
    }
    CLEAVE_ASSIGN_OR_RETURN(Graph body,
                            std::move(builder).Build(std::move(outputs)));
    made_.push_back(std::make_unique<const Graph>(std::move(body)));
    return made_.back().get();
  }

  // The composite node of a graph that CallOf makes.
  static Value CallNode(const Graph& call) {
    const Value output = call.outputs().front().value;
    return call.node(output).op == ToOpId(Primitive::kResult)
               ? call.operands(output)[0]
               : output;
  }

  bool TakesAttribute(const std::string& op, absl::string_view name) const {
    const Item* item = rules_.Find(op);
    // Host ops declare theirs as their hosts write them: the call tells.
    return item == nullptr || item->kind != ItemKind::kOp ||
           std::any_of(item->attributes.begin(), item->attributes.end(),
                       [&](const AttributeDecl& a) { return a.name == name; });
  }

  // Takes an attribute from a signature if the call is the same without it.
  absl::StatusOr<bool> DropDefault(Signature& signature,
                                   absl::string_view name) {
    const std::shared_ptr<Context>& context = rules_.context();
    Attributes fewer;
    for (const auto& [key, value] :
         context->attributes(signature.attributes).values()) {
      if (key != name) fewer.Set(key, value);
    }
    Signature without = signature;
    without.attributes = context->Intern(fewer);
    const absl::StatusOr<Graph> call = CallOf(rules_, without);
    if (!call.ok()) return false;  // it has no default
    const StaticValue* by_default =
        call->attributes(CallNode(*call)).Find(name);
    const StaticValue* here =
        context->attributes(signature.attributes).Find(name);
    if (by_default == nullptr || *by_default != *here) return false;
    signature.attributes = without.attributes;
    return true;
  }

  const RuleSet& rules_;
  const ExpandOptions& options_;
  Key key_;
  // Ops whose bodies are being expanded: the rules have no cycles, but
  // replacements may close one.
  std::set<std::string> open_;
  absl::flat_hash_map<Key, std::unique_ptr<const Graph>> bodies_;
  std::vector<std::unique_ptr<const Graph>> made_;  // by functions
};

}  // namespace

absl::StatusOr<Graph> Expand(const Graph& graph, const RuleSet& rules,
                             const ExpandOptions& options) {
  const BudgetScope scope;
  return Expander(rules, options).Run(graph);
}

}  // namespace cleave
