#include "engine/rules/lower_term.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/bind/builtins.h"
#include "engine/ir/call_attributes.h"
#include "engine/ir/graph_text.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// The place of a term, for messages.
absl::Status AtTerm(const GraphBuilder& builder, const Term& term,
                    const absl::Status& status) {
  if (status.ok()) return status;
  const Provenance& place = builder.context()->provenance(term.provenance);
  if (place.line == 0 ||
      absl::StrContains(status.message(), absl::StrCat(place.file, ":"))) {
    return status;
  }
  return AtPlace(status, absl::StrCat(place.file, ":", place.line));
}

std::vector<Value> ResultsOf(GraphBuilder& builder, Value node) {
  std::vector<Value> results;
  const size_t count = builder.graph().types(node).size();
  for (size_t i = 0; i < count; ++i) {
    results.push_back(builder.Result(node, static_cast<int>(i)));
  }
  return results;
}

}  // namespace

std::vector<Value> AddCall(GraphBuilder& builder, absl::string_view op,
                           AttributesId attributes,
                           const std::vector<TensorType>& results,
                           absl::Span<const Value> operands) {
  Context& context = *builder.context();
  return ResultsOf(builder, builder.AddTyped(context.InternOp(op), attributes,
                                             context.Intern(results), operands,
                                             builder.provenance()));
}

absl::StatusOr<Value> TermLowerer::Lower(const TermPtr& term) {
  const auto it = values_.find(term.get());
  if (it != values_.end()) return it->second.second;
  const ProvenanceId saved = builder_.provenance();
  builder_.SetProvenance(term->provenance);
  absl::StatusOr<Value> value = Deeper([&]() -> absl::StatusOr<Value> {
    CLEAVE_RETURN_IF_ERROR(PollBudget());
    return LowerNew(term);
  });
  builder_.SetProvenance(saved);
  if (!value.ok()) return AtTerm(builder_, *term, value.status());
  values_.emplace(term.get(), std::make_pair(term, *value));
  return value;
}

absl::StatusOr<Value> TermLowerer::LowerNew(const TermPtr& term) {
  switch (term->kind) {
    case TermKind::kValue:
      return term->value;
    case TermKind::kParameter:
      if (const auto it = parameters_.find(term->order);
          it != parameters_.end()) {
        return it->second;
      }
      return absl::InternalError("a parameter of another region");
    case TermKind::kComprehension:
      return LowerComprehension(*term, *this);
    case TermKind::kCall: {
      CLEAVE_ASSIGN_OR_RETURN(const std::vector<Value> results,
                              LowerCall(*term));
      if (results.empty()) {
        return absl::InvalidArgumentError(
            absl::StrCat("`", term->call->op, "` has no result here"));
      }
      return results[0];
    }
    case TermKind::kResult: {
      const TermPtr& call = term->children[0];
      auto it = calls_.find(call.get());
      if (it == calls_.end()) {
        CLEAVE_RETURN_IF_ERROR(Lower(call).status());
        it = calls_.find(call.get());
      }
      CLEAVE_CHECK(term->index < static_cast<int>(it->second.size()));
      return it->second[term->index];
    }
    case TermKind::kNumber:
    case TermKind::kDim:
      return LowerNumber(*term);
    case TermKind::kPointwise:
      return LowerPointwise(*term);
    case TermKind::kZero:
      return builder_.Zeros({ResolvedDType(*term), term->shape});
    case TermKind::kRead:
    case TermKind::kReduce:
    case TermKind::kCallElement: {
      if (!term->free.empty()) break;
      // An element that depends on no index: a 0-d array.
      auto scalar = std::make_shared<Term>();
      scalar->kind = TermKind::kComprehension;
      scalar->dtype = term->dtype;
      scalar->children = {term};
      scalar->provenance = term->provenance;
      scalar->order = term->order;
      return LowerComprehension(*scalar, *this);
    }
    case TermKind::kIndex:
      break;
  }
  return absl::InternalError("an element stands where an array is wanted");
}

absl::StatusOr<Value> TermLowerer::LowerNumber(const Term& term) {
  const DType dtype = ResolvedDType(term);
  if (term.kind == TermKind::kDim) {
    CLEAVE_ASSIGN_OR_RETURN(
        const Value extent,
        builder_.Add(Primitive::kExtent, {{"value", term.dim}}, {}));
    if (dtype == DType::kI64) return extent;
    return builder_.Add(Primitive::kConvert, {{"dtype", dtype}}, {extent});
  }
  const bool fits = IsBool(dtype)
                        ? term.number == Exact(0) || term.number == Exact(1)
                    : IsInt(dtype) ? term.number.IsInteger()
                                   : true;
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        term.number.ToString(), " stands where ", DTypeName(dtype),
        term.dtype->dtype().has_value() ? " is wanted"
                                        : " is meant: nothing asks for a "
                                          "dtype"));
  }
  return builder_.Add(Primitive::kConstant,
                      ConstantAttributes(term.number, dtype), {});
}

