// Names, operators, lists and records.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/elaborate/elaborator.h"
#include "ops/budget.h"
#include "ops/check.h"
#include "ops/refusal.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

}  // namespace

Elaborator::Elaborator(const Library& library, Context& context,
                       std::string rule, const Callees* callees)
    : library_(library),
      context_(context),
      rule_(std::move(rule)),
      callees_(callees),
      observer_(callees == nullptr ? nullptr : callees->observer()) {}

absl::Status Elaborator::Fail(DiagnosticKind kind, SourceRange range,
                              absl::string_view message,
                              absl::string_view help) {
  if (!diagnostic_.has_value()) {
    diagnostic_ =
        Diagnostic{kind, std::string(message), range, std::string(help), ""};
    diagnostic_source_ = source_;
  }
  const Source::Position place = source_->PositionOf(range.begin);
  return absl::InvalidArgumentError(
      absl::StrCat(source_->name(), ":", place.line, ":", place.column, ": ",
                   message, help.empty() ? "" : "; ", help));
}

absl::Status Elaborator::At(const absl::Status& status, SourceRange range,
                            DiagnosticKind kind) {
  if (status.ok() || diagnostic_.has_value()) return status;
  if (status.code() == absl::StatusCode::kAborted ||
      absl::IsCancelled(status) || absl::IsDeadlineExceeded(status)) {
    return status;
  }
  Fail(kind, range, status.message()).IgnoreError();
  const Source::Position place = source_->PositionOf(range.begin);
  return AtPlace(status, absl::StrCat(source_->name(), ":", place.line, ":",
                                      place.column));
}

void Elaborator::SetPlace(SourceRange range) {
  terms_.SetProvenance(context_.Intern(Provenance{
      rule_, source_->name(), source_->PositionOf(range.begin).line}));
}

Dim Elaborator::DynamicExtent(const std::string& name) const {
  const auto it = dynamic_names_.find(name);
  return it == dynamic_names_.end() ? Dim::Variable(name) : it->second;
}

absl::Status Elaborator::CheckList(size_t size, SourceRange range) {
  if (size <= kMaxListLength) return absl::OkStatus();
  return Fail(DiagnosticKind::kLimit, range,
              absl::StrCat("a list may have ", kMaxListLength, " elements"));
}

Elaborator::Result Elaborator::Eval(const Expr& e, Scope& scope) {
  Result result = Deeper([&]() -> Result {
    CLEAVE_RETURN_IF_ERROR(ChargeBudget(BudgetKind::kExpressions));
    return EvalNew(e, scope);
  });
  if (absl::IsResourceExhausted(result.status())) {
    return At(result.status(), e.range, DiagnosticKind::kLimit);
  }
  if (result.ok() && result->Is(Kind::kTerm) &&
      result->AsTerm()->height > kMaxElementHeight) {
    return At(absl::ResourceExhaustedError(absl::StrCat(
                  "the expression of an element nests more than ",
                  kMaxElementHeight, " deep; a `let` of an array breaks it")),
              e.range, DiagnosticKind::kLimit);
  }
  return result;
}

Elaborator::Result Elaborator::EvalNew(const Expr& e, Scope& scope) {
  switch (e.kind) {
    case ExprKind::kNumber: {
      absl::StatusOr<Exact> number = Exact::Parse(e.text);
      if (!number.ok()) {
        return Fail(DiagnosticKind::kBadNumber, e.range,
                    number.status().message());
      }
      const bool is_integer = e.text.find_first_of(".eE") == std::string::npos;
      const std::optional<int64_t> value = number->ToInt64();
      if (is_integer && value.has_value()) return RuleValue(Dim(*value));
      return RuleValue(*std::move(number));
    }
    case ExprKind::kString:
      return RuleValue(e.text);
    case ExprKind::kName:
      return EvalName(e, scope);
    case ExprKind::kUnary:
      return EvalUnary(e, scope);
    case ExprKind::kBinary:
      return EvalBinary(e, scope);
    case ExprKind::kIf:
      return EvalIf(e, scope);
    case ExprKind::kCall:
      return EvalCall(e, scope, "");
    case ExprKind::kTransformCall:
      return EvalTransformCall(e, scope);
    case ExprKind::kMember:
      return EvalMember(e, scope);
    case ExprKind::kIndex:
      return EvalIndex(e, scope);
    case ExprKind::kSpread:
      return Fail(DiagnosticKind::kPlacement, e.range,
                  "`..` spreads a list in an index, a shape or a list only; a "
                  "range names its end, as in `xs[1..len(xs)]`");
    case ExprKind::kList:
      return EvalList(e, scope);
    case ExprKind::kComprehension:
      return EvalComprehension(e, scope);
    case ExprKind::kRecord:
      return EvalRecord(e, scope, {});
    case ExprKind::kReduce:
      return EvalReduce(e, scope, false);
    case ExprKind::kFold:
      return EvalFold(e, scope);
    case ExprKind::kScan:
    case ExprKind::kMap:
      return EvalScan(e, scope);
    case ExprKind::kCond:
      return EvalCond(e, scope);
    case ExprKind::kWhile:
      return EvalWhile(e, scope);
    case ExprKind::kTie:
      return EvalTie(e, scope);
  }
  return absl::InternalError("an expression of no kind");
}

