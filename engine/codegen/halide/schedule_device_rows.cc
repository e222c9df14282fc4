// Schedules for devices of reductions of rows: a block of threads per row, or
// per several short ones. The lanes of a row's reduction are those of the
// CPU's, so that its sum has the same order.

#include <algorithm>
#include <cstdint>
#include <iterator>
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

// Threads of a block that takes several rows, and the rows that are long enough
// to have blocks of their own.
constexpr int kRowThreads = 256;
constexpr int64_t kLongRow = 1024;
// Bytes of a block's memory that values of rows are stored in: OpenCL's devices
// have 32 KiB at least, and the lanes of reductions take some.
constexpr int64_t kBlockBytes = 24576;
// Threads of a block that reduces what blocks of rows gave.
constexpr int kGroupThreads = 32;

// Whether what halves lanes is a step of a stage behind it: a thread halves
// eight lanes, since all threads of the block wait behind a stage.
bool IsStepOfHalving(const Stage& stage) {
  constexpr int kStored[] = {1, 8, 64, 512};
  return stage.func.outputs() == 1 &&
         std::count(std::begin(kStored), std::end(kStored), stage.lanes) == 0;
}

// A thread for each row, in the second axis of a block: lanes are the first.
template <typename Loops>
void GiveRowsThreads(Loops f, const Var& row) {
  const Var rows("rows"), lane("lane");
  f.split(row, rows, lane, 1).gpu_threads(lane, rows);
}

// A thread for each element of f, whose arguments these are, around the loops
// of `inner`.
template <typename Loops>
void GiveElementsThreads(Loops f, const std::vector<Var>& args,
                         std::vector<VarOrRVar> inner) {
  if (args.empty()) {
    f.gpu_single_thread();
    return;
  }
  const Var blocks("blocks"), thread("thread");
  inner.insert(inner.end(), args.begin(), args.end());
  f.reorder(inner);
  const Var all = Fuse(f, {args.rbegin(), args.rend()});
  f.gpu_tile(all, blocks, thread, kGroupThreads, TailStrategy::GuardWithIf);
}

}  // namespace

bool Lowering::FitsBlock(Value v) const {
  if (!space_.reduces_last() || space_.keeps_none()) return false;
  int64_t row = 1;
  for (size_t d = 0; d < space_.shape.size(); ++d) {
    if (!space_.reduced[d]) continue;
    const auto extent = space_.shape[d].Value();
    if (!extent.has_value() || *extent > kBlockBytes) return false;
    row *= *extent;
    if (row > kBlockBytes) return false;
  }
  int64_t bytes = row * ByteSize(SumType(graph_.type(v).dtype));
  for (const Stage& stage : stages_) {
    if (stage.role == Stage::Role::kStored) {
      bytes += row * WidestElement(stage.func);
    }
  }
  return bytes <= kBlockBytes;
}

int Lowering::DeviceLanes() const {
  int lanes = 0;
  for (const Stage& stage : stages_) lanes = std::max(lanes, stage.lanes);
  return lanes;
}

int Lowering::DeviceBlockRows(int lanes) const {
  if (space_.RowShape().size() != 1) return 1;
  const auto length = space_.shape.back().Value();
  if (lanes == 0 || !length.has_value() || *length >= kLongRow) return 1;
  int64_t stored = 0;
  for (const Stage& stage : stages_) {
    if (stage.role == Stage::Role::kStored) {
      stored += *length * WidestElement(stage.func);
    }
  }
  int rows = std::max(1, kRowThreads / lanes);
  while (rows > 1 && rows * stored > kBlockBytes) rows /= 2;
  return rows;
}

void Lowering::ScheduleDeviceSteps(Func f, const Var& x, const Var& thread,
                                   int lanes, std::vector<VarOrRVar>* order) {
  const Var steps("steps"), rest("rest"), each("each");
  f.split(x, steps, rest, lanes * kUnrolledSteps, TailStrategy::GuardWithIf)
      .split(rest, each, thread, lanes)
      .unroll(each);
  order->push_back(each);
  order->push_back(steps);
}

