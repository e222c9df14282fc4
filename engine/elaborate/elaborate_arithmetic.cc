// Arithmetic and comparisons, of static values and of tensors.

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/elaborate/elaborator.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

CompareOp ToCompareOp(absl::string_view op) {
  if (op == "==") return CompareOp::kEq;
  if (op == "!=") return CompareOp::kNe;
  if (op == "<") return CompareOp::kLt;
  if (op == "<=") return CompareOp::kLe;
  if (op == ">") return CompareOp::kGt;
  CLEAVE_CHECK(op == ">=") << op;
  return CompareOp::kGe;
}

Primitive ToPrimitiveCompare(CompareOp op) {
  switch (op) {
    case CompareOp::kEq:
      return Primitive::kEq;
    case CompareOp::kNe:
      return Primitive::kNe;
    case CompareOp::kLt:
      return Primitive::kLt;
    case CompareOp::kLe:
      return Primitive::kLe;
    case CompareOp::kGt:
      return Primitive::kGt;
    case CompareOp::kGe:
      return Primitive::kGe;
  }
  return Primitive::kEq;
}

bool CompareExact(const Exact& a, CompareOp op, const Exact& b) {
  switch (op) {
    case CompareOp::kEq:
      return a == b;
    case CompareOp::kNe:
      return a != b;
    case CompareOp::kLt:
      return a < b;
    case CompareOp::kLe:
      return a <= b;
    case CompareOp::kGt:
      return b < a;
    case CompareOp::kGe:
      return b <= a;
  }
  return false;
}

// A symbolic extent against a constant that is no symbolic extent.
Truth2 CompareWithReal(const Dim& a, CompareOp op, const Exact& b) {
  if (b.IsNaN()) return op == CompareOp::kNe;
  if (!b.IsFinite()) {
    const bool below = Exact(0) < b;  // every extent is below +inf
    return op == CompareOp::kNe ||
           (below ? op == CompareOp::kLt || op == CompareOp::kLe
                  : op == CompareOp::kGt || op == CompareOp::kGe);
  }
  if (const std::optional<int64_t> integer = b.ToInt64()) {
    return Decide(a, op, Dim(*integer));
  }
  const std::optional<Exact> floor = Exact::Apply("floor", b);
  const std::optional<int64_t> below =
      floor.has_value() ? floor->ToInt64() : std::nullopt;
  if (!below.has_value()) {  // beyond every extent
    return CompareWithReal(
        a, op, Exact(0) < b ? Exact::Infinity() : -Exact::Infinity());
  }
  switch (op) {
    case CompareOp::kEq:
      return false;
    case CompareOp::kNe:
      return true;
    case CompareOp::kLt:
    case CompareOp::kLe:
      return Decide(a, CompareOp::kLe, Dim(*below));
    default:
      return Decide(a, CompareOp::kGt, Dim(*below));
  }
}

CompareOp Mirrored(CompareOp op) {
  switch (op) {
    case CompareOp::kLt:
      return CompareOp::kGt;
    case CompareOp::kLe:
      return CompareOp::kGe;
    case CompareOp::kGt:
      return CompareOp::kLt;
    case CompareOp::kGe:
      return CompareOp::kLe;
    default:
      return op;
  }
}

// Two static numbers.
Truth2 CompareNumbers(const RuleValue& a, CompareOp op, const RuleValue& b) {
  if (a.Is(Kind::kInt) && b.Is(Kind::kInt)) {
    return Decide(a.AsDim(), op, b.AsDim());
  }
  const std::optional<Exact> x = ToExact(a);
  const std::optional<Exact> y = ToExact(b);
  if (x.has_value() && y.has_value()) return CompareExact(*x, op, *y);
  if (y.has_value()) return CompareWithReal(a.AsDim(), op, *y);
  return CompareWithReal(b.AsDim(), Mirrored(op), *x);
}

std::optional<Primitive> ArithmeticPrimitive(absl::string_view op) {
  if (op == "+") return Primitive::kAdd;
  if (op == "-") return Primitive::kSub;
  if (op == "*") return Primitive::kMul;
  if (op == "/") return Primitive::kDiv;
  if (op == "//") return Primitive::kFloorDiv;
  if (op == "%") return Primitive::kFloorMod;
  return std::nullopt;
}

bool IsKnownZero(const RuleValue& value) {
  return value.Is(Kind::kTerm) && IsZero(value.AsTerm());
}

}  // namespace

