// Matrix products in tiles that stay in registers.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/codegen/element_cost.h"
#include "engine/codegen/halide/element.h"
#include "engine/codegen/halide/lowering.h"
#include "ops/check.h"

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
// out of the registers: they have a loop of their own then.
constexpr int kEpilogueCost = 6;

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
  const auto up = [](int64_t x, int64_t to) { return (x + to - 1) / to * to; };
  const int64_t extent = height.Value().value_or(0);
  if (extent == 0) return kBlockRows / rows * rows;
  const int64_t blocks = (extent + kBlockRows - 1) / kBlockRows;
  return static_cast<int>(up((extent + blocks - 1) / blocks, rows));
}

}  // namespace

// The tile that fits the extents best, among the shapes whose sums stay in
// registers beside a row of the panel and a factor: whole panels are even
// tasks, too. If an extent is open, the first.
Lowering::TileShape Lowering::ChooseTile(const Dim& height, const Dim& width,
                                         DType sum) const {
  const bool wide = target_.has_feature(Halide::Target::AVX512_Skylake);
  const std::vector<TileShape> shapes =
      wide ? std::vector<TileShape>{{8, 3}, {6, 4}, {12, 2},
                                    {4, 6}, {2, 8}, {1, 8}}
           : std::vector<TileShape>{{4, 3}, {6, 2}, {2, 4}, {1, 6}};
  const int lanes = VectorWidth(ByteSize(sum));
  // Columns are in vectors as yet.
  const auto up = [](int64_t x, int64_t to) { return (x + to - 1) / to * to; };
  const auto work = [&](const TileShape& shape) {
    return up(height.Value().value_or(0), shape.rows) *
           up(width.Value().value_or(0), shape.columns * lanes);
  };
  TileShape best = shapes[0];
  for (const TileShape& shape : shapes) {
    // Within 2 % the first is better: it reads less for each product.
    if (work(shape) < work(best) - work(best) / 50) best = shape;
  }
  return {best.rows, best.columns * lanes};
}

// One sum over one axis with rows of the left side and columns of the right: in
// tiles that stay in registers, from panels of columns that are made
// contiguous. False where the contraction is of another kind.
bool Lowering::AddTiledDot(Value v) {
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
  const auto [rows, columns] = ChooseTile(height, width, sum);
  std::vector<Var> batches;
  for (size_t i = 0; i < batch; ++i) {
    batches.emplace_back(absl::StrCat("a", i));
  }
  const auto element = [&](Value x, const std::vector<int64_t>& batch_axes,
                           int64_t contracted, const Expr& k,
                           const Expr& free) {
    Coordinates at(rank(x));
    for (size_t i = 0; i < batch; ++i) at[batch_axes[i]] = batches[i];
    at[contracted] = k;
    for (Expr& e : at) {
      if (!e.defined()) e = free;
    }
    return At(x, at);
  };
  const auto with_batches = [&](std::vector<Expr> indices) {
    for (const Var& var : Reversed(batches)) indices.push_back(var);
    return indices;
  };
  const auto vars_with_batches = [&](std::vector<Var> vars) {
    for (const Var& var : Reversed(batches)) vars.push_back(var);
    return vars;
  };
  const Var c("c"), k("k"), p("p"), i("i"), j("j"), q("q"), row("row");
  Stage panel;
  panel.func = MakeFunc("panel");
  panel.lanes = columns;
  const Expr column =
      Halide::min(Halide::likely(p * columns + c), Extent(width) - 1);
  const Expr packed = element(b, batch_b, contract_b[0], k, column);
  panel.transposed = IsContiguousIn(packed, k);
  panel.func(vars_with_batches({c, k, p})) = packed;
  // A panel that is read once need not be packed.
  const bool once = height.Value().value_or(rows + 1) <= rows;
  panel.role =
      once && !panel.transposed ? Stage::Role::kInline : Stage::Role::kPanel;

  Stage tile;
  tile.func = MakeFunc("tile");
  tile.role = Stage::Role::kTile;
  tile.lanes = columns;
  tile.rows = rows;
  tile.block_rows = BlockRows(height, rows);
  const RDom domain(0, Extent(graph_.type(a).shape[contract_a[0]]), "r");
  const Expr above =
      Halide::min(Halide::likely(q * rows + j), Extent(height) - 1);
  const auto tile_vars = vars_with_batches({i, j, q, p});
  tile.func(tile_vars) = NumberElement(sum, 0);
  tile.func(tile_vars) =
      AddProductTo(dtype, tile.func(tile_vars),
                   element(a, batch_a, contract_a[0], domain.x, above),
                   panel.func(with_batches({i, domain.x, p})));
  tile.reduced = {domain.x};

  Stage result;
  result.func = MakeFunc("dot");
  result.role = Stage::Role::kInline;
  const std::vector<Var> vars = VarsOf(v);
  const Expr m = vars[batch];
  const Expr n = vars[batch + 1];
  Expr value =
      tile.func(with_batches({n % columns, m % rows, m / rows, n / columns}));
  int behind = 0;
  for (uint32_t id = v.id + 1; id < graph_.size(); ++id) {
    const Primitive primitive = ToPrimitive(graph_.node(Value{id}).op);
    if (ClassOf(primitive) == PrimitiveClass::kPointwise) {
      behind += CostOf(primitive);
    }
  }
  stages_.push_back(std::move(panel));
  stages_.push_back(std::move(tile));
  if (behind >= kEpilogueCost) {
    Stage block;
    block.func = MakeFunc("block");
    block.role = Stage::Role::kBlock;
    block.func(vars_with_batches({i, row, p})) =
        stages_.back().func(with_batches({i, row % rows, row / rows, p}));
    value = block.func(with_batches({n % columns, m, n / columns}));
    stages_.push_back(std::move(block));
  }
  result.func(Reversed(vars)) =
      IsFloat(dtype) ? RoundElement(dtype, value) : value;
  AddStage(v, std::move(result));
  return true;
}

