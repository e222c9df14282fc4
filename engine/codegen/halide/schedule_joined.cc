#include <numeric>

#include "engine/codegen/halide/lowering.h"

namespace cleave {

using Halide::Func;
using Halide::TailStrategy;
using Halide::Var;

namespace {

// Vectors of an axis of joined parts whose code is laid out one behind the
// other, and equal parts of a longer axis that have loops of their own.
constexpr int64_t kJoinedVectors = 16;
constexpr int64_t kJoinedParts = 8;

}  // namespace

// The largest number that divides all places along the last axis at which
// another operand of a concatenation, or the padding, begins: 32 where rotary
// embeddings turn halves of 64. 0 where there is no such place, or it is not
// known.
int64_t Lowering::PartOfLastAxis() const {
  if (output_shape_.empty()) return 0;
  const auto extent = output_shape_.back().Value();
  if (!extent.has_value()) return 0;
  int64_t part = *extent;
  const auto cut = [&part](const Dim& at) {
    part = at.Value().has_value() ? std::gcd(part, *at.Value()) : 1;
  };
  for (uint32_t id = 0; id < graph_.size(); ++id) {
    const Value v{id};
    const Shape& shape = graph_.types(v).front().shape;
    if (shape.size() != output_shape_.size() ||
        shape.back() != output_shape_.back()) {
      continue;
    }
    const size_t last = shape.size() - 1;
    const Attributes& attributes = graph_.attributes(v);
    if (graph_.node(v).op == ToOpId(Primitive::kConcatenate) &&
        attributes.GetInt("axis") == static_cast<int64_t>(last)) {
      for (const Value x : graph_.operands(v)) cut(graph_.type(x).shape[last]);
    }
    if (graph_.node(v).op == ToOpId(Primitive::kPad) &&
        attributes.GetDims("interior")[last] == Dim(0)) {
      cut(attributes.GetDims("low")[last]);
      cut(graph_.type(graph_.operands(v)[0]).shape[last]);
    }
  }
  return part == *extent ? 0 : part;
}

// Lays out the loop over the vectors of the last axis, so that the code of each
// one knows which part it is of: whole, or a loop for each part.
void Lowering::ScheduleJoined(Func out, const Var& x, int width) const {
  const int64_t part = PartOfLastAxis();
  if (part == 0) return;
  const int64_t extent = *output_shape_.back().Value();
  if (extent % width == 0 && extent / width <= kJoinedVectors) {
    out.unroll(x);
  } else if (part % width == 0 && extent / part <= kJoinedParts) {
    const Var joined("joined");
    out.split(x, joined, x, static_cast<int>(part / width),
              TailStrategy::GuardWithIf)
        .unroll(joined);
  }
}

}  // namespace cleave
