// Calls of defs, ops and transforms.

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/bind/builtins.h"
#include "engine/elaborate/elaborator.h"
#include "engine/ir/call_attributes.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

}  // namespace

absl::StatusOr<Elaborator::Arguments> Elaborator::EvalArguments(
    const std::vector<ExprPtr>& positional, const std::vector<NamedExpr>& named,
    Scope& scope) {
  Arguments arguments;
  for (const ExprPtr& e : positional) {
    CLEAVE_ASSIGN_OR_RETURN(RuleValue value, Eval(*e, scope));
    if (value.Is(Kind::kPack)) {
      return absl::AbortedError("the number of indices is not known yet");
    }
    arguments.positional.push_back(std::move(value));
  }
  for (const NamedExpr& e : named) {
    CLEAVE_ASSIGN_OR_RETURN(RuleValue value, Eval(*e.value, scope));
    arguments.named.emplace_back(e.name, std::move(value));
  }
  return arguments;
}

Elaborator::Result Elaborator::EvalCall(const Expr& e, Scope& scope,
                                        absl::string_view tie) {
  if (e.text == "impossible") {
    if (e.children.size() != 1 || e.children[0]->kind != ExprKind::kString) {
      return Fail(DiagnosticKind::kArgument, e.range,
                  "`impossible` takes the reason, a string");
    }
    return RuleValue(RuleValue::Impossible{e.children[0]->text});
  }
  CLEAVE_ASSIGN_OR_RETURN(const Arguments arguments,
                          EvalArguments(e.children, e.named, scope));
  // Static builtins may share their names with ops (`sum` of a list).
  CLEAVE_ASSIGN_OR_RETURN(std::optional<RuleValue> value,
                          CallStaticBuiltin(e.text, arguments, e.range));
  if (value.has_value()) return *std::move(value);
  if (const Item* def = library_.FindDef(e.text, *source_)) {
    return CallDef(*def, arguments, e.range);
  }
  if (const Callable* callable = library_.FindCallable(e.text)) {
    if (!tie.empty()) {
      return Fail(DiagnosticKind::kPlacement, e.range,
                  "`@tie` stands behind a call of max, min or a reduction");
    }
    return CallOp(*callable, arguments, e.range);
  }
  CLEAVE_ASSIGN_OR_RETURN(value, CallBuiltin(e.text, arguments, tie, e.range));
  if (value.has_value()) return *std::move(value);
  std::vector<std::string> names = BuiltinNames();
  for (const auto& [name, unused] : library_.callables()) names.push_back(name);
  for (const std::string& name : library_.DefNames()) names.push_back(name);
  const std::string closest = ClosestName(e.text, names);
  return Fail(
      DiagnosticKind::kUnknownOp, e.range,
      absl::StrCat("there is no op, def or builtin `", e.text, "`"),
      closest.empty() ? "" : absl::StrCat("did you mean `", closest, "`?"));
}

Elaborator::Result Elaborator::CallDef(const Item& def,
                                       const Arguments& arguments,
                                       SourceRange range) {
  if (depth_ >= kMaxInliningDepth) {
    return Fail(
        DiagnosticKind::kLimit, range,
        absl::StrCat("defs are nested deeper than ", kMaxInliningDepth));
  }
  const size_t given = arguments.positional.size() + arguments.named.size();
  if (given != def.parameters.size()) {
    return Fail(DiagnosticKind::kArgument, range,
                absl::StrCat("`", def.name, "` takes ", def.parameters.size(),
                             " arguments, not ", given));
  }
  Scope scope;
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    scope.Set(def.parameters[i], arguments.positional[i]);
  }
  for (const auto& [name, value] : arguments.named) {
    bool found = false;
    for (const std::string& parameter : def.parameters) {
      found = found || parameter == name;
    }
    if (!found || scope.HasOwn(name)) {
      return Fail(
          DiagnosticKind::kUnknownAttribute, range,
          absl::StrCat("`", def.name, "` has no parameter `", name, "`"));
    }
    scope.Set(name, value);
  }
  const Source* saved = std::exchange(source_, &library_.SourceOf(def));
  ++depth_;
  Result result = [&] {
    const BudgetFrame frame(def.name);
    return EvalBody(*def.body, scope);
  }();
  --depth_;
  source_ = saved;
  return result;
}

