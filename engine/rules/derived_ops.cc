// RuleSet: the ops that are derived from others, "jvp:f", "vjp:f" and "vmap:f".

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/bind/builtins.h"
#include "engine/bind/op_lines.h"
#include "engine/ir/call_attributes.h"
#include "engine/rules/call_of.h"
#include "engine/rules/rule_set_impl.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

std::vector<bool> Bools(const StaticValue& list) {
  std::vector<bool> values;
  for (const StaticValue& value : list.AsList()) {
    values.push_back(value.AsBool());
  }
  return values;
}

// The attributes that f itself is given.
Attributes WithoutCallAttributes(const Attributes& attributes) {
  Attributes own;
  for (const auto& [name, value] : attributes.values()) {
    if (name != kActive && name != kLive && name != kBatched) {
      own.Set(name, value);
    }
  }
  return own;
}

// A call of "vmap:f" without its outermost batch.
struct Unbatched {
  Signature one;  // of f, or of a batch of it
  std::vector<bool> batched;
  Dim batch;
};

Unbatched WithoutBatch(Context& context, const Signature& signature) {
  Unbatched result;
  Attributes attributes = context.attributes(signature.attributes);
  StaticValue::List batches = attributes.Get(kBatched).AsList();
  result.batched = Bools(batches.back());
  batches.pop_back();
  result.one.op = signature.op;
  if (batches.empty()) {
    attributes = WithoutCallAttributes(attributes);
    result.one.op =
        context.InternOp(*DerivedFrom(context.op_name(signature.op)));
  } else {
    attributes.Set(kBatched, std::move(batches));
  }
  result.one.attributes = context.Intern(attributes);
  for (size_t i = 0; i < result.batched.size(); ++i) {
    TensorType type = context.types(signature.operands[i])[0];
    if (result.batched[i]) {
      result.batch = type.shape.front();
      type.shape.erase(type.shape.begin());
    }
    result.one.operands.push_back(context.Intern(type));
  }
  return result;
}

}  // namespace

bool RuleSet::Declares(OpId op, StatementKind kind) const {
  absl::string_view name = context()->op_name(op);
  if (IsBatchCall(name)) name = *DerivedFrom(name);
  const Callable* callable = impl_->library.FindCallable(name);
  return callable != nullptr && !LinesOf(*callable, kind).empty();
}

Signature RuleSet::BatchOf(const Signature& signature,
                           const std::vector<bool>& batched,
                           const Dim& batch) const {
  Context& context = *this->context();
  Attributes attributes = context.attributes(signature.attributes);
  Signature result;
  result.op = signature.op;
  StaticValue::List batches;
  const std::string name(context.op_name(signature.op));
  if (IsBatchCall(name)) {
    batches = attributes.Get(kBatched).AsList();
  } else {
    result.op = context.InternOp(absl::StrCat(kVmapCallPrefix, name));
  }
  StaticValue::List own;
  for (size_t i = 0; i < batched.size(); ++i) {
    own.emplace_back(static_cast<bool>(batched[i]));
    TensorType type = context.types(signature.operands[i])[0];
    if (batched[i]) type.shape.insert(type.shape.begin(), batch);
    result.operands.push_back(context.Intern(type));
  }
  batches.emplace_back(std::move(own));
  attributes.Set(kBatched, std::move(batches));
  result.attributes = context.Intern(attributes);
  return result;
}

absl::StatusOr<Graph> RuleSet::Impl::CompileDerived(
    const Signature& signature) const {
  const absl::string_view name = context->op_name(signature.op);
  if (derived == nullptr) {
    return NotSupported("`", name,
                        "`: the rules were loaded without transforms");
  }
  if (!IsBatchCall(name)) return CompileDerivative(signature);
  const Unbatched inner = WithoutBatch(*context, signature);
  CLEAVE_ASSIGN_OR_RETURN(const Graph* given,
                          rules->Vmap(inner.one, inner.batched, inner.batch));
  if (given != nullptr) return *given;
  CLEAVE_ASSIGN_OR_RETURN(const Graph* body, rules->Body(inner.one));
  return derived->Vmap(*body, inner.batched, inner.batch);
}

absl::StatusOr<Graph> RuleSet::Impl::CompileDerivative(
    const Signature& signature) const {
  const absl::string_view name = context->op_name(signature.op);
  const Attributes attributes = context->attributes(signature.attributes);
  const std::vector<bool> active = Bools(attributes.Get(kActive));
  std::vector<bool> live;
  if (const StaticValue* given = attributes.Find(kLive)) live = Bools(*given);
  // The call of f alone: its operands come first.
  Signature called;
  called.op = context->InternOp(*DerivedFrom(name));
  called.attributes = context->Intern(WithoutCallAttributes(attributes));
  called.operands.assign(signature.operands.begin(),
                         signature.operands.begin() + active.size());
  CLEAVE_ASSIGN_OR_RETURN(const Graph call, CallOf(*rules, called));
  if (absl::StartsWith(name, kVjpCallPrefix)) {
    return derived->Vjp(call, active, live);
  }
  return derived->Jvp(call, active);
}

absl::StatusOr<std::unique_ptr<const RuleSet::JvpOverride>>
RuleSet::Impl::JvpOfBatch(const Signature& signature,
                          const std::vector<bool>& active) const {
  const Unbatched inner = WithoutBatch(*context, signature);
  CLEAVE_ASSIGN_OR_RETURN(const JvpOverride* one,
                          rules->Jvp(inner.one, active));
  if (one == nullptr) return std::unique_ptr<const JvpOverride>();
  std::vector<bool> batched = inner.batched;
  for (size_t i = 0; i < active.size(); ++i) {
    if (one->covered[i]) batched.push_back(inner.batched[i]);
  }
  CLEAVE_ASSIGN_OR_RETURN(Graph graph,
                          derived->Vmap(one->graph, batched, inner.batch));
  return std::make_unique<const JvpOverride>(
      JvpOverride{std::move(graph), one->covered});
}

absl::StatusOr<std::unique_ptr<const RuleSet::VjpOverride>>
RuleSet::Impl::VjpOfBatch(const Signature& signature,
                          const std::vector<bool>& live) const {
  const Unbatched inner = WithoutBatch(*context, signature);
  CLEAVE_ASSIGN_OR_RETURN(const VjpOverride* one, rules->Vjp(inner.one, live));
  if (one == nullptr) return std::unique_ptr<const VjpOverride>();
  std::vector<bool> batched = inner.batched;
  batched.resize(one->graph.inputs().size(), true);
  CLEAVE_ASSIGN_OR_RETURN(const Graph all,
                          derived->Vmap(one->graph, batched, inner.batch));
  // An operand that the examples share gets the sum of what each gives it.
  GraphBuilder builder(context);
  std::vector<Value> inputs;
  for (const NamedValue& input : all.inputs()) {
    inputs.push_back(builder.Input(input.name, all.type(input.value)));
  }
  const std::vector<Value> given = builder.Inline(all, inputs);
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < one->covered.size(); ++i) {
    if (!one->covered[i]) continue;
    const size_t place = outputs.size();
    Value cotangent = given[place];
    if (!inner.batched[i]) {
      cotangent =
          builder.Apply(Primitive::kReduceSum, {cotangent},
                        {{"axes", StaticValue::Ints(std::vector<int>{0})}});
    }
    outputs.push_back({all.outputs()[place].name, cotangent});
  }
  CLEAVE_ASSIGN_OR_RETURN(Graph graph,
                          std::move(builder).Build(std::move(outputs)));
  return std::make_unique<const VjpOverride>(
      VjpOverride{std::move(graph), one->covered});
}

}  // namespace cleave