absl::StatusOr<Value> TermLowerer::LowerPointwise(const Term& term) {
  std::vector<Value> operands;
  for (const TermPtr& child : term.children) {
    CLEAVE_ASSIGN_OR_RETURN(Value x, Lower(child));
    const Shape& shape = builder_.type(x).shape;
    if (shape != term.shape) {
      const int offset = static_cast<int>(term.shape.size() - shape.size());
      std::vector<int> axes;
      for (size_t d = 0; d < shape.size(); ++d) {
        axes.push_back(offset + static_cast<int>(d));
      }
      CLEAVE_ASSIGN_OR_RETURN(
          x, builder_.Add(Primitive::kBroadcastInDim,
                          {{"shape", StaticValue::Dims(term.shape)},
                           {"axes", StaticValue::Ints(axes)}},
                          {x}));
    }
    operands.push_back(x);
  }
  if (term.primitive == Primitive::kConvert) {
    const DType dtype = ResolvedDType(term);
    if (builder_.type(operands[0]).dtype == dtype) return operands[0];
    return builder_.Add(Primitive::kConvert, {{"dtype", dtype}}, operands);
  }
  return builder_.Add(term.primitive, term.attributes, operands);
}

absl::StatusOr<std::vector<Value>> TermLowerer::LowerCall(const Term& term) {
  std::vector<Value> operands;
  for (const TermPtr& child : term.children) {
    CLEAVE_ASSIGN_OR_RETURN(const Value x, Lower(child));
    operands.push_back(x);
  }
  builder_.SetProvenance(term.provenance);
  std::vector<Value> results;
  const CallTerm& call = *term.call;
  if (DerivedFrom(call.op).has_value()) {
    CLEAVE_ASSIGN_OR_RETURN(results, CallDerivative(call, operands));
  } else if (call.bound != nullptr) {
    CLEAVE_ASSIGN_OR_RETURN(results, CallComposite(call, operands));
  } else if (!call.regions.empty()) {
    CLEAVE_ASSIGN_OR_RETURN(results, LowerControl(term, operands));
  } else {
    CLEAVE_ASSIGN_OR_RETURN(
        const Value node,
        builder_.Add(call.primitive, call.attributes, operands));
    results = ResultsOf(builder_, node);
  }
  if (results.size() != call.results.size()) {
    return absl::InternalError(absl::StrCat("`", call.op, "` gave ",
                                            results.size(), " results, not ",
                                            call.results.size()));
  }
  // The term itself is the caller's: it is alive as long as this.
  calls_.emplace(&term, results);
  return results;
}

absl::StatusOr<std::vector<Value>> TermLowerer::CallComposite(
    const CallTerm& call, const std::vector<Value>& operands) {
  CLEAVE_ASSIGN_OR_RETURN(const Callees::CallNode node,
                          callees_->MakeNode(*call.bound, operands, builder_));
  return AddCall(builder_, call.op, node.attributes, node.results, operands);
}

absl::StatusOr<std::vector<Value>> TermLowerer::CallDerivative(
    const CallTerm& call, const std::vector<Value>& operands) {
  const StaticValue::List& active = call.attributes.Get(kActive).AsList();
  const auto primals = absl::MakeConstSpan(operands).first(active.size());
  CLEAVE_ASSIGN_OR_RETURN(const Callees::CallNode node,
                          callees_->MakeNode(*call.bound, primals, builder_));
  Context& context = *builder_.context();
  Attributes attributes = context.attributes(node.attributes);
  for (const auto& [name, value] : call.attributes.values()) {
    attributes.Set(name, value);
  }
  std::vector<TensorType> types;
  if (call.attributes.Find(kLive) != nullptr) {
    for (size_t i = 0; i < active.size(); ++i) {
      if (active[i].AsBool()) types.push_back(builder_.type(operands[i]));
    }
  } else {
    for (const TensorType& type : node.results) {
      if (InClass(type.dtype, DTypeClass::kInexact)) types.push_back(type);
    }
  }
  return AddCall(builder_, call.op, context.Intern(attributes), types,
                 operands);
}

absl::StatusOr<Value> TermLowerer::CallElementwise(
    const Term& term, absl::Span<const Value> arguments) {
  const CallTerm& call = *term.call;
  if (call.bound == nullptr || DerivedFrom(call.op).has_value()) {
    return NotSupported("`", call.op, "` of elements");
  }
  return callees_->CallElementwise(*call.bound, arguments, builder_);
}

void TermLowerer::CollectCaptures(const TermPtr& root, uint32_t first_order,
                                  absl::flat_hash_map<const Term*, bool>* seen,
                                  std::vector<TermPtr>* captures) const {
  // From left to right, without recursion: a fold makes long chains.
  std::vector<TermPtr> pending = {root};
  while (!pending.empty()) {
    const TermPtr term = std::move(pending.back());
    pending.pop_back();
    if (term == nullptr || !seen->emplace(term.get(), true).second) continue;
    const size_t first = pending.size();
    AppendCaptures(term, first_order, &pending, captures);
    std::reverse(pending.begin() + first, pending.end());
  }
}