Elaborator::Result Elaborator::EvalName(const Expr& e, Scope& scope) {
  if (const RuleValue* value = scope.Find(e.text)) {
    if (value->Is(Kind::kPack) && value->AsPack()->known) {
      RuleList list;
      for (const OpenIndexPtr& index : value->AsPack()->indices) {
        list.push_back(index);
      }
      return RuleValue(std::move(list));
    }
    return *value;
  }
  if (e.text == "true") return RuleValue(true);
  if (e.text == "false") return RuleValue(false);
  if (e.text == "inf") return RuleValue(Exact::Infinity());
  if (e.text == "nan") return RuleValue(Exact::NaN());
  if (e.text == "pi") return RuleValue(Exact::Pi());
  if (const absl::StatusOr<DType> dtype = ParseDType(e.text); dtype.ok()) {
    return RuleValue(DTypeVariable::Known(*dtype));
  }
  if (library_.IsEnumWord(e.text)) return RuleValue(e.text);
  std::vector<std::string> names;
  scope.CollectNames(&names);
  const std::string closest = ClosestName(e.text, names);
  return Fail(
      DiagnosticKind::kUnknownName, e.range,
      absl::StrCat("`", e.text, "` is not defined here"),
      closest.empty() ? "" : absl::StrCat("did you mean `", closest, "`?"));
}

absl::StatusOr<Dim> Elaborator::EvalDim(const Expr& e, Scope& scope) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Eval(e, scope));
  if (value.Is(Kind::kInt)) return value.AsDim();
  return Fail(DiagnosticKind::kStatic, e.range,
              absl::StrCat("a size is wanted here, not ", value.KindName()));
}

absl::StatusOr<Shape> Elaborator::EvalDims(const Expr& e, Scope& scope) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Eval(e, scope));
  CLEAVE_ASSIGN_OR_RETURN(const RuleList list, AsElements(value, e.range));
  Shape shape;
  for (const RuleValue& element : list) {
    if (!element.Is(Kind::kInt)) {
      return Fail(DiagnosticKind::kStatic, e.range,
                  absl::StrCat("a list of sizes is wanted here; it holds ",
                               element.KindName()));
    }
    shape.push_back(element.AsDim());
  }
  return shape;
}

absl::StatusOr<DTypePtr> Elaborator::EvalDType(const Expr& e, Scope& scope) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Eval(e, scope));
  if (value.Is(Kind::kDType)) return value.AsDType();
  return Fail(DiagnosticKind::kType, e.range,
              absl::StrCat("a dtype is wanted here, not ", value.KindName()));
}

