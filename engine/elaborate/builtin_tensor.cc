// Builtins of tensors: structured primitives under the names of rules.

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/elaborate/builtin_call.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;
using Result = BuiltinCall::Result;

int RankOf(const TermPtr& x) { return static_cast<int>(x->shape.size()); }

DTypePtr Known(DType dtype) { return DTypeVariable::Known(dtype); }

Primitive PrimitiveOf(const BuiltinCall& call) {
  return *FindPrimitive(call.name);
}

// The dtype of a reduction's result.
absl::StatusOr<DTypePtr> ReducedDType(BuiltinCall& call, const TermPtr& x) {
  switch (PrimitiveOf(call)) {
    case Primitive::kReduceAll:
    case Primitive::kReduceAny:
      if (DTypeVariable::Unify(x->dtype, Known(DType::kBool))) return x->dtype;
      return call.At(absl::InvalidArgumentError(
                         absl::StrCat("`", call.name, "` takes bools")),
                     DiagnosticKind::kType);
    case Primitive::kArgmax:
    case Primitive::kArgmin:
      return Known(DType::kI64);
    default:
      return x->dtype;
  }
}

Result Reduce(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
  std::vector<int> axes;
  if (call.Has("axes")) {
    CLEAVE_ASSIGN_OR_RETURN(axes, call.Axes("axes", RankOf(x)));
    std::sort(axes.begin(), axes.end());
  } else {
    for (int d = 0; d < RankOf(x); ++d) axes.push_back(d);
  }
  CLEAVE_ASSIGN_OR_RETURN(const bool keepdims, call.Flag("keepdims"));
  Shape shape;
  for (int d = 0; d < RankOf(x); ++d) {
    const bool reduced = std::count(axes.begin(), axes.end(), d) > 0;
    if (!reduced) shape.push_back(x->shape[d]);
    if (reduced && keepdims) shape.push_back(1);
  }
  CLEAVE_ASSIGN_OR_RETURN(const DTypePtr dtype, ReducedDType(call, x));
  if (IsZero(x)) return RuleValue(call.terms().Zero(dtype, shape));
  Attributes attributes{{"axes", StaticValue::Ints(axes)}};
  const Primitive primitive = PrimitiveOf(call);
  if (primitive == Primitive::kReduceMax ||
      primitive == Primitive::kReduceMin) {
    attributes.Set("tie", call.tie());
  }
  absl::StatusOr<TermPtr> reduced =
      call.terms().Structured(primitive, attributes, {x}, {dtype});
  if (!reduced.ok() || !keepdims) return call.Done(std::move(reduced));
  return call.Done(call.terms().Reshape(*reduced, shape, x->groups));
}

Result Reshape(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
  CLEAVE_ASSIGN_OR_RETURN(const Shape shape, call.Dims("shape"));
  return call.Done(call.terms().Reshape(x, shape));
}

Result BroadcastTo(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
  CLEAVE_ASSIGN_OR_RETURN(const Shape shape, call.Dims("shape"));
  return call.Done(call.terms().BroadcastTo(x, shape));
}

Result Transpose(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<int> axes,
                          call.Axes("axes", RankOf(x)));
  return call.Done(call.terms().Structured(
      Primitive::kTranspose, {{"axes", StaticValue::Ints(axes)}}, {x}));
}

Result Reverse(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
  CLEAVE_ASSIGN_OR_RETURN(std::vector<int> axes, call.Axes("axes", RankOf(x)));
  std::sort(axes.begin(), axes.end());
  return call.Done(call.terms().Structured(
      Primitive::kReverse, {{"axes", StaticValue::Ints(axes)}}, {x}));
}