Elaborator::Result Elaborator::Arithmetic(absl::string_view op,
                                          const RuleValue& a,
                                          const RuleValue& b,
                                          SourceRange range) {
  if (a.IsNumber() && b.IsNumber()) return StaticArithmetic(op, a, b, range);
  if (a.Is(Kind::kImpossible) || b.Is(Kind::kImpossible)) {
    // A coefficient that is not known does not matter where its tangent is 0.
    if (op == "*" && IsKnownZero(a)) return a;
    if (op == "*" && IsKnownZero(b)) return b;
    return a.Is(Kind::kImpossible) ? a : b;
  }
  const std::optional<Primitive> primitive = ArithmeticPrimitive(op);
  CLEAVE_CHECK(primitive.has_value()) << op;
  return ApplyPointwise(*primitive, {a, b}, {}, range);
}

Elaborator::Result Elaborator::StaticArithmetic(absl::string_view op,
                                                const RuleValue& a,
                                                const RuleValue& b,
                                                SourceRange range) {
  const std::optional<Exact> x = ToExact(a);
  const std::optional<Exact> y = ToExact(b);
  // Integers, and extents with integers that were written as reals.
  const auto as_dim = [](const RuleValue& v) -> std::optional<Dim> {
    if (v.Is(Kind::kInt)) return v.AsDim();
    const std::optional<int64_t> integer = v.AsReal().ToInt64();
    if (integer.has_value()) return Dim(*integer);
    return std::nullopt;
  };
  const bool ints = a.Is(Kind::kInt) && b.Is(Kind::kInt);
  if (op != "/" && (ints || !x.has_value() || !y.has_value())) {
    const std::optional<Dim> m = as_dim(a);
    const std::optional<Dim> n = as_dim(b);
    if (m.has_value() && n.has_value()) {
      if ((op == "//" || op == "%") && *n == Dim(0)) {
        return Fail(DiagnosticKind::kStatic, range, "division by zero");
      }
      absl::StatusOr<Dim> result = op == "+"    ? Dim::CheckedAdd(*m, *n)
                                   : op == "-"  ? Dim::CheckedSub(*m, *n)
                                   : op == "*"  ? Dim::CheckedMul(*m, *n)
                                   : op == "//" ? Dim::CheckedFloorDiv(*m, *n)
                                                : Dim::CheckedMod(*m, *n);
      if (!result.ok()) {
        return At(result.status(), range, DiagnosticKind::kLimit);
      }
      return RuleValue(*std::move(result));
    }
  }
  if (x.has_value() && y.has_value()) {
    if (op == "+") return RuleValue(*x + *y);
    if (op == "-") return RuleValue(*x - *y);
    if (op == "*") return RuleValue(*x * *y);
    if (op == "/") return RuleValue(*x / *y);
    if (op == "//") return RuleValue(Exact::FloorDiv(*x, *y));
    return RuleValue(Exact::FloorMod(*x, *y));
  }
  // An extent that is known only when the graph runs.
  const std::optional<Primitive> primitive = ArithmeticPrimitive(op);
  CLEAVE_CHECK(primitive.has_value()) << op;
  return ApplyPointwise(*primitive, {a, b}, {}, range);
}

absl::StatusOr<Truth2> Elaborator::StaticEqual(const RuleValue& a,
                                               const RuleValue& b,
                                               SourceRange range) {
  if (a.IsNumber() && b.IsNumber()) {
    return CompareNumbers(a, CompareOp::kEq, b);
  }
  if (a.Is(Kind::kAbsent) || b.Is(Kind::kAbsent)) return Truth2(false);
  if (a.Is(Kind::kDType) && b.Is(Kind::kDType)) {
    const std::optional<DType> x = a.AsDType()->dtype();
    const std::optional<DType> y = b.AsDType()->dtype();
    if (!x.has_value() || !y.has_value()) {
      return Fail(DiagnosticKind::kType, range,
                  "a dtype that is not known here decides nothing");
    }
    return Truth2(*x == *y);
  }
  if (a.Is(Kind::kString) && b.Is(Kind::kString)) {
    return Truth2(a.AsString() == b.AsString());
  }
  if (a.Is(Kind::kBool) && b.Is(Kind::kBool)) {
    return Truth2(a.AsBool() == b.AsBool());
  }
  if (a.Is(Kind::kList) && b.Is(Kind::kList)) {
    if (a.AsList().size() != b.AsList().size()) return Truth2(false);
    Truth2 result = true;
    for (size_t i = 0; i < a.AsList().size(); ++i) {
      CLEAVE_ASSIGN_OR_RETURN(const Truth2 equal,
                              StaticEqual(a.AsList()[i], b.AsList()[i], range));
      if (const bool* known = std::get_if<bool>(&equal)) {
        if (!*known) return Truth2(false);
        continue;
      }
      const Condition& condition = std::get<Condition>(equal);
      result = std::holds_alternative<bool>(result)
                   ? condition
                   : And(std::get<Condition>(result), condition);
    }
    return result;
  }
  return Fail(
      DiagnosticKind::kType, range,
      absl::StrCat(a.KindName(), " and ", b.KindName(), " cannot be compared"));
}

