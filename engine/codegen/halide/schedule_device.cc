// Schedules for devices: a block of threads per block of columns or elements,
// per tile of a contraction.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/codegen/halide/device_loops.h"
#include "engine/codegen/halide/lowering.h"

namespace cleave {

using Halide::Expr;
using Halide::Func;
using Halide::LoopLevel;
using Halide::RVar;
using Halide::TailStrategy;
using Halide::Var;
using Halide::VarOrRVar;

namespace {

// Threads of a block that computes elements, and elements of each thread: as
// many loads are on their way at a time.
constexpr int kBlockThreads = 128;
constexpr int kThreadElements = 4;
constexpr int kBlockColumns = 64;
constexpr int kFewColumns = 32;
// Rows that one thread computes of the results of a reduction of columns.
constexpr int kColumnPiece = 16;
// Blocks along the second and third axis of a grid: fewer than 65536.
constexpr int kGridRows = 4096;
// Terms of a contraction that have their loads on the way at a time.
constexpr int kUnrolledTerms = 4;
// Columns and rows of a block that is copied in another order.
constexpr int kCopiedEdge = 16;
// Threads of a block of a contraction along its rows and columns, and rows and
// columns of each: in registers.
constexpr int kTileThreadRows = 8;
constexpr int kTileThreadColumns = 16;
constexpr int kThreadRows = 8;
constexpr int kThreadColumns = 4;

// Threads side by side of a block along an axis.
int BlockColumns(const Dim& extent) {
  const auto columns = extent.Value();
  const bool few = columns.has_value() && *columns <= kFewColumns;
  return few ? kFewColumns : kBlockColumns;
}

}  // namespace

void Lowering::ScheduleOnDevice(Func out, const std::vector<Var>& axes) {
  if (kind_ == GroupKind::kContraction) {
    return ScheduleDeviceContraction(out, axes);
  }
  if (SplitsRows()) return ScheduleDeviceRowBlocks(out, axes);
  if (space_.keeps_none()) ScheduleDeviceLaneBlocks();
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kWhole) ScheduleDeviceStage(stage);
  }
  if (axes.empty() || space_.reduced.empty() || space_.keeps_none()) {
    for (Stage& stage : stages_) {
      if (stage.role == Stage::Role::kWhole || stage.blocked) continue;
      if (stage.role == Stage::Role::kCopied) continue;  // by tiles
      // A value of the whole, or of the one row that it needs.
      stage.func.compute_root().gpu_single_thread();
      for (int i = 0; i < stage.func.num_update_definitions(); ++i) {
        stage.func.update(i).gpu_single_thread();
      }
    }
    return ScheduleDeviceElements(out, axes);
  }
  if (space_.reduces_last()) return ScheduleDeviceRows(out, axes);
  if (SplitsColumns()) return ScheduleDeviceColumnBlocks(out, axes);
  ScheduleDeviceColumns(out, axes);
}

void Lowering::ScheduleDeviceElements(Func out, const std::vector<Var>& axes) {
  if (axes.empty()) {
    out.gpu_single_thread();
    return;
  }
  if (transposed_.has_value()) return ScheduleDeviceTransposed(out, axes);
  const Var all = Fuse(out, axes);
  const Var block("blocks"), thread("thread"), rest("rest"), each("each");
  Expr elements = 1;
  for (const Dim& extent : output_shape_) elements *= Extent(extent);
  // The last block begins earlier where it would end too late: no element is
  // asked for being there, so that loads do not wait for questions.
  constexpr int kElements = kBlockThreads * kThreadElements;
  out.specialize(elements >= kElements)
      .split(all, block, rest, kElements, TailStrategy::ShiftInwards)
      .split(rest, each, thread, kBlockThreads)
      .reorder(each, thread, block)
      .unroll(each)
      .gpu_blocks(block)
      .gpu_threads(thread);
  out.gpu_tile(all, block, thread, kBlockThreads, TailStrategy::GuardWithIf);
}