absl::StatusOr<TermPtr> Elaborator::ToTerm(const RuleValue& value,
                                           SourceRange range) {
  switch (value.kind()) {
    case Kind::kTerm:
      return value.AsTerm();
    case Kind::kInt:
      return terms_.DimNumber(value.AsDim());
    case Kind::kReal:
      return terms_.Number(value.AsReal());
    case Kind::kBool:
      return terms_.Bool(value.AsBool());
    case Kind::kCondition: {
      const TermPtr margin = terms_.DimNumber(MarginOf(value.AsCondition()));
      return terms_.Pointwise(Primitive::kGe, {margin, terms_.Number(0)});
    }
    case Kind::kIndex:
      return terms_.Index(value.AsIndex());
    case Kind::kPack:
      return absl::AbortedError("the number of indices is not known yet");
    default:
      return Fail(DiagnosticKind::kType, range,
                  absl::StrCat("a tensor or a number is wanted here, not ",
                               // A word that nothing binds is one, too.
                               value.Is(Kind::kString)
                                   ? absl::StrCat("`", value.AsString(), "`")
                                   : value.KindName()));
  }
}

Elaborator::Result Elaborator::EvalUnary(const Expr& e, Scope& scope) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue x, Eval(*e.children[0], scope));
  if (e.text == "not") {
    // A tensor's negation, unless it asks whether an optional value is there.
    if (x.IsDynamic() && !x.is_optional()) {
      return ApplyPointwise(Primitive::kNot, {x}, {}, e.range);
    }
    const std::optional<Truth2> truth = TruthOf(x);
    if (!truth.has_value()) {
      return Fail(DiagnosticKind::kType, e.range,
                  absl::StrCat("`not` takes a condition, not ", x.KindName()));
    }
    if (const bool* known = std::get_if<bool>(&*truth))
      return RuleValue(!*known);
    return RuleValue(Negate(std::get<Condition>(*truth)));
  }
  // The literal -0.0 is the negative zero, which -(0) is not.
  if (e.children[0]->kind == ExprKind::kNumber && x.Is(Kind::kReal) &&
      x.AsReal() == Exact(0)) {
    return RuleValue(Exact::FromDouble(-0.0));
  }
  switch (x.kind()) {
    case Kind::kInt: {
      absl::StatusOr<Dim> negated = Dim::CheckedSub(0, x.AsDim());
      if (!negated.ok()) {
        return At(negated.status(), e.range, DiagnosticKind::kLimit);
      }
      return RuleValue(*std::move(negated));
    }
    case Kind::kReal:
      return RuleValue(-x.AsReal());
    case Kind::kImpossible:
      return x;
    default:
      return ApplyPointwise(Primitive::kNeg, {x}, {}, e.range);
  }
}

Elaborator::Result Elaborator::EvalBinary(const Expr& e, Scope& scope) {
  if (e.text == "and" || e.text == "or") return EvalAndOr(e, scope);
  if (e.text == "??") return EvalCoalesce(e, scope);
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue a, Eval(*e.children[0], scope));
  if (e.text == "is") return IsOf(a, *e.children[1], scope, e.range);
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue b, Eval(*e.children[1], scope));
  if (e.text == "..") return Range(a, b, e.range);
  if (e.text == "++") return Concatenate(a, b, e.range);
  if (e.text == "in") {
    CLEAVE_ASSIGN_OR_RETURN(const RuleList list, AsElements(b, e.range));
    Truth2 result = false;
    for (const RuleValue& element : list) {
      CLEAVE_ASSIGN_OR_RETURN(const Truth2 equal,
                              StaticEqual(a, element, e.range));
      if (const bool* known = std::get_if<bool>(&equal)) {
        if (*known) return RuleValue(true);
        continue;
      }
      const Condition& condition = std::get<Condition>(equal);
      result = std::holds_alternative<bool>(result)
                   ? condition
                   : Or(std::get<Condition>(result), condition);
    }
    return FromTruth(result);
  }
  if (e.text == "@") {
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, ToTerm(a, e.children[0]->range));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr y, ToTerm(b, e.children[1]->range));
    return Matmul(x, y, e.range);
  }
  if (e.text == "==" || e.text == "!=" || e.text == "<" || e.text == "<=" ||
      e.text == ">" || e.text == ">=") {
    return Compare(e.text, a, b, e.range);
  }
  if (e.text == "^") return Power(a, b, e.range);
  return Arithmetic(e.text, a, b, e.range);
}