Elaborator::Result Elaborator::Compare(absl::string_view op, const RuleValue& a,
                                       const RuleValue& b, SourceRange range) {
  const CompareOp compare = ToCompareOp(op);
  if (a.Is(Kind::kPack) || b.Is(Kind::kPack)) {
    return absl::AbortedError("the number of indices is not known yet");
  }
  if (a.IsDynamic() || b.IsDynamic()) {
    return ApplyPointwise(ToPrimitiveCompare(compare), {a, b}, {}, range);
  }
  if (a.IsNumber() && b.IsNumber()) {
    return FromTruth(CompareNumbers(a, compare, b));
  }
  if (compare != CompareOp::kEq && compare != CompareOp::kNe) {
    if (a.Is(Kind::kAbsent) || b.Is(Kind::kAbsent)) {
      return Fail(DiagnosticKind::kStatic, range,
                  "an absent value is compared; ask first whether it is there");
    }
    return Fail(
        DiagnosticKind::kType, range,
        absl::StrCat(a.KindName(), " and ", b.KindName(), " have no order"));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Truth2 equal, StaticEqual(a, b, range));
  if (compare == CompareOp::kEq) return FromTruth(equal);
  if (const bool* known = std::get_if<bool>(&equal)) return RuleValue(!*known);
  return RuleValue(Negate(std::get<Condition>(equal)));
}

Elaborator::Result Elaborator::IsOf(const RuleValue& value, const Expr& of,
                                    Scope& scope, SourceRange range) {
  if (of.kind != ExprKind::kName) {
    return Fail(DiagnosticKind::kType, of.range,
                "`is` asks for a class of dtypes, like `int` or `float`");
  }
  switch (value.kind()) {
    case Kind::kInt:
      return RuleValue(of.text == "int" || of.text == "real" ||
                       of.text == "number" || of.text == "any");
    case Kind::kReal:
      return RuleValue(of.text == "float" || of.text == "inexact" ||
                       of.text == "real" || of.text == "number" ||
                       of.text == "any");
    case Kind::kBool:
      return RuleValue(of.text == "bool" || of.text == "any");
    case Kind::kAbsent:
      return RuleValue(false);
    case Kind::kDType:
    case Kind::kTerm:
      break;
    default:
      return Fail(DiagnosticKind::kType, range,
                  absl::StrCat("`is` asks for the class of a dtype or of a "
                               "number, not of ",
                               value.KindName()));
  }
  const std::optional<DType> dtype = value.Is(Kind::kDType)
                                         ? value.AsDType()->dtype()
                                         : value.AsTerm()->dtype->dtype();
  if (!dtype.has_value()) {
    return Fail(DiagnosticKind::kType, range,
                "the dtype is not known here: nothing asks for one");
  }
  const absl::StatusOr<DTypeClass> dtype_class = ParseDTypeClass(of.text);
  if (dtype_class.ok()) return RuleValue(InClass(*dtype, *dtype_class));
  const absl::StatusOr<DType> exactly = ParseDType(of.text);
  if (exactly.ok()) return RuleValue(*dtype == *exactly);
  return Fail(DiagnosticKind::kUnknownName, of.range,
              absl::StrCat("`", of.text, "` is no class of dtypes"),
              "the classes are int, float, complex, real, inexact, number, "
              "bool and any");
}

Elaborator::Result Elaborator::Power(const RuleValue& base,
                                     const RuleValue& exponent,
                                     SourceRange range) {
  const std::optional<Exact> k = ToExact(exponent);
  const std::optional<int64_t> whole =
      k.has_value() ? k->ToInt64() : std::nullopt;
  const bool is_integer = whole.has_value();
  const int64_t integer = whole.value_or(0);
  if (base.IsNumber() && k.has_value()) {
    const std::optional<Exact> x = ToExact(base);
    if (base.Is(Kind::kInt) && exponent.Is(Kind::kInt) && is_integer &&
        integer >= 0 && integer <= kMaxMultipliedPower) {
      const Exact power = x.has_value() ? Exact::Pow(*x, *k) : Exact();
      if (x.has_value() && !power.ToInt64().has_value()) {
        return RuleValue(power);
      }
      Dim product = 1;
      for (int64_t i = 0; i < integer; ++i) product = product * base.AsDim();
      return RuleValue(product);
    }
    if (x.has_value()) return RuleValue(Exact::Pow(*x, *k));
  }
  if (base.Is(Kind::kImpossible)) return base;
  // x^k by squaring, where k is a small integer.
  if (is_integer && integer != 0 && integer <= kMaxMultipliedPower &&
      integer >= -kMaxMultipliedPower) {
    SetPlace(range);
    CLEAVE_ASSIGN_OR_RETURN(TermPtr square, ToTerm(base, range));
    TermPtr product;
    for (int64_t n = std::abs(integer);;) {
      if (n % 2 == 1) {
        if (product == nullptr) {
          product = square;
        } else {
          CLEAVE_ASSIGN_OR_RETURN(
              product, terms_.Pointwise(Primitive::kMul, {product, square}));
        }
      }
      n /= 2;
      if (n == 0) break;
      CLEAVE_ASSIGN_OR_RETURN(
          square, terms_.Pointwise(Primitive::kMul, {square, square}));
    }
    if (integer > 0) return RuleValue(product);
    return ApplyPointwise(Primitive::kDiv, {RuleValue(1), product}, {}, range);
  }
  return ApplyPointwise(Primitive::kPow, {base, exponent}, {}, range);
}

