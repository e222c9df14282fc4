// Matrix products, and reductions of pairs of rows, in tiles that stay in
// registers.

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/codegen/element_support.h"
#include "engine/codegen/halide/element.h"
#include "engine/codegen/halide/lowering.h"
#include "engine/codegen/halide/tile_shapes.h"
#include "engine/codegen/halide/tile_vars.h"
#include "engine/codegen/panels.h"
#include "engine/codegen/up_to_multiple.h"
#include "ops/check.h"
#include "ops/element_cost.h"

namespace cleave {

using Halide::Expr;
using Halide::Func;
using Halide::MemoryType;
using Halide::RDom;
using Halide::TailStrategy;
using Halide::Var;

namespace {

// Rows that a panel meets in one task, about: the threads share a panel's rows
// where the panels do not come out even.
constexpr int kBlockRows = 64;
// Operations behind a product from which their constants would drive the tile
// out of the registers: they have a loop of their own then. With sixteen
// registers the scale of attention does so, at twice the time.
constexpr int kEpilogueCost = 6;
constexpr int kNarrowEpilogueCost = 1;
// The cost of an element of a reduction in tiles, which repeat its code.
constexpr int kTiledCost = 16;
// Columns that are too few to be the lanes of vectors.
constexpr int kFewColumns = 8;
// Rows of images, or images, that are tasks enough.
constexpr int64_t kEnoughImages = 16;
// Terms that are added up one after the other.
constexpr int kTermsOfBlock = 32;
// Panels of a matrix that are read where they lie, if all tiles of a block read
// the same terms.
constexpr int kPanelsInPlace = 2;

// Whether elements that lie side by side in memory are those of successive `k`.
bool IsContiguousIn(const Expr& element, const Var& k) {
  struct Visitor : Halide::Internal::IRVisitor {
    using IRVisitor::visit;
    void visit(const Halide::Internal::Call* call) override {
      using Halide::Internal::Call;
      const bool load =
          call->call_type == Call::Image || call->call_type == Call::Halide;
      if (load && !call->args.empty()) {
        const auto* innermost = call->args[0].as<Halide::Internal::Variable>();
        contiguous |= innermost != nullptr && innermost->name == name;
      }
      IRVisitor::visit(call);
    }
    std::string name;
    bool contiguous = false;
  };
  Visitor visitor;
  visitor.name = k.name();
  element.accept(&visitor);
  return visitor.contiguous;
}

// Rows of a block, a multiple of a tile's: blocks of one height where the
// extent is known.
int BlockRows(const Dim& height, int rows) {
  const int64_t extent = height.Value().value_or(0);
  if (extent == 0) return kBlockRows / rows * rows;
  const int64_t blocks = (extent + kBlockRows - 1) / kBlockRows;
  return static_cast<int>(UpToMultiple((extent + blocks - 1) / blocks, rows));
}

// Whether the variable occurs in the expression.
bool Uses(const Expr& e, const Var& var) {
  return Halide::Internal::expr_uses_var(e, var.name());
}

bool IsLoad(const Halide::Internal::Call& call) {
  using Halide::Internal::Call;
  return call.call_type == Call::Image || call.call_type == Call::Halide;
}

// Finds what an element of pairs of rows loads for row m of the left side, for
// row n of the right one, and for both.
struct PairedLoads : Halide::Internal::IRGraphVisitor {
  PairedLoads(const Var& left, const Var& right) : m(left), n(right) {}
  using IRGraphVisitor::visit;
  void visit(const Halide::Internal::Call* call) override {
    if (!IsLoad(*call)) return IRGraphVisitor::visit(call);
    const bool of_left = Uses(call, m);
    const bool of_right = Uses(call, n);
    left |= of_left && !of_right;
    right |= of_right && !of_left;
    both |= of_left && of_right;
  }
  const Var& m;
  const Var& n;
  bool left = false;
  bool right = false;
  bool both = false;
};

// Takes the largest parts that depend on one side alone out of an element: they
// are computed once for a panel, or for a block of rows.
class TakeSide : public Halide::Internal::IRGraphMutator {
 public:
  // `stored` is asked for what stands in place of such a part.
  TakeSide(const Var& side, const Var& other,
           std::function<Expr(const Expr&)> stored)
      : side_(side), other_(other), stored_(std::move(stored)) {}
  using IRGraphMutator::mutate;
  Expr mutate(const Expr& e) override {
    PairedLoads loads(side_, other_);
    e.accept(&loads);
    if (!loads.left || loads.right || e.type().is_bool() || Uses(e, other_)) {
      return IRGraphMutator::mutate(e);
    }
    for (const auto& [part, taken] : taken_) {
      if (Halide::Internal::equal(part, e)) return taken;
    }
    taken_.emplace_back(e, stored_(e));
    return taken_.back().second;
  }

