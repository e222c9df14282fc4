#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/codegen/element_support.h"
#include "engine/codegen/halide/lowering.h"
#include "engine/codegen/halide/tile_shapes.h"
#include "engine/codegen/rare_sides.h"
#include "ops/element_cost.h"

namespace cleave {

using Halide::Func;
using Halide::LoopLevel;
using Halide::MemoryType;
using Halide::RVar;
using Halide::TailStrategy;
using Halide::Var;

namespace {

// Bytes of one task of a parallel loop: a task takes microseconds.
constexpr int kTaskBytes = 32768;
// Tasks that many threads share evenly.
constexpr int64_t kEnoughTasks = 256;
// Rows of one task, and their bytes at most: long rows are tasks of their own.
constexpr int kTaskRows = 16;
constexpr int64_t kTaskRowBytes = 65536;
// The cost of an element that is read at a place that is computed and clamped.
constexpr int kFindingCost = 16;
// The states of a block of columns of a scan, and its columns at most.
constexpr int64_t kScannedBytes = int64_t{1} << 19;
constexpr int64_t kScannedColumns = 256;
// Lines of a scan along the last axis that are scanned side by side.
constexpr int kScannedLines = 8;
// Elements between them: of lines of a power of two all would lie in the same
// few places of the first cache.
constexpr int kBetweenLines = 8;
// Random numbers that are made at a time: they stay in the first cache.
constexpr int kDrawnElements = 256;

}  // namespace

Var ParallelWith(Func out, Var task, const std::vector<Var>& around) {
  for (size_t i = 0; i < around.size(); ++i) {
    const Var inner = task;
    task = Var(absl::StrCat("task", i));
    out.fuse(inner, around[i], task);
  }
  out.parallel(task);
  return task;
}

int Lowering::WidestElement(const Func& f) {
  int bytes = 1;
  for (const Halide::Type& type : f.types()) {
    bytes = std::max(bytes, type.bytes());
  }
  return bytes;
}

int Lowering::VectorWidth(int bytes) const {
  const int natural = target_.natural_vector_size(Halide::UInt(8));
  return std::max(1, natural / std::max(bytes, 4));
}

int Lowering::WidthAlong(const Func& f, const Shape& shape) const {
  int width = VectorWidth(WidestElement(f));
  if (shape.empty()) return width;
  // A vector of a shorter axis would be made of single elements.
  const auto extent = shape.back().Value();
  while (extent.has_value() && width > 1 && width > *extent) width /= 2;
  return width;
}

bool Lowering::ComputesInDoubles() const {
  bool any = false;
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    any |= graph_.types(Value{id}).front().dtype == DType::kF64;
  }
  if (!any) return false;
  const std::vector<bool> seldom = OnRareSides(graph_);
  int doubles = 0;
  int all = 0;
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    const Primitive primitive = ToPrimitive(graph_.node(Value{id}).op);
    if (seldom[id] || !IsComputed(primitive)) continue;
    const TensorType& type = graph_.type(Value{id});
    if (!IsFloat(type.dtype)) continue;
    all += CostOf(primitive);
    if (type.dtype == DType::kF64) doubles += CostOf(primitive);
  }
  return 4 * doubles > 3 * all;
}

void Lowering::Schedule(Func out, const std::vector<Var>& axes) {
  if (on_device_) return ScheduleOnDevice(out, axes);
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kWhole) ScheduleWhole(stage);
  }
  for (const Stage& stage : stages_) {
    if (stage.role == Stage::Role::kTile) return ScheduleTiles(out, axes);
  }
  if (kind_ == GroupKind::kContraction || kind_ == GroupKind::kStructured) {
    return ScheduleStructured(out, axes);
  }
  const bool full = axes.size() == space_.shape.size() &&
                    kind_ == GroupKind::kReduction && !space_.reduced.empty() &&
                    space_.RowShape().size() != axes.size();
  if (axes.empty() || space_.reduced.empty() || space_.keeps_none()) {
    for (Stage& stage : stages_) {
      if (stage.role == Stage::Role::kWhole) continue;
      if (stage.blocked) {
        if (stage.role == Stage::Role::kPartial ||
            stage.role == Stage::Role::kHalving) {
          continue;  // by the total's blocks
        }
      }
      stage.func.compute_root();
    }
    return SchedulePointwise(out, axes);
  }
  if (space_.reduces_last()) return ScheduleRows(out, axes);
  ScheduleColumns(out, axes, full);
}