// A block takes a row, or several short ones.
void Lowering::ScheduleDeviceRows(Func out, const std::vector<Var>& axes) {
  std::vector<Var> rows;
  std::vector<VarOrRVar> order;
  const bool full = axes.size() > space_.RowShape().size();
  const int reduced_lanes = DeviceLanes();
  const bool stores = std::any_of(
      stages_.begin(), stages_.end(),
      [](const Stage& stage) { return stage.role == Stage::Role::kStored; });
  if (reduced_lanes == 0 && !full && !stores) {
    return ScheduleDeviceColumns(out, axes);
  }
  const int block_rows = DeviceBlockRows(reduced_lanes);
  const int lanes = reduced_lanes > 0 ? reduced_lanes : kReductionLanes;
  const Var thread("thread"), blocks("blocks"), row_thread("row_thread");
  if (full) {
    ScheduleDeviceSteps(out, axes.back(), thread, lanes, &order);
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
  Var row = rows.front();
  if (block_rows > 1) {
    // Lanes are the first axis of threads: where there is none, one.
    if (!full) {
      const Var each_row("each_row");
      out.split(row, each_row, thread, 1);
      row = each_row;
    }
    Expr count = 1;
    for (const Dim& extent : space_.RowShape()) count *= Extent(extent);
    const auto in_blocks = [&](auto loops, int block, TailStrategy tail) {
      loops.split(row, blocks, row_thread, block, tail)
          .gpu_blocks(blocks)
          .gpu_threads(thread, row_thread);
    };
    // The last block begins earlier where it would end too late.
    in_blocks(out.specialize(count >= block_rows), block_rows,
              TailStrategy::ShiftInwards);
    in_blocks(out, 1, TailStrategy::Auto);
    row = blocks;
  } else {
    row = GiveBlocks(out, rows);
    if (full) out.gpu_threads(thread);
  }
  const LoopLevel level(out, row);
  for (Stage& stage : stages_) {
    const std::vector<Var> args = stage.func.args();
    switch (stage.role) {
      case Stage::Role::kPartial:
      case Stage::Role::kHalving:
        ScheduleDeviceLanes(stage, level, block_rows > 1);
        break;
      case Stage::Role::kWhole:
        break;
      case Stage::Role::kStored: {
        ShareInBlock(stage.func, level);
        // Its axes are those of the space.
        std::vector<VarOrRVar> inner;
        std::vector<VarOrRVar> outer = {thread};
        ScheduleDeviceSteps(stage.func, args[0], thread, lanes, &inner);
        for (size_t i = 1; i < args.size(); ++i) {
          const size_t axis = args.size() - 1 - i;
          (space_.reduced[axis] ? inner : outer).emplace_back(args[i]);
        }
        inner.insert(inner.end(), outer.begin(), outer.end());
        stage.func.reorder(inner).gpu_threads(thread);
        if (block_rows > 1) stage.func.gpu_threads(args.back());
        break;
      }
      default:
        ShareInBlock(stage.func, level);
        if (block_rows > 1) {
          GiveRowsThreads(stage.func, args.back());
          for (int i = 0; i < stage.func.num_update_definitions(); ++i) {
            GiveRowsThreads(stage.func.update(i), args.back());
          }
        }
    }
  }
}

void Lowering::ScheduleDeviceLanes(Stage& stage, const LoopLevel& level,
                                   bool rows) {
  if (stage.role == Stage::Role::kHalving && IsStepOfHalving(stage)) return;
  const Var lane("lane");
  ShareInBlock(stage.func, level);
  stage.func.bound(lane, 0, stage.lanes).gpu_threads(lane);
  const Var row = stage.func.args().back();
  if (rows) stage.func.gpu_threads(row);
  if (stage.role != Stage::Role::kPartial) return;
  std::vector<VarOrRVar> order(stage.reduced.begin(), stage.reduced.end());
  order.push_back(lane);
  stage.func.update(0).reorder(order).gpu_threads(lane);
  if (rows) stage.func.update(0).gpu_threads(row);
  UnrollSteps(stage.func, 0, stage.reduced.front(), kUnrolledSteps);
  if (!stage.has_tail) return;
  stage.func.update(1).gpu_threads(stage.tail);
  if (rows) stage.func.update(1).gpu_threads(row);
}

// Each block of a reduction on its own, with its lanes.
void Lowering::ScheduleDeviceLaneBlocks() {
  for (Stage& last : stages_) {
    if (last.role != Stage::Role::kHalving || !last.blocked ||
        last.lanes != 1) {
      continue;
    }
    const Var lane("lane");
    const std::vector<Var> args = last.func.args();
    last.func.compute_root().bound(lane, 0, 1);
    const Var block = GiveBlocks(last.func, {args.rbegin(), args.rend() - 1});
    for (Stage* at = &last; at-- != stages_.data();) {
      ScheduleDeviceLanes(*at, LoopLevel(last.func, block));
      if (at->role == Stage::Role::kPartial) break;
    }
  }
}

// A stage that no block makes for itself: a kernel of its own, a thread for
// each element.
void Lowering::ScheduleDeviceStage(Stage& stage) {
  const std::vector<Var> args = stage.func.args();
  stage.func.compute_root();
  GiveElementsThreads(stage.func, args, {});
  for (int i = 0; i < stage.func.num_update_definitions(); ++i) {
    std::vector<VarOrRVar> inner;
    for (const RVar& r : stage.reduced) inner.emplace_back(r);
    if (!stage.reduced.empty()) {
      const auto [step, steps] =
          UnrollSteps(stage.func, i, stage.reduced.front(), kUnrolledSteps);
      inner.front() = step;
      inner.insert(inner.begin() + 1, steps);
    }
    GiveElementsThreads(stage.func.update(i), args, inner);
  }
}

void Lowering::ScheduleDeviceRowBlocks(Func out, const std::vector<Var>& axes) {
  ScheduleDeviceLaneBlocks();
  for (Stage& stage : stages_) {
    if (stage.role != Stage::Role::kPartial &&
        stage.role != Stage::Role::kHalving) {
      ScheduleDeviceStage(stage);
    }
  }
  ScheduleDeviceElements(out, axes);
}

}  // namespace cleave
