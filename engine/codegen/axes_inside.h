// AxesInside: what is known of a value's axes, said of the axes of what it is
// computed from. Internal to engine/codegen.

#ifndef CLEAVE_ENGINE_CODEGEN_AXES_INSIDE_H_
#define CLEAVE_ENGINE_CODEGEN_AXES_INSIDE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/ir/graph.h"
#include "ops/dim.h"
#include "ops/primitive.h"

namespace cleave {

// For each axis of an operand of `v`, a broadcast, a transpose or any primitive
// whose operands have its shape, the entry of `axes` for the axis of v that
// runs along it; -1 for an axis of extent 1 that a broadcast may stretch.
//
//   v = broadcast_in_dim(%x, axes: [0, 2])  // x: [4, 1]; axes: {7, 8, 9}
//   -> {7, -1}
template <typename T>
std::vector<T> AxesInside(const Graph& graph, Value v,
                          const std::vector<T>& axes) {
  const Primitive primitive = ToPrimitive(graph.node(v).op);
  if (primitive != Primitive::kBroadcastInDim &&
      primitive != Primitive::kTranspose) {
    return axes;
  }
  const std::vector<int64_t> to = graph.attributes(v).GetInts("axes");
  const Shape& from = graph.type(graph.operands(v)[0]).shape;
  std::vector<T> inside(from.size(), -1);
  for (size_t d = 0; d < to.size(); ++d) {
    if (primitive == Primitive::kTranspose) {
      inside[to[d]] = axes[d];
    } else if (from[d] != Dim(1)) {
      inside[d] = axes[to[d]];
    }
  }
  return inside;
}

// The same behind a reshape that only drops or adds axes of extent 1: for each
// axis of `from` the entry of `axes` for the one of `to`, `none` where its
// extent is 1; nullopt for another reshape.
//
//   from: [4, 1, 5], to: [1, 4, 5], axes: {7, 8, 9}  ->  {8, none, 9}
template <typename T>
std::optional<std::vector<T>> AxesBehindUnitReshape(const Shape& from,
                                                    const Shape& to,
                                                    const std::vector<T>& axes,
                                                    const T& none) {
  std::vector<T> inside(from.size(), none);
  size_t next = 0;
  const auto skip = [&] {
    while (next < to.size() && to[next] == Dim(1)) ++next;
  };
  for (size_t d = 0; d < from.size(); ++d) {
    if (from[d] == Dim(1)) continue;
    skip();
    if (next == to.size() || to[next] != from[d]) return std::nullopt;
    inside[d] = axes[next++];
  }
  skip();
  if (next < to.size()) return std::nullopt;
  return inside;
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_AXES_INSIDE_H_