void TermLowerer::AppendCaptures(const TermPtr& term, uint32_t first_order,
                                 std::vector<TermPtr>* inner,
                                 std::vector<TermPtr>* captures) const {
  // A parameter of this region, or of one inside it.
  if (term->kind == TermKind::kParameter && term->order >= first_order) return;
  const bool is_leaf = term->kind == TermKind::kNumber ||
                       term->kind == TermKind::kDim ||
                       term->kind == TermKind::kZero;
  const bool is_array = term->free.empty() && term->kind != TermKind::kRead &&
                        term->kind != TermKind::kReduce;
  if (term->order < first_order && is_array && !is_leaf) {
    // Several results of one call are captured one by one.
    const bool is_tuple =
        term->kind == TermKind::kCall && term->call->results.size() != 1;
    if (!is_tuple) {
      captures->push_back(term);
      return;
    }
  }
  inner->insert(inner->end(), term->children.begin(), term->children.end());
  inner->push_back(term->fill);
  if (term->call != nullptr) {
    for (const RegionTerm& region : term->call->regions) {
      inner->insert(inner->end(), region.results.begin(), region.results.end());
    }
  }
}

absl::StatusOr<Graph> TermLowerer::LowerRegion(
    const RegionTerm& region, const std::vector<TermPtr>& captures,
    const std::vector<size_t>& operands) {
  GraphBuilder inner(builder_.context());
  TermLowerer lowerer(inner, callees_);
  std::vector<Value> consts;
  for (size_t i = 0; i < captures.size(); ++i) {
    const TermPtr& term = captures[i];
    if (operands[i] == consts.size()) {
      consts.push_back(inner.Input(absl::StrCat("const", consts.size()),
                                   {ResolvedDType(*term), term->shape}));
    }
    lowerer.values_.emplace(term.get(),
                            std::make_pair(term, consts[operands[i]]));
  }
  for (size_t i = 0; i < region.parameters.size(); ++i) {
    const Term& parameter = *region.parameters[i];
    lowerer.parameters_.emplace(
        parameter.order,
        inner.Input(absl::StrCat("arg", i),
                    {ResolvedDType(parameter), parameter.shape}));
  }
  std::vector<NamedValue> outputs;
  for (size_t i = 0; i < region.results.size(); ++i) {
    CLEAVE_ASSIGN_OR_RETURN(const Value value,
                            lowerer.Lower(region.results[i]));
    outputs.push_back({absl::StrCat("y", i), value});
  }
  return std::move(inner).Build(std::move(outputs));
}

absl::StatusOr<std::vector<Value>> TermLowerer::LowerControl(
    const Term& term, std::vector<Value> operands) {
  const CallTerm& call = *term.call;
  std::vector<TermPtr> captures;
  absl::flat_hash_map<const Term*, bool> seen;
  for (const RegionTerm& region : call.regions) {
    for (const TermPtr& result : region.results) {
      CollectCaptures(result, region.first_order, &seen, &captures);
    }
  }
  // Terms that are one value, as the branches of a choice may name it, are one
  // operand.
  std::vector<Value> captured;
  std::vector<size_t> operands_of;  // by capture
  for (const TermPtr& term_captured : captures) {
    CLEAVE_ASSIGN_OR_RETURN(const Value value, Lower(term_captured));
    const auto at = std::find(captured.begin(), captured.end(), value);
    operands_of.push_back(at - captured.begin());
    if (at == captured.end()) captured.push_back(value);
  }
  std::vector<Graph> regions;
  for (const RegionTerm& region : call.regions) {
    CLEAVE_ASSIGN_OR_RETURN(Graph graph,
                            LowerRegion(region, captures, operands_of));
    regions.push_back(std::move(graph));
  }
  builder_.SetProvenance(term.provenance);
  Attributes attributes = call.attributes;
  std::vector<Value> all;
  if (call.primitive == Primitive::kScan) {
    attributes.Set("body", MakeRegion(std::move(regions[0])));
    attributes.Set("consts", static_cast<int>(captured.size()));
    all = captured;
    all.insert(all.end(), operands.begin(), operands.end());
  } else if (call.primitive == Primitive::kWhile) {
    attributes.Set("cond", MakeRegion(std::move(regions[0])));
    attributes.Set("body", MakeRegion(std::move(regions[1])));
    attributes.Set("consts", static_cast<int>(captured.size()));
    all = captured;
    all.insert(all.end(), operands.begin(), operands.end());
  } else {
    attributes.Set("then", MakeRegion(std::move(regions[0])));
    attributes.Set("else", MakeRegion(std::move(regions[1])));
    all = {operands[0]};
    all.insert(all.end(), captured.begin(), captured.end());
  }
  CLEAVE_ASSIGN_OR_RETURN(const Value node,
                          builder_.Add(call.primitive, attributes, all));
  return ResultsOf(builder_, node);
}

}  // namespace cleave