 private:
  const Var& side_;
  const Var& other_;
  std::function<Expr(const Expr&)> stored_;
  std::vector<std::pair<Expr, Expr>> taken_;
};

}  // namespace

Stage TileStage(Func func, const Dim& height, int rows, int columns) {
  Stage tile;
  tile.func = std::move(func);
  tile.role = Stage::Role::kTile;
  tile.lanes = columns;
  tile.rows = rows;
  tile.block_rows = BlockRows(height, rows);
  return tile;
}

// One sum over one axis with rows of the left side and columns of the right: in
// tiles that stay in registers, from panels of columns that are made
// contiguous. False where the contraction is of another kind.
bool Lowering::AddTiledDot(Value v) {
  if (AddFoundDot(v)) return true;
  const Value a = graph_.operands(v)[0];
  const Value b = graph_.operands(v)[1];
  const Attributes& attributes = graph_.attributes(v);
  const auto batch_a = attributes.GetInts("batch_a");
  const auto batch_b = attributes.GetInts("batch_b");
  const auto contract_a = attributes.GetInts("contract_a");
  const auto contract_b = attributes.GetInts("contract_b");
  const size_t batch = batch_a.size();
  const auto rank = [&](Value x) {
    return static_cast<size_t>(graph_.type(x).rank());
  };
  if (contract_a.size() != 1 || rank(a) != batch + 2 || rank(b) != batch + 2 ||
      plain_schedule_ || on_device_) {
    return false;
  }
  const DType dtype = graph_.type(v).dtype;
  const DType sum = SumType(dtype);
  const Dim& height = graph_.type(v).shape[batch];
  const Dim& width = graph_.type(v).shape[batch + 1];
  const std::optional<Value> panels = PanelsOfMatrix(graph_, b);
  const TileRegisters registers(target_, VectorWidth(ByteSize(sum)));
  const auto [rows, columns] =
      panels.has_value()
          ? ChooseTileOfPanels(
                height, *graph_.type(*panels).shape.back().Value(), registers)
          : ChooseTile(height, width, registers);
  const int skipped = TakesTermsInSteps(height, rows) ? SkippedBlocks(v) : 0;
  const TileVars of(batch);
  const auto element = [&](Value x, const std::vector<int64_t>& batch_axes,
                           int64_t contracted, const Expr& k,
                           const Expr& free) {
    Coordinates at(rank(x));
    for (size_t i = 0; i < batch; ++i) at[batch_axes[i]] = of.batches[i];
    at[contracted] = k;
    for (Expr& e : at) {
      if (!e.defined()) e = free;
    }
    return At(x, at);
  };
  Stage panel;
  panel.func = MakeFunc("panel");
  panel.lanes = columns;
  Expr packed;
  if (panels.has_value()) {
    const Shape& shape = graph_.type(*panels).shape;
    const auto tiles = static_cast<int>(*shape[2].Value()) / columns;
    packed = At(*panels, {of.p / tiles, of.k, of.p % tiles * columns + of.c});
  } else {
    const Expr column =
        Halide::min(Halide::likely(of.p * columns + of.c), Extent(width) - 1);
    packed = element(b, batch_b, contract_b[0], of.k, column);
  }
  panel.transposed = IsContiguousIn(packed, of.k);
  panel.func(of.VarsWith({of.c, of.k, of.p})) = packed;
  // A panel that is read once need not be packed, nor one that lies in memory.
  const bool once = height.Value().value_or(rows + 1) <= rows;
  const bool stored = image_of_.count(b) > 0 &&
                      (width == Dim(columns) ||
                       (skipped > 0 && width == Dim(kPanelsInPlace * columns)));
  panel.role = panels.has_value() || ((once || stored) && !panel.transposed)
                   ? Stage::Role::kInline
                   : Stage::Role::kPanel;

  Stage tile = TileStage(MakeFunc("tile"), height, rows, columns);
  const Dim& terms = graph_.type(a).shape[contract_a[0]];
  const auto row = [&](const Expr& k, const Expr& m) {
    return element(a, batch_a, contract_a[0], k, m);
  };
  // The terms of a tile's updates.
  std::vector<std::pair<RDom, Expr>> parts;
  if (skipped > 0) {
    const Func columns_of = panel.func;
    const RDom domain = TermsThatCount(
        of,
        {sum, skipped, static_cast<int>(*height.Value()), rows, columns,
         tile.block_rows, IsContiguousIn(row(of.k, of.row), of.k)},
        row, [&](const Expr& k, const Expr& i) {
          return columns_of(of.With({i, k, of.p}));
        });
    parts.emplace_back(domain, domain.y * kSkippedTerms + domain.x);
    tile.outermost_steps = 1;
    const int first = skipped * kSkippedTerms;
    const int rest = static_cast<int>(*terms.Value()) - first;
    if (rest > 0) {
      const RDom tail(0, rest, "tail");
      parts.emplace_back(tail, first + tail.x);
      tile.tail = tail.x;
      tile.has_tail = true;
    }
  } else {
    const RDom domain(0, Extent(terms), "r");
    parts.emplace_back(domain, domain.x);
  }
  if (const Expr wanted = WantsTile(v, of, rows, columns); wanted.defined()) {
    for (auto& [domain, k] : parts) domain.where(wanted);
  }
  const Expr above =
      Halide::min(Halide::likely(of.q * rows + of.j), Extent(height) - 1);
  std::function<Expr(const Expr&)> left = [&](const Expr& k) {
    return row(k, above);
  };
  if (sum != graph_.type(a).dtype) {
    // A tile reads elements of rows one by one: narrow ones are widened before,
    // by vectors.
    const Var m("m");
    Stage widened;
    widened.func = MakeFunc("rows");
    widened.role = Stage::Role::kTileRows;
    widened.func(of.VarsWith({of.k, m})) = row(of.k, m);
    left = [&, widened_rows = widened.func](const Expr& k) -> Expr {
      return widened_rows(of.With({k, above}));
    };
    stages_.push_back(std::move(widened));
  }
  const auto vars = of.VarsWith({of.i, of.j, of.q, of.p});
  tile.func(vars) = NumberElement(sum, 0);
  for (const auto& [domain, k] : parts) {
    tile.func(vars) =
        AddProductTo(dtype, tile.func(vars), ForEach(domain, left(k)),
                     panel.func(of.With({of.i, k, of.p})));
  }
  tile.reduced = Variables(parts[0].first);
  stages_.push_back(std::move(panel));
  stages_.push_back(std::move(tile));
  AddTileResult(v, of);
  return true;
}

// A reduction of one axis whose elements are made of a row of one tensor and a
// row of another, for all pairs of rows (distances, say): in tiles, as a
// product is. False where the reduction is of another kind.
bool Lowering::AddTiledReduction(Value v) {
  const Primitive primitive = ToPrimitive(graph_.node(v).op);
  const Shape& shape = graph_.type(v).shape;
  const size_t rank = shape.size();
  if (plain_schedule_ || on_device_ || rows_and_totals_.has_value() ||
      (primitive != Primitive::kReduceSum &&
       primitive != Primitive::kReduceMax &&
       primitive != Primitive::kReduceMin) ||
      rank < 2 || space_.shape.size() != rank + 1 || !space_.reduces_last() ||
      ElementCost() > kTiledCost) {
    return false;
  }
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    if (Value{id} != v && IsReduction(graph_, Value{id})) return false;
  }
  for (const NamedValue& output : graph_.outputs()) {
    if (graph_.type(output.value).shape != shape) return false;
  }
  const DType dtype = graph_.type(v).dtype;
  const DType sum = SumType(dtype);
  const Dim& height = shape[rank - 2];
  const Dim& width = shape[rank - 1];
  // Most of a vector would be left over.
  if (width.Value().value_or(kFewColumns) < kFewColumns) return false;
  const TileVars of(rank - 2);
  const Var m("m"), n("n");
  Coordinates at(of.batches.begin(), of.batches.end());
  for (const Var& var : {m, n, of.k}) at.push_back(var);
  const Value x = graph_.operands(v)[0];
  const bool product = SumsProducts(v);
  std::vector<Expr> factors;
  if (product) {
    for (const Value factor : graph_.operands(x)) {
      factors.push_back(At(factor, at));
    }
  } else {
    factors = {At(x, at)};
  }
  PairedLoads loads(m, n);
  bool paired = false;
  for (const Expr& factor : factors) {
    PairedLoads own(m, n);
    factor.accept(&own);
    paired |= own.left && own.right;
    loads.left |= own.left;
    loads.right |= own.right;
    loads.both |= own.both;
  }
  if (!loads.left || !loads.right || loads.both) return false;

