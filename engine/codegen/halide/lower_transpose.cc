// Transposes of which a pointwise group makes its elements. Its loops run over
// tiles of as many columns as rows (TilesOf): rows of the operand are read in
// vectors, interleaved until they are columns, and these are written in
// vectors.
//
// Interleaving 2^k rows: the first with the row half of all rows below it, the
// second likewise, and so on; twice as long rows, half as many. After k times
// the one row that is left has the tile's columns one after the other:
//
//   a b c d      a i b j c k d l
//   e f g h  ->  e m f n g o h p  ->  a e i m b f j n c g k o d h l p
//   i j k l
//   m n o p

#include <algorithm>

#include "engine/codegen/element_support.h"
#include "engine/codegen/halide/device_loops.h"
#include "engine/codegen/halide/lowering.h"
#include "engine/codegen/halide/tile_shapes.h"

namespace cleave {

using Halide::Expr;
using Halide::Func;
using Halide::LoopLevel;
using Halide::MemoryType;
using Halide::TailStrategy;
using Halide::Var;

namespace {

// Along a tile of a device: a line of 32 threads reads, and writes, elements
// side by side.
constexpr int kDeviceEdge = 32;
// Lines of threads of its block: each does several rows of a tile.
constexpr int kDeviceLines = 8;
// Tasks that keep some threads busy.
constexpr int64_t kSomeTasks = 32;
// The cost of an element that is computed for all rows of a tile at a time,
// which repeats its code.
constexpr int kTurnedCost = 8;
// Along the result's last axis, where a tile is not turned.
constexpr int kTileWrites = 64;

// Elements along a tile's edge, and tiles side by side of which the lines that
// are read follow each other.
struct Tiles {
  int edge;
  int at_a_time;
};

// A tile stays in registers: of elements of 4 bytes, 16 rows are vectors of 64
// bytes, whole lines of the cache. With sixteen shorter vectors 8 rows do.
Tiles TilesOf(const Halide::Target& target) {
  return HasWideRegisters(target) ? Tiles{16, 2} : Tiles{8, 16};
}

// Whether the operand is windows, of which two axes run along the last one of
// memory, and the result's last axis is one of these.
bool ReadsLinesOfWindows(const Graph& graph, Value transpose) {
  const Value windows = graph.operands(transpose)[0];
  if (graph.node(windows).op != ToOpId(Primitive::kWindows)) return false;
  const int64_t rank = graph.type(windows).rank();
  const int64_t places = graph.attributes(windows).GetDims("counts").size();
  const int64_t last = graph.attributes(transpose).GetInts("axes").back();
  return last == rank - 1 || last == rank - 1 - places;
}

}  // namespace

// The loops are those of the outputs: what rests on the transpose must be
// computed where it is read.
void Lowering::TileTranspose(const std::vector<Value>& outputs) {
  transposed_.reset();
  if (kind_ != GroupKind::kPointwise || plain_schedule_) return;
  const int edge = on_device_ ? kDeviceEdge : TilesOf(target_).edge;
  const Shape& shape = graph_.type(outputs.front()).shape;
  const auto is_tiled = [&](Value v) {
    const std::vector<int64_t> axes = graph_.attributes(v).GetInts("axes");
    if (axes.empty() || axes.back() + 1 == static_cast<int64_t>(axes.size()) ||
        graph_.type(v).shape != shape || ReadsLinesOfWindows(graph_, v)) {
      return false;
    }
    std::vector<bool> rests(graph_.size(), false);
    rests[v.id] = true;
    for (uint32_t id = v.id + 1; id < graph_.size(); ++id) {
      for (const Value operand : graph_.operands(Value{id})) {
        if (rests[operand.id]) rests[id] = true;
      }
      if (rests[id] && ClassOf(ToPrimitive(graph_.node(Value{id}).op)) !=
                           PrimitiveClass::kPointwise) {
        return false;
      }
    }
    return true;
  };
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    const Value v{id};
    if (graph_.node(v).op != ToOpId(Primitive::kTranspose) || !is_tiled(v)) {
      continue;
    }
    const Value operand = graph_.operands(v)[0];
    const std::vector<Var> vars = VarsOf(operand);
    const Shape& extents = graph_.type(operand).shape;
    const size_t row = graph_.attributes(v).GetInts("axes").back();
    const size_t column = extents.size() - 1;
    const bool fills = extents[row].Value().value_or(edge) >= edge &&
                       extents[column].Value().value_or(edge) >= edge;
    // Tiles at the ends have elements that are none.
    Coordinates at(vars.begin(), vars.end());
    for (const size_t d : {row, column}) {
      const auto extent = extents[d].Value();
      if (!fills && !on_device_) continue;
      if (extent.has_value() && *extent % edge == 0) continue;
      at[d] = Halide::min(Halide::likely(at[d]), Extent(extents[d]) - 1);
    }
    Stage stage;
    stage.func = MakeFunc("copied");
    stage.role = Stage::Role::kCopied;
    stage.func(Reversed(vars)) = At(operand, at);
    copied_ = stage.func;
    stages_.push_back(std::move(stage));
    transposed_ = v;
    turned_ = Func();
    if (fills && !on_device_ && ElementCost() <= kTurnedCost) TurnTiles();
    memo_.clear();
    return;
  }
}

