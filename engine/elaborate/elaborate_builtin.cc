// Builtins: static functions of lists and dtypes, pointwise and structured
// primitives under the names of rules.

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/bind/builtins.h"
#include "engine/elaborate/elaborator.h"
#include "engine/elaborate/plan_einsum.h"
#include "engine/elaborate/promote.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

std::optional<std::vector<int>> Places(const RuleValue& value) {
  if (value.Is(Kind::kInt)) {
    const std::optional<int64_t> number = value.AsDim().Value();
    if (!number.has_value()) return std::nullopt;
    return std::vector<int>{static_cast<int>(*number)};
  }
  if (!value.Is(Kind::kList)) return std::nullopt;
  std::vector<int> places;
  for (const RuleValue& element : value.AsList()) {
    if (!element.Is(Kind::kInt)) return std::nullopt;
    const std::optional<int64_t> number = element.AsDim().Value();
    if (!number.has_value()) return std::nullopt;
    places.push_back(static_cast<int>(*number));
  }
  return places;
}

bool Contains(const std::vector<int>& places, int place) {
  return std::find(places.begin(), places.end(), place) != places.end();
}

}  // namespace

// A call of a builtin: takes arguments off by name or position, with messages.
struct Elaborator::BuiltinCall {
  const std::string& name;
  const Arguments& arguments;
  SourceRange range;
  absl::string_view tie;
  Elaborator& elaborator;

  absl::Status Wrong(absl::string_view what) {
    return elaborator.Fail(DiagnosticKind::kArgument, range,
                           absl::StrCat("`", name, "` ", what));
  }
  absl::Status CheckNames(size_t positional,
                          const std::vector<absl::string_view>& names) {
    if (arguments.positional.size() != positional) {
      return Wrong(absl::StrCat(
          "takes ", positional, positional == 1 ? " value" : " values",
          " by position, not ", arguments.positional.size()));
    }
    for (const auto& [key, value] : arguments.named) {
      if (std::find(names.begin(), names.end(), key) == names.end()) {
        return elaborator.Fail(
            DiagnosticKind::kUnknownAttribute, range,
            absl::StrCat("`", name, "` has no attribute `", key, "`"));
      }
    }
    return absl::OkStatus();
  }
  absl::StatusOr<TermPtr> Tensor(size_t i) {
    return elaborator.ToTerm(arguments.positional[i], range);
  }
  absl::StatusOr<RuleValue> Attribute(absl::string_view key) {
    const RuleValue* value = arguments.Find(key);
    if (value == nullptr) {
      return Wrong(absl::StrCat("needs `", key, ":`"));
    }
    return *value;
  }
  absl::StatusOr<Shape> Dims(absl::string_view key) {
    CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Attribute(key));
    Shape shape;
    if (!value.Is(Kind::kList)) {
      return Wrong(absl::StrCat("needs a list of sizes as `", key, ":`"));
    }
    for (const RuleValue& element : value.AsList()) {
      if (!element.Is(Kind::kInt)) {
        return Wrong(absl::StrCat("needs a list of sizes as `", key,
                                  ":`; it holds ", element.KindName()));
      }
      shape.push_back(element.AsDim());
    }
    return shape;
  }
  // Normalised axes of a tensor; all of them where `key` is not given.
  absl::StatusOr<std::vector<int>> Axes(absl::string_view key, int rank) {
    const RuleValue* value = arguments.Find(key);
    std::vector<int> axes;
    if (value == nullptr || value->Is(Kind::kAbsent)) {
      for (int d = 0; d < rank; ++d) axes.push_back(d);
      return axes;
    }
    const std::optional<std::vector<int>> places = Places(*value);
    if (!places.has_value()) {
      return Wrong(absl::StrCat("needs known axes as `", key, ":`"));
    }
    for (int axis : *places) {
      const int normal = axis < 0 ? axis + rank : axis;
      if (normal < 0 || normal >= rank) {
        return elaborator.Fail(
            DiagnosticKind::kShape, range,
            absl::StrCat("axis ", axis, " of a tensor with ", rank,
                         rank == 1 ? " axis" : " axes"));
      }
      if (Contains(axes, normal)) {
        return elaborator.Fail(DiagnosticKind::kShape, range,
                               absl::StrCat("axis ", axis, " twice"));
      }
      axes.push_back(normal);
    }
    return axes;
  }
  absl::StatusOr<int> Axis(int rank) {
    CLEAVE_RETURN_IF_ERROR(Attribute("axis").status());
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<int> axes, Axes("axis", rank));
    if (axes.size() != 1) return Wrong("needs one axis as `axis:`");
    return axes[0];
  }
  absl::StatusOr<bool> Flag(absl::string_view key, bool otherwise) {
    const RuleValue* value = arguments.Find(key);
    if (value == nullptr) return otherwise;
    if (!value->Is(Kind::kBool)) {
      return Wrong(absl::StrCat("needs true or false as `", key, ":`"));
    }
    return value->AsBool();
  }
  absl::StatusOr<DTypePtr> DTypeOf(absl::string_view key) {
    CLEAVE_ASSIGN_OR_RETURN(const RuleValue value, Attribute(key));
    if (!value.Is(Kind::kDType)) {
      return Wrong(absl::StrCat("needs a dtype as `", key, ":`"));
    }
    return value.AsDType();
  }
};

