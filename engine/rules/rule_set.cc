#include "engine/rules/rule_set.h"

#include <algorithm>
#include <utility>

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
#include "ops/refusal.h"
#include "ops/status_macros.h"

namespace cleave {
RuleSet::RuleSet(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->rules = this;
  if (impl_->options.derive != nullptr) {
    impl_->derived = impl_->options.derive(*this);
  }
}
RuleSet::~RuleSet() = default;

std::unique_ptr<RuleSet::Impl> RuleSet::Impl::WithItemsOf(const Impl& base) {
  auto impl = std::make_unique<Impl>();
  impl->context = base.context;
  impl->options = base.options;
  impl->library = base.library;
  impl->renamed_functions = base.renamed_functions;
  return impl;
}

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
    // Whoever asks first may be about to be cancelled.
    const BudgetScope scope({}, BudgetScope::Mode::kDetached);
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
  if (kind == ItemKind::kFn) {
    for (const auto& [name, renamed] : impl_->renamed_functions) {
      std::replace(names.begin(), names.end(), renamed, name);
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
  return OpCompiler(library, callable, context, *this);
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
      return Impossible("no rule gives the derivative of `", name, "`");
    }
    CLEAVE_ASSIGN_OR_RETURN(
        Graph graph, CompilePrimitiveJvp(impl_->library, *item, context(),
                                         signature, active, *impl_));
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
        CompileNumeric(impl_->library, *item, context(), *impl_));
    CLEAVE_ASSIGN_OR_RETURN(numeric.graph,
                            FlattenNumeric(numeric.graph, *this));
    return std::make_unique<const NumericBody>(std::move(numeric));
  });
  compiling.pop_back();
  if (EndsCall(cached.status())) return cached.status();
  return impl_->Add(impl_->numerics, item, std::move(cached));
}

}  // namespace cleave