Elaborator::Result Elaborator::CallOp(const Callable& callable,
                                      const Arguments& arguments,
                                      SourceRange range) {
  SetPlace(range);
  if (callees_ == nullptr && !callable.has_result_types) {
    return Fail(DiagnosticKind::kPlacement, range,
                absl::StrCat("`", callable.name,
                             "`, an op of a host, is not called here"));
  }
  Elaborator binder(library_, context_, rule_, callees_);
  binder.EnterSource(*callable.source);
  // Extents known at run time only get names of this body.
  bool names_extents = false;
  BindOptions options;
  options.new_extent = [&](absl::string_view name) {
    names_extents = true;
    return DynamicExtent(
        absl::StrCat(rule_, ".", callable.name, dynamic_extents_, ".", name));
  };
  absl::StatusOr<BoundCall> call = Bind(callable, arguments, options, binder);
  if (!call.ok()) return At(call.status(), range, DiagnosticKind::kArgument);
  // Rewrites have no bodies to look into, nor calls that need them.
  if (callees_ != nullptr) {
    const absl::Status typed = BindHostResults(*callees_, options, &*call);
    if (!typed.ok()) return At(typed, range);
  }
  if (names_extents) ++dynamic_extents_;
  // A `let` of the declaration may be a call, too.
  calls_.splice(calls_.end(), binder.calls_);
  calls_.push_back(*std::move(call));
  return CallBound(calls_.back(), range);
}

Elaborator::Result Elaborator::CallBound(const BoundCall& bound,
                                         SourceRange range) {
  const Callable& callable = *bound.callable;
  const std::vector<std::optional<TermType>>& types = bound.results;
  auto call = std::make_shared<CallTerm>();
  call->op = callable.name;
  call->bound = &bound;
  std::vector<int> places;  // of results among those that are present
  for (const std::optional<TermType>& type : types) {
    places.push_back(type.has_value() ? static_cast<int>(call->results.size())
                                      : -1);
    if (type.has_value()) call->results.push_back(*type);
  }
  const bool single = call->results.size() == 1;
  const TermPtr term = terms_.Call(std::move(call), bound.operands);
  if (IsElement(*term) && !term->call->results.empty() &&
      !term->call->results[0].shape.empty()) {
    return Fail(
        DiagnosticKind::kShape, range,
        absl::StrCat("`", callable.name,
                     "` of elements gives an array; call it on arrays"));
  }
  const auto result = [&](int place) -> RuleValue {
    if (place < 0) return RuleValue();
    return single ? term : terms_.Result(term, place);
  };
  if (callable.has_result_list) {
    RuleList list;
    for (const int place : places) list.push_back(result(place));
    return RuleValue(std::move(list));
  }
  if (types.size() == 1) return result(places[0]);
  RuleRecord record;
  for (size_t i = 0; i < types.size(); ++i) {
    std::string name = callable.results[i].name;
    if (name.empty()) name = absl::StrCat("y", i);
    record.emplace_back(std::move(name), result(places[i]));
  }
  return RuleValue(std::move(record));
}

