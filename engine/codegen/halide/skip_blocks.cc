// Blocks of a product that tiles leave out: sums that nobody wants, and terms
// that are 0.

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "engine/codegen/halide/comparisons.h"
#include "engine/codegen/halide/lowering.h"
#include "engine/codegen/halide/tile_vars.h"
#include "engine/codegen/masked_products.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {

using Halide::Expr;
using Halide::Func;
using Halide::RDom;
using Halide::Var;

namespace {

// The fewest blocks that are worth it, and the most whose flags are on the
// stack.
constexpr int kFewestBlocks = 2;
constexpr int kMostBlocks = 4096;

// The bits of a float without its sign, which are as large as it is: 0 for
// zeros.
Expr Magnitude(const Expr& x) { return Bits(x) << 1; }

// The bits of infinity so; NaN has larger ones.
Expr InfiniteMagnitude(DType dtype) {
  return dtype == DType::kF32 ? Expr(uint32_t{0xFF000000})
                              : Expr(uint64_t{0xFFE0000000000000});
}

}  // namespace

// The largest of `lanes` lanes, each of which is the largest of `element` over
// a lane and the points of a domain, of two axes: a number for each `places`.
Func Lowering::AddLargest(
    const std::vector<Var>& places, int lanes, const std::vector<Expr>& points,
    Stage::Level level,
    const std::function<Expr(const Expr&, const RDom&)>& element) {
  const Var lane("lane");
  const RDom domain = Domain(points, "r");
  Stage by_lane;
  by_lane.func = MakeFunc("by_lane");
  by_lane.role = Stage::Role::kFlagLanes;
  by_lane.lanes = lanes;
  std::vector<Var> vars = {lane};
  vars.insert(vars.end(), places.begin(), places.end());
  const Expr value = element(lane, domain);
  by_lane.func(vars) = Halide::cast(value.type(), 0);
  by_lane.func(vars) = Halide::max(by_lane.func(vars), value);
  by_lane.reduced = Variables(domain);
  const RDom all(0, lanes, "l");
  Stage largest;
  largest.func = MakeFunc("largest");
  largest.role = Stage::Role::kFlag;
  largest.level = level;
  std::vector<Expr> at = {all.x};
  at.insert(at.end(), places.begin(), places.end());
  largest.func(places) = Halide::cast(value.type(), 0);
  largest.func(places) = Halide::max(largest.func(places), by_lane.func(at));
  largest.reduced = {all.x};
  largest.by_lane = stages_.size();
  const Func result = largest.func;
  stages_.push_back(std::move(by_lane));
  stages_.push_back(std::move(largest));
  return result;
}

// Whether anybody wants an element of tile (q, p) of v; undefined where all of
// them are wanted, or nobody knows.
Expr Lowering::WantsTile(Value v, const TileVars& of, int rows, int columns) {
  const std::optional<Wanted> wanted = WantedWhere(graph_, v);
  if (!wanted.has_value()) return Expr();
  const Shape& shape = graph_.type(v).shape;
  const Dim& height = shape[shape.size() - 2];
  const auto width = shape.back().Value();
  if (!width.has_value() || *width < columns) return Expr();
  const Func any = AddLargest(
      of.VarsWith({of.q, of.p}), columns, {Expr(rows)}, Stage::Level::kTile,
      [&](const Expr& lane, const RDom& domain) {
        Coordinates at(of.batches.begin(), of.batches.end());
        at.push_back(Halide::min(of.q * rows + domain.x, Extent(height) - 1));
        at.push_back(
            Halide::min(of.p * columns, static_cast<int>(*width) - columns) +
            lane);
        const Expr mask = At(wanted->mask, at);
        return Halide::cast<uint8_t>(wanted->where ? mask : !mask);
      });
  return any(of.With({of.q, of.p})) != 0;
}

