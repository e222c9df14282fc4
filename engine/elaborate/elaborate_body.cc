// Bodies, folds and regions.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/elaborate/elaborator.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

}  // namespace

absl::Status Elaborator::EvalLets(const Body& body, Scope& scope) {
  for (const Statement& statement : body.statements) {
    if (statement.kind != StatementKind::kLet) continue;
    const Equation& equation = statement.equation;
    if (observer_ != nullptr) observer_->Evaluated(*equation.value);
    CLEAVE_ASSIGN_OR_RETURN(RuleValue value,
                            EvalEquation(equation, scope, nullptr));
    scope.Set(equation.name, std::move(value));
  }
  return absl::OkStatus();
}

Elaborator::Result Elaborator::EvalBody(
    const Body& body, Scope& scope,
    const std::vector<DeclaredResult>& declared) {
  CLEAVE_RETURN_IF_ERROR(EvalLets(body, scope));
  for (const Statement& statement : body.statements) {
    if (statement.kind != StatementKind::kResult) continue;
    const Equation& equation = statement.equation;
    if (observer_ != nullptr) observer_->Evaluated(*equation.value);
    if (equation.name.empty() && equation.value->kind == ExprKind::kRecord) {
      return EvalRecord(*equation.value, scope, declared);
    }
    return EvalEquation(equation, scope,
                        declared.size() == 1 ? &declared[0] : nullptr);
  }
  return Fail(DiagnosticKind::kSyntax, body.range, "the body has no result");
}

Elaborator::Result Elaborator::EvalStatement(const Statement& statement,
                                             Scope& scope) {
  const Expr& value = *statement.equation.value;
  if (observer_ != nullptr) observer_->Evaluated(value);
  return Eval(value, scope);
}

Elaborator::Result Elaborator::EvalFold(const Expr& e, Scope& scope) {
  CLEAVE_ASSIGN_OR_RETURN(RuleValue value, Eval(*e.fields[0].value, scope));
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue over, Eval(*e.children[0], scope));
  CLEAVE_ASSIGN_OR_RETURN(const RuleList list,
                          AsElements(over, e.children[0]->range));
  for (const RuleValue& element : list) {
    Scope inner(&scope);
    inner.Set(e.fields[0].name, std::move(value));
    inner.Set(e.binders[0].name, element);
    CLEAVE_ASSIGN_OR_RETURN(value, EvalBody(*e.body, inner));
  }
  return value;
}

absl::StatusOr<TermPtr> Elaborator::EvalArray(const Expr& e, Scope& scope) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Eval(e, scope));
  CLEAVE_ASSIGN_OR_RETURN(TermPtr term, ToTerm(value, e.range));
  if (IsElement(*term)) {
    return Fail(DiagnosticKind::kPlacement, e.range,
                "a loop runs over arrays, not over elements");
  }
  return term;
}

absl::Status Elaborator::AddNextCarries(const Expr& e, const RuleValue& body,
                                        const std::vector<TermPtr>& first,
                                        RegionTerm* region, CallTerm* call) {
  if (!body.Is(Kind::kRecord)) {
    return Fail(DiagnosticKind::kType, e.body->range,
                absl::StrCat("the body of a ",
                             e.kind == ExprKind::kWhile ? "while" : "scan",
                             " gives a record with the next carries"));
  }
  for (size_t i = 0; i < e.fields.size(); ++i) {
    const RuleValue* next = nullptr;
    for (const auto& [name, value] : body.AsRecord()) {
      if (name == e.fields[i].name) next = &value;
    }
    if (next == nullptr) {
      return Fail(DiagnosticKind::kType, e.body->range,
                  absl::StrCat("the body does not say the next `",
                               e.fields[i].name, "`"));
    }
    CLEAVE_ASSIGN_OR_RETURN(TermPtr term, ToTerm(*next, e.body->range));
    const absl::Status unified = UnifyDTypes({first[i], term});
    if (!unified.ok()) return At(unified, e.range, DiagnosticKind::kType);
    absl::StatusOr<TermPtr> carried = terms_.BroadcastTo(term, first[i]->shape);
    if (!carried.ok()) return At(carried.status(), e.range);
    region->results.push_back(*std::move(carried));
    call->results.push_back(
        {first[i]->dtype, first[i]->shape, first[i]->groups});
  }
  return absl::OkStatus();
}

