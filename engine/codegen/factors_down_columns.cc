#include "engine/codegen/factors_down_columns.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "engine/codegen/stored.h"
#include "engine/ir/is_primitive.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/element_cost.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

// The operations on the way from a factor to the reduction, at most.
constexpr int kMostCost = 8;

// The axis of v that memory runs along.
int64_t InnermostAxis(const Graph& graph, Value v) {
  const int64_t last = graph.type(v).rank() - 1;
  if (!Is(graph, v, Primitive::kTranspose)) return last;
  const std::vector<int64_t> axes = graph.attributes(v).GetInts("axes");
  return std::find(axes.begin(), axes.end(), last) - axes.begin();
}

class Survey {
 public:
  explicit Survey(const Graph& graph) : graph_(graph) {}

  // The axis that v reduces and that some factor has across its rows; nullopt
  // where v is no such reduction.
  std::optional<int64_t> ReducedAxis(Value v) const {
    if (!Is(graph_, v, Primitive::kReduceSum) &&
        !Is(graph_, v, Primitive::kReduceMax) &&
        !Is(graph_, v, Primitive::kReduceMin)) {
      return std::nullopt;
    }
    const Value x = graph_.operands(v)[0];
    const std::vector<int64_t> axes = graph_.attributes(v).GetInts("axes");
    const Shape& shape = graph_.type(x).shape;
    if (axes.size() != 1 || shape.size() < 3 ||
        axes[0] + 1 == static_cast<int64_t>(shape.size()) ||
        shape.back().Value().value_or(0) < kLeastRowOfFactor) {
      return std::nullopt;
    }
    int cost = 0;
    bool found = false;
    Visit(x, axes[0], &cost, &found);
    if (!found || cost > kMostCost) return std::nullopt;
    return axes[0];
  }

  // Whether the broadcast v has a factor for each row along `axis`, which lie
  // in one column.
  bool IsFactor(Value v, int64_t axis) const {
    if (!Is(graph_, v, Primitive::kBroadcastInDim)) return false;
    const Value factor = graph_.operands(v)[0];
    const std::vector<int64_t> axes = graph_.attributes(v).GetInts("axes");
    const int64_t last = graph_.type(v).rank() - 1;
    if (axes.size() < 2 || axes.back() == last ||
        axes[InnermostAxis(graph_, factor)] == axis ||
        std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      return false;
    }
    int64_t bytes = ByteSize(graph_.type(factor).dtype);
    for (const Dim& dim : graph_.type(factor).shape) {
      const auto extent = dim.Value();
      // A stretched axis has one element.
      if (!extent.has_value() || *extent == 1) return false;
      bytes *= *extent;
    }
    return bytes >= kLeastFactorBytes;
  }

  bool IsPassed(Value v) const {
    return IsPrimitive(graph_.node(v).op) && !IsStored(graph_, v) &&
           ClassOf(ToPrimitive(graph_.node(v).op)) ==
               PrimitiveClass::kPointwise;
  }

 private:
  void Visit(Value v, int64_t axis, int* cost, bool* found) const {
    if (*cost > kMostCost) return;
    *found |= IsFactor(v, axis);
    if (!IsPassed(v)) return;
    *cost += CostOf(ToPrimitive(graph_.node(v).op));
    for (const Value operand : graph_.operands(v)) {
      Visit(operand, axis, cost, found);
    }
  }

  const Graph& graph_;
};

// The operand of a reduction along `axis`, its factors stored.
class Writer {
 public:
  Writer(GraphCopy& copy, const Survey& survey, int64_t axis)
      : graph_(copy.graph()),
        copy_(copy),
        builder_(copy.builder()),
        survey_(survey),
        axis_(axis) {}

  Value Of(Value v) {
    if (written_[v].valid()) return written_[v];
    if (survey_.IsFactor(v, axis_)) return written_[v] = Factor(v);
    if (!survey_.IsPassed(v)) return written_[v] = copy_.of(v);
    std::vector<Value> operands;
    for (const Value operand : graph_.operands(v)) {
      operands.push_back(Of(operand));
    }
    const Node& node = graph_.node(v);
    return written_[v] = builder_.AddTyped(node.op, node.attributes, node.type,
                                           operands, node.provenance);
  }

 private:
  Value Factor(Value v) {
    const std::vector<int64_t> axes = graph_.attributes(v).GetInts("axes");
    // The axes of the factor, the reduced one behind the others.
    std::vector<int> order(axes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_partition(order.begin(), order.end(),
                          [&](int d) { return axes[d] != axis_; });
    std::vector<int> back(order.size());
    for (size_t d = 0; d < order.size(); ++d) back[order[d]] = d;
    const Value stored = Stored(
        builder_, builder_.Transpose(copy_.of(graph_.operands(v)[0]), order));
    return builder_.Apply(Primitive::kBroadcastInDim,
                          {builder_.Transpose(stored, back)},
                          graph_.attributes(v));
  }

  const Graph& graph_;
  GraphCopy& copy_;
  GraphBuilder& builder_;
  const Survey& survey_;
  const int64_t axis_;
  std::map<Value, Value> written_;
};

}  // namespace

Graph FactorsDownColumns(const Graph& graph) {
  const Survey survey(graph);
  return RewriteNodes(
      graph, [&](Value v) { return survey.ReducedAxis(v).has_value(); },
      [&](GraphCopy& copy, Value v) {
        Writer writer(copy, survey, *survey.ReducedAxis(v));
        return copy.builder().Apply(ToPrimitive(graph.node(v).op),
                                    {writer.Of(graph.operands(v)[0])},
                                    graph.attributes(v));
      });
}

}  // namespace cleave
