#include "engine/codegen/flatten_scatters.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

bool HasSeveralAxes(const Graph& graph, Value v) {
  return ScattersRows(graph, v) && graph.type(graph.operands(v)[1]).rank() > 2;
}

// The first `axes` axes as one.
Value Flat(GraphBuilder& builder, Value x, int axes) {
  const Shape& shape = builder.type(x).shape;
  Dim size(1);
  for (int d = 0; d < axes; ++d) size = size * shape[d];
  Shape flat = {size};
  flat.insert(flat.end(), shape.begin() + axes, shape.end());
  return builder.Reshape(x, flat);
}

}  // namespace

bool ScattersRows(const Graph& graph, Value node) {
  if (graph.node(node).op != ToOpId(Primitive::kScatter)) return false;
  const Attributes& attributes = graph.attributes(node);
  const std::string& mode = attributes.Get("mode").AsString();
  return (mode == "add" || (mode == "max" && IsInt(graph.type(node).dtype))) &&
         attributes.GetInts("axes") == std::vector<int64_t>{0} &&
         attributes.GetInt("batch") == 0;
}

Graph FlattenScatters(const Graph& graph) {
  return RewriteNodes(
      graph, [&](Value v) { return HasSeveralAxes(graph, v); },
      [&](GraphCopy& copy, Value v) {
        GraphBuilder& builder = copy.builder();
        const absl::Span<const Value> operands = copy.Operands(v);
        const int axes = graph.type(graph.operands(v)[1]).rank() - 1;
        const Value x = operands[0];
        const Value indices = Flat(builder, operands[1], axes);
        const Value updates = Flat(builder, operands[2], axes);
        return builder.Apply(Primitive::kScatter, {x, indices, updates},
                             graph.attributes(v));
      });
}

}  // namespace cleave
