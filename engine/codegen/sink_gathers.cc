#include "engine/codegen/sink_gathers.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/codegen/fusion.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/exact.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

// Pointwise nodes that one gather is moved before, at most.
constexpr int kMaxSunk = 64;

// For one node of a graph whose nodes before it are copied.
class Sinker {
 public:
  explicit Sinker(GraphCopy& copy)
      : graph_(copy.graph()), copy_(copy), builder_(copy.builder()) {}

  Value Copy(Value v) {
    if (ReadsOncePerRow(v)) {
      gather_ = v;
      Axes axes(graph_.type(graph_.operands(v)[0]).rank());
      std::iota(axes.begin(), axes.end(), 0);
      const Value source = Source(graph_.operands(v)[0], &axes);
      builder_.SetProvenance(graph_.node(v).provenance);
      int count = 0;
      bool gathers = false;
      if (IsSinkable(source) && Survey(source, axes, &count, &gathers) &&
          gathers) {
        return At(source, axes);
      }
    }
    return copy_.Keep(v);
  }

 private:
  // The axes of a source in the order that the gather sees them in.
  using Axes = std::vector<int64_t>;

  Primitive PrimitiveOf(Value v) const {
    return ToPrimitive(graph_.node(v).op);
  }

  bool ReadsOncePerRow(Value v) const {
    if (PrimitiveOf(v) != Primitive::kGather || !CanLower(graph_, v).ok()) {
      return false;
    }
    const Attributes& attributes = graph_.attributes(v);
    return attributes.Get("mode").AsString() == "error" &&
           graph_.type(graph_.operands(v)[1]).rank() - 1 ==
               attributes.GetInt("batch");
  }

  bool IsSinkable(Value v) const {
    return CanLower(graph_, v).ok() &&
           ClassOf(PrimitiveOf(v)) == PrimitiveClass::kPointwise;
  }

  // The value that v is a transpose of; `axes` change with it.
  Value Source(Value v, Axes* axes) const {
    while (PrimitiveOf(v) == Primitive::kTranspose) {
      const Axes inner = graph_.attributes(v).GetInts("axes");
      for (int64_t& axis : *axes) axis = inner[axis];
      v = graph_.operands(v)[0];
    }
    return v;
  }

  // Whether place p, in the order of the gather, is one that it reads at.
  bool IsGathered(int64_t p) const {
    const Axes axes = graph_.attributes(gather_).GetInts("axes");
    return std::find(axes.begin(), axes.end(), p) != axes.end();
  }

  // For each axis of a source its place in the result, -1 if it is gathered.
  std::vector<int> Places(const Axes& axes) const {
    std::vector<int> places(axes.size(), -1);
    int next = 0;
    for (size_t p = 0; p < axes.size(); ++p) {
      if (!IsGathered(static_cast<int64_t>(p))) places[axes[p]] = next++;
    }
    return places;
  }

  // Whether v is a broadcast that is the same along all gathered axes.
  bool IsUniform(Value v, const Axes& axes) const {
    if (PrimitiveOf(v) != Primitive::kBroadcastInDim) return false;
    const std::vector<int> places = Places(axes);
    const Axes to = graph_.attributes(v).GetInts("axes");
    const Shape& from = graph_.type(graph_.operands(v)[0]).shape;
    for (size_t d = 0; d < to.size(); ++d) {
      if (places[to[d]] < 0 && from[d] != Dim(1)) return false;
    }
    return true;
  }

  // Counts the nodes behind v; false beyond the limit. `gathers`: a gather is
  // left, which fails where this one does.
  bool Survey(Value v, Axes axes, int* count, bool* gathers) {
    v = Source(v, &axes);
    if (!known_.try_emplace({v, axes}).second) return true;
    if (IsUniform(v, axes)) return true;
    if (!IsSinkable(v)) {
      *gathers = true;
      return true;
    }
    if (++*count > kMaxSunk) return false;
    for (const Value operand : graph_.operands(v)) {
      if (!Survey(operand, axes, count, gathers)) return false;
    }
    return true;
  }

  // The elements of v that the gather reads.
  Value At(Value v, Axes axes) {
    v = Source(v, &axes);
    const auto key = std::make_pair(v, axes);
    if (known_[key].valid()) return known_[key];
    Value result;
    if (IsUniform(v, axes)) {
      result = Uniform(v, axes);
    } else if (IsSinkable(v)) {
      std::vector<Value> operands;
      for (const Value operand : graph_.operands(v)) {
        operands.push_back(At(operand, axes));
      }
      const Node& node = graph_.node(v);
      const TensorType type = {graph_.type(v).dtype,
                               graph_.type(gather_).shape};
      result = builder_.AddTyped(node.op, node.attributes,
                                 builder_.context()->Intern(type), operands,
                                 node.provenance);
    } else {
      result = Gathered(v, axes);
    }
    return known_[key] = result;
  }

  Value Gathered(Value v, const Axes& axes) {
    const Node& node = graph_.node(gather_);
    const DType dtype = graph_.type(v).dtype;
    const TensorType type = {dtype, graph_.type(gather_).shape};
    const Value x = builder_.Transpose(
        copy_.of(v), std::vector<int>(axes.begin(), axes.end()));
    const Value index = copy_.of(graph_.operands(gather_)[1]);
    const Value fill = builder_.Constant(Exact(0), dtype);
    return builder_.AddTyped(node.op, node.attributes,
                             builder_.context()->Intern(type), {x, index, fill},
                             node.provenance);
  }

  // A broadcast without the gathered axes, along which it has extent 1.
  Value Uniform(Value v, const Axes& axes) {
    const std::vector<int> places = Places(axes);
    const Axes to = graph_.attributes(v).GetInts("axes");
    const Value x = graph_.operands(v)[0];
    const Shape& from = graph_.type(x).shape;
    Shape kept;
    std::vector<int> targets;
    for (size_t d = 0; d < to.size(); ++d) {
      if (places[to[d]] < 0) continue;
      kept.push_back(from[d]);
      targets.push_back(places[to[d]]);
    }
    // Broadcasting keeps the order of axes: a transpose comes first.
    std::vector<int> order(targets.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return targets[a] < targets[b]; });
    std::sort(targets.begin(), targets.end());
    const Value rows = builder_.Reshape(copy_.of(x), kept);
    return builder_.BroadcastInDim(builder_.Transpose(rows, order),
                                   graph_.type(gather_).shape, targets);
  }

  const Graph& graph_;
  GraphCopy& copy_;
  GraphBuilder& builder_;
  Value gather_;  // in work
  std::map<std::pair<Value, Axes>, Value> known_;
};

}  // namespace

Graph SinkGathers(const Graph& graph) {
  return RewriteGraph(
      graph, [](GraphCopy& copy, Value v) { return Sinker(copy).Copy(v); });
}

}  // namespace cleave