Elaborator::Result Elaborator::EvalIf(const Expr& e, Scope& scope) {
  const bool has_else = e.children.size() > 2;
  CLEAVE_ASSIGN_OR_RETURN(const Truth2 truth, EvalTruth(*e.children[0], scope));
  bool taken;
  if (const bool* known = std::get_if<bool>(&truth)) {
    taken = *known;
  } else {
    const Condition& condition = std::get<Condition>(truth);
    if (observer_ != nullptr) observer_->LeftOpen(*e.children[0]);
    taken = HoldsForLargeSizes(condition);
    if (has_else) {
      // A size that rests on the condition: a formula, and no guard.
      CLEAVE_ASSIGN_OR_RETURN(const RuleValue chosen,
                              Eval(*e.children[taken ? 1 : 2], scope));
      if (chosen.Is(Kind::kInt)) {
        CLEAVE_ASSIGN_OR_RETURN(const RuleValue other,
                                Eval(*e.children[taken ? 2 : 1], scope));
        if (other.Is(Kind::kInt)) {
          const Dim& a = taken ? chosen.AsDim() : other.AsDim();
          const Dim& b = taken ? other.AsDim() : chosen.AsDim();
          const Dim holds =
              Dim::Min(Dim::Max(MarginOf(condition) + Dim(1), Dim(0)), Dim(1));
          absl::StatusOr<Dim> chooses = Dim::CheckedSub(a, b);
          if (chooses.ok()) chooses = Dim::CheckedMul(holds, *chooses);
          if (chooses.ok()) chooses = Dim::CheckedAdd(b, *chooses);
          if (!chooses.ok()) {
            return At(chooses.status(), e.range, DiagnosticKind::kLimit);
          }
          Decide(*e.children[0], true);
          Decide(*e.children[0], false);
          return RuleValue(*std::move(chooses));
        }
      }
    }
    Choose(taken ? condition : Negate(condition),
           "the rule chooses a branch by this size");
  }
  Decide(*e.children[0], taken);
  if (taken) return Eval(*e.children[1], scope);
  if (has_else) return Eval(*e.children[2], scope);
  return RuleValue();
}

Elaborator::Result Elaborator::EvalMember(const Expr& e, Scope& scope) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Eval(*e.children[0], scope));
  if (value.Is(Kind::kAbsent)) return value;
  if (!value.Is(Kind::kRecord)) {
    return Fail(
        DiagnosticKind::kType, e.range,
        absl::StrCat("`.", e.text, "` reads a record, not ", value.KindName()));
  }
  std::vector<std::string> names;
  for (const auto& [name, field] : value.AsRecord()) {
    if (name == e.text) return field;
    names.push_back(name);
  }
  const std::string closest = ClosestName(e.text, names);
  return Fail(DiagnosticKind::kUnknownName, e.range,
              absl::StrCat("the record has no `", e.text, "`"),
              closest.empty() ? absl::StrCat("its fields: `",
                                             absl::StrJoin(names, "`, `"), "`")
                              : absl::StrCat("did you mean `", closest, "`?"));
}

absl::StatusOr<RuleList> Elaborator::AsElements(const RuleValue& value,
                                                SourceRange range) {
  if (value.Is(Kind::kList)) return value.AsList();
  if (value.Is(Kind::kPack)) {
    return absl::AbortedError("the number of indices is not known yet");
  }
  return Fail(DiagnosticKind::kType, range,
              absl::StrCat("a list is wanted here, not ", value.KindName()));
}

Elaborator::Result Elaborator::EvalList(const Expr& e, Scope& scope) {
  RuleList list;
  for (const ExprPtr& child : e.children) {
    const bool spread = child->kind == ExprKind::kSpread;
    CLEAVE_ASSIGN_OR_RETURN(RuleValue value,
                            Eval(spread ? *child->children[0] : *child, scope));
    if (spread) {
      CLEAVE_ASSIGN_OR_RETURN(const RuleList inner,
                              AsElements(value, child->range));
      list.insert(list.end(), inner.begin(), inner.end());
    } else {
      list.push_back(std::move(value));
    }
    CLEAVE_RETURN_IF_ERROR(CheckList(list.size(), e.range));
  }
  return RuleValue(std::move(list));
}

