// RuleSet: calls of ops, from what is given to nodes.

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/call_attributes.h"
#include "engine/rules/rule_set_impl.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"

namespace cleave {

GivenArguments GivenInGraph(const std::vector<Argument>& arguments,
                            const Attributes& attributes,
                            const GraphBuilder& builder, TermMaker& terms) {
  GivenArguments given;
  const auto term = [&](Value value) -> RuleValue {
    return terms.InGraph(value, builder.type(value));
  };
  for (const Argument& argument : arguments) {
    RuleValue value;
    if (const Value* v = std::get_if<Value>(&argument.value)) {
      value = term(*v);
    } else if (const auto* list =
                   std::get_if<std::vector<std::optional<Value>>>(
                       &argument.value)) {
      RuleList elements;
      for (const std::optional<Value>& element : *list) {
        elements.push_back(element.has_value() ? term(*element) : RuleValue());
      }
      value = RuleValue(std::move(elements));
    } else if (const StaticValue* s =
                   std::get_if<StaticValue>(&argument.value)) {
      value = FromStatic(*s);
    }
    if (argument.name.empty()) {
      given.positional.push_back(std::move(value));
    } else {
      given.named.emplace_back(argument.name, std::move(value));
    }
  }
  for (const auto& [name, value] : attributes.values()) {
    given.named.emplace_back(name, FromStatic(value));
  }
  return given;
}

std::vector<Argument> ArgumentsOf(const Callable& callable,
                                  const CallLayout& layout,
                                  absl::Span<const Value> operands) {
  std::vector<Argument> arguments;
  for (size_t i = 0; i < layout.inputs.size(); ++i) {
    const CallLayout::Input& input = layout.inputs[i];
    if (input.is_static() || input.absent()) continue;
    const std::string& name = callable.inputs[i].name;
    std::vector<std::optional<Value>> list;
    for (const int place : input.operands) {
      list.push_back(place < 0 ? std::nullopt : std::optional(operands[place]));
    }
    if (input.list) {
      arguments.push_back({name, std::move(list)});
    } else {
      arguments.push_back({name, *list[0]});
    }
  }
  return arguments;
}

absl::StatusOr<std::vector<std::optional<Value>>> RuleSet::Call(
    GraphBuilder& builder, absl::string_view op,
    const std::vector<Argument>& arguments,
    const Attributes& attributes) const {
  const BudgetScope scope;
  return impl_->Call(builder, op, arguments, attributes);
}

absl::StatusOr<std::vector<std::optional<Value>>> RuleSet::Impl::Call(
    GraphBuilder& builder, absl::string_view op,
    const std::vector<Argument>& arguments,
    const Attributes& attributes) const {
  const Callable* callable = library.FindCallable(op);
  if (callable == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no op `", op, "`"));
  }
  CLEAVE_CHECK(builder.context() == context) << "another context";
  Elaborator elaborator(library, *context, callable->name, this);
  elaborator.EnterSource(*callable->source);
  std::optional<int64_t> number;  // of this call among those that name extents
  BindOptions options;
  options.check = true;
  options.new_extent = [&](absl::string_view name) {
    if (!number) number = dynamic_calls++;
    return Dim::Variable(absl::StrCat(op, ".", *number, ".", name));
  };
  CLEAVE_ASSIGN_OR_RETURN(
      BoundCall call,
      Bind(*callable,
           GivenInGraph(arguments, attributes, builder, elaborator.terms()),
           options, elaborator));
  CLEAVE_RETURN_IF_ERROR(BindHostResults(*this, options, &call));
  TermLowerer lowerer(builder, this);
  std::vector<Value> operands;
  for (const TermPtr& operand : call.operands) {
    CLEAVE_ASSIGN_OR_RETURN(const Value value, lowerer.Lower(operand));
    operands.push_back(value);
  }
  CLEAVE_ASSIGN_OR_RETURN(const CallNode node,
                          MakeNode(call, operands, builder));
  const std::vector<Value> present =
      AddCall(builder, callable->name, node.attributes, node.results, operands);
  std::vector<std::optional<Value>> results;
  size_t next = 0;
  for (const std::optional<TermType>& type : call.results) {
    results.push_back(type.has_value() ? std::optional(present[next++])
                                       : std::nullopt);
  }
  return results;
}

absl::StatusOr<Callees::CallNode> RuleSet::Impl::MakeNode(
    const BoundCall& call, absl::Span<const Value> operands,
    GraphBuilder& builder) const {
  for (size_t i = 0; i < operands.size(); ++i) {
    DTypeVariable::Unify(call.operands[i]->dtype,
                         DTypeVariable::Known(builder.type(operands[i]).dtype));
  }
  const Callable& callable = *call.callable;
  for (const ShapeGuard& guard : call.guards) builder.AddGuard(guard);
  if (!call.checked) {
    CLEAVE_RETURN_IF_ERROR(CheckWhere(callable, call.scope));
    Elaborator elaborator(library, *context, callable.name, this);
    elaborator.EnterSource(*callable.source);
    std::vector<ShapeGuard> guards;
    CLEAVE_RETURN_IF_ERROR(
        CheckErrors(callable, call.scope, false, elaborator, &guards));
    for (const ShapeGuard& guard : guards) builder.AddGuard(guard);
  }
  CallNode node;
  node.attributes = context->Intern(NodeAttributes(call));
  for (const std::optional<TermType>& type : call.results) {
    if (!type.has_value()) continue;
    node.results.push_back(
        {type->dtype->dtype().value_or(DType::kI64), type->shape});
  }
  if (node.results.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", callable.name, "` has no result here"));
  }
  return node;
}

absl::StatusOr<std::vector<std::optional<TermType>>> RuleSet::Impl::ResultTypes(
    const BoundCall& call) const {
  const Callable& callable = *call.callable;
  Signature signature;
  signature.op = context->InternOp(callable.name);
  for (const TermPtr& term : call.operands) {
    const std::optional<DType> dtype = term->dtype->dtype();
    if (!dtype.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", callable.name, "`: the dtype of an operand is not known here"));
    }
    signature.operands.push_back(
        context->Intern(TensorType{*dtype, term->shape}));
  }
  // In the names of the body itself.
  Attributes attributes;
  for (const auto& [name, value] : call.attributes.values()) {
    if (!absl::StartsWith(name, kNewPrefix)) attributes.Set(name, value);
  }
  signature.attributes = context->Intern(attributes);
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules->Body(signature));
  std::vector<std::optional<TermType>> types;
  if (callable.has_result_list) {
    for (const NamedValue& output : body->outputs()) {
      const TensorType& t = body->type(output.value);
      types.push_back(TermType{DTypeVariable::Known(t.dtype), t.shape, {}});
    }
    return types;
  }
  for (const ResultDecl& result : callable.results) {
    std::optional<TermType> type;
    for (const NamedValue& output : body->outputs()) {
      if (output.name != result.name) continue;
      const TensorType& t = body->type(output.value);
      type = TermType{DTypeVariable::Known(t.dtype), t.shape, {}};
    }
    types.push_back(std::move(type));
  }
  return types;
}