// Adds a stage for each time that rows are interleaved.
void Lowering::TurnTiles() {
  const Value operand = graph_.operands(*transposed_)[0];
  const size_t row = graph_.attributes(*transposed_).GetInts("axes").back();
  const int edge = TilesOf(target_).edge;
  const Var place("place"), line("line");
  // Along the two axes that are exchanged these are the numbers of tiles.
  const std::vector<Var> vars = VarsOf(operand);
  Func before;
  for (int rows = edge / 2; rows >= 1; rows /= 2) {
    const auto element = [&](const Expr& p, const Expr& l) {
      Coordinates at(vars.begin(), vars.end());
      if (rows == edge / 2) {
        at.back() = vars.back() * edge + p;
        at[row] = vars[row] * edge + l;
        return Expr(Call(copied_, at));
      }
      at.push_back(l);
      at.push_back(p);
      return Expr(Call(before, at));
    };
    Stage round;
    round.func = MakeFunc("turned");
    round.role = Stage::Role::kTurned;
    round.rows = rows;
    round.lanes = edge * edge / rows;
    std::vector<Var> all = vars;
    all.push_back(line);
    all.push_back(place);
    round.func(Reversed(all)) =
        Halide::select(place % 2 == 0, element(place / 2, line),
                       element(place / 2, line + rows));
    before = round.func;
    stages_.push_back(std::move(round));
  }
  turned_ = before;
}

Expr Lowering::Transposed(const Coordinates& at) {
  if (!turned_.defined()) return Call(copied_, at);
  const int edge = TilesOf(target_).edge;
  const size_t row = graph_.attributes(*transposed_).GetInts("axes").back();
  Coordinates of = at;
  of.back() = at.back() / edge;
  of[row] = at[row] / edge;
  of.push_back(0);
  of.push_back(at.back() % edge * edge + at[row] % edge);
  return Call(turned_, of);
}

size_t Lowering::AxisOfOperandRows() const {
  const std::vector<int64_t> from =
      graph_.attributes(*transposed_).GetInts("axes");
  const auto last = static_cast<int64_t>(from.size()) - 1;
  return std::find(from.begin(), from.end(), last) - from.begin();
}

