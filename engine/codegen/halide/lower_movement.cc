#include <utility>

#include "engine/codegen/halide/element.h"
#include "engine/codegen/halide/lowering.h"
#include "engine/codegen/products_of_windows.h"
#include "ops/check.h"

namespace cleave {

using Halide::cast;
using Halide::Expr;
using Halide::Int;
using Halide::select;

namespace {

bool MayBeEmpty(const Dim& extent) {
  return Compare(extent, CompareOp::kGt, 0) != Truth::kTrue;
}

// The ends of the shortest runs from these axes on, at least one axis of
// `from`, with as many elements: all that are left where extents tell of none
// before. The last run takes axes of `to` that are left, which have extent 1.
std::pair<size_t, size_t> EqualRun(const Shape& to, size_t first_to,
                                   const Shape& from, size_t first_from) {
  Dim size_from(1);
  for (size_t end_from = first_from + 1; end_from < from.size(); ++end_from) {
    size_from = size_from * from[end_from - 1];
    Dim size_to(1);
    for (size_t end_to = first_to; end_to <= to.size(); ++end_to) {
      if (end_to > first_to) size_to = size_to * to[end_to - 1];
      if (size_to == size_from) return {end_to, end_from};
    }
  }
  return {to.size(), from.size()};
}

}  // namespace

Expr Lowering::Clamp(const Expr& at, const Dim& extent) {
  return Halide::clamp(at, 0, Halide::max(Extent(extent) - 1, 0));
}

// Where no element may be there, a slice begins and a reversal ends beyond what
// it is taken of.
Coordinates Lowering::Inside(Coordinates at, Value v) {
  if (maybe_empty_ == 0) return at;
  const Shape& from = graph_.type(graph_.operands(v)[0]).shape;
  for (size_t d = 0; d < at.size(); ++d) {
    if (MayBeEmpty(graph_.type(v).shape[d])) at[d] = Clamp(at[d], from[d]);
  }
  return at;
}

Expr Lowering::AtClamped(Value x, const Coordinates& at) {
  bool may_be_empty = false;
  for (const Dim& extent : graph_.type(x).shape) {
    may_be_empty |= MayBeEmpty(extent);
  }
  if (may_be_empty) ++maybe_empty_;
  const Expr element = At(x, at);
  if (may_be_empty) --maybe_empty_;
  return element;
}

Expr Lowering::Movement(Value v, const Coordinates& at) {
  const Primitive primitive = ToPrimitive(graph_.node(v).op);
  const Attributes& attributes = graph_.attributes(v);
  const auto operand = [&](int i) { return graph_.operands(v)[i]; };
  switch (primitive) {
    case Primitive::kBroadcastInDim: {
      const auto axes = attributes.GetInts("axes");
      const Shape& from = graph_.type(operand(0)).shape;
      Coordinates inner;
      for (size_t d = 0; d < from.size(); ++d) {
        inner.push_back(from[d] == Dim(1) ? Expr(0) : at[axes[d]]);
      }
      return At(operand(0), inner);
    }
    case Primitive::kTranspose: {
      const auto axes = attributes.GetInts("axes");
      Coordinates inner(at.size());
      for (size_t d = 0; d < axes.size(); ++d) inner[axes[d]] = at[d];
      if (transposed_ == v) return Transposed(inner);
      return At(operand(0), inner);
    }
    case Primitive::kSlice: {
      const auto start = attributes.GetDims("start");
      const auto stride = attributes.GetInts("stride");
      Coordinates inner;
      for (size_t d = 0; d < at.size(); ++d) {
        inner.push_back(at[d] * static_cast<int>(stride[d]) + Extent(start[d]));
      }
      return At(operand(0), Inside(std::move(inner), v));
    }
    case Primitive::kReverse: {
      Coordinates inner = at;
      for (const int64_t d : attributes.GetInts("axes")) {
        inner[d] = Extent(graph_.type(v).shape[d]) - 1 - at[d];
      }
      return At(operand(0), Inside(std::move(inner), v));
    }
    case Primitive::kReshape:
      return Reshape(v, at);
    case Primitive::kPad:
      return Pad(v, at);
    case Primitive::kConcatenate:
      return Concatenate(v, at);
    case Primitive::kWindows:
      return Windows(v, at);
    case Primitive::kGather:
      return Gather(v, at);
    default:
      CLEAVE_CHECK(false) << PrimitiveName(primitive);
      return Expr();
  }
}

// The number of the element in row-major order, taken apart again: for each run
// of axes by itself that has as many elements before as after.
Expr Lowering::Reshape(Value v, const Coordinates& at) {
  const Value x = graph_.operands(v)[0];
  const Shape& to = graph_.type(v).shape;
  const Shape& from = graph_.type(x).shape;
  Coordinates inner(from.size());
  // The last axes may be told to be the same where those before them are not.
  size_t last_to = to.size();
  size_t last_from = from.size();
  while (last_to > 0 && last_from > 0 &&
         to[last_to - 1] == from[last_from - 1]) {
    inner[--last_from] = at[--last_to];
  }
  const Shape rest_to(to.begin(), to.begin() + last_to);
  const Shape rest_from(from.begin(), from.begin() + last_from);
  size_t first_to = 0;
  size_t first_from = 0;
  while (first_from < last_from) {
    const auto [end_to, end_from] =
        EqualRun(rest_to, first_to, rest_from, first_from);
    if (end_to == first_to + 1 && end_from == first_from + 1) {
      inner[first_from] = at[first_to];
    } else {
      Expr number = 0;
      for (size_t d = first_to; d < end_to; ++d) {
        number = number * Extent(to[d]) + at[d];
      }
      for (size_t d = end_from; d-- > first_from;) {
        const Expr extent = Halide::max(Extent(from[d]), 1);
        inner[d] = Clamp(d == first_from ? number : number % extent, from[d]);
        number = number / extent;
      }
    }
    first_to = end_to;
    first_from = end_from;
  }
  return At(x, inner);
}

Expr Lowering::Pad(Value v, const Coordinates& at) {
  const Value x = graph_.operands(v)[0];
  const Attributes& attributes = graph_.attributes(v);
  const auto low = attributes.GetDims("low");
  const auto interior = attributes.GetDims("interior");
  const Shape& from = graph_.type(x).shape;
  Coordinates inner = at;
  Expr inside = Halide::Internal::const_true();
  const Shape& to = graph_.type(v).shape;
  for (size_t d = 0; d < at.size(); ++d) {
    if (low[d] == Dim(0) && interior[d] == Dim(0) && from[d] == to[d]) continue;
    Expr place = at[d] - Extent(low[d]);
    inside = inside && place >= 0;
    if (interior[d] != Dim(0)) {
      const Expr step = Extent(interior[d]) + 1;
      inside = inside && place % step == 0;
      place = place / step;
    }
    inside = inside && place < Extent(from[d]);
    inner[d] = Clamp(place, from[d]);
  }
  return select(inside, AtClamped(x, inner), At(graph_.operands(v)[1], {}));
}

Expr Lowering::Concatenate(Value v, const Coordinates& at) {
  const int64_t axis = graph_.attributes(v).GetInt("axis");
  const auto operands = graph_.operands(v);
  Expr end = 0;
  std::vector<Expr> ends;
  std::vector<Expr> pieces;
  for (const Value x : operands) {
    const Dim& extent = graph_.type(x).shape[axis];
    Coordinates inner = at;
    inner[axis] = Clamp(at[axis] - end, extent);
    pieces.push_back(AtClamped(x, inner));
    end = Halide::Internal::simplify(end + Extent(extent));
    ends.push_back(end);
  }
  Expr result = pieces.back();
  for (size_t i = pieces.size() - 1; i-- > 0;) {
    result = select(at[axis] < ends[i], pieces[i], result);
  }
  return result;
}

Expr Lowering::Windows(Value v, const Coordinates& at) {
  const Value x = graph_.operands(v)[0];
  const Attributes& attributes = graph_.attributes(v);
  const auto strides = attributes.GetDims("strides");
  const auto dilations = attributes.GetDims("dilations");
  const auto low = attributes.GetDims("low");
  const auto counts = attributes.GetDims("counts");
  const auto sizes = attributes.GetDims("sizes");
  const Shape& from = graph_.type(x).shape;
  const size_t spatial = strides.size();
  bool all_inside = true;
  const size_t batch = from.size() - spatial;
  Coordinates inner(at.begin(), at.begin() + batch);
  Expr inside = Halide::Internal::const_true();
  for (size_t s = 0; s < spatial; ++s) {
    const Dim& extent = from[batch + s];
    const Expr place = at[batch + s] * Extent(strides[s]) +
                       at[batch + spatial + s] * Extent(dilations[s]) -
                       Extent(low[s]);
    if (low[s] == Dim(0) &&
        StayInside(extent, counts[s], sizes[s], strides[s], dilations[s])) {
      inner.push_back(place);
      continue;
    }
    all_inside = false;
    inside = inside && place >= 0 && place < Extent(extent);
    inner.push_back(Clamp(place, extent));
  }
  if (all_inside) return At(x, inner);
  return select(inside, AtClamped(x, inner), At(graph_.operands(v)[1], {}));
}

Expr Lowering::IndexAt(Value index, Coordinates leading, int k,
                       const Dim& extent, Expr* inside) {
  leading.push_back(k);
  const Expr value = At(index, leading);
  const Expr limit = cast(Int(64), Extent(extent));
  *inside = *inside && value >= cast(Int(64), 0) && value < limit;
  return Clamp(cast(Int(32), Halide::clamp(value, cast(Int(64), 0), limit)),
               extent);
}

Expr Lowering::Gather(Value v, const Coordinates& at) {
  const Value x = graph_.operands(v)[0];
  const Value index = graph_.operands(v)[1];
  const Attributes& attributes = graph_.attributes(v);
  const auto axes = attributes.GetInts("axes");
  const size_t batch = attributes.GetInt("batch");
  const Shape& from = graph_.type(x).shape;
  const size_t leading = graph_.type(index).rank() - 1;
  Coordinates inner(from.size());
  for (size_t d = 0; d < batch; ++d) inner[d] = at[d];
  Expr inside = Halide::Internal::const_true();
  for (size_t k = 0; k < axes.size(); ++k) {
    inner[axes[k]] =
        IndexAt(index, Coordinates(at.begin(), at.begin() + leading),
                static_cast<int>(k), from[axes[k]], &inside);
  }
  size_t next = leading;
  for (size_t d = batch; d < from.size(); ++d) {
    if (!inner[d].defined()) inner[d] = at[next++];
  }
  // The host has checked the indices of the other mode, "error".
  if (attributes.Get("mode").AsString() == "error") return At(x, inner);
  return select(inside, AtClamped(x, inner), At(graph_.operands(v)[2], {}));
}

}  // namespace cleave
