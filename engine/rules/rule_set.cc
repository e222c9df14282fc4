#include "engine/rules/rule_set.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/bind/builtins.h"
#include "engine/bind/op_lines.h"
#include "engine/ir/call_attributes.h"
#include "engine/rules/call_of.h"
#include "engine/rules/numeric.h"
#include "engine/rules/primitive_jvp.h"
#include "engine/rules/rule_set_impl.h"
#include "ops/budget.h"
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

// Whether a result has an axis that is known at run time only.
bool HasNewExtents(const Callable& callable) {
  return std::any_of(callable.results.begin(), callable.results.end(),
                     [](const ResultDecl& result) {
                       return std::any_of(
                           result.type.axes.begin(), result.type.axes.end(),
                           [](const AxisExpr& axis) { return axis.is_new; });
                     });
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

}  // namespace

RuleSet::RuleSet(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->rules = this;
  if (impl_->options.derive != nullptr) {
    impl_->derived = impl_->options.derive(*this);
  }
}
RuleSet::~RuleSet() = default;

DerivedRules* RuleSet::derived() const { return impl_->derived.get(); }

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
  std::call_once(impl_->rewrites_once, [&] {
    impl_->rewrites =
        std::make_unique<const RewriteTable>(impl_->library, *impl_->context);
  });
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

std::vector<RuleSet::Line> RuleSet::Lines(absl::string_view op,
                                          StatementKind kind) const {
  std::vector<Line> lines;
  const Callable* callable = impl_->library.FindCallable(op);
  if (callable == nullptr) return lines;
  for (const OpLine& line : LinesOf(*callable, kind)) {
    lines.push_back({line.statement, line.part.item});
  }
  return lines;
}

std::vector<const Item*> RuleSet::Overrides(absl::string_view op) const {
  std::vector<const Item*> items;
  const Callable* callable = impl_->library.FindCallable(op);
  if (callable == nullptr) return items;
  for (const BodyPart& part : callable->overrides) items.push_back(part.item);
  return items;
}

