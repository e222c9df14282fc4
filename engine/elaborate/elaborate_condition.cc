// Conditions: what is static, and what asks whether a value is given.

#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "engine/elaborate/elaborator.h"
#include "ops/status_macros.h"

namespace cleave {

namespace {

using Kind = RuleValue::Kind;

}  // namespace

std::optional<Truth2> Elaborator::TruthOf(const RuleValue& value) {
  switch (value.kind()) {
    case Kind::kBool:
      return value.AsBool();
    case Kind::kCondition:
      return value.AsCondition();
    case Kind::kAbsent:
      return false;
    case Kind::kTerm: {
      if (value.is_optional()) return true;
      const std::optional<DType> dtype = value.AsTerm()->dtype->dtype();
      if (dtype.has_value() && !IsBool(*dtype) && !IsElement(*value.AsTerm())) {
        return true;
      }
      return std::nullopt;
    }
    case Kind::kIndex:
    case Kind::kPack:
    case Kind::kImpossible:
      return std::nullopt;
    default:
      return true;  // given
  }
}

absl::StatusOr<Truth2> Elaborator::EvalTruth(const Expr& e, Scope& scope) {
  // Each operand of `not`, `and` and `or` is asked for its own truth: a tensor
  // that is given is true, but `not` and `and` of it as a value would be of its
  // elements.
  if (e.kind == ExprKind::kUnary && e.text == "not") {
    CLEAVE_ASSIGN_OR_RETURN(const Truth2 x, EvalTruth(*e.children[0], scope));
    if (const bool* known = std::get_if<bool>(&x)) return Truth2(!*known);
    return Truth2(Negate(std::get<Condition>(x)));
  }
  if (e.kind == ExprKind::kBinary && (e.text == "and" || e.text == "or")) {
    const bool is_and = e.text == "and";
    CLEAVE_ASSIGN_OR_RETURN(const Truth2 x, EvalTruth(*e.children[0], scope));
    const bool* const first = std::get_if<bool>(&x);
    if (first != nullptr && *first != is_and) return x;
    CLEAVE_ASSIGN_OR_RETURN(const Truth2 y, EvalTruth(*e.children[1], scope));
    if (first != nullptr) return y;
    if (const bool* second = std::get_if<bool>(&y)) {
      return *second == is_and ? x : y;
    }
    const Condition& p = std::get<Condition>(x);
    const Condition& q = std::get<Condition>(y);
    return Truth2(is_and ? And(p, q) : Or(p, q));
  }
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Eval(e, scope));
  const std::optional<Truth2> truth = TruthOf(value);
  if (!truth.has_value()) {
    return Fail(
        DiagnosticKind::kStatic, e.range,
        absl::StrCat("a condition here must be static, not ", value.KindName()),
        "values choose by `select(c, a, b)`");
  }
  return *truth;
}

absl::StatusOr<bool> Elaborator::EvalCondition(const Expr& e, Scope& scope,
                                               absl::string_view why) {
  CLEAVE_ASSIGN_OR_RETURN(const Truth2 truth, EvalTruth(e, scope));
  const bool* const known = std::get_if<bool>(&truth);
  const bool holds = known != nullptr
                         ? *known
                         : HoldsForLargeSizes(std::get<Condition>(truth));
  if (known == nullptr) {
    const Condition& condition = std::get<Condition>(truth);
    Choose(holds ? condition : Negate(condition), why);
  }
  Decide(e, holds);
  return holds;
}

Elaborator::Result Elaborator::EvalAndOr(const Expr& e, Scope& scope) {
  const bool is_and = e.text == "and";
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue a, Eval(*e.children[0], scope));
  const bool a_dynamic = a.IsDynamic() && !a.is_optional();
  std::optional<Truth2> x;
  if (!a_dynamic) x = TruthOf(a);
  const bool decides = x.has_value() && std::holds_alternative<bool>(*x) &&
                       std::get<bool>(*x) != is_and;
  const bool a_number = a.IsNumber() && !a.is_optional();
  // The right side is not looked at.
  if (decides && !a_number) return RuleValue(!is_and);
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue b, Eval(*e.children[1], scope));
  const bool b_dynamic = b.IsDynamic() && !b.is_optional();
  // A number beside a tensor is an operand: bits of integers.
  if ((a_number && b_dynamic) ||
      (b.IsNumber() && !b.is_optional() && a_dynamic)) {
    return ApplyPointwise(is_and ? Primitive::kAnd : Primitive::kOr, {a, b}, {},
                          e.range);
  }
  if (decides) return RuleValue(!is_and);
  std::optional<Truth2> y;
  if (!b_dynamic) y = TruthOf(b);
  if (a_dynamic || b_dynamic) {
    // An operand whose truth is known is neutral or decides.
    if (x.has_value() && std::holds_alternative<bool>(*x)) return b;
    if (y.has_value() && std::holds_alternative<bool>(*y)) {
      return std::get<bool>(*y) == is_and ? a : RuleValue(!is_and);
    }
    return ApplyPointwise(is_and ? Primitive::kAnd : Primitive::kOr, {a, b}, {},
                          e.range);
  }
  if (!x.has_value() || !y.has_value()) {
    return Fail(DiagnosticKind::kType, e.range,
                absl::StrCat("`", e.text, "` takes conditions, not ",
                             (x.has_value() ? b : a).KindName()));
  }
  if (std::holds_alternative<bool>(*x)) return FromTruth(*y);
  if (const bool* known = std::get_if<bool>(&*y)) {
    return *known == is_and ? FromTruth(*x) : RuleValue(!is_and);
  }
  const Condition& p = std::get<Condition>(*x);
  const Condition& q = std::get<Condition>(*y);
  return RuleValue(is_and ? And(p, q) : Or(p, q));
}

}  // namespace cleave
