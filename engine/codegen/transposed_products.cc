#include "engine/codegen/transposed_products.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/codegen/contracted_axes.h"
#include "engine/ir/count_readers.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// Whether the axes of the left operand follow those of the right one.
bool SwapsOperands(const Graph& graph, Value transpose) {
  const Value dot = graph.operands(transpose)[0];
  const auto a =
      static_cast<int64_t>(ContractedAxesOf(graph, dot, 0).own.size());
  const auto b =
      static_cast<int64_t>(ContractedAxesOf(graph, dot, 1).own.size());
  const int64_t batch = graph.type(dot).rank() - a - b;
  std::vector<int64_t> swapped(graph.type(dot).rank());
  std::iota(swapped.begin(), swapped.begin() + batch, 0);
  std::iota(swapped.begin() + batch, swapped.begin() + batch + b, batch + a);
  std::iota(swapped.begin() + batch + b, swapped.end(), batch);
  return graph.attributes(transpose).GetInts("axes") == swapped;
}

// Per node whether it is such a transpose.
std::vector<bool> Swaps(const Graph& graph) {
  const std::vector<int> readers = CountReaders(graph);
  std::vector<bool> swaps(graph.size(), false);
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    if (graph.node(v).op != ToOpId(Primitive::kTranspose)) continue;
    const Value dot = graph.operands(v)[0];
    swaps[id] = graph.node(dot).op == ToOpId(Primitive::kDotGeneral) &&
                readers[dot.id] == 1 && SwapsOperands(graph, v);
  }
  return swaps;
}

}  // namespace

Graph TransposedProducts(const Graph& graph) {
  const std::vector<bool> swaps = Swaps(graph);
  if (std::find(swaps.begin(), swaps.end(), true) == swaps.end()) return graph;
  return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    if (!swaps[v.id]) return copy.Keep(v);
    const Value dot = graph.operands(v)[0];
    const Attributes& given = graph.attributes(dot);
    Attributes attributes;
    for (const char* role : {"batch_", "contract_"}) {
      attributes.Set(absl::StrCat(role, "a"),
                     given.Get(absl::StrCat(role, "b")));
      attributes.Set(absl::StrCat(role, "b"),
                     given.Get(absl::StrCat(role, "a")));
    }
    copy.builder().SetProvenance(graph.node(dot).provenance);
    const auto operands = graph.operands(dot);
    return copy.builder().Apply(Primitive::kDotGeneral,
                                {copy.of(operands[1]), copy.of(operands[0])},
                                attributes);
  });
}

}  // namespace cleave