Result Concatenate(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const RuleList list, call.List(0));
  if (list.empty()) return call.Wrong("takes at least one tensor");
  std::vector<TermPtr> xs;
  for (const RuleValue& element : list) {
    CLEAVE_ASSIGN_OR_RETURN(TermPtr x, call.ToTerm(element));
    xs.push_back(std::move(x));
  }
  CLEAVE_RETURN_IF_ERROR(call.UnifyDTypes(xs));
  CLEAVE_ASSIGN_OR_RETURN(const int axis, call.Axis(RankOf(xs[0])));
  return call.Done(call.terms().Structured(Primitive::kConcatenate,
                                           {{"axis", axis}}, std::move(xs)));
}

Result Zeros(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const Shape shape, call.Dims("shape"));
  CLEAVE_ASSIGN_OR_RETURN(const DTypePtr dtype, call.DTypeOf("dtype"));
  const TermPtr zero = call.terms().Number(0);
  DTypeVariable::Unify(zero->dtype, dtype);
  return call.Done(call.terms().BroadcastTo(zero, shape));
}

Result Iota(BuiltinCall& call) {
  const RuleValue& n = call.operands()[0];
  if (!n.Is(Kind::kInt)) return call.Wrong("takes a size");
  return call.Done(call.terms().Structured(
      Primitive::kIota, {{"size", n.AsDim()}}, {}, {Known(DType::kI64)}));
}

Result Conv(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr w, call.Tensor(1));
  if (RankOf(x) < 2 || RankOf(w) != RankOf(x)) {
    return call.Wrong("takes an input and a kernel of one rank, at least 2");
  }
  const size_t spatial = x->shape.size() - 2;
  CLEAVE_ASSIGN_OR_RETURN(const Shape stride,
                          call.DimsPerAxis("stride", spatial));
  CLEAVE_ASSIGN_OR_RETURN(const Shape padding,
                          call.DimsPerAxis("padding", spatial));
  CLEAVE_ASSIGN_OR_RETURN(const Shape dilation,
                          call.DimsPerAxis("dilation", spatial));
  CLEAVE_ASSIGN_OR_RETURN(const Dim groups, call.Size("groups"));
  CLEAVE_RETURN_IF_ERROR(call.UnifyDTypes({x, w}));
  return call.Done(call.terms().Structured(
      Primitive::kConv,
      {{"stride", StaticValue::Dims(stride)},
       {"low", StaticValue::Dims(padding)},
       {"high", StaticValue::Dims(padding)},
       {"lhs_dilation", StaticValue::Dims(Shape(spatial, Dim(1)))},
       {"rhs_dilation", StaticValue::Dims(dilation)},
       {"groups", groups},
       {"batch_groups", 1}},
      {x, w}));
}

Result LinearScan(BuiltinCall& call) {
  TermMaker& terms = call.terms();
  CLEAVE_ASSIGN_OR_RETURN(TermPtr a, call.Tensor(0));
  CLEAVE_ASSIGN_OR_RETURN(TermPtr b, call.Tensor(1));
  CLEAVE_ASSIGN_OR_RETURN(const RuleValue first, call.Attribute("init"));
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr init, call.ToTerm(first));
  CLEAVE_RETURN_IF_ERROR(call.UnifyDTypes({a, b, init}));
  absl::StatusOr<Shape> shape = terms.Broadcast({a->shape, b->shape});
  if (!shape.ok()) return call.At(shape.status());
  const std::vector<AxisGroup> groups =
      a->shape.size() == shape->size() ? a->groups : b->groups;
  CLEAVE_ASSIGN_OR_RETURN(const int axis,
                          call.Axis(static_cast<int>(shape->size())));
  CLEAVE_ASSIGN_OR_RETURN(const bool reverse, call.Flag("reverse"));
  Shape without = *shape;
  without.erase(without.begin() + axis);
  CLEAVE_ASSIGN_OR_RETURN(a, terms.BroadcastTo(a, *shape));
  CLEAVE_ASSIGN_OR_RETURN(b, terms.BroadcastTo(b, *shape));
  absl::StatusOr<TermPtr> start = terms.BroadcastTo(init, without);
  if (!start.ok()) return call.At(start.status());
  return call.Done(terms.WithGroups(
      terms.Structured(Primitive::kLinearScan,
                       {{"axis", axis}, {"reverse", reverse}}, {a, b, *start}),
      groups));
}