  const TileRegisters registers(target_, VectorWidth(ByteSize(sum)),
                                /*leave_room=*/paired);
  const auto [rows, columns] = ChooseTile(height, width, registers);
  const int panel_columns = columns;
  const Expr column =
      Halide::min(Halide::likely(of.p * columns + of.c), Extent(width) - 1);
  TakeSide take_left(m, n, [&](const Expr& part) -> Expr {
    const auto* call = part.as<Halide::Internal::Call>();
    if (call != nullptr && IsLoad(*call)) return part;
    Stage rows_of_block;
    rows_of_block.func = MakeFunc("rows");
    rows_of_block.role = Stage::Role::kTileRows;
    rows_of_block.func(of.VarsWith({of.k, m})) = part;
    stages_.push_back(rows_of_block);
    return rows_of_block.func(of.With({of.k, m}));
  });
  TakeSide take_right(n, m, [&](const Expr& part) -> Expr {
    Stage panel;
    panel.func = MakeFunc("panel");
    panel.role = Stage::Role::kPanel;
    panel.lanes = panel_columns;
    const Expr packed = Halide::Internal::substitute(n.name(), column, part);
    panel.transposed = IsContiguousIn(packed, of.k);
    panel.func(of.VarsWith({of.c, of.k, of.p})) = packed;
    stages_.push_back(panel);
    return panel.func(of.With({of.i, of.k, of.p}));
  });
  // Terms of f32 are added up in blocks, so that errors do not grow with their
  // number.
  const Expr length = Extent(space_.shape.back());
  const bool in_blocks =
      primitive == Primitive::kReduceSum && sum == DType::kF32 &&
      space_.shape.back().Value().value_or(kTermsOfBlock + 1) > kTermsOfBlock;
  const Var block("terms");
  RDom domain(0, in_blocks ? Expr(kTermsOfBlock) : length, "r");
  Expr k = domain.x;
  if (in_blocks) {
    k = block * kTermsOfBlock + domain.x;
    const auto known = space_.shape.back().Value();
    if (!known.has_value() || *known % kTermsOfBlock != 0) {
      domain.where(k < length);
      k = Halide::unsafe_promise_clamped(k, 0, length - 1);
    }
  }
  const Expr above =
      Halide::min(Halide::likely(of.q * rows + of.j), Extent(height) - 1);
  for (Expr& factor : factors) {
    factor = take_right.mutate(take_left.mutate(factor));
    const std::map<std::string, Expr> places = {
        {m.name(), above}, {n.name(), of.p * columns + of.i}, {of.k.name(), k}};
    factor = Halide::Internal::substitute(places, factor);
  }
  factors[0] = ForEach(domain, factors[0]);