Elaborator::Result Elaborator::EvalComprehension(const Expr& e, Scope& scope) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue over, Eval(*e.children[1], scope));
  CLEAVE_ASSIGN_OR_RETURN(const RuleList elements,
                          AsElements(over, e.children[1]->range));
  RuleList list;
  for (const RuleValue& element : elements) {
    Scope inner(&scope);
    inner.Set(e.binders[0].name, element);
    if (e.children.size() > 2) {
      CLEAVE_ASSIGN_OR_RETURN(
          const bool wanted,
          EvalCondition(*e.children[2], inner,
                        "the rule chooses elements of a list by this size"));
      if (!wanted) continue;
    }
    CLEAVE_ASSIGN_OR_RETURN(RuleValue value, Eval(*e.children[0], inner));
    list.push_back(std::move(value));
  }
  return RuleValue(std::move(list));
}

Elaborator::Result Elaborator::EvalRecord(
    const Expr& e, Scope& scope, const std::vector<DeclaredResult>& declared) {
  RuleRecord record;
  for (size_t i = 0; i < e.fields.size(); ++i) {
    const Equation& field = e.fields[i];
    const DeclaredResult* result = nullptr;
    for (const DeclaredResult& d : declared) {
      if (!field.name.empty() && d.name == field.name) result = &d;
    }
    if (field.name.empty() && i < declared.size()) result = &declared[i];
    std::string name = field.name;
    if (name.empty() && result != nullptr) name = result->name;
    if (result != nullptr && result->absent) {
      record.emplace_back(std::move(name), RuleValue());
      continue;
    }
    CLEAVE_ASSIGN_OR_RETURN(RuleValue value,
                            EvalEquation(field, scope, result));
    record.emplace_back(std::move(name), std::move(value));
  }
  return RuleValue(std::move(record));
}

Elaborator::Result Elaborator::EvalCoalesce(const Expr& e, Scope& scope) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue left, Eval(*e.children[0], scope));
  Decide(*e.children[0], !left.Is(Kind::kAbsent));
  if (left.Is(Kind::kAbsent)) return Eval(*e.children[1], scope);
  if (left.is_optional() || !left.IsDynamic()) return left;
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue right, Eval(*e.children[1], scope));
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr read, ToTerm(left, e.range));
  if (read->kind == TermKind::kNumber || read->kind == TermKind::kDim) {
    return left;
  }
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr fill,
                          ToTerm(right, e.children[1]->range));
  absl::StatusOr<TermPtr> filled = terms_.ReadOr(read, fill);
  if (!filled.ok()) return At(filled.status(), e.range, DiagnosticKind::kType);
  if (*filled == nullptr) {
    return Fail(DiagnosticKind::kPlacement, e.range,
                "`??` stands behind an optional value or a read `x[i]`; this "
                "is never absent");
  }
  return RuleValue(*std::move(filled));
}

Elaborator::Result Elaborator::EvalTie(const Expr& e, Scope& scope) {
  const Expr& call = *e.children[0];
  if (call.kind == ExprKind::kReduce) {
    if (e.text == "second") {
      return Fail(DiagnosticKind::kPlacement, e.range,
                  "a reduction has no second operand; `@tie(first)` is meant");
    }
    return EvalReduce(call, scope, true);
  }
  if (call.kind == ExprKind::kCall) return EvalCall(call, scope, e.text);
  return Fail(DiagnosticKind::kPlacement, e.range,
              "`@tie` stands behind a call of max, min or a reduction");
}

Elaborator::Result Elaborator::ApplyPointwise(
    Primitive primitive, const std::vector<RuleValue>& args,
    const Attributes& attributes, SourceRange range) {
  for (const RuleValue& arg : args) {
    if (arg.Is(Kind::kImpossible)) return arg;
  }
  SetPlace(range);
  std::vector<TermPtr> operands;
  for (const RuleValue& arg : args) {
    CLEAVE_ASSIGN_OR_RETURN(TermPtr operand, ToTerm(arg, range));
    operands.push_back(std::move(operand));
  }
  absl::StatusOr<TermPtr> term =
      terms_.Pointwise(primitive, std::move(operands), attributes);
  if (!term.ok()) {
    const bool dtype =
        term.status().message().find("dtype") != absl::string_view::npos;
    return At(term.status(), range,
              dtype ? DiagnosticKind::kType : DiagnosticKind::kShape);
  }
  return RuleValue(*std::move(term));
}

}  // namespace cleave