// A map is a scan that carries nothing.
Elaborator::Result Elaborator::EvalScan(const Expr& e, Scope& scope) {
  auto call = std::make_shared<CallTerm>();
  call->primitive = Primitive::kScan;
  const absl::string_view what = e.kind == ExprKind::kMap ? "a map" : "a scan";
  RegionTerm region;
  std::vector<TermPtr> operands;
  Scope inner(&scope);
  for (const Equation& carry : e.fields) {
    CLEAVE_ASSIGN_OR_RETURN(TermPtr init, EvalArray(*carry.value, scope));
    operands.push_back(std::move(init));
  }
  std::optional<Dim> length;
  for (size_t i = 0; i < e.binders.size(); ++i) {
    CLEAVE_ASSIGN_OR_RETURN(TermPtr xs, EvalArray(*e.children[i], scope));
    if (xs->shape.empty()) {
      return Fail(DiagnosticKind::kShape, e.children[i]->range,
                  absl::StrCat(what, " runs along axis 0; this is a scalar"));
    }
    if (length.has_value() &&
        !terms_.RequireEqual(
            *length, xs->shape[0],
            absl::StrCat("what ", what, " runs over has one length"))) {
      return Fail(
          DiagnosticKind::kShape, e.children[i]->range,
          absl::StrCat(what, " runs over ", length->ToString(), " and over ",
                       xs->shape[0].ToString(), " elements"));
    }
    length = xs->shape[0];
    operands.push_back(std::move(xs));
  }
  region.first_order = terms_.next_order();
  for (size_t i = 0; i < operands.size(); ++i) {
    const TermPtr& x = operands[i];
    const bool is_carry = i < e.fields.size();
    TermPtr parameter =
        is_carry
            ? terms_.WithGroups(terms_.Parameter(x->dtype, x->shape), x->groups)
            : terms_.Parameter(x->dtype,
                               Shape(x->shape.begin() + 1, x->shape.end()));
    region.parameters.push_back(parameter);
    inner.Set(is_carry ? e.fields[i].name : e.binders[i - e.fields.size()].name,
              std::move(parameter));
  }
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue body, EvalBody(*e.body, inner));
  SetPlace(e.range);
  std::vector<std::string> names;
  if (e.kind == ExprKind::kScan) {
    CLEAVE_RETURN_IF_ERROR(
        AddNextCarries(e, body, operands, &region, call.get()));
    for (const Equation& carry : e.fields) names.push_back(carry.name);
  }
  RuleRecord stacked;
  if (body.Is(Kind::kRecord)) {
    for (const auto& [name, value] : body.AsRecord()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        stacked.emplace_back(name, value);
      }
    }
  } else {
    stacked.emplace_back("", body);
  }
  for (const auto& [name, value] : stacked) {
    CLEAVE_ASSIGN_OR_RETURN(TermPtr term, ToTerm(value, e.body->range));
    Shape shape = term->shape;
    shape.insert(shape.begin(), *length);
    call->results.push_back({term->dtype, std::move(shape), {}});
    region.results.push_back(std::move(term));
    names.push_back(name);
  }
  call->attributes = {{"carries", static_cast<int>(e.fields.size())},
                      {"length", *length},
                      {"reverse", false}};
  call->regions.push_back(std::move(region));
  const TermPtr term = terms_.Call(std::move(call), std::move(operands));
  if (!body.Is(Kind::kRecord)) return RuleValue(terms_.Result(term, 0));
  RuleRecord record;
  for (size_t i = 0; i < names.size(); ++i) {
    record.emplace_back(names[i], terms_.Result(term, static_cast<int>(i)));
  }
  return RuleValue(std::move(record));
}

Elaborator::Result Elaborator::EvalWhile(const Expr& e, Scope& scope) {
  auto call = std::make_shared<CallTerm>();
  call->primitive = Primitive::kWhile;
  if (e.children.size() > 1) {
    const SourceRange range = e.children[1]->range;
    CLEAVE_ASSIGN_OR_RETURN(const RuleValue max, Eval(*e.children[1], scope));
    if (!max.Is(Kind::kInt)) {
      return Fail(DiagnosticKind::kStatic, range,
                  absl::StrCat("`max` is a number of steps that is known "
                               "before the loop, not ",
                               max.KindName()));
    }
    const Dim& steps = max.AsDim();
    switch (cleave::Compare(steps, CompareOp::kGe, Dim(0))) {
      case Truth::kTrue:
        break;
      case Truth::kUnknown:
        guards().push_back(
            {steps, CompareOp::kGe, Dim(0), "while: `max` is at least 0"});
        break;
      case Truth::kFalse:
        return Fail(
            DiagnosticKind::kStatic, range,
            absl::StrCat("`max` is ", steps.ToString(), ", below 0 steps"));
    }
    call->attributes.Set("max", steps);
  }
  std::vector<TermPtr> operands;
  for (const Equation& carry : e.fields) {
    CLEAVE_ASSIGN_OR_RETURN(TermPtr first, EvalArray(*carry.value, scope));
    operands.push_back(std::move(first));
  }
  RegionTerm condition;
  condition.first_order = terms_.next_order();
  Scope inner(&scope);
  for (size_t i = 0; i < operands.size(); ++i) {
    const TermPtr& x = operands[i];
    TermPtr parameter =
        terms_.WithGroups(terms_.Parameter(x->dtype, x->shape), x->groups);
    condition.parameters.push_back(parameter);
    inner.Set(e.fields[i].name, std::move(parameter));
  }
  RegionTerm body = condition;  // of the same carries
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue holds, Eval(*e.children[0], inner));
  CLEAVE_ASSIGN_OR_RETURN(TermPtr predicate,
                          ToTerm(holds, e.children[0]->range));
  if (!predicate->shape.empty() || IsElement(*predicate) ||
      !DTypeVariable::Unify(predicate->dtype,
                            DTypeVariable::Known(DType::kBool))) {
    return Fail(DiagnosticKind::kType, e.children[0]->range,
                "`while` goes on by one bool, outside of index notation",
                "`reduce_any` and `reduce_all` make one of many");
  }
  condition.results.push_back(std::move(predicate));
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue next, EvalBody(*e.body, inner));
  SetPlace(e.range);
  CLEAVE_RETURN_IF_ERROR(AddNextCarries(e, next, operands, &body, call.get()));
  if (next.AsRecord().size() != e.fields.size()) {
    return Fail(DiagnosticKind::kType, e.body->range,
                "the body of a while gives the next carries and nothing else",
                "a loop of unknown length stacks nothing; carry what is to be "
                "kept");
  }
  call->regions.push_back(std::move(condition));
  call->regions.push_back(std::move(body));
  const TermPtr term = terms_.Call(std::move(call), std::move(operands));
  RuleRecord record;
  for (size_t i = 0; i < e.fields.size(); ++i) {
    record.emplace_back(e.fields[i].name,
                        terms_.Result(term, static_cast<int>(i)));
  }
  return RuleValue(std::move(record));
}

