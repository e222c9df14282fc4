#include "engine/rules/rule_set.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/bind/builtins.h"
#include "engine/ir/call_attributes.h"
#include "engine/rules/call_of.h"
#include "engine/rules/numeric.h"
#include "engine/rules/primitive_jvp.h"
#include "engine/rules/rule_set_impl.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

// `layout`: which inputs are there, where not all are or one is variadic.
std::optional<StaticValue> LayoutOf(const Callable& callable,
                                    const Binding& binding) {
  StaticValue::List layout;
  bool needed = false;
  for (size_t i = 0; i < callable.inputs.size(); ++i) {
    if (callable.inputs[i].is_static) continue;
    const RuleValue& value = binding.inputs[i];
    if (value.Is(Kind::kList)) {
      needed = true;
      StaticValue::List elements;
      for (const RuleValue& element : value.AsList()) {
        elements.push_back(!element.Is(Kind::kAbsent));
      }
      layout.push_back(std::move(elements));
      continue;
    }
    needed = needed || value.Is(Kind::kAbsent);
    layout.push_back(!value.Is(Kind::kAbsent));
  }
  if (!needed) return std::nullopt;
  return StaticValue(std::move(layout));
}

std::vector<TermPtr> OperandTerms(const Binding& binding) {
  std::vector<TermPtr> terms;
  for (const RuleValue& value : binding.inputs) {
    if (value.Is(Kind::kTerm)) terms.push_back(value.AsTerm());
    if (value.Is(Kind::kList)) {
      for (const RuleValue& element : value.AsList()) {
        if (element.Is(Kind::kTerm)) terms.push_back(element.AsTerm());
      }
    }
  }
  return terms;
}

template <typename T>
absl::StatusOr<const T*> Pointer(
    const absl::StatusOr<std::unique_ptr<const T>>& cached) {
  if (!cached.ok()) return cached.status();
  return cached->get();
}

}  // namespace

RuleSet::RuleSet(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->rules = this;
}
RuleSet::~RuleSet() = default;

const std::shared_ptr<Context>& RuleSet::context() const {
  return impl_->context;
}

const Item* RuleSet::Find(absl::string_view name) const {
  const Callable* callable = impl_->library.FindCallable(name);
  return callable == nullptr ? nullptr : callable->item;
}

const Item* RuleSet::FindDerivative(absl::string_view primitive) const {
  return impl_->library.FindDerivative(primitive);
}

const Item* RuleSet::FindRewrite(absl::string_view name) const {
  const auto& rewrites = impl_->library.rewrites();
  const auto it = rewrites.find(std::string(name));
  return it == rewrites.end() ? nullptr : it->second;
}

const RewriteTable& RuleSet::rewrites() const {
  if (impl_->rewrites == nullptr) {
    impl_->rewrites =
        std::make_unique<const RewriteTable>(impl_->library, *impl_->context);
  }
  return *impl_->rewrites;
}

