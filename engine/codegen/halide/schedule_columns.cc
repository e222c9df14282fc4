// Reductions over axes before the last.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/codegen/halide/lowering.h"
#include "ops/primitive.h"

namespace cleave {

using Halide::Func;
using Halide::LoopLevel;
using Halide::RVar;
using Halide::TailStrategy;
using Halide::Var;

namespace {

// Terms that a block of columns takes at a time, where little is done to them;
// with two rows of results side by side, their factors fill the registers.
constexpr int kTermsAtATime = 8;
constexpr int kTermsOfRows = 4;
constexpr int kLittleCost = 16;
// Inputs of which such rows are read: the guards of each make code.
constexpr size_t kFewInputs = 3;
// Vectors in a block of columns that are reduced side by side: where that
// leaves enough tasks, as many as a page of memory holds, since each row of a
// wide matrix lies in another one.
constexpr int kColumnVectors = 16;
constexpr int kMostColumnVectors = 64;
constexpr int64_t kEnoughColumnTasks = 4;
// Rows of results that take the same terms: their parts of two lines of the
// cache, where a factor lies down a column. An open extent may be short.
constexpr int kRowsOfColumns = 32;
constexpr int kRowsOfOpenColumns = 4;

}  // namespace

// How many rows of results take some terms before the next ones. Terms that are
// the same for all these rows come from the first cache so, and factors that
// lie down a column. 1 where nothing is read so, as in a sum of columns.
int Lowering::RowsOfColumns() const {
  const int last = static_cast<int>(space_.shape.size()) - 1;
  int row = last - 1;
  while (row >= 0 && space_.reduced[row]) --row;
  if (row < 0) return 1;
  bool again = false;
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    const Value v{id};
    if (graph_.node(v).op != ToOpId(Primitive::kBroadcastInDim) ||
        graph_.type(v).shape != space_.shape) {
      continue;
    }
    const auto axes = graph_.attributes(v).GetInts("axes");
    const auto has = [&](int axis) {
      return std::find(axes.begin(), axes.end(), axis) != axes.end();
    };
    again |= std::any_of(axes.begin(), axes.end(),
                         [&](int64_t axis) { return space_.reduced[axis]; }) &&
             !(has(row) && has(last));
  }
  if (!again) return 1;
  const auto extent = space_.shape[row].Value();
  if (!extent.has_value()) return kRowsOfOpenColumns;
  int rows = kRowsOfColumns;
  while (rows > 1 && *extent < kEnoughColumnTasks * rows) rows /= 2;
  return rows;
}

// Reductions over axes before the last: blocks of columns side by side.
void Lowering::ScheduleColumns(Func out, const std::vector<Var>& axes,
                               bool full) {
  const Var x = axes.back();
  const Var columns("columns");
  const int width = plain_schedule_ ? 1 : WidthAlong(out, space_.shape);
  std::vector<Var> kept;
  std::vector<Halide::VarOrRVar> order = {x};
  if (full) {
    for (size_t d = axes.size() - 1; d-- > 0;) {
      if (space_.reduced[d]) order.push_back(axes[d]);
    }
    for (size_t d = 0; d + 1 < axes.size(); ++d) {
      if (!space_.reduced[d]) kept.push_back(axes[d]);
    }
  } else {
    kept.assign(axes.begin(), axes.end() - 1);
  }
  int vectors = kColumnVectors;
  // A block that is read again is to stay in the cache.
  const int64_t most = full ? 0 : space_.shape.back().Value().value_or(0);
  while (vectors < kMostColumnVectors &&
         most >= kEnoughColumnTasks * 2 * vectors * width) {
    vectors *= 2;
  }
  const int block = width * vectors;
  // Each element costs little: some of them are laid out one behind the other.
  const bool cheap =
      ElementCost() <= kLittleCost && graph_.inputs().size() <= kFewInputs;
  out.split(x, columns, x, block, TailStrategy::GuardWithIf);
  const int rows = full || plain_schedule_ || !cheap ? 1 : RowsOfColumns();
  const Var row("row");
  if (rows > 1) {
    out.split(kept.back(), kept.back(), row, rows, TailStrategy::GuardWithIf);
    order.push_back(row);
  }
  order.push_back(columns);
  for (size_t d = kept.size(); d-- > 0;) order.push_back(kept[d]);
  out.reorder(order);
  if (width > 1) out.vectorize(x, width, TailStrategy::GuardWithIf);
  out.parallel(kept.empty() ? columns : kept.front());
  const LoopLevel level(out, columns);
  for (Stage& stage : stages_) {
    if (stage.role == Stage::Role::kWhole) continue;
    stage.func.compute_at(level);
    const int of = plain_schedule_ ? 1 : WidthAlong(stage.func, space_.shape);
    // The last axis of a stage here is the last kept one, that of the columns.
    const std::vector<Var> args = stage.func.args();
    if (of == 1 || args.empty()) continue;
    const Var last = args.front();
    stage.func.vectorize(last, of, TailStrategy::GuardWithIf);
    if (stage.reduced.empty()) continue;
    // Sums stay in registers for some rows, each in its order.
    Halide::Stage update = stage.func.update(0);
    RVar outermost = stage.reduced[0];
    std::vector<Halide::VarOrRVar> inner = {last};
    if (cheap) {
      const RVar next("next");
      update
          .split(outermost, outermost, next,
                 rows > 1 ? kTermsOfRows : kTermsAtATime,
                 TailStrategy::GuardWithIf)
          .unroll(next);
      inner = {next, last};
    }
    if (rows > 1) {
      const Var pair("pair");
      update.split(args[1], args[1], pair, 2, TailStrategy::GuardWithIf)
          .unroll(pair);
      inner = {inner[0], pair, last, args[1]};
    }
    inner.push_back(outermost);
    for (size_t i = 1; i < stage.reduced.size(); ++i) {
      inner.push_back(stage.reduced[i]);
    }
    update.reorder(inner).vectorize(last, of, TailStrategy::GuardWithIf);
  }
}

}  // namespace cleave