Elaborator::Result Elaborator::EvalCond(const Expr& e, Scope& scope) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Eval(*e.children[0], scope));
  if (!value.IsDynamic() || value.is_optional()) {
    CLEAVE_ASSIGN_OR_RETURN(
        const bool taken,
        EvalCondition(*e.children[0], scope,
                      "the rule chooses a branch by this size"));
    Scope inner(&scope);
    return EvalBody(taken ? *e.body : *e.else_body, inner);
  }
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr predicate, ToTerm(value, e.range));
  if (!predicate->shape.empty() || IsElement(*predicate) ||
      !DTypeVariable::Unify(predicate->dtype,
                            DTypeVariable::Known(DType::kBool))) {
    return Fail(DiagnosticKind::kType, e.children[0]->range,
                "`cond` chooses by one bool, outside of index notation",
                "elements choose by `select(c, a, b)`");
  }
  Decide(*e.children[0], true);
  Decide(*e.children[0], false);
  auto call = std::make_shared<CallTerm>();
  call->primitive = Primitive::kCond;
  std::vector<std::vector<std::pair<std::string, TermPtr>>> branches;
  bool is_record = false;
  call->regions.resize(2);
  for (const BodyPtr& body : {e.body, e.else_body}) {
    call->regions[branches.size()].first_order = terms_.next_order();
    Scope inner(&scope);
    CLEAVE_ASSIGN_OR_RETURN(const RuleValue result, EvalBody(*body, inner));
    std::vector<std::pair<std::string, TermPtr>> terms;
    if (result.Is(Kind::kRecord)) {
      is_record = true;
      for (const auto& [name, field] : result.AsRecord()) {
        CLEAVE_ASSIGN_OR_RETURN(TermPtr term, ToTerm(field, body->range));
        terms.emplace_back(name, std::move(term));
      }
    } else {
      CLEAVE_ASSIGN_OR_RETURN(TermPtr term, ToTerm(result, body->range));
      terms.emplace_back("", std::move(term));
    }
    branches.push_back(std::move(terms));
  }
  SetPlace(e.range);
  for (size_t i = 0; i < branches[0].size(); ++i) {
    const TermPtr& a = branches[0][i].second;
    TermPtr b;
    for (const auto& [name, term] : branches[1]) {
      if (name == branches[0][i].first) b = term;
    }
    if (b == nullptr || branches[0].size() != branches[1].size()) {
      return Fail(DiagnosticKind::kType, e.range,
                  "both branches of `cond` give the same results");
    }
    const absl::Status unified = UnifyDTypes({a, b});
    if (!unified.ok()) return At(unified, e.range, DiagnosticKind::kType);
    absl::StatusOr<Shape> shape = terms_.Broadcast({a->shape, b->shape});
    if (!shape.ok()) return At(shape.status(), e.range);
    CLEAVE_ASSIGN_OR_RETURN(TermPtr x, terms_.BroadcastTo(a, *shape));
    CLEAVE_ASSIGN_OR_RETURN(TermPtr y, terms_.BroadcastTo(b, *shape));
    call->regions[0].results.push_back(std::move(x));
    call->regions[1].results.push_back(std::move(y));
    call->results.push_back({a->dtype, *std::move(shape), a->groups});
  }
  const TermPtr term = terms_.Call(std::move(call), {predicate});
  if (!is_record) return RuleValue(terms_.Result(term, 0));
  RuleRecord record;
  for (size_t i = 0; i < branches[0].size(); ++i) {
    record.emplace_back(branches[0][i].first,
                        terms_.Result(term, static_cast<int>(i)));
  }
  return RuleValue(std::move(record));
}

}  // namespace cleave