// The first axis of a value with as many axes as the outputs that is not known
// to have extent 1, but for the last one: tasks run along it.
int Lowering::OutermostAxis(int rank) const {
  if (static_cast<int>(output_shape_.size()) != rank) return 0;
  for (int d = 0; d + 1 < rank; ++d) {
    if (output_shape_[d] != Dim(1)) return d;
  }
  return 0;
}

// One parallel loop over leading axes of the outputs, but for the last: as few
// of them as are known to make kEnoughTasks, or all before one that is open.
void Lowering::ParallelOver(Func out, const std::vector<Var>& axes) {
  size_t first = OutermostAxis(static_cast<int>(axes.size()));
  Var task = axes[first];
  int64_t tasks = 1;
  while (first + 2 < axes.size()) {
    const auto extent = output_shape_[first].Value();
    const auto next = output_shape_[first + 1].Value();
    if (!extent || !next || (tasks *= *extent) >= kEnoughTasks) break;
    const Var outer = task;
    task = Var(absl::StrCat("task", first));
    out.fuse(axes[++first], outer, task);
  }
  out.parallel(task);
}

// Structured nodes before what reads them; their last axis in vectors where the
// order of updates allows it, their first axis in parallel.
void Lowering::ScheduleStructured(Func out, const std::vector<Var>& axes) {
  const bool windows =
      !plain_schedule_ && axes.size() > 1 &&
      std::all_of(stages_.begin(), stages_.end(), [](const Stage& stage) {
        return stage.role == Stage::Role::kWindow ||
               stage.role == Stage::Role::kInline;
      });
  if (windows) return ScheduleWindows(out, axes);
  if (ScheduleScan(out, axes) || ScheduleLineScan(out, axes)) return;
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kInline) continue;
    stage.func.compute_root();
    const std::vector<Var> vars = stage.func.args();
    if (vars.empty() || plain_schedule_) continue;
    const int width = VectorWidth(WidestElement(stage.func));
    const int rank = static_cast<int>(vars.size());
    const Var last = vars.front();
    stage.func.vectorize(last, width, TailStrategy::GuardWithIf);
    const int outer = OutermostAxis(rank);
    const Var task = vars[rank - 1 - outer];
    if (rank > 1) stage.func.parallel(task);
    if (stage.role == Stage::Role::kSequential) {
      ScheduleSequential(stage);
      continue;
    }
    const bool scan = stage.role == Stage::Role::kScan;
    if (stage.role != Stage::Role::kContraction &&
        stage.role != Stage::Role::kWindow && !scan) {
      stage.func.update(0).unscheduled();
      continue;
    }
    // The order of the loops: the last axis, what is summed, the rest.
    const bool vectorize = !scan || stage.scan_axis != rank - 1;
    std::vector<Halide::VarOrRVar> order;
    if (vectorize) order.push_back(last);
    for (const RVar& r : stage.reduced) order.push_back(r);
    for (int d = vectorize ? 1 : 0; d < rank; ++d) {
      if (scan && d == rank - 1 - stage.scan_axis) continue;
      order.push_back(vars[d]);
    }
    stage.func.update(0).reorder(order);
    if (vectorize) {
      stage.func.update(0).vectorize(last, width, TailStrategy::GuardWithIf);
    }
    if (rank > 1 && !(scan && stage.scan_axis == outer)) {
      stage.func.update(0).parallel(task);
    }
  }
  SchedulePointwise(out, axes);
}

// Updates in their order for each place along the free axes: the last of the
// value's axes in vectors, the outermost free one in parallel.
void Lowering::ScheduleSequential(Stage& stage) {
  Halide::Stage update = stage.func.update(0);
  if (stage.free.empty()) {
    update.unscheduled();
    return;
  }
  const Var last = stage.func.args().front();
  const bool vectors = stage.free.back().name() == last.name();
  std::vector<Halide::VarOrRVar> order;
  if (vectors) order.push_back(last);
  for (const RVar& r : stage.reduced) order.push_back(r);
  for (size_t d = stage.free.size() - (vectors ? 1 : 0); d-- > 0;) {
    order.push_back(stage.free[d]);
  }
  update.reorder(order);
  if (vectors) {
    update.vectorize(last, VectorWidth(WidestElement(stage.func)),
                     TailStrategy::GuardWithIf);
  }
  if (stage.free.size() > (vectors ? 1 : 0)) {
    update.parallel(stage.free.front());
  }
}