Elaborator::Result Elaborator::Concatenate(const RuleValue& a,
                                           const RuleValue& b,
                                           SourceRange range) {
  CLEAVE_ASSIGN_OR_RETURN(RuleList list, AsElements(a, range));
  CLEAVE_ASSIGN_OR_RETURN(const RuleList more, AsElements(b, range));
  CLEAVE_RETURN_IF_ERROR(CheckList(list.size() + more.size(), range));
  list.insert(list.end(), more.begin(), more.end());
  return RuleValue(std::move(list));
}

Elaborator::Result Elaborator::Range(const RuleValue& a, const RuleValue& b,
                                     SourceRange range) {
  const auto constant = [](const RuleValue& v) -> std::optional<int64_t> {
    if (!v.Is(Kind::kInt)) return std::nullopt;
    return v.AsDim().Value();
  };
  const std::optional<int64_t> from = constant(a);
  const std::optional<int64_t> to = constant(b);
  if (!from.has_value() || !to.has_value()) {
    return Fail(DiagnosticKind::kStatic, range,
                "the ends of a range must be known integers");
  }
  if (*to > *from) {
    CLEAVE_RETURN_IF_ERROR(CheckList(
        static_cast<uint64_t>(*to) - static_cast<uint64_t>(*from), range));
  }
  RuleList list;
  for (int64_t i = *from; i < *to; ++i) list.push_back(Dim(i));
  return RuleValue(std::move(list));
}

// Matrix product of the last axis of `a` and the last but one of `b`; axes
// before them broadcast, vectors stand for one row or one column.
Elaborator::Result Elaborator::Matmul(const TermPtr& a, const TermPtr& b,
                                      SourceRange range) {
  SetPlace(range);
  if (a->shape.empty() || b->shape.empty()) {
    return Fail(DiagnosticKind::kShape, range, "`@` takes no scalars");
  }
  const absl::Status unified = UnifyDTypes({a, b});
  if (!unified.ok()) return At(unified, range, DiagnosticKind::kType);
  const int a_rank = static_cast<int>(a->shape.size());
  const int b_rank = static_cast<int>(b->shape.size());
  const int a_free = a_rank > 1 ? 2 : 1;
  const int b_free = b_rank > 1 ? 2 : 1;
  const Shape a_batch(a->shape.begin(), a->shape.end() - a_free);
  const Shape b_batch(b->shape.begin(), b->shape.end() - b_free);
  absl::StatusOr<Shape> batch = terms_.Broadcast({a_batch, b_batch});
  if (!batch.ok()) return At(batch.status(), range);
  const auto with_batch = [&](const TermPtr& x, int free) {
    Shape shape = *batch;
    shape.insert(shape.end(), x->shape.end() - free, x->shape.end());
    return terms_.BroadcastTo(x, shape);
  };
  TermPtr x = a;
  TermPtr y = b;
  if (!batch->empty()) {
    CLEAVE_ASSIGN_OR_RETURN(x, with_batch(a, a_free));
    CLEAVE_ASSIGN_OR_RETURN(y, with_batch(b, b_free));
  }
  const int n = static_cast<int>(batch->size());
  std::vector<int> axes;
  for (int d = 0; d < n; ++d) axes.push_back(d);
  absl::StatusOr<TermPtr> product = terms_.Structured(
      Primitive::kDotGeneral,
      {{"batch_a", StaticValue::Ints(axes)},
       {"batch_b", StaticValue::Ints(axes)},
       {"contract_a", StaticValue::Ints(std::vector<int>{n + a_free - 1})},
       {"contract_b", StaticValue::Ints(std::vector<int>{n})}},
      {x, y});
  if (!product.ok()) return At(product.status(), range);
  return RuleValue(*std::move(product));
}

}  // namespace cleave
