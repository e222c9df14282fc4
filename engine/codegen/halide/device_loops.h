// Loops of a device's threads, as its schedules write them. Internal to this
// folder.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_DEVICE_LOOPS_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_DEVICE_LOOPS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "Halide.h"

namespace cleave {

// Steps of a reduction, or of a pass over a row, that have their loads on the
// way at a time.
inline constexpr int kUnrolledSteps = 8;

// A stage in the memory of a block. Halide 21 puts what a block shares behind
// one another, each aligned to the widest type among it, but counts the bytes
// without the gaps: of multiples of 8 bytes there are none.
inline void ShareInBlock(Halide::Func f, const Halide::LoopLevel& level) {
  f.compute_at(level);
  const std::vector<Halide::Var> args = f.args();
  if (!args.empty()) f.align_storage(args.front(), 8);
}

// The loop over r, `count` steps at a time: the loop of these, unrolled, and
// the one around it.
inline std::pair<Halide::RVar, Halide::RVar> UnrollSteps(Halide::Func f,
                                                         int update,
                                                         const Halide::RVar& r,
                                                         int count) {
  const Halide::RVar outer(r.name() + "_steps"), inner(r.name() + "_step");
  f.update(update)
      .split(r, outer, inner, count, Halide::TailStrategy::GuardWithIf)
      .unroll(inner);
  return {inner, outer};
}

// One variable over all of `axes`, the first outermost, of a Func or a Stage.
template <typename Loops>
Halide::Var Fuse(Loops f, const std::vector<Halide::Var>& axes,
                 const char* name = "block") {
  Halide::Var all = axes.back();
  for (size_t d = axes.size() - 1; d-- > 0;) {
    const Halide::Var next(name);
    f.fuse(all, axes[d], next);
    all = next;
  }
  return all;
}

// The blocks of a grid, one for each element of `axes`, the first outermost:
// returns the innermost axis of the grid. Halide knows the one element of an
// axis that a block computes where the axis was fused with one other; of three
// that were fused it makes room for all. So the grid's axes, fewer than 65536
// blocks but for the innermost, take two at most up to six.
template <typename Loops>
Halide::Var GiveBlocks(Loops f, const std::vector<Halide::Var>& axes) {
  if (axes.size() < 3) {
    const Halide::Var all = Fuse(f, axes);
    f.gpu_blocks(all);
    return all;
  }
  const size_t half = axes.size() / 2;
  const Halide::Var x = Fuse(f, {axes.front(), axes.back()});
  const Halide::Var y =
      Fuse(f, {axes.begin() + half, axes.end() - 1}, "block_y");
  if (half == 1) {
    f.reorder(x, y).gpu_blocks(x, y);
    return x;
  }
  const Halide::Var z =
      Fuse(f, {axes.begin() + 1, axes.begin() + half}, "block_z");
  f.reorder(x, y, z).gpu_blocks(x, y, z);
  return x;
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_DEVICE_LOOPS_H_