// A scan along an axis before the last one: blocks of columns, each with its
// states in the cache, in parallel. False where these would not find place
// there, or the scan is of another kind.
bool Lowering::ScheduleScan(Func out, const std::vector<Var>& axes) {
  const auto scan = std::find_if(
      stages_.begin(), stages_.end(),
      [](const Stage& stage) { return stage.role == Stage::Role::kScan; });
  const int last = static_cast<int>(axes.size()) - 1;
  if (plain_schedule_ || scan == stages_.end() || scan->scan_axis >= last ||
      output_shape_.size() != axes.size()) {
    return false;
  }
  const auto length = output_shape_[scan->scan_axis].Value();
  const int width = VectorWidth(WidestElement(out));
  if (!length || *length < 1) return false;
  const int64_t columns =
      kScannedBytes / *length / WidestElement(scan->func) / width * width;
  if (columns < width) return false;
  const Var x = axes[last];
  const Var lane("lane");
  Var task("columns");
  out.split(x, task, x, static_cast<int>(std::min(columns, kScannedColumns)),
            TailStrategy::GuardWithIf)
      .split(x, x, lane, width, TailStrategy::GuardWithIf)
      .vectorize(lane);
  std::vector<Var> around;
  for (int d = last; d-- > 0;) {
    if (d != scan->scan_axis) around.push_back(axes[d]);
  }
  std::vector<Halide::VarOrRVar> order = {lane, x, axes[scan->scan_axis], task};
  order.insert(order.end(), around.begin(), around.end());
  out.reorder(order);
  task = ParallelWith(out, task, around);
  const std::vector<Var> vars = scan->func.args();
  scan->func.compute_at(out, task);
  std::vector<Halide::VarOrRVar> places = {vars.front()};
  for (const RVar& r : scan->reduced) places.push_back(r);
  for (int d = 1; d <= last; ++d) {
    if (d != last - scan->scan_axis) places.push_back(vars[d]);
  }
  scan->func.update(0).reorder(places).vectorize(vars.front(), width,
                                                 TailStrategy::GuardWithIf);
  return true;
}

// A scan along the last axis: some lines side by side, as each step waits for
// the one before it, with their states in the cache. False where these would
// not find place there, or the scan is of another kind.
bool Lowering::ScheduleLineScan(Func out, const std::vector<Var>& axes) {
  const auto scan = std::find_if(
      stages_.begin(), stages_.end(),
      [](const Stage& stage) { return stage.role == Stage::Role::kScan; });
  const int last = static_cast<int>(axes.size()) - 1;
  if (plain_schedule_ || last < 1 || scan == stages_.end() ||
      scan->scan_axis != last || output_shape_.size() != axes.size()) {
    return false;
  }
  const auto length = output_shape_[last].Value();
  const auto rows = output_shape_[last - 1].Value();
  if (!length || !rows || *rows < kScannedLines ||
      *length * kScannedLines * WidestElement(scan->func) > kScannedBytes) {
    return false;
  }
  const Var x = axes[last];
  const Var row("row");
  Var task("lines");
  out.split(axes[last - 1], task, row, kScannedLines, TailStrategy::GuardWithIf)
      .vectorize(x, WidthAlong(out, output_shape_), TailStrategy::GuardWithIf);
  // All axes before the line's and the row's, from the inside out.
  const std::vector<Var> around(axes.rbegin() + 2, axes.rend());
  std::vector<Halide::VarOrRVar> order = {x, row, task};
  order.insert(order.end(), around.begin(), around.end());
  out.reorder(order);
  task = ParallelWith(out, task, around);
  // The arguments of a Func come in Halide's order: the last axis first.
  const std::vector<Var> vars = scan->func.args();
  scan->func.compute_at(out, task).bound_storage(
      vars[0], static_cast<int>(*length) + kBetweenLines);
  const Var block("block"), line("line");
  std::vector<Halide::VarOrRVar> places = {line};
  for (const RVar& r : scan->reduced) places.push_back(r);
  places.push_back(block);
  for (int d = 2; d <= last; ++d) places.push_back(vars[d]);
  scan->func.update(0)
      .split(vars[1], block, line, kScannedLines, TailStrategy::GuardWithIf)
      .reorder(places)
      .unroll(line);
  return true;
}

