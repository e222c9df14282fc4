#include "engine/codegen/flatten_scatters.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/ir/count_readers.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

int BatchOf(const Graph& graph, Value scatter) {
  return static_cast<int>(graph.attributes(scatter).GetInt("batch"));
}

bool HasSeveralAxes(const Graph& graph, Value v) {
  return ScattersRows(graph, v) &&
         graph.type(graph.operands(v)[1]).rank() > BatchOf(graph, v) + 2;
}

// Whether v reshapes a sum, which it alone reads, of a scatter of rows and of
// what has the shape of v already, reshaped.
bool ReshapesSum(const Graph& graph, Value v, const std::vector<int>& readers) {
  if (graph.node(v).op != ToOpId(Primitive::kReshape)) return false;
  const Value sum = graph.operands(v)[0];
  if (graph.node(sum).op != ToOpId(Primitive::kAdd) || readers[sum.id] != 1) {
    return false;
  }
  const auto operands = graph.operands(sum);
  for (const int k : {0, 1}) {
    const Value other = operands[1 - k];
    if (ScattersRows(graph, operands[k]) &&
        graph.node(other).op == ToOpId(Primitive::kReshape) &&
        graph.type(graph.operands(other)[0]).shape == graph.type(v).shape) {
      return true;
    }
  }
  return false;
}

// The axes from `first` on, up to `last`, as one.
Value Flat(GraphBuilder& builder, Value x, int first, int last) {
  const Shape& shape = builder.type(x).shape;
  Dim size(1);
  for (int d = first; d < last; ++d) size = size * shape[d];
  Shape flat(shape.begin(), shape.begin() + first);
  flat.push_back(size);
  flat.insert(flat.end(), shape.begin() + last, shape.end());
  return builder.Reshape(x, flat);
}

}  // namespace

bool ScattersRows(const Graph& graph, Value node) {
  if (graph.node(node).op != ToOpId(Primitive::kScatter)) return false;
  const Attributes& attributes = graph.attributes(node);
  const std::string& mode = attributes.Get("mode").AsString();
  return (mode == "add" || mode == "set" ||
          (mode == "max" && IsInt(graph.type(node).dtype))) &&
         attributes.GetInts("axes") ==
             std::vector<int64_t>{attributes.GetInt("batch")};
}

Graph FlattenScatters(const Graph& graph) {
  const std::vector<int> readers = CountReaders(graph);
  return RewriteNodes(
      graph,
      [&](Value v) {
        return HasSeveralAxes(graph, v) || ReshapesSum(graph, v, readers);
      },
      [&](GraphCopy& copy, Value v) {
        GraphBuilder& builder = copy.builder();
        if (!ScattersRows(graph, v)) {
          std::vector<Value> terms;
          for (const Value term : graph.operands(graph.operands(v)[0])) {
            terms.push_back(
                builder.Reshape(copy.of(term), graph.type(v).shape));
          }
          return builder.Apply(Primitive::kAdd, terms);
        }
        const absl::Span<const Value> operands = copy.Operands(v);
        const int first = BatchOf(graph, v);
        const int last = graph.type(graph.operands(v)[1]).rank() - 1;
        const Value x = operands[0];
        const Value indices = Flat(builder, operands[1], first, last);
        const Value updates = Flat(builder, operands[2], first, last);
        return builder.Apply(Primitive::kScatter, {x, indices, updates},
                             graph.attributes(v));
      });
}

}  // namespace cleave
