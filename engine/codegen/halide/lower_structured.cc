#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/codegen/halide/element.h"
#include "engine/codegen/halide/lowering.h"
#include "engine/codegen/products_of_windows.h"
#include "ops/check.h"

namespace cleave {

using Halide::cast;
using Halide::Expr;
using Halide::Func;
using Halide::Int;
using Halide::RDom;
using Halide::RVar;
using Halide::Var;

void Lowering::AddStructured(Value v) {
  switch (ToPrimitive(graph_.node(v).op)) {
    case Primitive::kDotGeneral:
      return AddDot(v);
    case Primitive::kConv:
      return AddConvolution(v);
    case Primitive::kWindowsAdd:
      return AddWindowsAdd(v);
    case Primitive::kLinearScan:
      return AddLinearScan(v);
    case Primitive::kCumulativeMax:
    case Primitive::kCumulativeMin:
      return AddCumulative(v);
    default:
      return AddScatter(v);
  }
}

// A product added to a sum: with one rounding where the target has that.
Expr Lowering::AddProductTo(DType dtype, const Expr& sum, const Expr& a,
                            const Expr& b) const {
  if (IsFloat(dtype) &&
      (on_device_ || target_.has_feature(Halide::Target::FMA))) {
    return FusedMultiplyAdd(a, b, sum);
  }
  return AddElement(dtype, sum, MulElement(dtype, a, b));
}

// The stage as the value of v, rounded where it was kept wider.
void Lowering::FinishStage(Value v, Stage stage, Stage::Role rounded_role) {
  const DType dtype = graph_.type(v).dtype;
  if (SumType(dtype) != dtype) {
    const std::vector<Var> vars = VarsOf(v);
    Stage rounded;
    rounded.func = MakeFunc("rounded");
    rounded.role = rounded_role;
    rounded.func(Reversed(vars)) = RoundElement(
        dtype, Call(stage.func, Coordinates(vars.begin(), vars.end())));
    stages_.push_back(std::move(stage));
    stage = std::move(rounded);
  }
  AddStage(v, std::move(stage));
}

Func Lowering::CopiedColumns(Value v) {
  constexpr int64_t kFewRows = 32;
  const Value b = graph_.operands(v)[1];
  const Attributes& attributes = graph_.attributes(v);
  const Shape& shape = graph_.type(v).shape;
  const auto rank = static_cast<int64_t>(graph_.type(b).rank());
  const std::vector<int64_t> batch = attributes.GetInts("batch_b");
  std::vector<int64_t> leading(std::max<int64_t>(rank - 2, 0));
  std::iota(leading.begin(), leading.end(), 0);
  if (!on_device_ || rank < 2 || shape.size() < 2 || batch != leading ||
      attributes.GetInts("contract_b") != std::vector<int64_t>{rank - 1}) {
    return {};
  }
  const auto rows = shape[shape.size() - 2].Value();
  if (rows.has_value() && *rows <= kFewRows) return {};
  // The copy has a row more than there are terms, which is not written: devices
  // have no memory of 0 bytes.
  const std::vector<Var> vars = VarsOf(b);
  const Expr terms = Extent(graph_.type(b).shape.back());
  const RDom domain = Domain({terms}, "term");
  Coordinates at(vars.begin(), vars.end());
  at.back() = domain[0];
  const Expr element = At(b, at);
  Coordinates to = at;
  std::swap(to[rank - 1], to[rank - 2]);
  std::vector<Var> order = vars;
  std::swap(order[rank - 1], order[rank - 2]);
  Stage stage;
  stage.func = MakeFunc("copied");
  stage.role = Stage::Role::kCopied;
  stage.func(Reversed(order)) = Halide::undef(element.type());
  stage.func(Reversed(to)) = element;
  stage.func.bound(vars.back(), 0, terms + 1);
  stage.reduced = Variables(domain);
  stages_.push_back(stage);
  return stage.func;
}

void Lowering::AddDot(Value v) {
  if (AddTiledDot(v)) return;
  const Value a = graph_.operands(v)[0];
  const Value b = graph_.operands(v)[1];
  const Attributes& attributes = graph_.attributes(v);
  const auto batch_a = attributes.GetInts("batch_a");
  const auto batch_b = attributes.GetInts("batch_b");
  const auto contract_a = attributes.GetInts("contract_a");
  const auto contract_b = attributes.GetInts("contract_b");
  const DType dtype = graph_.type(v).dtype;
  const std::vector<Var> vars = VarsOf(v);
  std::vector<Expr> extents;
  for (size_t i = contract_a.size(); i-- > 0;) {
    extents.push_back(Extent(graph_.type(a).shape[contract_a[i]]));
  }
  const bool sums = !extents.empty();
  const RDom domain = sums ? Domain(extents, "r") : RDom(0, 1, "r");
  size_t next = batch_a.size();
  const auto coordinates = [&](Value x, const std::vector<int64_t>& batch,
                               const std::vector<int64_t>& contract) {
    Coordinates at(graph_.type(x).rank());
    for (size_t i = 0; i < batch.size(); ++i) at[batch[i]] = vars[i];
    for (size_t i = 0; i < contract.size(); ++i) {
      at[contract[i]] = domain[static_cast<int>(contract.size() - 1 - i)];
    }
    for (Expr& e : at) {
      if (!e.defined()) e = vars[next++];
    }
    return at;
  };
  const Expr left = ForEach(domain, At(a, coordinates(a, batch_a, contract_a)));
  Coordinates at_b = coordinates(b, batch_b, contract_b);
  Expr right;
  if (const Func copied = CopiedColumns(v); copied.defined()) {
    std::swap(at_b[at_b.size() - 1], at_b[at_b.size() - 2]);
    right = Call(copied, at_b);
  } else {
    right = At(b, at_b);
  }
  Stage stage;
  stage.func = MakeFunc("dot");
  stage.role = Stage::Role::kContraction;
  stage.func(Reversed(vars)) = NumberElement(SumType(dtype), 0);
  stage.func(Reversed(vars)) = AddProductTo(
      dtype, Call(stage.func, Coordinates(vars.begin(), vars.end())), left,
      right);
  stage.reduced = Variables(domain);
  FinishStage(v, std::move(stage));
}

namespace {

// Whether each element of a convolution by such a kernel is a sum of few terms,
// a known number of them: of a depthwise one, say.
bool HasFewTerms(const Shape& kernel) {
  constexpr int64_t kFewTerms = 32;
  int64_t terms = 1;
  for (size_t d = 1; d < kernel.size(); ++d) {
    const std::optional<int64_t> extent = kernel[d].Value();
    if (!extent.has_value() || *extent < 1 || *extent > kFewTerms) return false;
    terms *= *extent;
  }
  return terms <= kFewTerms;
}

}  // namespace

void Lowering::AddConvolution(Value v) {
  const Value x = graph_.operands(v)[0];
  const Value w = graph_.operands(v)[1];
  const Attributes& attributes = graph_.attributes(v);
  const int64_t groups = attributes.GetInt("groups");
  const int64_t batch_groups = attributes.GetInt("batch_groups");
  const auto stride = attributes.GetDims("stride");
  const auto low = attributes.GetDims("low");
  const auto lhs_dilation = attributes.GetDims("lhs_dilation");
  const auto rhs_dilation = attributes.GetDims("rhs_dilation");
  const Shape& x_shape = graph_.type(x).shape;
  const Shape& w_shape = graph_.type(w).shape;
  const DType dtype = graph_.type(v).dtype;
  const std::vector<Var> vars = VarsOf(v);
  const size_t spatial = stride.size();

  std::vector<Expr> extents;
  for (size_t s = spatial; s-- > 0;) extents.push_back(Extent(w_shape[2 + s]));
  extents.push_back(Extent(w_shape[1]));
  const RDom domain = Domain(extents, "r");
  const Expr channel = domain[static_cast<int>(spatial)];
  const Expr per_group = Halide::max(
      Extent(w_shape[0]) / static_cast<int>(groups * batch_groups), 1);
  const Expr group =
      groups * batch_groups == 1 ? Expr(0) : Expr(vars[1]) / per_group;
  Coordinates at_w = {vars[1], channel};
  Coordinates at_x;
  at_x.push_back(
      batch_groups > 1
          ? Clamp(group * Extent(graph_.type(v).shape[0]) + vars[0], x_shape[0])
          : Expr(vars[0]));
  at_x.push_back(groups > 1
                     ? Clamp(group * Extent(w_shape[1]) + channel, x_shape[1])
                     : channel);
  Expr inside = Halide::Internal::const_true();
  for (size_t s = 0; s < spatial; ++s) {
    const RVar k = domain[static_cast<int>(spatial - 1 - s)];
    at_w.push_back(k);
    Expr place = vars[2 + s] * Extent(stride[s]) + k * Extent(rhs_dilation[s]) -
                 Extent(low[s]);
    if (low[s] == Dim(0) && lhs_dilation[s] == Dim(1) &&
        StayInside(x_shape[2 + s], graph_.type(v).shape[2 + s], w_shape[2 + s],
                   stride[s], rhs_dilation[s])) {
      at_x.push_back(place);
      continue;
    }
    inside = inside && place >= 0;
    if (lhs_dilation[s] != Dim(1)) {
      inside = inside && place % Extent(lhs_dilation[s]) == 0;
      place = place / Extent(lhs_dilation[s]);
    }
    inside = inside && place < Extent(x_shape[2 + s]);
    at_x.push_back(Clamp(place, x_shape[2 + s]));
  }
  Stage stage;
  stage.func = MakeFunc("conv");
  stage.role =
      HasFewTerms(w_shape) ? Stage::Role::kWindow : Stage::Role::kContraction;
  const Coordinates here(vars.begin(), vars.end());
  stage.func(Reversed(vars)) = NumberElement(SumType(dtype), 0);
  // A place outside adds nothing: neither NaN nor infinity times 0.
  const Expr sum = Call(stage.func, here);
  stage.func(Reversed(vars)) =
      Choose(ForEach(domain, inside),
             AddProductTo(dtype, sum, At(x, at_x), At(w, at_w)), sum);
  stage.reduced = Variables(domain);
  FinishStage(v, std::move(stage));
}

void Lowering::AddWindowsAdd(Value v) {
  const Value u = graph_.operands(v)[0];
  const Attributes& attributes = graph_.attributes(v);
  const auto strides = attributes.GetDims("strides");
  const auto dilations = attributes.GetDims("dilations");
  const auto low = attributes.GetDims("low");
  const Shape& from = graph_.type(u).shape;
  const size_t spatial = strides.size();
  const size_t batch = from.size() - 2 * spatial;
  const DType dtype = graph_.type(v).dtype;
  const std::vector<Var> vars = VarsOf(v);
  std::vector<Expr> extents;
  for (size_t s = spatial; s-- > 0;) {
    extents.push_back(Extent(from[batch + spatial + s]));
  }
  const RDom domain = extents.empty() ? RDom(0, 1, "r") : Domain(extents, "r");
  Coordinates at(vars.begin(), vars.begin() + batch);
  Coordinates taps;
  Expr inside = Halide::Internal::const_true();
  for (size_t s = 0; s < spatial; ++s) {
    const RVar k = domain[static_cast<int>(spatial - 1 - s)];
    const Expr place =
        vars[batch + s] + Extent(low[s]) - k * Extent(dilations[s]);
    const Expr step = Halide::max(Extent(strides[s]), 1);
    const Expr window = place / step;
    inside = inside && place >= 0 && place % step == 0 &&
             window < Extent(from[batch + s]);
    at.push_back(Clamp(window, from[batch + s]));
    taps.push_back(k);
  }
  at.insert(at.end(), taps.begin(), taps.end());
  Stage stage;
  stage.func = MakeFunc("windows_add");
  stage.role = Stage::Role::kContraction;
  const Coordinates here(vars.begin(), vars.end());
  stage.func(Reversed(vars)) = NumberElement(SumType(dtype), 0);
  const Expr sum = Call(stage.func, here);
  stage.func(Reversed(vars)) =
      Choose(ForEach(domain, inside), AddElement(dtype, sum, At(u, at)), sum);
  stage.reduced = Variables(domain);
  FinishStage(v, std::move(stage));
}

std::pair<Coordinates, Coordinates> Lowering::ScanPlaces(
    Value v, const RDom& domain, const std::vector<Var>& vars) {
  const Attributes& attributes = graph_.attributes(v);
  const int64_t axis = attributes.GetInt("axis");
  const bool reverse = attributes.GetBool("reverse");
  const Dim& extent = graph_.type(v).shape[axis];
  Coordinates at(vars.begin(), vars.end());
  at[axis] = reverse ? Extent(extent) - 1 - domain.x : Expr(domain.x);
  Coordinates before = at;
  before[axis] = Clamp(reverse ? at[axis] + 1 : at[axis] - 1, extent);
  return {std::move(at), std::move(before)};
}

void Lowering::AddLinearScan(Value v) {
  const Attributes& attributes = graph_.attributes(v);
  const int64_t axis = attributes.GetInt("axis");
  const DType dtype = graph_.type(v).dtype;
  const std::vector<Var> vars = VarsOf(v);
  const RDom domain(0, Extent(graph_.type(v).shape[axis]), "r");
  const auto [at, before] = ScanPlaces(v, domain, vars);
  Coordinates start = at;
  start.erase(start.begin() + axis);
  Stage stage;
  stage.func = MakeFunc("scan");
  stage.role = Stage::Role::kScan;
  // The state is kept wider than it is returned: f64 for f32, as the values of
  // a long scan add up all their roundings.
  const DType state = IsFloat(dtype) ? DType::kF64 : dtype;
  const auto widen = [&](const Expr& e) {
    return IsFloat(dtype) ? cast(Halide::Float(64), e) : e;
  };
  // Each element is written by its step.
  stage.func(Reversed(vars)) = Halide::undef(NumberElement(state, 0).type());
  const Expr last =
      Choose(domain.x == 0, widen(At(graph_.operands(v)[2], start)),
             Expr(Call(stage.func, before)));
  const Expr a = widen(At(graph_.operands(v)[0], at));
  const Expr b = widen(At(graph_.operands(v)[1], at));
  Call(stage.func, at) = AddElement(state, MulElement(state, a, last), b);
  stage.reduced = {domain.x};
  stage.scan_axis = static_cast<int>(axis);
  Stage rounded;
  rounded.func = MakeFunc("rounded");
  rounded.role = Stage::Role::kInline;
  const Expr value = Call(stage.func, Coordinates(vars.begin(), vars.end()));
  rounded.func(Reversed(vars)) =
      IsFloat(dtype) ? RoundElement(dtype, value) : value;
  stages_.push_back(std::move(stage));
  AddStage(v, std::move(rounded));
}

void Lowering::AddCumulative(Value v) {
  const bool max = ToPrimitive(graph_.node(v).op) == Primitive::kCumulativeMax;
  const Attributes& attributes = graph_.attributes(v);
  const int64_t axis = attributes.GetInt("axis");
  const DType dtype = graph_.type(v).dtype;
  const std::vector<Var> vars = VarsOf(v);
  const RDom domain(0, Extent(graph_.type(v).shape[axis]), "r");
  const auto [at, before] = ScanPlaces(v, domain, vars);
  Stage stage;
  stage.func = MakeFunc("cumulative");
  stage.role = Stage::Role::kScan;
  stage.func(Reversed(vars)) = Halide::undef(NumberElement(dtype, 0).type());
  const Expr element = At(graph_.operands(v)[0], at);
  const Expr last = Call(stage.func, before);
  Call(stage.func, at) = Choose(domain.x == 0, element,
                                max ? MaxElement(dtype, last, element)
                                    : MinElement(dtype, last, element));
  stage.reduced = {domain.x};
  stage.scan_axis = static_cast<int>(axis);
  AddStage(v, std::move(stage));
}

// Updates in row-major order, on one thread: the same result every time.
void Lowering::AddScatter(Value v) {
  const Value x = graph_.operands(v)[0];
  const Value index = graph_.operands(v)[1];
  const Value updates = graph_.operands(v)[2];
  const Attributes& attributes = graph_.attributes(v);
  const auto axes = attributes.GetInts("axes");
  const size_t batch = attributes.GetInt("batch");
  const std::string& mode = attributes.Get("mode").AsString();
  const DType dtype = graph_.type(v).dtype;
  const Shape& shape = graph_.type(v).shape;
  const Shape& from = graph_.type(updates).shape;
  const size_t leading = graph_.type(index).rank() - 1;
  const std::vector<Var> vars = VarsOf(v);
  const Coordinates here(vars.begin(), vars.end());
  // The updates of one place of the batch and of the rows go along the axes of
  // the indices, in their order.
  std::vector<Expr> extents;
  for (size_t d = leading; d-- > batch;) extents.push_back(Extent(from[d]));
  const RDom domain = extents.empty() ? RDom(0, 1, "r") : Domain(extents, "r");
  Coordinates source(here.begin(), here.begin() + batch);
  for (size_t d = batch; d < leading; ++d) {
    source.push_back(domain[static_cast<int>(leading - 1 - d)]);
  }
  Coordinates place(here.begin(), here.begin() + batch);
  place.resize(shape.size());
  Stage stage;
  stage.free.assign(vars.begin(), vars.begin() + batch);
  Expr inside = Halide::Internal::const_true();
  for (size_t k = 0; k < axes.size(); ++k) {
    place[axes[k]] =
        IndexAt(index, source, static_cast<int>(k), shape[axes[k]], &inside);
  }
  for (size_t d = batch; d < shape.size(); ++d) {
    if (place[d].defined()) continue;
    place[d] = vars[d];
    stage.free.push_back(vars[d]);
    source.push_back(vars[d]);
  }
  // Sums and products are kept wider and rounded once; what nothing is added to
  // keeps its value.
  const bool wide = IsFloat(dtype) && (mode == "add" || mode == "mul");
  const DType state = wide ? DType::kF64 : dtype;
  const auto widen = [&](const Expr& e) {
    return wide ? cast(Halide::Float(64), e) : e;
  };
  stage.func = MakeFunc("scatter");
  stage.role = Stage::Role::kSequential;
  stage.func(Reversed(vars)) = widen(At(x, here));
  const Expr old = Call(stage.func, place);
  const Expr update = Opaque(widen(At(updates, source)));
  Expr changed = update;
  if (mode == "add") changed = AddElement(state, old, update);
  if (mode == "mul") changed = MulElement(state, old, update);
  if (mode == "max") changed = MaxElement(dtype, old, update);
  if (mode == "min") changed = MinElement(dtype, old, update);
  Call(stage.func, place) = Choose(ForEach(domain, inside), changed, old);
  stage.reduced = Variables(domain);
  if (!wide) {
    AddStage(v, std::move(stage));
    return;
  }
  Stage rounded;
  rounded.func = MakeFunc("rounded");
  rounded.role = Stage::Role::kInline;
  rounded.func(Reversed(vars)) = RoundElement(dtype, Call(stage.func, here));
  stages_.push_back(std::move(stage));
  AddStage(v, std::move(rounded));
}

}  // namespace cleave