Result Cumulative(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
  CLEAVE_ASSIGN_OR_RETURN(const int axis, call.Axis(RankOf(x)));
  CLEAVE_ASSIGN_OR_RETURN(const bool reverse, call.Flag("reverse"));
  return call.Done(call.terms().Structured(
      PrimitiveOf(call), {{"axis", axis}, {"reverse", reverse}}, {x}));
}

Result Sort(BuiltinCall& call) {
  TermMaker& terms = call.terms();
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
  CLEAVE_ASSIGN_OR_RETURN(const int axis, call.Axis(RankOf(x)));
  CLEAVE_ASSIGN_OR_RETURN(const bool descending, call.Flag("descending"));
  absl::StatusOr<TermPtr> sorted = terms.Structured(
      Primitive::kSort, {{"axis", axis}, {"descending", descending}}, {x},
      {x->dtype, Known(DType::kI64)});
  if (!sorted.ok()) return call.At(sorted.status());
  return RuleValue(RuleRecord{
      {"values", terms.WithGroups(terms.Result(*sorted, 0), x->groups)},
      {"indices", terms.WithGroups(terms.Result(*sorted, 1), x->groups)}});
}

Result Nonzero(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr x, call.Tensor(0));
  return call.Done(call.terms().Structured(Primitive::kNonzero,
                                           {{"size", call.NewExtent()}}, {x},
                                           {Known(DType::kI64)}));
}

// random_uniform and random_bits.
Result Random(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr key, call.Tensor(0));
  CLEAVE_ASSIGN_OR_RETURN(const Shape shape, call.Dims("shape"));
  CLEAVE_ASSIGN_OR_RETURN(const DType dtype, call.KnownDType("dtype"));
  return call.Done(call.terms().Structured(
      PrimitiveOf(call),
      {{"shape", StaticValue::Dims(shape)}, {"dtype", dtype}}, {key},
      {Known(dtype)}));
}

Result RandomSplit(BuiltinCall& call) {
  CLEAVE_ASSIGN_OR_RETURN(const TermPtr key, call.Tensor(0));
  CLEAVE_ASSIGN_OR_RETURN(const Dim count, call.Size("count"));
  return call.Done(call.terms().Structured(Primitive::kRandomSplit,
                                           {{"count", count}}, {key}));
}

Result RandomFoldIn(BuiltinCall& call) {
  TermMaker& terms = call.terms();
  CLEAVE_ASSIGN_OR_RETURN(TermPtr key, call.Tensor(0));
  CLEAVE_ASSIGN_OR_RETURN(TermPtr i, call.Tensor(1));
  // Integers widen.
  const DTypePtr i64 = Known(DType::kI64);
  if (!DTypeVariable::Unify(i64, i->dtype)) {
    if (!IsInt(*i->dtype->dtype())) return call.Wrong("takes integers");
    CLEAVE_ASSIGN_OR_RETURN(i, terms.Convert(i, i64));
  }
  absl::StatusOr<Shape> shape = terms.Broadcast({key->shape, i->shape});
  if (!shape.ok()) return call.At(shape.status());
  CLEAVE_ASSIGN_OR_RETURN(key, terms.BroadcastTo(key, *shape));
  CLEAVE_ASSIGN_OR_RETURN(i, terms.BroadcastTo(i, *shape));
  return call.Done(terms.Structured(Primitive::kRandomFoldIn, {}, {key, i}));
}

struct Row {
  absl::string_view name;
  BuiltinFunction function;
};
constexpr Row kRows[] = {
#define STATIC_BUILTIN(name, signature, function)
#define BUILTIN(name, signature, function) {name, function},
#include "engine/bind/builtin.def"
};

}  // namespace

BuiltinFunction FindTensorBuiltin(absl::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.function;
  }
  return nullptr;
}

}  // namespace cleave