absl::StatusOr<std::optional<RuleValue>> Elaborator::CallStaticBuiltin(
    const std::string& name, const Arguments& arguments, SourceRange range) {
  BuiltinCall call{name, arguments, range, "", *this};
  using Value = std::optional<RuleValue>;
  const std::vector<RuleValue>& args = arguments.positional;
  const auto list_argument = [&](size_t i) -> absl::StatusOr<RuleList> {
    return AsElements(args[i], range);
  };
  if (name == "len") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {}));
    CLEAVE_ASSIGN_OR_RETURN(const RuleList list, list_argument(0));
    return Value(RuleValue(static_cast<int>(list.size())));
  }
  if (name == "size" ||
      (name == "sum" && args.size() == 1 && args[0].Is(Kind::kList))) {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {}));
    CLEAVE_ASSIGN_OR_RETURN(const RuleList list, list_argument(0));
    RuleValue total = name == "sum" ? RuleValue(0) : RuleValue(1);
    for (const RuleValue& element : list) {
      if (!element.IsNumber()) {
        return call.Wrong(absl::StrCat("takes a list of numbers; it holds ",
                                       element.KindName()));
      }
      CLEAVE_ASSIGN_OR_RETURN(total, StaticArithmetic(name == "sum" ? "+" : "*",
                                                      total, element, range));
    }
    return Value(total);
  }
  if (name == "shape") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {}));
    if (args[0].Is(Kind::kAbsent)) return Value(RuleValue(RuleList{}));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
    return Value(DimList(x->shape));
  }
  if (name == "dtype") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {}));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
    return Value(RuleValue(x->dtype));
  }
  if (name == "acc") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {}));
    if (!args[0].Is(Kind::kDType) || !args[0].AsDType()->dtype().has_value()) {
      return call.Wrong("takes a dtype that is known");
    }
    return Value(RuleValue(
        DTypeVariable::Known(AccumulationType(*args[0].AsDType()->dtype()))));
  }
  if (name == "drop" || name == "keep") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(2, {}));
    CLEAVE_ASSIGN_OR_RETURN(const RuleList list, list_argument(0));
    std::optional<std::vector<int>> places = Places(args[1]);
    if (!places.has_value()) return call.Wrong("needs known places");
    for (int& place : *places) {
      if (place < 0) place += static_cast<int>(list.size());
    }
    RuleList result;
    for (size_t d = 0; d < list.size(); ++d) {
      const bool named = Contains(*places, static_cast<int>(d));
      if (!named) result.push_back(list[d]);
      if (named && name == "keep") result.push_back(RuleValue(1));
    }
    return Value(RuleValue(std::move(result)));
  }
  if (name == "broadcast") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {}));
    CLEAVE_ASSIGN_OR_RETURN(const RuleList list, list_argument(0));
    std::vector<Shape> shapes;
    for (const RuleValue& element : list) {
      CLEAVE_ASSIGN_OR_RETURN(const RuleList dims, AsElements(element, range));
      Shape shape;
      for (const RuleValue& dim : dims) {
        if (!dim.Is(Kind::kInt)) return call.Wrong("takes lists of sizes");
        shape.push_back(dim.AsDim());
      }
      shapes.push_back(std::move(shape));
    }
    absl::StatusOr<Shape> shape = terms_.Broadcast(shapes);
    if (!shape.ok()) return At(shape.status(), range);
    return Value(DimList(*shape));
  }
  if (name == "promote.aten") {
    CLEAVE_ASSIGN_OR_RETURN(RuleValue dtype, PromoteAten(arguments, range));
    return Value(std::move(dtype));
  }
  if (name == "einsum_plan") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(2, {}));
    if (!args[0].Is(Kind::kString)) return call.Wrong("takes an equation");
    CLEAVE_ASSIGN_OR_RETURN(const RuleList list, list_argument(1));
    std::vector<Shape> shapes;
    for (const RuleValue& element : list) {
      CLEAVE_ASSIGN_OR_RETURN(const RuleList dims, AsElements(element, range));
      Shape shape;
      for (const RuleValue& dim : dims) {
        if (!dim.Is(Kind::kInt)) return call.Wrong("takes lists of sizes");
        shape.push_back(dim.AsDim());
      }
      shapes.push_back(std::move(shape));
    }
    absl::StatusOr<StaticValue> plan = PlanEinsum(args[0].AsString(), shapes);
    if (!plan.ok()) return At(plan.status(), range, DiagnosticKind::kArgument);
    return Value(FromStatic(*plan));
  }
  if ((name == "max" || name == "min") && args.size() == 2 &&
      args[0].IsNumber() && args[1].IsNumber()) {
    const bool is_max = name == "max";
    if (args[0].Is(Kind::kInt) && args[1].Is(Kind::kInt)) {
      const std::vector<Dim> both = {args[0].AsDim(), args[1].AsDim()};
      absl::StatusOr<Dim> extremum =
          is_max ? Dim::CheckedMax(both) : Dim::CheckedMin(both);
      if (!extremum.ok()) {
        return At(extremum.status(), range, DiagnosticKind::kLimit);
      }
      return Value(RuleValue(*std::move(extremum)));
    }
    const std::optional<Exact> x = ToExact(args[0]);
    const std::optional<Exact> y = ToExact(args[1]);
    if (x.has_value() && y.has_value()) {
      return Value(RuleValue((*x < *y) == is_max ? *y : *x));
    }
    return Value();
  }
  // A pointwise function of one number is computed exactly.
  if (args.size() == 1 && arguments.named.empty()) {
    if (const std::optional<Exact> x = ToExact(args[0])) {
      std::optional<Exact> y = Exact::Apply(name, *x);
      if (y.has_value() && library_.FindDef(name) == nullptr &&
          library_.FindCallable(name) == nullptr) {
        return Value(RuleValue(*std::move(y)));
      }
    }
  }
  return Value();
}