// For each panel of columns, in parallel: the panel is packed, and blocks of
// rows are multiplied by it, tile by tile. The nodes behind the contraction are
// computed as a tile leaves the registers. If they are many, they are computed
// as a block is done, by a loop of their own, so that they need no registers
// while tiles multiply.
void Lowering::ScheduleTiles(Func out, const std::vector<Var>& axes) {
  const Var m = axes[axes.size() - 2];
  const Var n = axes.back();
  const Var panels("panels"), blocks("blocks"), tiles("tiles");
  const Stage* tile = nullptr;
  Stage* block = nullptr;
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kTile) tile = &stage;
    if (stage.role == Stage::Role::kBlock) block = &stage;
  }
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
  order.push_back(blocks);
  order.push_back(panels);
  for (size_t d = axes.size() - 2; d-- > 0;) order.push_back(axes[d]);
  out.reorder(order)
      .vectorize(n, VectorWidth(WidestElement(out)), TailStrategy::GuardWithIf)
      .parallel(panels)
      .parallel(blocks);
  if (axes.size() > 2) out.parallel(axes.front());
  for (Stage& stage : stages_) {
    Func f = stage.func;
    const int width = VectorWidth(WidestElement(f));
    const Var c("c"), k("k"), i("i"), j("j"), row("row");
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
    } else if (stage.role == Stage::Role::kBlock) {
      f.compute_at(out, blocks).store_in(MemoryType::Stack);
      f.bound(i, 0, columns).bound_storage(row, tile->block_rows);
      f.split(row, tiles, row, rows, TailStrategy::GuardWithIf)
          .reorder(i, row, tiles)
          .vectorize(i, width)
          .unroll(i);
    } else if (stage.role == Stage::Role::kTile) {
      if (block != nullptr) {
        f.compute_at(block->func, tiles);
      } else {
        f.compute_at(out, tiles);
      }
      f.store_in(MemoryType::Stack);
      f.bound(i, 0, columns).bound(j, 0, rows);
      f.vectorize(i, width).unroll(i).unroll(j);
      f.update(0)
          .reorder({i, j, stage.reduced[0]})
          .vectorize(i, width)
          .unroll(i)
          .unroll(j);
    }
  }
}

}  // namespace cleave