// jvp f(primals)(tangents): a call of the op "jvp:f", whose body transforms
// give. Its operands are those of f, then the tangents of the active ones;
// `active` tells which. Its results are the tangents of f's inexact results.
Elaborator::Result Elaborator::EvalTransformCall(const Expr& e, Scope& scope) {
  const Callable* callable = library_.FindCallable(e.callee);
  if (callable == nullptr) {
    std::vector<std::string> names;
    for (const auto& [name, unused] : library_.callables()) {
      names.push_back(name);
    }
    const std::string closest = ClosestName(e.callee, names);
    return Fail(
        DiagnosticKind::kUnknownOp, e.range,
        absl::StrCat("there is no op or fn `", e.callee, "`"),
        closest.empty() ? "" : absl::StrCat("did you mean `", closest, "`?"));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Arguments primals,
                          EvalArguments(e.children, e.named, scope));
  CLEAVE_ASSIGN_OR_RETURN(const Arguments seconds,
                          EvalArguments(e.seconds, e.named_seconds, scope));
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue primal,
                          CallOp(*callable, primals, e.range));
  // The call itself: the term, or what its results are results of.
  TermPtr call;
  std::vector<std::pair<std::string, RuleValue>> results;
  if (primal.Is(Kind::kTerm)) {
    results.emplace_back("y", primal);
  } else {
    results = primal.AsRecord();
  }
  for (const auto& [name, value] : results) {
    if (!value.Is(Kind::kTerm)) continue;
    call = value.AsTerm();
    if (call->kind == TermKind::kResult) call = call->children[0];
  }
  CLEAVE_CHECK(call != nullptr && call->call != nullptr);
  if (call->kind == TermKind::kCallElement) {
    return Fail(DiagnosticKind::kPlacement, e.range,
                "a derivative is taken of arrays, not of elements");
  }
  if (e.text == "vjp") {
    return EvalVjpCall(e, *callable, call, results, seconds);
  }
  // Tangents by position are those of the tensor inputs, in order.
  std::vector<RuleValue> tangents(callable->inputs.size());
  for (size_t i = 0; i < seconds.positional.size(); ++i) {
    if (i >= tangents.size()) {
      return Fail(DiagnosticKind::kArgument, e.range, "too many tangents");
    }
    tangents[i] = seconds.positional[i];
  }
  for (const auto& [name, value] : seconds.named) {
    bool found = false;
    for (size_t i = 0; i < callable->inputs.size(); ++i) {
      if (callable->inputs[i].name != name) continue;
      tangents[i] = value;
      found = true;
    }
    if (!found) {
      return Fail(DiagnosticKind::kUnknownAttribute, e.range,
                  absl::StrCat("`", e.callee, "` has no input `", name, "`"));
    }
  }
  auto derived = std::make_shared<CallTerm>(*call->call);
  derived->op = absl::StrCat(kJvpCallPrefix, callable->name);
  derived->results.clear();
  std::vector<TermPtr> children = call->children;
  const size_t operands = children.size();
  std::vector<TermPtr> tangent_of(operands);
  const CallLayout& layout = call->call->bound->layout;
  for (size_t i = 0; i < layout.inputs.size(); ++i) {
    if (tangents[i].Is(Kind::kAbsent)) continue;
    const CallLayout::Input& input = layout.inputs[i];
    for (size_t k = 0; k < input.operands.size(); ++k) {
      const RuleValue& tangent = input.list && tangents[i].Is(Kind::kList) &&
                                         k < tangents[i].AsList().size()
                                     ? tangents[i].AsList()[k]
                                     : tangents[i];
      if (input.operands[k] < 0 || tangent.Is(Kind::kAbsent)) continue;
      CLEAVE_ASSIGN_OR_RETURN(tangent_of[input.operands[k]],
                              ToTerm(tangent, e.range));
    }
  }
  StaticValue::List active;
  for (size_t i = 0; i < operands; ++i) {
    const bool is_active = tangent_of[i] != nullptr && !IsZero(tangent_of[i]);
    active.push_back(is_active);
    if (!is_active) continue;
    absl::StatusOr<TermPtr> tangent =
        terms_.BroadcastTo(tangent_of[i], children[i]->shape);
    if (!tangent.ok()) return At(tangent.status(), e.range);
    const absl::Status unified = UnifyDTypes({children[i], *tangent});
    if (!unified.ok()) return At(unified, e.range, DiagnosticKind::kType);
    children.push_back(*std::move(tangent));
  }
  derived->attributes.Set(kActive, std::move(active));
  for (const TermType& type : call->call->results) {
    const std::optional<DType> dtype = type.dtype->dtype();
    if (!dtype.has_value() || InClass(*dtype, DTypeClass::kInexact)) {
      derived->results.push_back(type);
    }
  }
  const bool single = derived->results.size() == 1;
  const TermPtr term = terms_.Call(std::move(derived), std::move(children));
  RuleRecord record;
  int place = 0;
  for (const auto& [name, value] : results) {
    if (!value.Is(Kind::kTerm)) {
      record.emplace_back(name, RuleValue());
      continue;
    }
    const std::optional<DType> dtype = value.AsTerm()->dtype->dtype();
    if (dtype.has_value() && !InClass(*dtype, DTypeClass::kInexact)) {
      record.emplace_back(name, RuleValue());  // it has no tangent
      continue;
    }
    record.emplace_back(name, single ? term : terms_.Result(term, place++));
  }
  if (record.size() == 1) return record[0].second;
  return RuleValue(std::move(record));
}