absl::StatusOr<std::optional<RuleValue>> Elaborator::CallBuiltin(
    const std::string& name, const Arguments& arguments, absl::string_view tie,
    SourceRange range) {
  if (!IsBuiltin(name)) return std::optional<RuleValue>();
  BuiltinCall call{name, arguments, range, tie, *this};
  for (const RuleValue& value : arguments.positional) {
    if (value.Is(Kind::kImpossible)) return std::optional<RuleValue>(value);
    if (value.Is(Kind::kAbsent)) {
      return call.Wrong("takes no absent value; ask first whether it is there");
    }
  }
  SetPlace(range);
  const std::optional<Primitive> primitive = FindPrimitive(name);
  const bool is_extremum =
      primitive.has_value() &&
      (*primitive == Primitive::kMax || *primitive == Primitive::kMin ||
       *primitive == Primitive::kReduceMax ||
       *primitive == Primitive::kReduceMin ||
       *primitive == Primitive::kArgmax || *primitive == Primitive::kArgmin);
  if (!tie.empty() && !is_extremum) {
    return Fail(DiagnosticKind::kPlacement, range,
                "`@tie` stands behind a call of max, min or a reduction");
  }
  Result result = RuleValue();
  if (primitive.has_value() &&
      ClassOf(*primitive) == PrimitiveClass::kPointwise) {
    if (*primitive == Primitive::kConvert ||
        *primitive == Primitive::kBitcastConvert) {
      CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {"dtype"}));
      CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
      CLEAVE_ASSIGN_OR_RETURN(const DTypePtr dtype, call.DTypeOf("dtype"));
      if (*primitive == Primitive::kConvert) {
        // A number has no dtype before: it is rounded once, to this one.
        const RuleValue& value = arguments.positional[0];
        if ((value.Is(Kind::kInt) || value.Is(Kind::kReal)) &&
            DTypeVariable::Unify(x->dtype, dtype)) {
          return std::optional<RuleValue>(x);
        }
        CLEAVE_ASSIGN_OR_RETURN(TermPtr y, terms_.Convert(x, dtype));
        return std::optional<RuleValue>(std::move(y));
      }
      if (!dtype->dtype().has_value()) return call.Wrong("needs a known dtype");
      CLEAVE_ASSIGN_OR_RETURN(TermPtr y,
                              terms_.BitcastConvert(x, *dtype->dtype()));
      return std::optional<RuleValue>(std::move(y));
    }
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(OperandCount(*primitive), {}));
    Attributes attributes;
    if (*primitive == Primitive::kMax || *primitive == Primitive::kMin) {
      attributes.Set("tie", tie.empty() ? StaticValue("even")
                                        : StaticValue(std::string(tie)));
    }
    result =
        ApplyPointwise(*primitive, arguments.positional, attributes, range);
  } else if (primitive.has_value() &&
             ClassOf(*primitive) == PrimitiveClass::kReduction) {
    result = CallReduction(*primitive, call);
  } else {
    result = CallStructured(name, call);
  }
  CLEAVE_RETURN_IF_ERROR(result.status());
  return std::optional<RuleValue>(*std::move(result));
}