  Stage tile = TileStage(MakeFunc("tile"), height, rows, columns);
  tile.reduced = {domain.x};
  std::vector<Var> places = {of.i, of.j, of.q, of.p};
  if (in_blocks) places.insert(places.begin() + 2, block);
  const auto vars = of.VarsWith(places);
  tile.func(vars) = IdentityElement(primitive, dtype);
  const Expr before = tile.func(vars);
  tile.func(vars) = product
                        ? AddProductTo(dtype, before, factors[0], factors[1])
                        : CombineElements(primitive, dtype, before, factors[0]);
  if (in_blocks) {
    const RDom blocks(0, (length + kTermsOfBlock - 1) / kTermsOfBlock, "b");
    Stage total;
    total.func = MakeFunc("total");
    total.role = Stage::Role::kTileTotal;
    total.reduced = {blocks.x};
    const auto all = of.VarsWith({of.i, of.j, of.q, of.p});
    total.func(all) = IdentityElement(primitive, dtype);
    total.func(all) =
        CombineElements(primitive, dtype, total.func(all),
                        tile.func(of.With({of.i, of.j, blocks.x, of.q, of.p})));
    stages_.push_back(std::move(tile));
    stages_.push_back(std::move(total));
  } else {
    stages_.push_back(std::move(tile));
  }
  AddTileResult(v, of);
  return true;
}