absl::StatusOr<Value> RuleSet::Impl::CallElementwise(
    const BoundCall& call, absl::Span<const Value> arrays,
    GraphBuilder& builder) const {
  const Attributes given = NodeAttributes(call);
  Attributes attributes;
  for (const auto& [name, value] : given.values()) {
    if (!IsCallAttribute(name)) attributes.Set(name, value);
  }
  const auto refuse = [&](absl::string_view why) {
    return NotSupported("`", call.callable->name, "` of elements: ", why);
  };
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<std::optional<Value>> results,
      Call(builder, call.callable->name,
           ArgumentsOf(*call.callable, call.layout, arrays), attributes));
  std::optional<Value> only;
  for (const std::optional<Value>& result : results) {
    if (!result.has_value()) continue;
    if (only.has_value()) return refuse("it has several results");
    only = result;
  }
  const Graph& graph = builder.graph();
  CLEAVE_ASSIGN_OR_RETURN(const bool elementwise, IsElementwise(graph, *only));
  if (!elementwise || (!arrays.empty() && graph.type(*only).shape !=
                                              graph.type(arrays[0]).shape)) {
    return refuse(
        "it does not act on each element by itself; call it on "
        "arrays");
  }
  return *only;
}

absl::StatusOr<bool> RuleSet::IsElementwise(const Graph& graph,
                                            Value node) const {
  return impl_->IsElementwise(graph, node);
}

// An op acts on each element by itself if, on vectors of unknown length, its
// body is pointwise throughout.
absl::StatusOr<bool> RuleSet::Impl::IsElementwise(const Graph& graph,
                                                  Value node) const {
  const std::pair<OpId, AttributesId> key(graph.node(node).op,
                                          graph.node(node).attributes);
  {
    const std::shared_lock<std::shared_mutex> lock(tables_mutex);
    const auto it = elementwise.find(key);
    if (it != elementwise.end()) return it->second;
  }
  if (rules->NeedsHost(key.first)) return false;
  Signature signature{key.first, key.second, {}};
  for (const Value operand : graph.operands(node)) {
    signature.operands.push_back(context->Intern(
        TensorType{graph.type(operand).dtype, {Dim::Variable("n")}}));
  }
  const BudgetScope scope;
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules->Body(signature));
  bool result = true;
  for (uint32_t id = 0; id < body->size(); ++id) {
    const Node& n = body->node(Value{id});
    if (!IsPrimitive(n.op)) {
      CLEAVE_ASSIGN_OR_RETURN(const bool inner, Deeper([&] {
                                return IsElementwise(*body, Value{id});
                              }));
      result = result && inner;
      continue;
    }
    const Primitive primitive = ToPrimitive(n.op);
    const bool is_broadcast_scalar =
        primitive == Primitive::kBroadcastInDim &&
        body->type(body->operands(Value{id})[0]).shape.empty();
    result = result && (ClassOf(primitive) == PrimitiveClass::kPointwise ||
                        ClassOf(primitive) == PrimitiveClass::kLeaf ||
                        is_broadcast_scalar);
  }
  const std::unique_lock<std::shared_mutex> lock(tables_mutex);
  elementwise.emplace(key, result);
  return result;
}

}  // namespace cleave