Elaborator::Result Elaborator::CallReduction(Primitive primitive,
                                             BuiltinCall& call) {
  CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {"axes", "axis", "keepdims"}));
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
  const int rank = static_cast<int>(x->shape.size());
  CLEAVE_ASSIGN_OR_RETURN(std::vector<int> axes, call.Axes("axes", rank));
  std::sort(axes.begin(), axes.end());
  CLEAVE_ASSIGN_OR_RETURN(const bool keepdims, call.Flag("keepdims", true));
  Shape shape;
  for (int d = 0; d < rank; ++d) {
    if (!Contains(axes, d)) shape.push_back(x->shape[d]);
    if (Contains(axes, d) && keepdims) shape.push_back(1);
  }
  DTypePtr dtype = x->dtype;
  if (primitive == Primitive::kReduceAll ||
      primitive == Primitive::kReduceAny) {
    dtype = DTypeVariable::Known(DType::kBool);
    if (!DTypeVariable::Unify(x->dtype, dtype)) {
      return Fail(DiagnosticKind::kType, call.range,
                  absl::StrCat("`", call.name, "` takes bools"));
    }
  } else if (primitive == Primitive::kArgmax ||
             primitive == Primitive::kArgmin) {
    dtype = DTypeVariable::Known(DType::kI64);
  }
  if (IsZero(x)) return RuleValue(terms_.Zero(dtype, shape));
  Attributes attributes{{"axes", StaticValue::Ints(axes)}};
  if (primitive == Primitive::kReduceMax ||
      primitive == Primitive::kReduceMin) {
    attributes.Set("tie", call.tie.empty()
                              ? StaticValue("even")
                              : StaticValue(std::string(call.tie)));
  }
  absl::StatusOr<TermPtr> reduced =
      terms_.Structured(primitive, attributes, {x}, {dtype});
  if (!reduced.ok()) return At(reduced.status(), call.range);
  if (!keepdims) return RuleValue(*std::move(reduced));
  absl::StatusOr<TermPtr> kept = terms_.Reshape(*reduced, shape, x->groups);
  if (!kept.ok()) return At(kept.status(), call.range);
  return RuleValue(*std::move(kept));
}

