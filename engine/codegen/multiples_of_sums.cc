#include "engine/codegen/multiples_of_sums.h"

#include "engine/ir/is_primitive.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dtype.h"
#include "ops/exact.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

bool IsMultiple(const Graph& graph, Value v) {
  if (Is(graph, v, Primitive::kNeg)) return true;
  return Is(graph, v, Primitive::kAdd) &&
         graph.operands(v)[0] == graph.operands(v)[1];
}

bool SumsMultiples(const Graph& graph, Value v) {
  return Is(graph, v, Primitive::kReduceSum) && IsFloat(graph.type(v).dtype) &&
         IsMultiple(graph, graph.operands(v)[0]);
}

}  // namespace

Graph MultiplesOfSums(const Graph& graph) {
  return RewriteNodes(
      graph, [&](Value v) { return SumsMultiples(graph, v); },
      [&](GraphCopy& copy, Value v) {
        GraphBuilder& builder = copy.builder();
        Value term = graph.operands(v)[0];
        bool negated = false;
        int doublings = 0;
        while (IsMultiple(graph, term)) {
          if (Is(graph, term, Primitive::kNeg)) {
            negated = !negated;
          } else {
            ++doublings;
          }
          term = graph.operands(term)[0];
        }
        Value sum = builder.Apply(Primitive::kReduceSum, {copy.of(term)},
                                  graph.attributes(v));
        for (int i = 0; i < doublings; ++i) {
          sum = builder.Apply(Primitive::kAdd, {sum, sum});
        }
        if (!negated) return sum;
        // A sum of -0 is 0.
        return builder.Apply(Primitive::kAdd,
                             {builder.Apply(Primitive::kNeg, {sum}),
                              builder.Constant(Exact(0), builder.type(sum))});
      });
}

}  // namespace cleave