// Reductions over axes before the last, and of rows without lanes: a thread for
// each value, those of the last axis that is kept side by side.
void Lowering::ScheduleDeviceColumns(Func out, const std::vector<Var>& axes) {
  const bool full = axes.size() > space_.RowShape().size();
  const Var x = axes.back();
  const Var columns("columns"), thread("thread");
  out.split(x, columns, thread, BlockColumns(output_shape_.back()),
            TailStrategy::GuardWithIf);
  std::vector<Var> blocks;
  std::vector<VarOrRVar> order;
  for (size_t d = axes.size() - 1; d-- > 0;) {
    if (full && space_.reduced[d]) order.push_back(axes[d]);
  }
  order.push_back(thread);
  order.push_back(columns);
  for (size_t d = axes.size() - 1; d-- > 0;) {
    if (!full || !space_.reduced[d]) order.push_back(axes[d]);
  }
  for (size_t d = 0; d + 1 < axes.size(); ++d) {
    if (!full || !space_.reduced[d]) blocks.push_back(axes[d]);
  }
  blocks.push_back(columns);
  out.reorder(order);
  GiveBlocks(out, blocks);
  out.gpu_threads(thread);
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kWhole) continue;
    stage.func.compute_at(out, thread);
    for (int i = 0; i < stage.func.num_update_definitions(); ++i) {
      if (stage.reduced.empty()) continue;
      const std::vector<Var> args = stage.func.args();
      std::vector<VarOrRVar> inner(stage.reduced.begin(), stage.reduced.end());
      inner.insert(inner.end(), args.begin(), args.end());
      stage.func.update(i).reorder(inner);
      UnrollSteps(stage.func, i, stage.reduced.front(), kUnrolledSteps);
    }
  }
}

void Lowering::ScheduleDeviceColumnBlocks(Func out,
                                          const std::vector<Var>& axes) {
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kWhole) continue;
    stage.func.compute_root();
    // A thread for each column of each block, columns beside each other.
    const auto schedule = [&](auto f, std::vector<VarOrRVar> order) {
      const Var columns("columns"), column("column");
      const std::vector<Var> args = stage.func.args();
      if (args.empty()) {
        f.gpu_single_thread();
        return;
      }
      f.split(args[0], columns, column, BlockColumns(space_.shape.back()),
              TailStrategy::GuardWithIf);
      order.push_back(column);
      order.push_back(columns);
      order.insert(order.end(), args.begin() + 1, args.end());
      f.reorder(order);
      std::vector<Var> blocks(args.rbegin(), args.rend());
      blocks.back() = columns;
      f.gpu_blocks(Fuse(f, blocks)).gpu_threads(column);
    };
    schedule(stage.func, {});
    for (int i = 0; i < stage.func.num_update_definitions(); ++i) {
      schedule(stage.func.update(i),
               {stage.reduced.begin(), stage.reduced.end()});
      UnrollSteps(stage.func, i, stage.reduced.front(), kUnrolledSteps);
    }
  }
  if (axes.size() <= space_.RowShape().size()) {
    return ScheduleDeviceElements(out, axes);
  }
  // The outermost of the reduced axes, in pieces: a grid has less room along
  // its second and third axes. It is not fused with those that are kept, since
  // it may be empty where they are not.
  const Var columns("columns"), column("column"), pieces("pieces"),
      piece("piece"), each("each");
  out.split(axes.back(), columns, column, BlockColumns(space_.shape.back()),
            TailStrategy::GuardWithIf);
  std::vector<VarOrRVar> order;
  std::vector<Var> kept;
  Var outermost;
  for (size_t d = axes.size() - 1; d-- > 0;) {
    if (!space_.reduced[d]) continue;
    order.push_back(axes[d]);
    outermost = axes[d];
  }
  out.split(outermost, piece, each, kColumnPiece, TailStrategy::GuardWithIf)
      .split(piece, pieces, piece, kGridRows, TailStrategy::GuardWithIf);
  order.back() = each;
  order.push_back(column);
  for (size_t d = 0; d + 1 < axes.size(); ++d) {
    if (!space_.reduced[d]) kept.push_back(axes[d]);
  }
  kept.push_back(columns);
  order.insert(order.end(), kept.rbegin(), kept.rend());
  order.push_back(piece);
  order.push_back(pieces);
  out.reorder(order);
  out.gpu_blocks(Fuse(out, kept), piece, pieces).gpu_threads(column);
}

bool Lowering::IsTiledOnDevice(const std::vector<Var>& axes) const {
  if (axes.size() < 2) return false;
  std::vector<bool> rests(graph_.size(), false);
  int contractions = 0;
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    const Value v{id};
    for (const Value operand : graph_.operands(v)) {
      if (rests[operand.id]) rests[id] = true;
    }
    const PrimitiveClass kind = ClassOf(ToPrimitive(graph_.node(v).op));
    if (kind == PrimitiveClass::kContraction) {
      if (rests[id] || graph_.type(v).shape != output_shape_) return false;
      ++contractions;
      rests[id] = true;
    } else if (rests[id] && kind != PrimitiveClass::kPointwise) {
      return false;
    }
  }
  return contractions == 1;
}

