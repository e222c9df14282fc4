#include "transforms/identity.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/rewrite/expand.h"
#include "transforms/emit.h"

namespace cleave {
namespace {

// The attributes with every axis one further.
Attributes WithShiftedAxes(const Attributes& attributes, const Item& item) {
  Attributes shifted = attributes;
  for (const AttributeDecl& declared : item.attributes) {
    const StaticValue* value = attributes.Find(declared.name);
    if (value == nullptr) continue;
    const bool axis = declared.type == "axis";
    if (!axis && declared.type != "axes") continue;
    if (value->kind() == StaticValue::Kind::kInt) {
      shifted.Set(declared.name, value->AsDim() + 1);
    } else if (value->kind() == StaticValue::Kind::kList) {
      StaticValue::List axes;
      for (const StaticValue& element : value->AsList()) {
        if (element.kind() != StaticValue::Kind::kInt) return attributes;
        axes.push_back(StaticValue(element.AsDim() + 1));
      }
      shifted.Set(declared.name, std::move(axes));
    }
  }
  return shifted;
}

// A graph that is one call of `signature`, with the types of `derived`'s
// outputs; nullopt where the op rejects these operands.
std::optional<Graph> CallGraph(const Signature& signature, const Graph& derived,
                               const RuleSet& rules) {
  const absl::StatusOr<const Graph*> body = rules.Body(signature);
  if (!body.ok() || (*body)->outputs().size() != derived.outputs().size()) {
    return std::nullopt;
  }
  std::vector<TensorType> types;
  for (size_t i = 0; i < derived.outputs().size(); ++i) {
    types.push_back((*body)->type((*body)->outputs()[i].value));
    if (types.back() != derived.type(derived.outputs()[i].value)) {
      return std::nullopt;
    }
  }
  GraphBuilder builder(derived.context());
  std::vector<Value> operands;
  for (const NamedValue& input : derived.inputs()) {
    operands.push_back(builder.Input(input.name, derived.type(input.value)));
  }
  const ProvenanceId provenance = builder.context()->Intern(Provenance{
      absl::StrCat("vmap ", builder.context()->op_name(signature.op)), "", 0});
  const Value call =
      builder.AddTyped(signature.op, signature.attributes,
                       builder.context()->Intern(types), operands, provenance);
  builder.SetProvenance(provenance);
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < types.size(); ++i) {
    outputs.push_back(
        {derived.outputs()[i].name, builder.Result(call, static_cast<int>(i))});
  }
  return std::move(builder).Build(std::move(outputs));
}

// Whether both expand to the same nodes on the same inputs.
bool SameMeaning(const Graph& a, const Graph& b, const RuleSet& rules) {
  const absl::StatusOr<Graph> x = Expand(a, rules);
  const absl::StatusOr<Graph> y = Expand(b, rules);
  if (!x.ok() || !y.ok()) return false;
  GraphBuilder builder(a.context());
  std::vector<Value> inputs;
  for (const NamedValue& input : a.inputs()) {
    inputs.push_back(builder.Input(input.name, a.type(input.value)));
  }
  return builder.Inline(*x, inputs) == builder.Inline(*y, inputs);
}

}  // namespace

std::optional<BatchRule> KeepIdentity(const Signature& signature,
                                      const BatchRule& derived,
                                      const RuleSet& rules) {
  const std::shared_ptr<Context>& context = rules.context();
  const Item* item = rules.Find(context->op_name(signature.op));
  if (item == nullptr) return std::nullopt;
  if (!std::all_of(derived.batched.begin(), derived.batched.end(),
                   [](bool batched) { return batched; })) {
    return std::nullopt;
  }
  Signature proposed = signature;
  for (size_t i = 0; i < proposed.operands.size(); ++i) {
    proposed.operands[i] =
        derived.graph.node(derived.graph.inputs()[i].value).type;
  }
  const Attributes same = context->attributes(signature.attributes);
  const Attributes shifted = WithShiftedAxes(same, *item);
  std::vector<Attributes> proposals = {shifted};
  if (!(shifted == same)) proposals.push_back(same);
  for (const Attributes& attributes : proposals) {
    proposed.attributes =
        attributes.empty() ? kNoAttributes : context->Intern(attributes);
    std::optional<Graph> call = CallGraph(proposed, derived.graph, rules);
    if (call.has_value() && SameMeaning(*call, derived.graph, rules)) {
      return BatchRule{*std::move(call), derived.batched};
    }
  }
  return std::nullopt;
}

}  // namespace cleave