bool RuleSet::NeedsHost(OpId op) const {
  const Callable* callable = impl_->CallableOf(op);
  return callable != nullptr &&
         LinesOf(*callable, StatementKind::kResult).empty();
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
  options.check_errors = true;
  CLEAVE_ASSIGN_OR_RETURN(
      const Binding binding, [&]() -> absl::StatusOr<Binding> {
        std::unique_lock<std::mutex> lock(dynamic_mutex, std::defer_lock);
        if (HasNewExtents(*callable)) {
          lock.lock();
          options.fresh_prefix = absl::StrCat(op, ".", dynamic_calls);
        }
        // The number is this call's if it names an extent, else the next one's.
        CLEAVE_ASSIGN_OR_RETURN(Binding bound,
                                Bind(*callable, given, options, elaborator));
        if (!bound.fresh.empty()) ++dynamic_calls;
        return bound;
      }());
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
    const std::lock_guard<std::mutex> lock(dynamic_mutex);
    const std::string prefix = absl::StrCat(op, ".", dynamic_calls, ".");
    std::map<std::string, Dim> names;
    for (const std::string& variable : NewVariables(binding, of_body)) {
      const std::string key = absl::StrCat(kNewPrefix, variable);
      if (const StaticValue* given = attributes.Find(key)) {
        names[variable] = given->AsDim();
      } else {
        names[variable] = Dim::Variable(absl::StrCat(prefix, names.size()));
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
  absl::StatusOr<const Graph*> found;
  if (impl_->Find(impl_->bodies, signature, &found)) return found;
  const std::lock_guard<CallMutex> lock(impl_->compiling_mutex);
  // Another thread may have compiled it meanwhile.
  if (impl_->Find(impl_->bodies, signature, &found)) return found;
  // Not kept: these say what the bodies that are being compiled lack.
  std::vector<Signature>& compiling = impl_->compiling;
  if (std::find(compiling.begin(), compiling.end(), signature) !=
      compiling.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the body of `", context()->op_name(signature.op), "` needs itself"));
  }
  if (compiling.size() > kMaxInliningDepth) {
    return absl::ResourceExhaustedError(
        absl::StrCat("bodies are nested deeper than ", kMaxInliningDepth));
  }
  const BudgetScope scope;
  const BudgetFrame frame(context()->op_name(signature.op));
  CLEAVE_RETURN_IF_ERROR(ChargeBudget(BudgetKind::kBodies));
  compiling.push_back(signature);
  absl::StatusOr<Graph> body =
      Deeper([&] { return impl_->CompileBody(signature); });
  compiling.pop_back();
  if (EndsCall(body.status())) return body.status();
  return impl_->Add(
      impl_->bodies, signature,
      body.ok() ? Impl::GraphOr(std::make_unique<const Graph>(*std::move(body)))
                : Impl::GraphOr(body.status()));
}

absl::StatusOr<Graph> RuleSet::Impl::CompileBody(
    const Signature& signature) const {
  const absl::string_view name = context->op_name(signature.op);
  if (DerivedFrom(name).has_value()) return CompileDerived(signature);
  const Callable* callable = CallableOf(signature.op);
  if (callable == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no op `", name, "`"));
  }
  OpCompiler compiler = MakeCompiler(*callable);
  CLEAVE_RETURN_IF_ERROR(compiler.BindSignature(signature));
  return compiler.Body();
}

absl::StatusOr<const Graph*> RuleSet::Spec(const Signature& signature) const {
  return impl_->FindOrMake(impl_->specs, signature, [&]() -> Impl::GraphOr {
    const Callable* callable = impl_->CallableOf(signature.op);
    if (callable == nullptr || callable->item->spec == nullptr ||
        !callable->has_result_types) {
      return std::unique_ptr<const Graph>();
    }
    OpCompiler compiler = impl_->MakeCompiler(*callable);
    CLEAVE_RETURN_IF_ERROR(compiler.BindSignature(signature));
    CLEAVE_ASSIGN_OR_RETURN(Graph graph, compiler.Spec());
    return std::make_unique<const Graph>(std::move(graph));
  });
}

absl::StatusOr<const RuleSet::JvpOverride*> RuleSet::Jvp(
    const Signature& signature, const std::vector<bool>& active) const {
  const Impl::MaskedKey key(signature, active);
  using Cached = absl::StatusOr<std::unique_ptr<const JvpOverride>>;
  return impl_->FindOrMake(impl_->jvps, key, [&]() -> Cached {
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
  });
}

absl::StatusOr<const RuleSet::VjpOverride*> RuleSet::Vjp(
    const Signature& signature, const std::vector<bool>& live) const {
  const Impl::MaskedKey key(signature, live);
  using Cached = absl::StatusOr<std::unique_ptr<const VjpOverride>>;
  return impl_->FindOrMake(impl_->vjps, key, [&]() -> Cached {
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
  });
}

absl::StatusOr<bool> RuleSet::IsElementwise(const Graph& graph,
                                            Value node) const {
  return impl_->IsElementwise(graph, node);
}

absl::StatusOr<const Graph*> RuleSet::Vmap(const Signature& signature,
                                           const std::vector<bool>& batched,
                                           const Dim& batch) const {
  const Impl::BatchedKey key{{signature, batched}, batch};
  return impl_->FindOrMake(impl_->vmaps, key, [&]() -> Impl::GraphOr {
    const Callable* callable = impl_->CallableOf(signature.op);
    if (callable == nullptr) return std::unique_ptr<const Graph>();
    if (LinesOf(*callable, StatementKind::kVmap).empty()) {
      return std::unique_ptr<const Graph>();
    }
    OpCompiler compiler = impl_->MakeCompiler(*callable);
    CLEAVE_RETURN_IF_ERROR(compiler.BindSignature(signature, batched, batch));
    CLEAVE_ASSIGN_OR_RETURN(std::optional<Graph> found, compiler.Vmap(batched));
    if (!found.has_value()) return std::unique_ptr<const Graph>();
    return std::make_unique<const Graph>(*std::move(found));
  });
}

absl::StatusOr<const Graph*> RuleSet::PrimitiveJvp(
    const Signature& signature, const std::vector<bool>& active) const {
  const Impl::MaskedKey key(signature, active);
  return impl_->FindOrMake(impl_->primitive_jvps, key, [&]() -> Impl::GraphOr {
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
  });
}

absl::StatusOr<const NumericBody*> RuleSet::Numeric(Primitive primitive,
                                                    DType dtype) const {
  const Item* item =
      impl_->library.FindNumeric(PrimitiveName(primitive), DTypeName(dtype));
  if (item == nullptr) return nullptr;
  absl::StatusOr<const NumericBody*> found;
  if (impl_->Find(impl_->numerics, item, &found)) return found;
  const std::lock_guard<CallMutex> lock(impl_->compiling_mutex);
  if (impl_->Find(impl_->numerics, item, &found)) return found;
  std::vector<const Item*>& compiling = impl_->compiling_numerics;
  if (std::find(compiling.begin(), compiling.end(), item) != compiling.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the numeric of `", item->name, "` needs itself"));
  }
  compiling.push_back(item);
  using Cached = absl::StatusOr<std::unique_ptr<const NumericBody>>;
  const BudgetScope scope;
  Cached cached = Deeper([&]() -> Cached {
    CLEAVE_RETURN_IF_ERROR(ChargeBudget(BudgetKind::kBodies));
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
  });
  compiling.pop_back();
  if (EndsCall(cached.status())) return cached.status();
  return impl_->Add(impl_->numerics, item, std::move(cached));
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