// How many blocks of terms of a product v are left out where they are 0; 0
// where all terms are taken one after the other.
int Lowering::SkippedBlocks(Value v) const {
  const Attributes& attributes = graph_.attributes(v);
  const StaticValue* zeros = attributes.Find("zeros");
  if (zeros == nullptr || !zeros->AsBool()) return 0;
  const Value a = graph_.operands(v)[0];
  // The question reads what a kernel stored: it computes nothing again.
  for (const Value operand : graph_.operands(v)) {
    Value from = operand;
    while (ClassOf(ToPrimitive(graph_.node(from).op)) ==
           PrimitiveClass::kMovement) {
      if (graph_.operands(from).size() != 1) return 0;
      from = graph_.operands(from)[0];
    }
    if (image_of_.count(from) == 0) return 0;
  }
  const TensorType& type = graph_.type(a);
  const auto terms = type.shape[attributes.GetInts("contract_a")[0]].Value();
  const Shape& shape = graph_.type(v).shape;
  const auto height = shape[shape.size() - 2].Value();
  const int lanes = VectorWidth(ByteSize(type.dtype));
  if (!terms.has_value() || height.value_or(0) < lanes) return 0;
  const int64_t blocks = *terms / kSkippedTerms;
  return blocks >= kFewestBlocks && blocks <= kMostBlocks
             ? static_cast<int>(blocks)
             : 0;
}

// The domain of the terms of tile (q, p), by whole blocks: without those that
// are 0 on one side, and finite on the other, and so add 0. `left` and `right`
// give elements of row m, or of column i of panel p, at a term.
RDom Lowering::TermsThatCount(
    const TileVars& of, const SkippedTerms& skipped,
    const std::function<Expr(const Expr& k, const Expr& m)>& left,
    const std::function<Expr(const Expr& k, const Expr& i)>& right) {
  const int lanes = VectorWidth(ByteSize(skipped.dtype));
  const Var o("o"), task("task");
  const Expr first_row = task * skipped.rows_of_block;
  const Func rows =
      skipped.along_terms
          ? AddLargest(of.VarsWith({o, task}), lanes,
                       {kSkippedTerms / lanes, skipped.rows_of_block},
                       Stage::Level::kBlock,
                       [&](const Expr& lane, const RDom& r) {
                         return Magnitude(left(
                             o * kSkippedTerms + r.x * lanes + lane,
                             Halide::min(first_row + r.y, skipped.height - 1)));
                       })
          : AddLargest(
                of.VarsWith({o, task}), lanes,
                {(skipped.rows_of_block + lanes - 1) / lanes, kSkippedTerms},
                Stage::Level::kBlock, [&](const Expr& lane, const RDom& r) {
                  return Magnitude(left(o * kSkippedTerms + r.y,
                                        Halide::min(first_row + r.x * lanes,
                                                    skipped.height - lanes) +
                                            lane));
                });
  const Func columns = AddLargest(
      of.VarsWith({o, of.p}), lanes, {skipped.columns / lanes, kSkippedTerms},
      Stage::Level::kPanel, [&](const Expr& lane, const RDom& r) {
        return Magnitude(right(o * kSkippedTerms + r.y, r.x * lanes + lane));
      });
  RDom domain(0, kSkippedTerms, 0, skipped.blocks, "r");
  const Expr a =
      rows(of.With({domain.y, of.q / (skipped.rows_of_block / skipped.rows)}));
  const Expr b = columns(of.With({domain.y, of.p}));
  const Expr infinite = InfiniteMagnitude(skipped.dtype);
  domain.where((a != 0 && b != 0) || a >= infinite || b >= infinite);
  return domain;
}

// The flag at that loop, with its lanes in a vector for each place.
void Lowering::ScheduleFlag(Stage& flag, const Halide::LoopLevel& level) {
  flag.func.compute_at(level).store_in(Halide::MemoryType::Stack);
  flag.func.update(0).atomic().vectorize(flag.reduced[0]);
  Stage& by_lane = stages_[flag.by_lane];
  Func f = by_lane.func;
  const Var lane = f.args()[0];
  std::vector<Halide::VarOrRVar> inner = {lane};
  inner.insert(inner.end(), by_lane.reduced.begin(), by_lane.reduced.end());
  f.compute_at(flag.func, flag.func.args()[0])
      .store_in(Halide::MemoryType::Stack)
      .bound(lane, 0, by_lane.lanes)
      .vectorize(lane, by_lane.lanes);
  f.update(0)
      .reorder(inner)
      .vectorize(lane, by_lane.lanes)
      .unroll(by_lane.reduced[0]);
}

}  // namespace cleave
