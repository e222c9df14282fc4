// Schedules for devices: a block of threads per row, per block of columns or
// elements, per tile of a contraction. The lanes of a row's reduction are those
// of the CPU's, so that its sum has the same order.

#include <vector>

#include "engine/codegen/halide/lowering.h"

namespace cleave {

using Halide::Func;
using Halide::LoopLevel;
using Halide::RVar;
using Halide::TailStrategy;
using Halide::Var;
using Halide::VarOrRVar;

namespace {

// Elements or columns that one block computes.
constexpr int kBlockElements = 128;
constexpr int kBlockColumns = 64;
// Rows and columns of a block of a contraction.
constexpr int kTileEdge = 16;

// A stage in the memory of a block. Halide 21 puts what a block shares behind
// one another, each aligned to the widest type among it, but counts the bytes
// without the gaps: of multiples of 8 bytes there are none.
void ShareInBlock(Func f, const LoopLevel& level) {
  f.compute_at(level);
  const std::vector<Var> args = f.args();
  if (!args.empty()) f.align_storage(args.front(), 8);
}

// One variable over all of `axes`, the first outermost.
Var Fuse(Func f, const std::vector<Var>& axes) {
  Var all = axes.back();
  for (size_t d = axes.size() - 1; d-- > 0;) {
    const Var next("block");
    f.fuse(all, axes[d], next);
    all = next;
  }
  return all;
}

}  // namespace

void Lowering::ScheduleOnDevice(Func out, const std::vector<Var>& axes) {
  if (kind_ == GroupKind::kContraction) {
    return ScheduleDeviceContraction(out, axes);
  }
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kWhole) ScheduleDeviceWhole(stage);
  }
  if (axes.empty() || space_.reduced.empty() || space_.keeps_none()) {
    for (Stage& stage : stages_) {
      if (stage.role == Stage::Role::kWhole || stage.blocked) continue;
      // A value of the whole: one element.
      stage.func.compute_root().gpu_single_thread();
    }
    return ScheduleDeviceElements(out, axes);
  }
  if (space_.reduces_last()) return ScheduleDeviceRows(out, axes);
  ScheduleDeviceColumns(out, axes);
}

void Lowering::ScheduleDeviceElements(Func out, const std::vector<Var>& axes) {
  if (axes.empty()) {
    out.gpu_single_thread();
    return;
  }
  const Var all = Fuse(out, axes);
  const Var block("blocks"), thread("thread");
  out.gpu_tile(all, block, thread, kBlockElements, TailStrategy::GuardWithIf);
}

void Lowering::ScheduleDeviceRows(Func out, const std::vector<Var>& axes) {
  std::vector<Var> rows;
  std::vector<VarOrRVar> order;
  const bool full = axes.size() > space_.RowShape().size();
  const Var steps("steps"), thread("thread");
  if (full) {
    const Var x = axes.back();
    out.split(x, steps, thread, kReductionLanes, TailStrategy::GuardWithIf);
    order.push_back(steps);
    for (size_t d = axes.size() - 1; d-- > 0;) {
      if (space_.reduced[d]) order.push_back(axes[d]);
    }
    order.push_back(thread);
    for (size_t d = 0; d < axes.size(); ++d) {
      if (!space_.reduced[d]) rows.push_back(axes[d]);
    }
  } else {
    rows = axes;
  }
  for (size_t d = rows.size(); d-- > 0;) order.push_back(rows[d]);
  out.reorder(order);
  const Var row = Fuse(out, rows);
  out.gpu_blocks(row);
  if (full) out.gpu_threads(thread);
  const LoopLevel level(out, row);
  for (Stage& stage : stages_) {
    switch (stage.role) {
      case Stage::Role::kPartial:
      case Stage::Role::kHalving:
        ScheduleDeviceLanes(stage, level);
        break;
      case Stage::Role::kWhole:
        break;
      default:
        ShareInBlock(stage.func, level);
    }
  }
}