// The elements of v, read from the tiles of the last stage.
void Lowering::AddTileResult(Value v, const TileVars& of) {
  const DType dtype = graph_.type(v).dtype;
  const auto tile = std::find_if(
      stages_.begin(), stages_.end(),
      [](const Stage& stage) { return stage.role == Stage::Role::kTile; });
  const int columns = tile->lanes;
  const int rows = tile->rows;
  Func tiles = stages_.back().func;
  Stage result;
  result.func = MakeFunc("dot");
  result.role = Stage::Role::kInline;
  const std::vector<Var> vars = VarsOf(v);
  const Expr m = vars[vars.size() - 2];
  const Expr n = vars.back();
  Expr value = tiles(of.With({n % columns, m % rows, m / rows, n / columns}));
  int behind = 0;
  for (uint32_t id = v.id + 1; id < graph_.size(); ++id) {
    const Primitive primitive = ToPrimitive(graph_.node(Value{id}).op);
    if (IsComputed(primitive)) behind += CostOf(primitive);
  }
  if (behind >=
      (HasWideRegisters(target_) ? kEpilogueCost : kNarrowEpilogueCost)) {
    Stage block;
    block.func = MakeFunc("block");
    block.role = Stage::Role::kBlock;
    block.func(of.VarsWith({of.i, of.row, of.p})) =
        tiles(of.With({of.i, of.row % rows, of.row / rows, of.p}));
    value = block.func(of.With({n % columns, m, n / columns}));
    stages_.push_back(std::move(block));
  }
  result.func(Reversed(vars)) =
      IsFloat(dtype) ? RoundElement(dtype, value) : value;
  AddStage(v, std::move(result));
}

