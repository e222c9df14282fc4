#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/codegen/halide/comparisons.h"
#include "engine/codegen/halide/element.h"
#include "engine/codegen/halide/lowering.h"
#include "ops/check.h"

namespace cleave {

using Halide::cast;
using Halide::Expr;
using Halide::Float;
using Halide::Func;
using Halide::Int;
using Halide::RDom;
using Halide::RVar;
using Halide::UInt;
using Halide::Var;

Expr CombineElements(Primitive primitive, DType dtype, const Expr& a,
                     const Expr& b) {
  switch (primitive) {
    case Primitive::kReduceSum:
      return AddElement(dtype, a, b);
    case Primitive::kReduceProd:
      return MulElement(dtype, a, b);
    case Primitive::kReduceMax:
    case Primitive::kReduceAny:
      return MaxElement(dtype, a, b);
    default:
      return MinElement(dtype, a, b);
  }
}

Expr IdentityElement(Primitive primitive, DType dtype) {
  switch (primitive) {
    case Primitive::kReduceSum:
      return NumberElement(dtype, 0);
    case Primitive::kReduceProd:
      return NumberElement(dtype, 1);
    case Primitive::kReduceMax:
    case Primitive::kReduceAny:
      return LowestElement(dtype);
    default:
      return HighestElement(dtype);
  }
}

namespace {

// The lanes that a line of one axis is reduced in. A short one has so many that
// none adds more than two elements: the tree over kReductionLanes would add
// these two first, so that the bits are those of an open extent.
int LanesOf(const Dim& extent) {
  const auto length = extent.Value();
  int lanes = kReductionLanes;
  if (!length.has_value()) return lanes;
  while (lanes > 1 && lanes >= *length) lanes /= 2;
  return lanes;
}

}  // namespace

// An update that does not name its variables would run once, not for each.
Expr Lowering::ForEach(const RDom& domain, const Expr& value) {
  Expr all = Halide::Internal::const_true();
  for (int i = 0; i < domain.dimensions(); ++i) {
    all = Halide::Internal::And::make(all, domain[i] >= 0);
  }
  return Opaque(Halide::select(all, value, value));
}

// Halide leaves out the steps of a loop that change nothing. For the minimum of
// numbers that follow from the loop's variable it solves for these steps, and
// that overflows where the minimum is the largest number, as the first is.
Expr Lowering::Opaque(const Expr& value) {
  if (value.type() != Int(32)) return value;
  return ~~value;
}

Lowering::Reduced Lowering::ReducedBy(Value v, const std::vector<Var>& vars) {
  const Shape& shape = graph_.type(graph_.operands(v)[0]).shape;
  const auto axes = graph_.attributes(v).GetInts("axes");
  Reduced result;
  for (size_t i = axes.size(); i-- > 0;) {
    result.extents.push_back(Extent(shape[axes[i]]));
  }
  if (axes.empty()) result.extents.push_back(1);
  result.domain = Domain(result.extents, "r");
  int next = axes.empty() ? 0 : result.domain.dimensions();
  size_t var = 0;
  for (const bool reduced : space_.reduced) {
    result.at.push_back(reduced ? Expr(result.domain[--next])
                                : Expr(vars[var++]));
  }
  return result;
}

// Whether v adds up products of floats that nothing stored, each with the sum
// before it in one rounding.
bool Lowering::SumsProducts(Value v) const {
  const Value x = graph_.operands(v)[0];
  const DType dtype = graph_.type(v).dtype;
  return graph_.node(v).op == ToOpId(Primitive::kReduceSum) && IsFloat(dtype) &&
         graph_.node(x).op == ToOpId(Primitive::kMul) &&
         graph_.type(x).dtype == dtype && funcs_.count(x) == 0;
}

void Lowering::AddReduction(Value v) {
  const Primitive primitive = ToPrimitive(graph_.node(v).op);
  if (primitive == Primitive::kArgmax || primitive == Primitive::kArgmin) {
    return AddArgReduction(v);
  }
  if (primitive == Primitive::kReduceProd && IsFloat(graph_.type(v).dtype)) {
    return AddProduct(v);
  }
  if (graph_.attributes(v).GetInts("axes").empty()) {
    return AddSerialReduction(v);
  }
  if (AddTiledReduction(v)) return;
  if (SplitsColumns()) return AddColumnBlocks(v);
  if (space_.reduces_last() && !plain_schedule_) return AddLaneReduction(v);
  AddSerialReduction(v);
}

// Where the element at `last` of the last axis lies, which is reduced: `r` runs
// over that and the reduced axes before it.
Coordinates Lowering::InLine(const std::vector<Var>& kept, const RDom& r,
                             const Expr& last) const {
  Coordinates at;
  int next = r.dimensions();
  size_t var = 0;
  for (size_t d = 0; d + 1 < space_.shape.size(); ++d) {
    at.push_back(space_.reduced[d] ? Expr(r[--next]) : Expr(kept[var++]));
  }
  at.push_back(last);
  return at;
}

std::vector<Expr> Lowering::LineLanes::At(const Expr& lane) const {
  std::vector<Expr> all(pure.begin(), pure.end());
  all.front() = lane;
  return all;
}

Stage Lowering::LineLanes::Partial(Func func) const {
  Stage partial;
  partial.func = std::move(func);
  partial.role = Stage::Role::kPartial;
  partial.lanes = count;
  partial.blocked = blocked;
  partial.reduced = Variables(domain);
  partial.has_tail = has_tail;
  if (has_tail) partial.tail = tail[0];
  return partial;
}

Stage Lowering::LineLanes::Half(Func func, int lanes) const {
  Stage half;
  half.func = std::move(func);
  half.role = Stage::Role::kHalving;
  half.lanes = lanes;
  half.blocked = blocked;
  return half;
}

Lowering::LineLanes Lowering::LanesOfLine(const std::vector<Var>& vars,
                                          int count, bool blocked, int steps) {
  const Var lane("lane");
  const Var block("block");
  const Expr length = Extent(space_.shape.back());
  Expr begin = 0;
  Expr here = length;  // of the last axis, in this block
  if (blocked) {
    begin = block * kReductionBlock;
    here = Halide::min(length - begin, kReductionBlock);
  }
  // The reduced axes before the last are whole.
  std::vector<Expr> extents = {
      (blocked ? Halide::min(length, kReductionBlock) : length) / count /
      steps};
  std::vector<Expr> tail_extents = {blocked ? Expr(count) : length % count};
  for (size_t d = space_.shape.size() - 1; d-- > 0;) {
    if (!space_.reduced[d]) continue;
    extents.push_back(Extent(space_.shape[d]));
    tail_extents.push_back(Extent(space_.shape[d]));
  }
  LineLanes lanes;
  lanes.count = count;
  lanes.blocked = blocked;
  lanes.pure = {lane};
  for (const Var& var : Reversed(vars)) lanes.pure.push_back(var);
  if (blocked) lanes.pure.push_back(block);
  lanes.domain = Domain(extents, "r");
  lanes.tail = Domain(tail_extents, "t");
  if (blocked) {
    const Expr in_block = lanes.domain[0] < here / count;
    lanes.domain.where(on_device_ ? Halide::likely(in_block) : in_block);
    lanes.tail.where(lanes.tail[0] < here % count);
  }
  // The bound of a block is not seen by the inference of bounds.
  const auto inside = [&](const Expr& place) {
    return blocked ? Halide::unsafe_promise_clamped(place, 0, length - 1)
                   : place;
  };
  lanes.at = inside(begin + lane + count * steps * lanes.domain[0]);
  lanes.rest = inside(begin + lanes.tail[0] + here / count * count);
  // One at least: devices have no memory of 0 bytes.
  lanes.blocks =
      Halide::max((length + kReductionBlock - 1) / kReductionBlock, 1);
  const auto fixed = space_.shape.back().Value();
  lanes.has_tail = !fixed.has_value() || *fixed % count != 0;
  return lanes;
}

// Each of so many lanes takes every so many-th element of the last axis; a tree
// of halvings brings them together. Over everything, blocks are reduced so,
// each on its own, and then one after the other.
void Lowering::AddLaneReduction(Value v) {
  const Primitive primitive = ToPrimitive(graph_.node(v).op);
  const Value x = graph_.operands(v)[0];
  const DType dtype = graph_.type(v).dtype;
  const bool is_max = primitive == Primitive::kReduceMax;
  // The lanes hold keys: to choose among floats takes many instructions, each
  // of which waits for the one before.
  const bool keyed =
      IsFloat(dtype) && (is_max || primitive == Primitive::kReduceMin);
  const auto key = [&](const Expr& a) {
    return keyed ? OrderKey(is_max, a) : a;
  };
  const auto of_key = [&](const Expr& a) { return keyed ? OfOrderKey(a) : a; };
  const auto combine = [&](const Expr& a, const Expr& b) {
    if (keyed) return is_max ? Halide::max(a, b) : Halide::min(a, b);
    return CombineElements(primitive, dtype, a, b);
  };
  const bool blocked = space_.keeps_none() || SplitsRows();
  const bool by_lines = !blocked && std::count(space_.reduced.begin(),
                                               space_.reduced.end(), true) == 1;
  const int lanes = by_lines ? LanesOf(space_.shape.back()) : kReductionLanes;
  const std::vector<Var> vars = VarsOf(v);
  const LineLanes line = LanesOfLine(vars, lanes, blocked);
  const auto element = [&](const RDom& r, const Expr& last) {
    return ForEach(r, key(At(x, InLine(vars, r, last))));
  };
  Func current = MakeFunc("lanes");
  current(line.pure) = key(IdentityElement(primitive, dtype));
  current(line.pure) =
      combine(current(line.pure), element(line.domain, line.at));
  if (line.has_tail) {
    const std::vector<Expr> at = line.At(line.tail[0]);
    current(at) = combine(current(at), element(line.tail, line.rest));
  }
  stages_.push_back(line.Partial(current));
  for (int width = lanes / 2; width >= 1; width /= 2) {
    const Func half = MakeFunc("half");
    half(line.pure) = combine(current(line.pure),
                              current(line.At(line.pure.front() + width)));
    current = half;
    stages_.push_back(line.Half(half, width));
  }

  Stage result;
  result.func = MakeFunc("total");
  const auto first = line.At(0);
  if (blocked) {
    Expr blocks = line.blocks;
    std::function<Expr(Expr)> of_block = [&](const Expr& b) {
      std::vector<Expr> of = first;
      of.back() = b;
      return of_key(current(of));
    };
    GroupBlocks(v, &of_block, &blocks);
    result = OverBlocks(v, of_block, blocks);
  } else {
    result.role = Stage::Role::kRow;
    result.func(Reversed(vars)) = of_key(current(first));
  }
  FinishReduction(v, std::move(result));
}

void Lowering::FinishReduction(Value v, Stage stage) {
  const Stage::Role rounded = stage.role == Stage::Role::kWhole
                                  ? Stage::Role::kWhole
                                  : Stage::Role::kRow;
  FinishStage(v, std::move(stage), rounded);
}

// Whether columns have so many rows that blocks of them are reduced in
// parallel.
bool Lowering::SplitsColumns() const {
  if (!on_device_ || space_.reduces_last() || space_.keeps_none()) return false;
  for (size_t d = 0; d < space_.shape.size(); ++d) {
    if (!space_.reduced[d]) continue;
    // The outermost of the axes that are reduced.
    const auto extent = space_.shape[d].Value();
    return !extent.has_value() || *extent > kColumnBlock;
  }
  return false;
}

bool Lowering::SplitsRows() const {
  if (!on_device_ || !space_.reduces_last() || space_.keeps_none())
    return false;
  const auto extent = space_.shape.back().Value();
  return extent.has_value() && *extent > kReductionBlock;
}

// The elements of each block one after the other, then the blocks.
void Lowering::AddColumnBlocks(Value v) {
  const Primitive primitive = ToPrimitive(graph_.node(v).op);
  const Value x = graph_.operands(v)[0];
  const DType dtype = graph_.type(v).dtype;
  const std::vector<Var> vars = VarsOf(v);
  const Var block("block");
  auto [domain, extents, at] = ReducedBy(v, vars);
  const Expr length = extents.back();
  extents.back() = Halide::min(length, kColumnBlock);
  domain = Domain(extents, "r");
  const RVar outermost = domain[domain.dimensions() - 1];
  const Expr begin = block * kColumnBlock;
  domain.where(Halide::likely(outermost < length - begin));
  int next = domain.dimensions();
  bool first = true;
  for (size_t d = 0; d < space_.reduced.size(); ++d) {
    if (!space_.reduced[d]) continue;
    at[d] = domain[--next];
    // The bound of a block is not seen by the inference of bounds.
    if (first) {
      at[d] = Halide::unsafe_promise_clamped(begin + at[d], 0, length - 1);
    }
    first = false;
  }
  Stage part;
  part.func = MakeFunc("part");
  part.role = Stage::Role::kSerial;
  part.blocked = true;
  std::vector<Var> pure = Reversed(vars);
  pure.push_back(block);
  part.func(pure) = IdentityElement(primitive, dtype);
  part.func(pure) = CombineElements(primitive, dtype, part.func(pure),
                                    ForEach(domain, At(x, at)));
  part.reduced = Variables(domain);
  const Func parts = part.func;
  stages_.push_back(std::move(part));

  std::function<Expr(Expr)> of_block = [&](const Expr& b) {
    std::vector<Expr> of;
    for (const Var& var : Reversed(vars)) of.push_back(var);
    of.push_back(b);
    return Expr(parts(of));
  };
  Expr blocks = Halide::max((length + kColumnBlock - 1) / kColumnBlock, 1);
  GroupBlocks(v, &of_block, &blocks);
  FinishReduction(v, OverBlocks(v, of_block, blocks));
}

void Lowering::GroupBlocks(Value v, std::function<Expr(Expr)>* element,
                           Expr* count) {
  if (!on_device_) return;
  const Primitive primitive = ToPrimitive(graph_.node(v).op);
  const DType dtype = graph_.type(v).dtype;
  const Var group("group");
  std::vector<Var> pure = Reversed(VarsOf(v));
  pure.push_back(group);
  RDom domain(0, kGroupedBlocks, "g");
  const Expr begin = group * kGroupedBlocks;
  domain.where(Halide::likely(domain.x < *count - begin));
  // The bound of a group is not seen by the inference of bounds.
  const Expr block =
      Halide::unsafe_promise_clamped(begin + domain.x, 0, *count - 1);
  Stage stage;
  stage.func = MakeFunc("group");
  stage.role = space_.keeps_none() ? Stage::Role::kWhole : Stage::Role::kSerial;
  stage.blocked = true;
  stage.func(pure) = IdentityElement(primitive, dtype);
  stage.func(pure) =
      CombineElements(primitive, dtype, stage.func(pure), (*element)(block));
  stage.reduced = {domain.x};
  const Func groups = stage.func;
  stages_.push_back(std::move(stage));
  *count = (*count + kGroupedBlocks - 1) / kGroupedBlocks;
  *element = [groups, pure](const Expr& g) {
    std::vector<Expr> of(pure.begin(), pure.end());
    of.back() = g;
    return Expr(groups(of));
  };
}

Stage Lowering::OverBlocks(Value v, const std::function<Expr(Expr)>& element,
                           const Expr& count) {
  const Primitive primitive = ToPrimitive(graph_.node(v).op);
  const DType dtype = graph_.type(v).dtype;
  const std::vector<Var> pure = Reversed(VarsOf(v));
  const std::vector<Expr> here(pure.begin(), pure.end());
  const RDom blocks(0, count, "b");
  Stage total;
  total.func = MakeFunc("total");
  total.role = space_.keeps_none() ? Stage::Role::kWhole : Stage::Role::kSerial;
  total.func(pure) = IdentityElement(primitive, dtype);
  total.func(here) =
      CombineElements(primitive, dtype, total.func(here), element(blocks.x));
  total.reduced = {blocks.x};
  return total;
}

// One element after the other, in row-major order.
void Lowering::AddSerialReduction(Value v) {
  const Primitive primitive = ToPrimitive(graph_.node(v).op);
  const Value x = graph_.operands(v)[0];
  const DType dtype = graph_.type(v).dtype;
  const std::vector<Var> vars = VarsOf(v);
  Stage stage;
  stage.func = MakeFunc("reduced");
  stage.role = space_.keeps_none() ? Stage::Role::kWhole : Stage::Role::kSerial;
  const Coordinates here(vars.begin(), vars.end());
  if (graph_.attributes(v).GetInts("axes").empty()) {
    stage.role = Stage::Role::kRow;
    stage.func(Reversed(vars)) = CombineElements(
        primitive, dtype, IdentityElement(primitive, dtype), At(x, here));
  } else {
    const auto [domain, extents, at] = ReducedBy(v, vars);
    stage.func(Reversed(vars)) = IdentityElement(primitive, dtype);
    const Expr before = Call(stage.func, here);
    stage.func(Reversed(vars)) =
        SumsProducts(v)
            ? AddProductTo(dtype, before,
                           ForEach(domain, At(graph_.operands(x)[0], at)),
                           At(graph_.operands(x)[1], at))
            : CombineElements(primitive, dtype, before,
                              ForEach(domain, At(x, at)));
    stage.reduced = Variables(domain);
  }
  FinishReduction(v, std::move(stage));
}

// The number of the first greatest or least element; the first NaN wins.
void Lowering::AddArgReduction(Value v) {
  const bool max = ToPrimitive(graph_.node(v).op) == Primitive::kArgmax;
  const Value x = graph_.operands(v)[0];
  const DType dtype = graph_.type(x).dtype;
  const std::vector<Var> vars = VarsOf(v);
  const auto [domain, extents, at] = ReducedBy(v, vars);
  Expr number = cast(Int(64), 0);
  for (int i = domain.dimensions(); i-- > 0;) {
    number = number * cast(Int(64), extents[i]) + cast(Int(64), domain[i]);
  }
  Stage best;
  best.func = MakeFunc("best");
  best.role = space_.keeps_none() ? Stage::Role::kWhole : Stage::Role::kSerial;
  best.func(Reversed(vars)) = Halide::Tuple(
      cast(Int(64), -1), max ? LowestElement(dtype) : HighestElement(dtype));
  const Coordinates here(vars.begin(), vars.end());
  const Halide::FuncRef current = Call(best.func, here);
  const Expr element = ForEach(domain, At(x, at));
  const Expr before =
      max ? Less(current[1], element) : Less(element, current[1]);
  const Expr better = current[0] < cast(Int(64), 0) ||
                      (!IsNanElement(dtype, current[1]) &&
                       (IsNanElement(dtype, element) || before));
  best.func(Reversed(vars)) = Halide::Tuple(
      Choose(better, number, current[0]), Choose(better, element, current[1]));
  best.reduced = Variables(domain);
  Stage result;
  result.func = MakeFunc("number");
  result.role = best.role == Stage::Role::kWhole ? Stage::Role::kWhole
                                                 : Stage::Role::kRow;
  result.func(Reversed(vars)) = Call(best.func, here)[0];
  stages_.push_back(std::move(best));
  AddStage(v, std::move(result));
}

}  // namespace cleave