// Sums of few terms, a vector of them at a time: they stay in registers.
void Lowering::ScheduleWindows(Func out, const std::vector<Var>& axes) {
  const Var x = axes.back();
  const Var lane("lane");
  int width = VectorWidth(WidestElement(out));
  for (const Stage& stage : stages_) {
    width = std::min(width, VectorWidth(WidestElement(stage.func)));
  }
  out.split(x, x, lane, width, TailStrategy::GuardWithIf).vectorize(lane);
  ParallelOver(out, axes);
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kInline) continue;
    stage.func.compute_at(out, x).store_in(MemoryType::Stack);
    const Var last = stage.func.args().front();
    stage.func.vectorize(last, width, TailStrategy::GuardWithIf);
    std::vector<Halide::VarOrRVar> order = {last};
    for (const RVar& r : stage.reduced) order.push_back(r);
    Halide::Stage update = stage.func.update(0);
    update.reorder(order).vectorize(last, width, TailStrategy::GuardWithIf);
    for (const RVar& r : stage.reduced) update.unroll(r);
  }
}

// The innermost loop in vectors; one axis in chunks, or the outermost of
// several, in parallel.
void Lowering::SchedulePointwise(Func out, const std::vector<Var>& axes) {
  if (axes.empty()) return;
  if (transposed_.has_value()) return ScheduleTransposed(out, axes);
  const Var x = axes.back();
  const int bytes = WidestElement(out);
  int width = plain_schedule_ ? 1 : WidthAlong(out, output_shape_);
  // Conditions of halves of a vector, of doubles, are packed for the whole of
  // it, and unpacked for each choice, where they are no registers of their own.
  if (!HasWideRegisters(target_) && ComputesInDoubles()) {
    width = std::min(width, VectorWidth(ByteSize(DType::kF64)));
  }
  // Vectors first, then tasks of many: what is left over is one vector's.
  if (width > 1) {
    const Var lane("lane");
    out.split(x, x, lane, width, TailStrategy::GuardWithIf).vectorize(lane);
    if (axes.size() > 1 && draws_.empty()) ScheduleJoined(out, x, width);
  }
  int vectors = kTaskBytes / bytes / width;
  if (!draws_.empty()) {
    const int chunk = kDrawnElements / width;
    const Var in_x("in_x");
    out.split(x, x, in_x, chunk, TailStrategy::GuardWithIf);
    ScheduleDraws(LoopLevel(out, x), MemoryType::Stack);
    vectors = std::max(vectors / chunk, 1);
  }
  if (axes.size() == 1) {
    const Var task("task");
    out.split(x, task, x, vectors, TailStrategy::GuardWithIf).parallel(task);
  } else {
    ParallelOver(out, axes);
  }
}

// Rows of a task; of an open extent as many as of a short one.
int Lowering::TaskRows(int bytes) const {
  int64_t row = bytes;
  for (size_t d = 0; d < space_.shape.size(); ++d) {
    if (!space_.reduced[d]) continue;
    row *= std::clamp<int64_t>(space_.shape[d].Value().value_or(1), 1,
                               kTaskRowBytes);
    row = std::min(row, kTaskRowBytes);
  }
  return static_cast<int>(
      std::clamp<int64_t>(kTaskRowBytes / row, 1, kTaskRows));
}