// For each panel of columns, in parallel: the panel is packed, and blocks of
// rows are multiplied by it, tile by tile. The nodes behind the contraction are
// computed as a tile leaves the registers. If they are many, they are computed
// as a block is done, by a loop of their own, so that they need no registers
// while tiles multiply. Where all tiles of a block take some terms before the
// next ones, their sums wait in memory meanwhile.
void Lowering::ScheduleTiles(Func out, const std::vector<Var>& axes) {
  const Var m = axes[axes.size() - 2];
  const Var n = axes.back();
  const Var panels("panels"), blocks("blocks"), tiles("tiles");
  const Stage* tile = nullptr;
  const Stage* total = nullptr;
  Stage* block = nullptr;
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kTile) tile = &stage;
    if (stage.role == Stage::Role::kTileTotal) total = &stage;
    if (stage.role == Stage::Role::kBlock) block = &stage;
  }
  // Flags of rows serve all panels, where none is packed.
  const bool panels_inside =
      tile->outermost_steps > 0 && !tile->of_windows &&
      std::none_of(stages_.begin(), stages_.end(), [](const Stage& stage) {
        return stage.role == Stage::Role::kPanel;
      });
  const int columns = tile->lanes;
  const int rows = tile->rows;
  std::vector<Halide::VarOrRVar> order = {n, m};
  out.split(n, panels, n, columns, TailStrategy::GuardWithIf);
  if (block != nullptr) {
    out.split(m, blocks, m, tile->block_rows, TailStrategy::GuardWithIf);
  } else {
    out.split(m, tiles, m, rows, TailStrategy::GuardWithIf)
        .split(tiles, blocks, tiles, tile->block_rows / rows,
               TailStrategy::GuardWithIf);
    order.push_back(tiles);
  }
  if (panels_inside) order.push_back(panels);
  order.push_back(blocks);
  if (!tile->panels_outermost && !panels_inside) order.push_back(panels);
  for (size_t d = axes.size() - 2; d-- > 0;) order.push_back(axes[d]);
  if (tile->panels_outermost) order.push_back(panels);
  out.reorder(order).vectorize(n, VectorWidth(WidestElement(out)),
                               TailStrategy::GuardWithIf);
  int64_t images = 1;
  for (size_t d = 0; d + 2 < output_shape_.size(); ++d) {
    images *= output_shape_[d].Value().value_or(0);
  }
  if (tile->of_windows && images >= kEnoughImages) {
    std::vector<Var> around(axes.rbegin() + 3, axes.rend());
    if (tile->panels_outermost) around.push_back(panels);
    ParallelWith(out, axes[axes.size() - 3], around);
  } else {
    if (!panels_inside) out.parallel(panels);
    out.parallel(blocks);
    if (axes.size() > 2) out.parallel(axes.front());
    if (tile->panels_outermost && axes.size() > 3) {
      out.parallel(axes[axes.size() - 3]);
    }
  }
  for (Stage& stage : stages_) {
    Func f = stage.func;
    const int width = VectorWidth(WidestElement(f));
    const Var c("c"), k("k"), i("i"), j("j"), q("q"), row("row"), lane("lane");
    if (stage.role == Stage::Role::kPanel) {
      f.compute_at(out, panels).bound(c, 0, columns);
      if (stage.transposed) {
        const Var ahead("ahead");
        f.split(k, ahead, k, width, TailStrategy::GuardWithIf)
            .reorder(k, c, ahead)
            .vectorize(k);
      } else {
        f.vectorize(c, width).unroll(c);
      }
    } else if (stage.role == Stage::Role::kTileRows) {
      f.compute_at(out, blocks).vectorize(k, width, TailStrategy::GuardWithIf);
    } else if (stage.role == Stage::Role::kFlag) {
      const bool of_tile =
          stage.level == Stage::Level::kTile && tile->outermost_steps == 0;
      const Halide::LoopLevel level =
          of_tile && block != nullptr ? Halide::LoopLevel(block->func, tiles)
          : of_tile                   ? Halide::LoopLevel(out, tiles)
          : stage.level == Stage::Level::kPanel && !panels_inside
              ? Halide::LoopLevel(out, panels)
              : Halide::LoopLevel(out, blocks);
      ScheduleFlag(stage, level);
    } else if (stage.role == Stage::Role::kBlock) {
      f.compute_at(out, panels_inside ? panels : blocks)
          .store_in(MemoryType::Stack);
      f.bound(i, 0, columns).bound_storage(row, tile->block_rows);
      f.split(row, tiles, row, rows, TailStrategy::GuardWithIf)
          .reorder(i, row, tiles)
          .vectorize(i, width)
          .unroll(i);
    } else if (stage.role == Stage::Role::kTile ||
               stage.role == Stage::Role::kTileTotal) {
      if (stage.role == Stage::Role::kTile && total != nullptr) {
        f.compute_at(total->func, total->reduced[0]);
      } else if (stage.outermost_steps > 0) {
        f.compute_at(out, panels_inside ? panels : blocks)
            .bound_storage(q, tile->block_rows / rows);
      } else if (block != nullptr) {
        f.compute_at(block->func, tiles);
      } else {
        f.compute_at(out, tiles);
      }
      f.store_in(MemoryType::Stack);
      f.bound(i, 0, columns).bound(j, 0, rows);
      f.vectorize(i, width).unroll(i).unroll(j);
      const auto update = [&](int number, std::vector<Halide::RVar> reduced) {
        Halide::Stage terms = f.update(number);
        std::vector<Halide::VarOrRVar> outermost;
        if (stage.outermost_steps > 0) {
          const Halide::RVar all = reduced.back();
          const Halide::RVar steps("steps"), part("part");
          terms.split(all, steps, part, stage.outermost_steps,
                      TailStrategy::GuardWithIf);
          reduced.back() = part;
          outermost = {q, steps};
        }
        // The factors of the shorter side stay in registers.
        std::vector<Halide::VarOrRVar> inner = {lane, i, j};
        if (rows < columns / width) std::swap(inner[1], inner[2]);
        inner.insert(inner.end(), reduced.begin(), reduced.end());
        inner.insert(inner.end(), outermost.begin(), outermost.end());
        terms.split(i, i, lane, width)
            .reorder(inner)
            .vectorize(lane)
            .unroll(i)
            .unroll(j);
      };
      update(0, stage.reduced);
      if (stage.has_tail) update(1, {stage.tail});
    }
  }
}

}  // namespace cleave