// vjp f(primals)(cotangents): for each input a call of the op "vjp:f", which
// gives the cotangents of its operands and costs nothing where it is not used.
// Its operands are those of f, then the cotangents that are given, in the order
// of the results; `live` tells which, `active` of which operands it is.
Elaborator::Result Elaborator::EvalVjpCall(
    const Expr& e, const Callable& callable, const TermPtr& call,
    const std::vector<std::pair<std::string, RuleValue>>& results,
    const Arguments& seconds) {
  std::vector<RuleValue> given(results.size());
  if (seconds.positional.size() > results.size()) {
    return Fail(
        DiagnosticKind::kArgument, e.range,
        absl::StrCat("`", e.callee, "` has ", results.size(), " results, but ",
                     seconds.positional.size(), " cotangents are given"));
  }
  for (size_t i = 0; i < seconds.positional.size(); ++i) {
    given[i] = seconds.positional[i];
  }
  for (const auto& [name, value] : seconds.named) {
    const auto at = std::find_if(
        results.begin(), results.end(),
        [&, &name = name](const auto& r) { return r.first == name; });
    if (at == results.end()) {
      return Fail(DiagnosticKind::kUnknownAttribute, e.range,
                  absl::StrCat("`", e.callee, "` has no result `", name, "`"));
    }
    given[at - results.begin()] = value;
  }
  std::vector<TermPtr> children = call->children;
  const size_t operands = children.size();
  StaticValue::List live;
  for (size_t i = 0; i < results.size(); ++i) {
    if (!results[i].second.Is(Kind::kTerm)) continue;  // it is absent
    const TermPtr& result = results[i].second.AsTerm();
    TermPtr cotangent;
    if (!given[i].Is(Kind::kAbsent)) {
      CLEAVE_ASSIGN_OR_RETURN(cotangent, ToTerm(given[i], e.range));
    }
    const bool is_live = cotangent != nullptr && !IsZero(cotangent);
    live.push_back(is_live);
    if (!is_live) continue;
    const std::optional<DType> dtype = result->dtype->dtype();
    if (dtype.has_value() && !InClass(*dtype, DTypeClass::kInexact)) {
      return Fail(DiagnosticKind::kType, e.range,
                  absl::StrCat("the result `", results[i].first, "` of `",
                               e.callee, "` has no cotangent"));
    }
    absl::StatusOr<TermPtr> spread =
        terms_.BroadcastTo(cotangent, result->shape);
    if (!spread.ok()) return At(spread.status(), e.range);
    const absl::Status unified = UnifyDTypes({result, *spread});
    if (!unified.ok()) return At(unified, e.range, DiagnosticKind::kType);
    children.push_back(*std::move(spread));
  }
  RuleRecord record;
  const CallLayout& layout = call->call->bound->layout;
  for (size_t j = 0; j < callable.inputs.size(); ++j) {
    const CallLayout::Input& input = layout.inputs[j];
    const std::string& name = callable.inputs[j].name;
    if (input.is_static()) continue;
    if (input.absent()) {
      record.emplace_back(name, RuleValue());
      continue;
    }
    RuleList cotangents;
    for (const int k : input.operands) {
      if (k < 0) {
        cotangents.push_back(RuleValue());
        continue;
      }
      const TermPtr& operand = children[k];
      const std::optional<DType> dtype = operand->dtype->dtype();
      if (dtype.has_value() && !InClass(*dtype, DTypeClass::kInexact)) {
        cotangents.push_back(RuleValue());  // it has none
        continue;
      }
      auto derived = std::make_shared<CallTerm>(*call->call);
      derived->op = absl::StrCat(kVjpCallPrefix, callable.name);
      StaticValue::List active;
      for (size_t i = 0; i < operands; ++i) {
        active.push_back(static_cast<int>(i) == k);
      }
      derived->attributes.Set(kActive, std::move(active));
      derived->attributes.Set(kLive, live);
      derived->results = {TermType{operand->dtype, operand->shape, {}}};
      cotangents.push_back(terms_.Call(std::move(derived), children));
    }
    record.emplace_back(
        name, input.list ? RuleValue(std::move(cotangents)) : cotangents[0]);
  }
  return RuleValue(std::move(record));
}

}  // namespace cleave
