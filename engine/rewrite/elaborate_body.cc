// Bodies, folds and regions.

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/rewrite/elaborator.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

}  // namespace

Elaborator::Result Elaborator::EvalBody(
    const Body& body, Scope& scope,
    const std::vector<DeclaredResult>& declared) {
  for (const Statement& statement : body.statements) {
    const Equation& equation = statement.equation;
    if (statement.kind == StatementKind::kLet) {
      CLEAVE_ASSIGN_OR_RETURN(RuleValue value,
                              EvalEquation(equation, scope, nullptr));
      scope.Set(equation.name, std::move(value));
      continue;
    }
    if (statement.kind != StatementKind::kResult) continue;
    if (equation.name.empty() && equation.value->kind == ExprKind::kRecord) {
      return EvalRecord(*equation.value, scope, declared);
    }
    return EvalEquation(equation, scope,
                        declared.size() == 1 ? &declared[0] : nullptr);
  }
  return Fail(DiagnosticKind::kSyntax, body.range, "the body has no result");
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

Elaborator::Result Elaborator::EvalScan(const Expr& e, Scope& scope) {
  auto call = std::make_shared<CallTerm>();
  call->primitive = Primitive::kScan;
  RegionTerm region;
  std::vector<TermPtr> operands;
  Scope inner(&scope);
  const auto array = [&](const Expr& x) -> absl::StatusOr<TermPtr> {
    CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Eval(x, scope));
    CLEAVE_ASSIGN_OR_RETURN(TermPtr term, ToTerm(value, x.range));
    if (IsElement(*term)) {
      return Fail(DiagnosticKind::kPlacement, x.range,
                  "a scan runs over arrays, not over elements");
    }
    return term;
  };
  for (const Equation& carry : e.fields) {
    CLEAVE_ASSIGN_OR_RETURN(TermPtr init, array(*carry.value));
    operands.push_back(std::move(init));
  }
  std::optional<Dim> length;
  for (size_t i = 0; i < e.binders.size(); ++i) {
    CLEAVE_ASSIGN_OR_RETURN(TermPtr xs, array(*e.children[i]));
    if (xs->shape.empty()) {
      return Fail(DiagnosticKind::kShape, e.children[i]->range,
                  "a scan runs along axis 0; this is a scalar");
    }
    if (length.has_value() &&
        !terms_.RequireEqual(*length, xs->shape[0],
                             "what a scan runs over has one length")) {
      return Fail(
          DiagnosticKind::kShape, e.children[i]->range,
          absl::StrCat("a scan runs over ", length->ToString(), " and over ",
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
  if (!body.Is(Kind::kRecord)) {
    return Fail(DiagnosticKind::kType, e.body->range,
                "the body of a scan gives a record with the next carries");
  }
  SetPlace(e.range);
  std::vector<std::string> names;
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
    const absl::Status unified = UnifyDTypes({operands[i], term});
    if (!unified.ok()) return At(unified, e.range, DiagnosticKind::kType);
    absl::StatusOr<TermPtr> carried =
        terms_.BroadcastTo(term, operands[i]->shape);
    if (!carried.ok()) return At(carried.status(), e.range);
    region.results.push_back(*std::move(carried));
    call->results.push_back(
        {operands[i]->dtype, operands[i]->shape, operands[i]->groups});
    names.push_back(e.fields[i].name);
  }
  for (const auto& [name, value] : body.AsRecord()) {
    bool is_carry = false;
    for (const Equation& carry : e.fields) {
      is_carry = is_carry || carry.name == name;
    }
    if (is_carry) continue;
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
  RuleRecord record;
  for (size_t i = 0; i < names.size(); ++i) {
    record.emplace_back(names[i], terms_.Result(term, static_cast<int>(i)));
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