Elaborator::Result Elaborator::CallStructured(const std::string& name,
                                              BuiltinCall& call) {
  const auto done = [&](absl::StatusOr<TermPtr> term) -> Result {
    if (!term.ok()) return At(term.status(), call.range);
    return RuleValue(*std::move(term));
  };
  const DTypePtr i64 = DTypeVariable::Known(DType::kI64);
  if (name == "reshape" || name == "broadcast_to") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {"shape"}));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
    CLEAVE_ASSIGN_OR_RETURN(const Shape shape, call.Dims("shape"));
    return done(name == "reshape" ? terms_.Reshape(x, shape)
                                  : terms_.BroadcastTo(x, shape));
  }
  if (name == "transpose" || name == "reverse") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {"axes"}));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
    CLEAVE_RETURN_IF_ERROR(call.Attribute("axes").status());
    CLEAVE_ASSIGN_OR_RETURN(
        std::vector<int> axes,
        call.Axes("axes", static_cast<int>(x->shape.size())));
    if (name == "reverse") std::sort(axes.begin(), axes.end());
    return done(terms_.Structured(
        name == "reverse" ? Primitive::kReverse : Primitive::kTranspose,
        {{"axes", StaticValue::Ints(axes)}}, {x}));
  }
  if (name == "concatenate") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {"axis"}));
    CLEAVE_ASSIGN_OR_RETURN(
        const RuleList list,
        AsElements(call.arguments.positional[0], call.range));
    if (list.empty()) return call.Wrong("takes at least one tensor");
    std::vector<TermPtr> xs;
    for (const RuleValue& element : list) {
      CLEAVE_ASSIGN_OR_RETURN(TermPtr x, ToTerm(element, call.range));
      xs.push_back(std::move(x));
    }
    const absl::Status unified = UnifyDTypes(xs);
    if (!unified.ok()) return At(unified, call.range, DiagnosticKind::kType);
    CLEAVE_ASSIGN_OR_RETURN(const int axis,
                            call.Axis(static_cast<int>(xs[0]->shape.size())));
    return done(terms_.Structured(Primitive::kConcatenate, {{"axis", axis}},
                                  std::move(xs)));
  }
  if (name == "zeros") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(0, {"shape", "dtype"}));
    CLEAVE_ASSIGN_OR_RETURN(const Shape shape, call.Dims("shape"));
    CLEAVE_ASSIGN_OR_RETURN(const DTypePtr dtype, call.DTypeOf("dtype"));
    const TermPtr zero = terms_.Number(0);
    DTypeVariable::Unify(zero->dtype, dtype);
    return done(terms_.BroadcastTo(zero, shape));
  }
  if (name == "iota") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {}));
    const RuleValue& n = call.arguments.positional[0];
    if (!n.Is(Kind::kInt)) return call.Wrong("takes a size");
    return done(
        terms_.Structured(Primitive::kIota, {{"size", n.AsDim()}}, {}, {i64}));
  }
  if (name == "conv") {
    CLEAVE_RETURN_IF_ERROR(
        call.CheckNames(2, {"stride", "padding", "dilation", "groups"}));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr w, call.Tensor(1));
    if (x->shape.size() < 2 || w->shape.size() != x->shape.size()) {
      return call.Wrong("takes an input and a kernel of one rank, at least 2");
    }
    const size_t spatial = x->shape.size() - 2;
    const auto per_axis = [&](absl::string_view key,
                              Dim otherwise) -> absl::StatusOr<Shape> {
      const RuleValue* value = call.arguments.Find(key);
      if (value == nullptr) return Shape(spatial, otherwise);
      if (value->Is(Kind::kInt)) return Shape(spatial, value->AsDim());
      CLEAVE_ASSIGN_OR_RETURN(Shape dims, call.Dims(key));
      if (dims.size() != spatial) {
        return call.Wrong(absl::StrCat("needs one `", key, ":` per axis"));
      }
      return dims;
    };
    CLEAVE_ASSIGN_OR_RETURN(const Shape stride, per_axis("stride", 1));
    CLEAVE_ASSIGN_OR_RETURN(const Shape padding, per_axis("padding", 0));
    CLEAVE_ASSIGN_OR_RETURN(const Shape dilation, per_axis("dilation", 1));
    const RuleValue* groups = call.arguments.Find("groups");
    if (groups != nullptr && !groups->Is(Kind::kInt)) {
      return call.Wrong("needs a number of `groups:`");
    }
    const absl::Status unified = UnifyDTypes({x, w});
    if (!unified.ok()) return At(unified, call.range, DiagnosticKind::kType);
    return done(terms_.Structured(
        Primitive::kConv,
        {{"stride", StaticValue::Dims(stride)},
         {"low", StaticValue::Dims(padding)},
         {"high", StaticValue::Dims(padding)},
         {"lhs_dilation", StaticValue::Dims(Shape(spatial, Dim(1)))},
         {"rhs_dilation", StaticValue::Dims(dilation)},
         {"groups", groups == nullptr ? Dim(1) : groups->AsDim()},
         {"batch_groups", 1}},
        {x, w}));
  }
  if (name == "linear_scan") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(2, {"init", "axis", "reverse"}));
    CLEAVE_ASSIGN_OR_RETURN(TermPtr a, call.Tensor(0));
    CLEAVE_ASSIGN_OR_RETURN(TermPtr b, call.Tensor(1));
    CLEAVE_ASSIGN_OR_RETURN(const RuleValue first, call.Attribute("init"));
    CLEAVE_ASSIGN_OR_RETURN(TermPtr init, ToTerm(first, call.range));
    const absl::Status unified = UnifyDTypes({a, b, init});
    if (!unified.ok()) return At(unified, call.range, DiagnosticKind::kType);
    absl::StatusOr<Shape> shape = terms_.Broadcast({a->shape, b->shape});
    if (!shape.ok()) return At(shape.status(), call.range);
    const std::vector<AxisGroup> groups =
        a->shape.size() == shape->size() ? a->groups : b->groups;
    CLEAVE_ASSIGN_OR_RETURN(const int axis,
                            call.Axis(static_cast<int>(shape->size())));
    CLEAVE_ASSIGN_OR_RETURN(const bool reverse, call.Flag("reverse", false));
    Shape without = *shape;
    without.erase(without.begin() + axis);
    CLEAVE_ASSIGN_OR_RETURN(a, terms_.BroadcastTo(a, *shape));
    CLEAVE_ASSIGN_OR_RETURN(b, terms_.BroadcastTo(b, *shape));
    absl::StatusOr<TermPtr> start = terms_.BroadcastTo(init, without);
    if (!start.ok()) return At(start.status(), call.range);
    return done(terms_.WithGroups(
        terms_.Structured(Primitive::kLinearScan,
                          {{"axis", axis}, {"reverse", reverse}},
                          {a, b, *start}),
        groups));
  }
  if (name == "cumulative_max" || name == "cumulative_min") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {"axis", "reverse"}));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
    CLEAVE_ASSIGN_OR_RETURN(const int axis,
                            call.Axis(static_cast<int>(x->shape.size())));
    CLEAVE_ASSIGN_OR_RETURN(const bool reverse, call.Flag("reverse", false));
    return done(terms_.Structured(*FindPrimitive(name),
                                  {{"axis", axis}, {"reverse", reverse}}, {x}));
  }
  if (name == "sort") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {"axis", "descending"}));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
    CLEAVE_ASSIGN_OR_RETURN(const int axis,
                            call.Axis(static_cast<int>(x->shape.size())));
    CLEAVE_ASSIGN_OR_RETURN(const bool descending,
                            call.Flag("descending", false));
    absl::StatusOr<TermPtr> sorted = terms_.Structured(
        Primitive::kSort, {{"axis", axis}, {"descending", descending}}, {x},
        {x->dtype, i64});
    if (!sorted.ok()) return At(sorted.status(), call.range);
    return RuleValue(RuleRecord{
        {"values", terms_.WithGroups(terms_.Result(*sorted, 0), x->groups)},
        {"indices", terms_.WithGroups(terms_.Result(*sorted, 1), x->groups)}});
  }
  if (name == "nonzero") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {}));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
    const Dim size =
        DynamicExtent(absl::StrCat(rule_, ".nonzero", dynamic_extents_++));
    return done(
        terms_.Structured(Primitive::kNonzero, {{"size", size}}, {x}, {i64}));
  }
  if (name == "random_uniform" || name == "random_bits") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {"shape", "dtype"}));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr key, call.Tensor(0));
    CLEAVE_ASSIGN_OR_RETURN(const Shape shape, call.Dims("shape"));
    CLEAVE_ASSIGN_OR_RETURN(const DTypePtr dtype, call.DTypeOf("dtype"));
    if (!dtype->dtype().has_value()) return call.Wrong("needs a known dtype");
    return done(terms_.Structured(
        *FindPrimitive(name),
        {{"shape", StaticValue::Dims(shape)}, {"dtype", *dtype->dtype()}},
        {key}, {dtype}));
  }
  if (name == "random_split") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(1, {"count"}));
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr key, call.Tensor(0));
    CLEAVE_ASSIGN_OR_RETURN(const RuleValue count, call.Attribute("count"));
    if (!count.Is(Kind::kInt)) return call.Wrong("needs a number of keys");
    return done(terms_.Structured(Primitive::kRandomSplit,
                                  {{"count", count.AsDim()}}, {key}));
  }
  if (name == "random_fold_in") {
    CLEAVE_RETURN_IF_ERROR(call.CheckNames(2, {}));
    CLEAVE_ASSIGN_OR_RETURN(TermPtr key, call.Tensor(0));
    CLEAVE_ASSIGN_OR_RETURN(TermPtr i, call.Tensor(1));
    // Integers widen.
    if (!DTypeVariable::Unify(i64, i->dtype)) {
      if (!IsInt(*i->dtype->dtype())) return call.Wrong("takes integers");
      CLEAVE_ASSIGN_OR_RETURN(i, terms_.Convert(i, i64));
    }
    absl::StatusOr<Shape> shape = terms_.Broadcast({key->shape, i->shape});
    if (!shape.ok()) return At(shape.status(), call.range);
    CLEAVE_ASSIGN_OR_RETURN(key, terms_.BroadcastTo(key, *shape));
    CLEAVE_ASSIGN_OR_RETURN(i, terms_.BroadcastTo(i, *shape));
    return done(terms_.Structured(Primitive::kRandomFoldIn, {}, {key, i}));
  }
  return call.Wrong("is static and takes no tensors");
}

Elaborator::Result Elaborator::PromoteAten(const Arguments& arguments,
                                           SourceRange range) {
  std::vector<PromotionOperand> operands;
  for (const RuleValue& value : arguments.positional) {
    if (value.Is(Kind::kAbsent)) continue;
    if (value.IsNumber() || value.Is(Kind::kBool)) {
      operands.push_back({value.Is(Kind::kBool)  ? DType::kBool
                          : value.Is(Kind::kInt) ? DType::kI64
                                                 : DType::kF64,
                          PromotionOperand::Kind::kNumber});
      continue;
    }
    CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, ToTerm(value, range));
    const std::optional<DType> dtype = x->dtype->dtype();
    if (!dtype.has_value()) {
      return Fail(DiagnosticKind::kType, range,
                  "the dtype of an operand is not known here");
    }
    operands.push_back({*dtype, x->shape.empty()
                                    ? PromotionOperand::Kind::kScalarTensor
                                    : PromotionOperand::Kind::kTensor});
  }
  return RuleValue(DTypeVariable::Known(PromoteLikeAten(operands)));
}

}  // namespace cleave
