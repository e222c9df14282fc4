#include "engine/codegen/scatters_of_last.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/ir/filled_with.h"
#include "engine/ir/is_primitive.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// Whether the scatter or gather is along the axis behind those of a batch of so
// many.
bool IsAlong(const Graph& graph, Value v, int64_t batch) {
  return graph.attributes(v).GetInt("batch") == batch &&
         graph.attributes(v).GetInts("axes") == std::vector<int64_t>{batch};
}

// Whether the elements of x count along its axis `axis`, the last one.
bool CountsAlong(const Graph& graph, Value x, int64_t axis) {
  while (Is(graph, x, Primitive::kNograd)) x = graph.operands(x)[0];
  if (graph.type(x).rank() != axis + 1) return false;
  if (Is(graph, x, Primitive::kIota)) return axis == 0;
  return Is(graph, x, Primitive::kBroadcastInDim) &&
         Is(graph, graph.operands(x)[0], Primitive::kIota) &&
         graph.attributes(x).GetInts("axes") == std::vector<int64_t>{axis};
}

// The value that a comparison with 0 is of, repeated along the axes behind the
// first ones or not; nullopt where `c` is none.
std::optional<Value> NotNegative(const Graph& graph, Value c) {
  if (Is(graph, c, Primitive::kBroadcastInDim)) {
    const Value base = graph.operands(c)[0];
    const std::vector<int64_t> axes = graph.attributes(c).GetInts("axes");
    for (size_t d = 0; d < axes.size(); ++d) {
      if (axes[d] != static_cast<int64_t>(d) ||
          graph.type(base).shape[d] != graph.type(c).shape[d]) {
        return std::nullopt;
      }
    }
    c = base;
  }
  if (!Is(graph, c, Primitive::kGe) ||
      FilledWith(graph, graph.operands(c)[1]) != Exact(0)) {
    return std::nullopt;
  }
  return graph.operands(c)[0];
}

struct LastWrite {
  Value indices;
  Value updates;
  int64_t batch = 0;
};

std::optional<LastWrite> FindLastWrite(const Graph& graph, Value v) {
  const DType dtype = graph.type(v).dtype;
  if (!Is(graph, v, Primitive::kSelect) ||
      !(IsBool(dtype) || InClass(dtype, DTypeClass::kReal))) {
    return std::nullopt;
  }
  const std::optional<Value> last = NotNegative(graph, graph.operands(v)[0]);
  if (!last.has_value() || !Is(graph, *last, Primitive::kScatter)) {
    return std::nullopt;
  }
  const int64_t batch = graph.type(*last).rank() - 1;
  const auto of_last = graph.operands(*last);
  const auto fill = FilledWith(graph, of_last[0]);
  if (!IsAlong(graph, *last, batch) ||
      graph.attributes(*last).Get("mode").AsString() != "max" ||
      !fill.has_value() || !(*fill < Exact(0)) ||
      !CountsAlong(graph, of_last[2], batch)) {
    return std::nullopt;
  }
  const Value gather = graph.operands(v)[1];
  if (!Is(graph, gather, Primitive::kGather) ||
      !IsAlong(graph, gather, batch)) {
    return std::nullopt;
  }
  const Value updates = graph.operands(gather)[0];
  const Value index = graph.operands(gather)[1];
  Shape index_shape = graph.type(*last).shape;
  index_shape.push_back(Dim(1));
  if (!Is(graph, index, Primitive::kReshape) ||
      graph.operands(index)[0] != *last ||
      graph.type(index).shape != index_shape ||
      graph.type(updates).shape[batch] != graph.type(of_last[2]).shape[batch]) {
    return std::nullopt;
  }
  return LastWrite{of_last[1], updates, batch};
}

}  // namespace

Graph ScattersOfLast(const Graph& graph) {
  return RewriteNodes(
      graph, [&](Value v) { return FindLastWrite(graph, v).has_value(); },
      [&](GraphCopy& copy, Value v) {
        const LastWrite write = *FindLastWrite(graph, v);
        Attributes attributes;
        attributes.Set("axes",
                       StaticValue::Ints(std::vector<int64_t>{write.batch}));
        attributes.Set("batch", write.batch);
        attributes.Set("mode", "set");
        return copy.builder().Apply(
            Primitive::kScatter,
            {copy.of(graph.operands(v)[2]), copy.of(write.indices),
             copy.of(write.updates)},
            attributes);
      });
}

}  // namespace cleave
