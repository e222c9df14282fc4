// Calls of builtins: pointwise primitives, and those of
// engine/bind/builtin.def.

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/bind/builtins.h"
#include "engine/elaborate/builtin_call.h"
#include "engine/elaborate/elaborator.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

bool IsExtremum(Primitive primitive) {
  switch (primitive) {
    case Primitive::kMax:
    case Primitive::kMin:
    case Primitive::kReduceMax:
    case Primitive::kReduceMin:
    case Primitive::kArgmax:
    case Primitive::kArgmin:
      return true;
    default:
      return false;
  }
}

// A pointwise primitive as a builtin.
Builtin PointwiseBuiltin(absl::string_view name, Primitive primitive) {
  Builtin builtin{name, "", {}, {}};
  builtin.operands.resize(OperandCount(primitive), "x");
  if (primitive == Primitive::kConvert ||
      primitive == Primitive::kBitcastConvert) {
    builtin.attributes.push_back({"dtype", ""});
  }
  return builtin;
}

}  // namespace

// The extremum of two static numbers; nullopt where one is symbolic and the
// other is real.
absl::StatusOr<std::optional<RuleValue>> Elaborator::StaticExtremum(
    bool is_max, const RuleValue& a, const RuleValue& b, SourceRange range) {
  if (a.Is(Kind::kInt) && b.Is(Kind::kInt)) {
    const std::vector<Dim> both = {a.AsDim(), b.AsDim()};
    absl::StatusOr<Dim> extremum =
        is_max ? Dim::CheckedMax(both) : Dim::CheckedMin(both);
    if (!extremum.ok()) {
      return At(extremum.status(), range, DiagnosticKind::kLimit);
    }
    return std::optional<RuleValue>(*std::move(extremum));
  }
  const std::optional<Exact> x = ToExact(a);
  const std::optional<Exact> y = ToExact(b);
  if (!x.has_value() || !y.has_value()) return std::optional<RuleValue>();
  if (*x == *y) {  // -0 is below 0
    return std::optional<RuleValue>(x->IsNegativeZero() == is_max ? *y : *x);
  }
  return std::optional<RuleValue>((*x < *y) == is_max ? *y : *x);
}

absl::StatusOr<std::optional<RuleValue>> Elaborator::CallStaticBuiltin(
    const std::string& name, const Arguments& arguments, SourceRange range) {
  const std::vector<RuleValue>& args = arguments.positional;
  const auto run = [&](const Builtin& builtin, BuiltinFunction function)
      -> absl::StatusOr<std::optional<RuleValue>> {
    BuiltinCall call(builtin, arguments, range, "", *this);
    CLEAVE_RETURN_IF_ERROR(call.Check());
    CLEAVE_ASSIGN_OR_RETURN(RuleValue value, function(call));
    return std::optional<RuleValue>(std::move(value));
  };
  if (BuiltinFunction function = FindStaticBuiltin(name)) {
    return run(*FindBuiltin(name), function);
  }
  if (name == "sum" && args.size() == 1 && args[0].Is(Kind::kList)) {
    return run({"sum", "", {"list"}, {}}, SumOfList);
  }
  if ((name == "max" || name == "min") && args.size() == 2 &&
      args[0].IsNumber() && args[1].IsNumber()) {
    return StaticExtremum(name == "max", args[0], args[1], range);
  }
  // A pointwise function of one number is computed exactly.
  if (args.size() == 1 && arguments.named.empty()) {
    if (const std::optional<Exact> x = ToExact(args[0])) {
      std::optional<Exact> y = Exact::Apply(name, *x);
      if (y.has_value() && library_.FindDef(name, *source_) == nullptr &&
          library_.FindCallable(name) == nullptr) {
        return std::optional<RuleValue>(*std::move(y));
      }
    }
  }
  return std::optional<RuleValue>();
}

Elaborator::Result Elaborator::CallPointwise(Primitive primitive,
                                             BuiltinCall& call,
                                             SourceRange range) {
  if (primitive == Primitive::kBitcastConvert) {
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
    CLEAVE_ASSIGN_OR_RETURN(const DType dtype, call.KnownDType("dtype"));
    CLEAVE_ASSIGN_OR_RETURN(TermPtr y, terms_.BitcastConvert(x, dtype));
    return RuleValue(std::move(y));
  }
  if (primitive == Primitive::kConvert) {
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
    CLEAVE_ASSIGN_OR_RETURN(const DTypePtr dtype, call.DTypeOf("dtype"));
    // A number has no dtype before: it is rounded once, to this one.
    if (call.operands()[0].IsNumber() &&
        DTypeVariable::Unify(x->dtype, dtype)) {
      return RuleValue(x);
    }
    CLEAVE_ASSIGN_OR_RETURN(TermPtr y, terms_.Convert(x, dtype));
    return RuleValue(std::move(y));
  }
  Attributes attributes;
  if (IsExtremum(primitive)) attributes.Set("tie", call.tie());
  return ApplyPointwise(primitive, call.operands(), attributes, range);
}

absl::StatusOr<std::optional<RuleValue>> Elaborator::CallBuiltin(
    const std::string& name, const Arguments& arguments, absl::string_view tie,
    SourceRange range) {
  if (!IsBuiltin(name)) return std::optional<RuleValue>();
  const std::optional<Primitive> primitive = FindPrimitive(name);
  const Builtin* declared = FindBuiltin(name);
  const Builtin builtin =
      declared != nullptr ? *declared : PointwiseBuiltin(name, *primitive);
  BuiltinCall call(builtin, arguments, range, tie, *this);
  for (const RuleValue& value : arguments.positional) {
    if (value.Is(Kind::kImpossible)) return std::optional<RuleValue>(value);
    if (value.Is(Kind::kAbsent)) {
      return call.Wrong("takes no absent value; ask first whether it is there");
    }
  }
  SetPlace(range);
  if (!tie.empty() && !(primitive.has_value() && IsExtremum(*primitive))) {
    return Fail(DiagnosticKind::kPlacement, range,
                "`@tie` stands behind a call of max, min or a reduction");
  }
  CLEAVE_RETURN_IF_ERROR(call.Check());
  RuleValue result;
  if (declared == nullptr) {
    CLEAVE_ASSIGN_OR_RETURN(result, CallPointwise(*primitive, call, range));
  } else if (BuiltinFunction function = FindTensorBuiltin(name)) {
    CLEAVE_ASSIGN_OR_RETURN(result, function(call));
  } else {
    return call.Wrong("is static and takes no tensors");
  }
  return std::optional<RuleValue>(std::move(result));
}

}  // namespace cleave