void Lowering::ScheduleDeviceLanes(Stage& stage, const LoopLevel& level) {
  const Var lane("lane");
  ShareInBlock(stage.func, level);
  stage.func.bound(lane, 0, stage.lanes).gpu_threads(lane);
  if (stage.role != Stage::Role::kPartial) return;
  std::vector<VarOrRVar> order(stage.reduced.begin(), stage.reduced.end());
  order.push_back(lane);
  stage.func.update(0).reorder(order).gpu_threads(lane);
  if (stage.has_tail) stage.func.update(1).gpu_threads(stage.tail);
}

// A reduction over everything: a block of threads for each of its blocks, then
// one after the other.
void Lowering::ScheduleDeviceWhole(Stage& stage) {
  stage.func.compute_root().gpu_single_thread();
  for (int i = 0; i < stage.func.num_update_definitions(); ++i) {
    stage.func.update(i).gpu_single_thread();
  }
  // As in ScheduleWhole: the last halving stands before its total.
  if (stage.reduced.size() != 1 || &stage == stages_.data()) return;
  Stage* const last = &stage - 1;
  if (!last->blocked || last->lanes != 1) return;
  const Var block("block"), lane("lane");
  last->func.compute_root().bound(lane, 0, 1).gpu_blocks(block);
  for (Stage* at = last; at-- != stages_.data();) {
    if (!at->blocked) break;
    ScheduleDeviceLanes(*at, LoopLevel(last->func, block));
    if (at->role == Stage::Role::kPartial) break;
  }
}

// Reductions over axes before the last: a thread per column.
void Lowering::ScheduleDeviceColumns(Func out, const std::vector<Var>& axes) {
  const bool full = axes.size() > space_.RowShape().size();
  const Var x = axes.back();
  const Var columns("columns"), thread("thread");
  out.split(x, columns, thread, kBlockColumns, TailStrategy::GuardWithIf);
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
  const Var block = Fuse(out, blocks);
  out.gpu_blocks(block).gpu_threads(thread);
  const LoopLevel level(out, block);
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kWhole) continue;
    ShareInBlock(stage.func, level);
    const std::vector<Var> args = stage.func.args();
    if (args.empty()) continue;
    stage.func.gpu_threads(args.front());
    for (int i = 0; i < stage.func.num_update_definitions(); ++i) {
      std::vector<VarOrRVar> inner(stage.reduced.begin(), stage.reduced.end());
      inner.insert(inner.end(), args.begin(), args.end());
      stage.func.update(i).reorder(inner).gpu_threads(args.front());
    }
  }
}

void Lowering::ScheduleDeviceContraction(Func out,
                                         const std::vector<Var>& axes) {
  const Var row("row"), column("column"), rows("rows"), columns("columns");
  const bool scalar = axes.empty();
  if (scalar) {
    out.gpu_single_thread();
  } else if (axes.size() == 1) {
    out.gpu_tile(axes[0], columns, column, kBlockElements,
                 TailStrategy::GuardWithIf);
  } else {
    const Var m = axes[axes.size() - 2];
    const Var n = axes.back();
    out.split(n, columns, column, kTileEdge, TailStrategy::GuardWithIf)
        .split(m, rows, row, kTileEdge, TailStrategy::GuardWithIf);
    std::vector<Var> blocks(axes.begin(), axes.end() - 2);
    blocks.push_back(rows);
    blocks.push_back(columns);
    std::vector<VarOrRVar> order = {column, row};
    for (size_t d = blocks.size(); d-- > 0;) order.push_back(blocks[d]);
    out.reorder(order);
    out.gpu_blocks(Fuse(out, blocks)).gpu_threads(column, row);
  }
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kInline) continue;
    if (scalar) {
      stage.func.compute_root().gpu_single_thread();
      stage.func.update(0).gpu_single_thread();
    } else {
      stage.func.compute_at(out, column);
    }
  }
}

}  // namespace cleave