std::vector<std::string> RuleSet::Names(ItemKind kind) const {
  std::vector<std::string> names;
  for (const auto& file : impl_->library.files()) {
    for (const RuleFile::Entry& entry : file->file.entries) {
      if (entry.item.has_value() && entry.item->kind == kind) {
        names.push_back(CallableName(*entry.item));
      }
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

const std::vector<const Item*>& RuleSet::examples() const {
  return impl_->library.examples();
}

const Source& RuleSet::SourceOf(const Item& item) const {
  return impl_->library.SourceOf(item);
}

std::vector<std::string> RuleSet::ResultNames(absl::string_view op) const {
  std::vector<std::string> names;
  const Callable* callable = impl_->library.FindCallable(op);
  if (callable == nullptr) return names;
  for (const ResultDecl& result : callable->results) {
    names.push_back(result.name);
  }
  return names;
}

const Callable* RuleSet::Impl::CallableOf(OpId op) const {
  return library.FindCallable(context->op_name(op));
}

OpCompiler RuleSet::Impl::MakeCompiler(const Callable& callable) const {
  return OpCompiler(
      library, callable, context,
      [this](GraphBuilder& builder, absl::string_view op,
             const std::vector<Argument>& arguments,
             const Attributes& attributes) {
        return Call(builder, op, arguments, attributes);
      },
      [this](const Graph& graph, Value node) {
        return IsElementwise(graph, node);
      },
      [this](const Callable& c, const Binding& binding) {
        return ResultTypesOf(c, binding);
      });
}

absl::StatusOr<std::vector<std::optional<TermType>>>
RuleSet::Impl::ResultTypesOf(const Callable& callable,
                             const Binding& binding) const {
  Signature signature;
  signature.op = context->InternOp(callable.name);
  for (const TermPtr& term : OperandTerms(binding)) {
    const std::optional<DType> dtype = term->dtype->dtype();
    if (!dtype.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", callable.name, "`: the dtype of an operand is not known here"));
    }
    signature.operands.push_back(
        context->Intern(TensorType{*dtype, term->shape}));
  }
  Attributes attributes = binding.attributes;
  if (std::optional<StaticValue> layout = LayoutOf(callable, binding)) {
    attributes.Set(kLayout, *std::move(layout));
  }
  signature.attributes = context->Intern(attributes);
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules->Body(signature));
  std::vector<std::optional<TermType>> types;
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

absl::StatusOr<std::vector<std::optional<Value>>> RuleSet::Call(
    GraphBuilder& builder, absl::string_view op,
    const std::vector<Argument>& arguments,
    const Attributes& attributes) const {
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
  Elaborator elaborator(library, *context, callable->name, nullptr);
  elaborator.EnterSource(*callable->source);
  GivenArguments given;
  const auto term = [&](Value value) -> RuleValue {
    return elaborator.terms().InGraph(value, builder.type(value));
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
  BindOptions options;
  options.fresh_prefix = absl::StrCat(op, ".", dynamic_calls);
  options.check_errors = true;
  CLEAVE_ASSIGN_OR_RETURN(const Binding binding,
                          Bind(*callable, given, options, elaborator));
  if (!binding.fresh.empty()) ++dynamic_calls;
  TermLowerer lowerer(builder, nullptr, nullptr);
  std::vector<Value> operands;
  Signature signature;
  signature.op = context->InternOp(callable->name);
  for (const TermPtr& operand : OperandTerms(binding)) {
    CLEAVE_ASSIGN_OR_RETURN(const Value value, lowerer.Lower(operand));
    operands.push_back(value);
    signature.operands.push_back(builder.graph().node(value).type);
  }
  Attributes canonical = binding.attributes;
  if (std::optional<StaticValue> layout = LayoutOf(*callable, binding)) {
    canonical.Set(kLayout, *std::move(layout));
  }
  for (const auto& [name, dim] : binding.fresh) {
    canonical.Set(absl::StrCat(kNewPrefix, name), dim);
  }
  for (const auto& [name, value] : attributes.values()) {
    if (absl::StartsWith(name, kNewPrefix)) canonical.Set(name, value);
  }
  signature.attributes = context->Intern(canonical);
  for (const ShapeGuard& guard : elaborator.guards()) builder.AddGuard(guard);
  std::vector<std::optional<TensorType>> types;
  if (callable->has_result_types) {
    for (const std::optional<TermType>& type : binding.results) {
      std::optional<TensorType> known;
      if (type.has_value()) {
        known =
            TensorType{type->dtype->dtype().value_or(DType::kI64), type->shape};
      }
      types.push_back(std::move(known));
    }
  } else {
    CLEAVE_ASSIGN_OR_RETURN(std::vector<std::optional<TermType>> of_body,
                            ResultTypesOf(*callable, binding));
    // Extents known at run time only are named by the call.
    std::map<std::string, Dim> names;
    for (const std::string& variable : NewVariables(binding, of_body)) {
      const std::string key = absl::StrCat(kNewPrefix, variable);
      if (const StaticValue* given = attributes.Find(key)) {
        names[variable] = given->AsDim();
      } else {
        names[variable] = Dim::Variable(
            absl::StrCat(options.fresh_prefix, ".", names.size()));
        canonical.Set(key, names[variable]);
      }
    }
    if (!names.empty()) ++dynamic_calls;
    signature.attributes = context->Intern(canonical);
    for (const std::optional<TermType>& type : of_body) {
      std::optional<TensorType> known;
      if (type.has_value()) {
        known = TensorType{*type->dtype->dtype(), type->shape};
        for (Dim& dim : known->shape) dim = dim.Substitute(names);
      }
      types.push_back(std::move(known));
    }
  }
  std::vector<TensorType> present;
  for (const std::optional<TensorType>& type : types) {
    if (type.has_value()) present.push_back(*type);
  }
  if (present.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", op, "` has no result here"));
  }
  const Value node = builder.AddTyped(signature.op, signature.attributes,
                                      context->Intern(present), operands,
                                      builder.provenance());
  std::vector<std::optional<Value>> results;
  int place = 0;
  for (const std::optional<TensorType>& type : types) {
    if (!type.has_value()) {
      results.push_back(std::nullopt);
    } else {
      results.push_back(present.size() == 1 ? node
                                            : builder.Result(node, place++));
    }
  }
  return results;
}

Signature RuleSet::SignatureOf(const Graph& graph, Value node) {
  Signature signature;
  signature.op = graph.node(node).op;
  signature.attributes = graph.node(node).attributes;
  for (const Value operand : graph.operands(node)) {
    signature.operands.push_back(graph.node(operand).type);
  }
  return signature;
}

absl::StatusOr<const Graph*> RuleSet::Body(const Signature& signature) const {
  const auto it = impl_->bodies.find(signature);
  if (it != impl_->bodies.end()) return Pointer(it->second);
  const absl::string_view name = context()->op_name(signature.op);
  if (std::find(impl_->compiling.begin(), impl_->compiling.end(), signature) !=
      impl_->compiling.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the body of `", name, "` needs itself"));
  }
  if (impl_->compiling.size() > kMaxInliningDepth) {
    return absl::ResourceExhaustedError(
        absl::StrCat("bodies are nested deeper than ", kMaxInliningDepth));
  }
  impl_->compiling.push_back(signature);
  absl::StatusOr<Graph> body = [&]() -> absl::StatusOr<Graph> {
    if (DerivedFrom(name).has_value()) {
      return impl_->CompileDerived(signature);
    }
    const Callable* callable = impl_->CallableOf(signature.op);
    if (callable == nullptr) {
      return absl::NotFoundError(absl::StrCat("there is no op `", name, "`"));
    }
    OpCompiler compiler = impl_->MakeCompiler(*callable);
    CLEAVE_RETURN_IF_ERROR(compiler.BindSignature(signature));
    return compiler.Body();
  }();
  impl_->compiling.pop_back();
  Impl::GraphOr cached =
      body.ok() ? Impl::GraphOr(std::make_unique<const Graph>(*std::move(body)))
                : Impl::GraphOr(body.status());
  return Pointer(
      impl_->bodies.emplace(signature, std::move(cached)).first->second);
}

absl::StatusOr<const Graph*> RuleSet::Spec(const Signature& signature) const {
  const auto it = impl_->specs.find(signature);
  if (it != impl_->specs.end()) return Pointer(it->second);
  Impl::GraphOr cached = [&]() -> Impl::GraphOr {
    const Callable* callable = impl_->CallableOf(signature.op);
    if (callable == nullptr || callable->item->spec == nullptr ||
        !callable->has_result_types) {
      return std::unique_ptr<const Graph>();
    }
    OpCompiler compiler = impl_->MakeCompiler(*callable);
    CLEAVE_RETURN_IF_ERROR(compiler.BindSignature(signature));
    CLEAVE_ASSIGN_OR_RETURN(Graph graph, compiler.Spec());
    return std::make_unique<const Graph>(std::move(graph));
  }();
  return Pointer(
      impl_->specs.emplace(signature, std::move(cached)).first->second);
}

absl::StatusOr<const RuleSet::JvpOverride*> RuleSet::Jvp(
    const Signature& signature, const std::vector<bool>& active) const {
  const Impl::MaskedKey key(signature, active);
  const auto it = impl_->jvps.find(key);
  if (it != impl_->jvps.end()) return Pointer(it->second);
  using Cached = absl::StatusOr<std::unique_ptr<const JvpOverride>>;
  Cached cached = [&]() -> Cached {
    if (IsBatchCall(context()->op_name(signature.op))) {
      return impl_->JvpOfBatch(signature, active);
    }
    const Callable* callable = impl_->CallableOf(signature.op);
    if (callable == nullptr) return std::unique_ptr<const JvpOverride>();
    OpCompiler compiler = impl_->MakeCompiler(*callable);
    CLEAVE_RETURN_IF_ERROR(compiler.BindSignature(signature));
    CLEAVE_ASSIGN_OR_RETURN(std::optional<JvpOverride> found,
                            compiler.Jvp(active));
    if (!found.has_value()) return std::unique_ptr<const JvpOverride>();
    return std::make_unique<const JvpOverride>(*std::move(found));
  }();
  return Pointer(impl_->jvps.emplace(key, std::move(cached)).first->second);
}

absl::StatusOr<const RuleSet::VjpOverride*> RuleSet::Vjp(
    const Signature& signature, const std::vector<bool>& live) const {
  const Impl::MaskedKey key(signature, live);
  const auto it = impl_->vjps.find(key);
  if (it != impl_->vjps.end()) return Pointer(it->second);
  using Cached = absl::StatusOr<std::unique_ptr<const VjpOverride>>;
  Cached cached = [&]() -> Cached {
    if (IsBatchCall(context()->op_name(signature.op))) {
      return impl_->VjpOfBatch(signature, live);
    }
    const Callable* callable = impl_->CallableOf(signature.op);
    if (callable == nullptr) return std::unique_ptr<const VjpOverride>();
    OpCompiler compiler = impl_->MakeCompiler(*callable);
    CLEAVE_RETURN_IF_ERROR(compiler.BindSignature(signature));
    CLEAVE_ASSIGN_OR_RETURN(std::optional<VjpOverride> found,
                            compiler.Vjp(live));
    if (!found.has_value()) return std::unique_ptr<const VjpOverride>();
    return std::make_unique<const VjpOverride>(*std::move(found));
  }();
  return Pointer(impl_->vjps.emplace(key, std::move(cached)).first->second);
}

absl::StatusOr<bool> RuleSet::IsElementwise(const Graph& graph,
                                            Value node) const {
  return impl_->IsElementwise(graph, node);
}

absl::StatusOr<const Graph*> RuleSet::Vmap(const Signature& signature,
                                           const std::vector<bool>& batched,
                                           const Dim& batch) const {
  const Impl::BatchedKey key{{signature, batched}, batch};
  const auto it = impl_->vmaps.find(key);
  if (it != impl_->vmaps.end()) return Pointer(it->second);
  Impl::GraphOr cached = [&]() -> Impl::GraphOr {
    const Callable* callable = impl_->CallableOf(signature.op);
    if (callable == nullptr) return std::unique_ptr<const Graph>();
    if (!cleave::Declares(callable->item, StatementKind::kVmap)) {
      return std::unique_ptr<const Graph>();
    }
    OpCompiler compiler = impl_->MakeCompiler(*callable);
    CLEAVE_RETURN_IF_ERROR(compiler.BindSignature(signature, batched, batch));
    CLEAVE_ASSIGN_OR_RETURN(std::optional<Graph> found, compiler.Vmap(batched));
    if (!found.has_value()) return std::unique_ptr<const Graph>();
    return std::make_unique<const Graph>(*std::move(found));
  }();
  return Pointer(impl_->vmaps.emplace(key, std::move(cached)).first->second);
}

absl::StatusOr<const Graph*> RuleSet::PrimitiveJvp(
    const Signature& signature, const std::vector<bool>& active) const {
  const Impl::MaskedKey key(signature, active);
  const auto it = impl_->primitive_jvps.find(key);
  if (it != impl_->primitive_jvps.end()) return Pointer(it->second);
  Impl::GraphOr cached = [&]() -> Impl::GraphOr {
    const absl::string_view name = context()->op_name(signature.op);
    const Item* item = impl_->library.FindDerivative(name);
    if (item == nullptr) {
      return absl::UnimplementedError(absl::StrCat(
          "impossible: no rule gives the derivative of `", name, "`"));
    }
    CLEAVE_ASSIGN_OR_RETURN(
        Graph graph, CompilePrimitiveJvp(
                         impl_->library, *item, context(), signature, active,
                         [this](GraphBuilder& builder, absl::string_view op,
                                const std::vector<Argument>& arguments,
                                const Attributes& attributes) {
                           return impl_->Call(builder, op, arguments,
                                              attributes);
                         },
                         [this](const Graph& graph, Value node) {
                           return impl_->IsElementwise(graph, node);
                         }));
    return std::make_unique<const Graph>(std::move(graph));
  }();
  return Pointer(
      impl_->primitive_jvps.emplace(key, std::move(cached)).first->second);
}

absl::StatusOr<const NumericBody*> RuleSet::Numeric(Primitive primitive,
                                                    DType dtype) const {
  const Item* item =
      impl_->library.FindNumeric(PrimitiveName(primitive), DTypeName(dtype));
  if (item == nullptr) return nullptr;
  const auto it = impl_->numerics.find(item);
  if (it != impl_->numerics.end()) return Pointer(it->second);
  std::vector<const Item*>& compiling = impl_->compiling_numerics;
  if (std::find(compiling.begin(), compiling.end(), item) != compiling.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the numeric of `", item->name, "` needs itself"));
  }
  compiling.push_back(item);
  using Cached = absl::StatusOr<std::unique_ptr<const NumericBody>>;
  Cached cached = [&]() -> Cached {
    CLEAVE_ASSIGN_OR_RETURN(
        NumericBody numeric,
        CompileNumeric(
            impl_->library, *item, context(),
            [this](GraphBuilder& builder, absl::string_view op,
                   const std::vector<Argument>& arguments,
                   const Attributes& attributes) {
              return impl_->Call(builder, op, arguments, attributes);
            },
            [this](const Graph& graph, Value node) {
              return impl_->IsElementwise(graph, node);
            }));
    CLEAVE_ASSIGN_OR_RETURN(numeric.graph,
                            FlattenNumeric(numeric.graph, *this));
    return std::make_unique<const NumericBody>(std::move(numeric));
  }();
  compiling.pop_back();
  return Pointer(
      impl_->numerics.emplace(item, std::move(cached)).first->second);
}

// An op acts on each element by itself if, on vectors of unknown length, its
// body is pointwise throughout.
absl::StatusOr<bool> RuleSet::Impl::IsElementwise(const Graph& graph,
                                                  Value node) const {
  const std::pair<OpId, AttributesId> key(graph.node(node).op,
                                          graph.node(node).attributes);
  const auto it = elementwise.find(key);
  if (it != elementwise.end()) return it->second;
  Signature signature{key.first, key.second, {}};
  for (const Value operand : graph.operands(node)) {
    signature.operands.push_back(context->Intern(
        TensorType{graph.type(operand).dtype, {Dim::Variable("n")}}));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules->Body(signature));
  bool result = true;
  for (uint32_t id = 0; id < body->size(); ++id) {
    const Node& n = body->node(Value{id});
    if (!IsPrimitive(n.op)) {
      CLEAVE_ASSIGN_OR_RETURN(const bool inner,
                              IsElementwise(*body, Value{id}));
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
  elementwise.emplace(key, result);
  return result;
}

}  // namespace cleave