// Elements that are copied in another order: a block reads and writes whole
// lines.
void Lowering::ScheduleDeviceCopied(Stage& stage) {
  const std::vector<Var> args = stage.func.args();
  const Var columns("columns"), column("column");
  const RVar rows("rows"), row("row"), pieces("pieces");
  stage.func.compute_root();
  Halide::Stage copy = stage.func.update(0);
  copy.split(args[0], columns, column, kCopiedEdge, TailStrategy::GuardWithIf)
      .split(stage.reduced.front(), rows, row, kCopiedEdge,
             TailStrategy::GuardWithIf)
      .split(rows, pieces, rows, kGridRows, TailStrategy::GuardWithIf);
  std::vector<Var> blocks(args.rbegin(), args.rend() - 2);
  blocks.push_back(columns);
  std::vector<VarOrRVar> order = {column, row};
  order.insert(order.end(), blocks.rbegin(), blocks.rend());
  order.emplace_back(rows);
  order.emplace_back(pieces);
  copy.reorder(order);
  copy.gpu_blocks(Fuse(copy, blocks), rows, pieces).gpu_threads(column, row);
}

void Lowering::ScheduleDeviceContraction(Func out,
                                         const std::vector<Var>& axes) {
  std::vector<Stage*> stages;
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kCopied) {
      ScheduleDeviceCopied(stage);
    } else if (stage.role != Stage::Role::kInline) {
      stages.push_back(&stage);
    }
  }
  if (axes.empty()) {
    out.gpu_single_thread();
    for (Stage* stage : stages) {
      stage->func.compute_root().gpu_single_thread();
      stage->func.update(0).gpu_single_thread();
    }
    return;
  }
  const Var row("row"), column("column"), rows("rows"), columns("columns");
  if (axes.size() == 1) {
    out.gpu_tile(axes[0], columns, column, kBlockThreads,
                 TailStrategy::GuardWithIf);
    for (Stage* stage : stages) stage->func.compute_at(out, column);
    return;
  }
  const Var m = axes[axes.size() - 2];
  const Var n = axes.back();
  std::vector<Var> blocks(axes.begin(), axes.end() - 2);
  blocks.push_back(rows);
  blocks.push_back(columns);
  const auto schedule = [&](auto loops, std::vector<VarOrRVar> order) {
    order.push_back(column);
    order.push_back(row);
    for (size_t d = blocks.size(); d-- > 0;) order.push_back(blocks[d]);
    loops.reorder(order);
    loops.gpu_blocks(Fuse(loops, blocks)).gpu_threads(column, row);
  };
  const bool tiled = IsTiledOnDevice(axes);
  if (tiled) {
    // Where all tiles are whole: the last begin earlier.
    constexpr int kRows = kTileThreadRows * kThreadRows;
    constexpr int kColumns = kTileThreadColumns * kThreadColumns;
    const Var each_row("each_row"), each_column("each_column");
    const Var block_row("block_row"), block_column("block_column");
    Halide::Stage loops =
        out.specialize(Extent(output_shape_[axes.size() - 2]) >= kRows &&
                       Extent(output_shape_.back()) >= kColumns);
    loops.split(n, columns, block_column, kColumns, TailStrategy::ShiftInwards)
        .split(block_column, column, each_column, kThreadColumns)
        .split(m, rows, block_row, kRows, TailStrategy::ShiftInwards)
        .split(block_row, row, each_row, kThreadRows)
        .unroll(each_column)
        .unroll(each_row);
    schedule(loops, {each_column, each_row});
  }
  out.split(n, columns, column, kTileThreadColumns, TailStrategy::GuardWithIf)
      .split(m, rows, row, kTileThreadRows, TailStrategy::GuardWithIf);
  schedule(out, {});
  for (Stage* stage : stages) {
    Func func = stage->func;
    func.compute_at(out, column);
    if (!tiled) continue;
    const std::vector<Var> args = func.args();
    func.unroll(args[0]).unroll(args[1]);
    std::vector<VarOrRVar> order = {args[0], args[1]};
    order.insert(order.end(), stage->reduced.begin(), stage->reduced.end());
    order.insert(order.end(), args.begin() + 2, args.end());
    func.update(0).reorder(order).unroll(args[0]).unroll(args[1]);
    UnrollSteps(func, 0, stage->reduced.front(), kUnrolledTerms);
  }
}

}  // namespace cleave