// Through the memory that a block shares. A row there has one element more than
// a tile, so that a column is not kept in one bank.
void Lowering::ScheduleDeviceTransposed(Func out,
                                        const std::vector<Var>& axes) {
  const Var x = axes.back();
  const Var row = axes[AxisOfOperandRows()];
  const Var in_x("in_x"), in_row("in_row"), line("line");
  out.split(x, x, in_x, kDeviceEdge, TailStrategy::GuardWithIf)
      .split(row, row, in_row, kDeviceEdge, TailStrategy::GuardWithIf)
      .split(in_row, in_row, line, kDeviceLines);
  std::vector<Halide::VarOrRVar> order = {in_row, in_x, line};
  order.insert(order.end(), axes.rbegin(), axes.rend());
  out.reorder(order).unroll(in_row);
  const Var all = Fuse(out, axes);
  out.gpu_blocks(all).gpu_threads(in_x, line);
  for (Stage& stage : stages_) {
    if (stage.role != Stage::Role::kCopied) continue;
    const std::vector<Var> args = stage.func.args();
    const size_t from = graph_.attributes(*transposed_).GetInts("axes").back();
    const Var of_row = args[args.size() - 1 - from];
    const Var column = args.front();
    const Var each("each"), read("read");
    stage.func.compute_at(out, all)
        .align_storage(column, kDeviceEdge + 1)
        .split(of_row, each, read, kDeviceLines, TailStrategy::GuardWithIf)
        .reorder(each, column, read)
        .unroll(each)
        .gpu_threads(column, read);
  }
}

void Lowering::ScheduleTransposed(Func out, const std::vector<Var>& axes) {
  const Var x = axes.back();
  const Var row = axes[AxisOfOperandRows()];
  const Var in_x("in_x"), in_row("in_row"), lane("lane"), strip("strip");
  const bool turned = turned_.defined();
  const auto [edge, at_a_time] = TilesOf(target_);
  const int width = VectorWidth(WidestElement(out));
  out.split(x, x, in_x, turned ? edge : kTileWrites, TailStrategy::GuardWithIf)
      .split(in_x, in_x, lane, std::min(width, edge), TailStrategy::GuardWithIf)
      .split(row, row, in_row, edge, TailStrategy::GuardWithIf)
      .split(row, row, strip, at_a_time, TailStrategy::GuardWithIf);
  std::vector<Halide::VarOrRVar> order = {lane, in_x, in_row, strip};
  order.insert(order.end(), axes.rbegin(), axes.rend());
  out.reorder(order).vectorize(lane);
  // Tasks along as many of the leading axes as make some.
  const auto rank = static_cast<int>(output_shape_.size());
  int64_t tasks = 1;
  for (int d = OutermostAxis(rank); d + 1 < rank && tasks < kSomeTasks; ++d) {
    out.parallel(axes[d]);
    const auto extent = output_shape_[d].Value();
    if (!extent.has_value()) break;
    const int64_t each = axes[d].name() == row.name() ? edge * at_a_time : 1;
    tasks *= (*extent + each - 1) / each;
  }
  if (turned) out.unroll(in_row);
  const LoopLevel level(out, strip);
  for (Stage& stage : stages_) {
    const bool copied = stage.role == Stage::Role::kCopied;
    if (!copied && stage.role != Stage::Role::kTurned) continue;
    stage.func.compute_at(level).store_in(MemoryType::Stack);
    const Var first = stage.func.args().front();
    if (copied) {
      stage.func.vectorize(
          first, turned ? edge : VectorWidth(WidestElement(stage.func)),
          TailStrategy::GuardWithIf);
      continue;
    }
    // Two vectors are interleaved where both are written, in turns.
    const Var line = stage.func.args()[1];
    const Var parity("parity"), part("part");
    stage.func.bound(first, 0, stage.lanes)
        .bound(line, 0, stage.rows)
        .split(first, first, parity, 2)
        .split(first, first, part, edge)
        .reorder(part, parity, first, line)
        .vectorize(part)
        .unroll(parity)
        .unroll(first)
        .unroll(line);
  }
  ScheduleDraws(level, MemoryType::Stack);
}

}  // namespace cleave