// Everything that one row needs, row by row, with the row in the cache.
void Lowering::ScheduleRows(Func out, const std::vector<Var>& axes) {
  const size_t kept = space_.RowShape().size();
  // The innermost kept axis is the row.
  std::vector<Var> rows;
  Var x;
  const bool full = axes.size() > kept;
  if (full) {
    for (size_t d = 0; d < axes.size(); ++d) {
      if (!space_.reduced[d]) rows.push_back(axes[d]);
    }
    x = axes.back();
    std::vector<Halide::VarOrRVar> order;
    for (size_t d = axes.size(); d-- > 0;) {
      if (space_.reduced[d]) order.push_back(axes[d]);
    }
    for (size_t d = rows.size(); d-- > 0;) order.push_back(rows[d]);
    out.reorder(order);
  } else {
    rows = axes;
  }
  const Var row = rows.back();
  if (rows.size() == 1) {
    Var task("task");
    out.split(row, task, row, TaskRows(WidestElement(out)),
              TailStrategy::GuardWithIf)
        .parallel(task);
  } else {
    out.parallel(rows.front());
  }
  if (full && !plain_schedule_) {
    out.vectorize(x, VectorWidth(WidestElement(out)),
                  TailStrategy::GuardWithIf);
  }
  const LoopLevel level(out, row);
  ScheduleDraws(level, MemoryType::Auto);
  for (Stage& stage : stages_) {
    switch (stage.role) {
      case Stage::Role::kPartial:
      case Stage::Role::kHalving:
        ScheduleLanes(stage, level);
        break;
      case Stage::Role::kStored: {
        stage.func.compute_at(level);
        if (!plain_schedule_) {
          const Var last = axes.back();
          stage.func.vectorize(last, VectorWidth(WidestElement(stage.func)),
                               TailStrategy::GuardWithIf);
        }
        break;
      }
      case Stage::Role::kWhole:
      case Stage::Role::kDraws:
        break;
      default:
        stage.func.compute_at(level);
    }
  }
}

void Lowering::ScheduleLanes(Stage& stage, const LoopLevel& level) {
  const Var lane("lane");
  const int width =
      std::min(VectorWidth(WidestElement(stage.func)), stage.lanes);
  stage.func.compute_at(level).store_in(MemoryType::Stack);
  stage.func.bound(lane, 0, stage.lanes);
  if (width > 1) stage.func.vectorize(lane, width);
  if (stage.lanes > 1) stage.func.unroll(lane);
  if (stage.role != Stage::Role::kPartial) return;
  std::vector<Halide::VarOrRVar> order = {lane};
  for (const RVar& r : stage.reduced) order.push_back(r);
  stage.func.update(0).reorder(order);
  if (width > 1) stage.func.update(0).vectorize(lane, width);
  stage.func.update(0).unroll(lane);
  if (stage.has_tail && width > 1) {
    stage.func.update(1).vectorize(stage.tail, width,
                                   TailStrategy::GuardWithIf);
  } else if (stage.has_tail) {
    stage.func.update(1).unscheduled();
  }
}

// A reduction over everything: its blocks in parallel, each in lanes, then one
// after the other.
void Lowering::ScheduleWhole(Stage& stage) {
  stage.func.compute_root();
  if (stage.reduced.size() != 1 || plain_schedule_) return;
  const Var block("block");
  // The last halving stands before its total. An argmax has no blocks: a stage
  // before it that has some belongs to another reduction.
  if (&stage == stages_.data()) return;
  Stage* const last = &stage - 1;
  if (!last->blocked || last->lanes != 1) return;
  last->func.compute_root();
  last->func.parallel(block);
  const Var lane("lane");
  last->func.bound(lane, 0, 1);
  // The stages of this reduction: from its lanes to the last halving.
  for (Stage* at = last; at-- != stages_.data();) {
    if (!at->blocked) break;
    ScheduleLanes(*at, LoopLevel(last->func, block));
    if (at->role == Stage::Role::kPartial) break;
  }
}

// The cost of an element of all nodes: to find where it is read counts, too,
// unless its coordinates are its reader's in another order.
int Lowering::ElementCost() const {
  int cost = 0;
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    const Primitive primitive = ToPrimitive(graph_.node(Value{id}).op);
    switch (primitive) {
      case Primitive::kGather:
        // Indices that the host has checked are clamped, no more.
        if (graph_.attributes(Value{id}).Get("mode").AsString() == "error") {
          break;
        }
        cost += kFindingCost;
        break;
      case Primitive::kWindows:
      case Primitive::kPad:
      case Primitive::kConcatenate:
        cost += kFindingCost;
        break;
      default:
        if (IsComputed(primitive)) cost += CostOf(primitive);
    }
  }
  return cost;
}

}  // namespace cleave
