#include "engine/codegen/reductions_across_rows.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/codegen/axes_inside.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

// Shorter rows have no vectors to speak of.
constexpr int64_t kLeastRow = 8;
// Sums of more terms are left to lanes, which round less.
constexpr int64_t kMostTerms = 16384;
// Nodes that compute what is reduced, at most.
constexpr int kMostNodes = 64;

// For each axis of a value the axis of what is reduced that runs along it; -1
// for one of extent 1.
using Axes = std::vector<int>;

class Surveyor {
 public:
  explicit Surveyor(const Graph& graph) : graph_(graph), uses_(graph.size()) {
    for (uint32_t id = 0; id < graph.size(); ++id) {
      for (const Value operand : graph.operands(Value{id})) {
        ++uses_[operand.id];
      }
    }
    for (const NamedValue& output : graph.outputs()) ++uses_[output.value.id];
  }

  bool IsAcrossRows(Value v) const {
    const OpId op = graph_.node(v).op;
    if (op != ToOpId(Primitive::kReduceSum) &&
        op != ToOpId(Primitive::kReduceMax) &&
        op != ToOpId(Primitive::kReduceMin)) {
      return false;
    }
    const Value x = graph_.operands(v)[0];
    const TensorType& type = graph_.type(x);
    const int last = type.rank() - 1;
    if (last < 1 || !InClass(type.dtype, DTypeClass::kReal) ||
        ByteSize(type.dtype) < 4 ||
        graph_.attributes(v).GetInts("axes") != std::vector<int64_t>{last} ||
        type.shape[last - 1].Value().value_or(kLeastRow) < kLeastRow) {
      return false;
    }
    if (op == ToOpId(Primitive::kReduceSum) &&
        type.shape[last].Value().value_or(kMostTerms + 1) > kMostTerms) {
      return false;
    }
    Axes axes(last + 1);
    std::iota(axes.begin(), axes.end(), 0);
    Reads reads = {last, false, true, 0};
    Survey(x, axes, &reads);
    return reads.across && reads.along && reads.nodes <= kMostNodes;
  }

  // Whether the value is computed anew, in another order of axes.
  bool IsPassed(Value v) const {
    if (uses_[v.id] != 1 || !IsPrimitive(graph_.node(v).op)) return false;
    const Primitive primitive = ToPrimitive(graph_.node(v).op);
    return primitive == Primitive::kBroadcastInDim ||
           primitive == Primitive::kTranspose ||
           ClassOf(primitive) == PrimitiveClass::kPointwise;
  }

 private:
  struct Reads {
    int last;
    bool across;  // something lies across the last axis
    bool along;   // all lies along the axis before it, or is the same there
    int nodes;    // that were seen
  };

  void Survey(Value v, const Axes& axes, Reads* reads) const {
    if (++reads->nodes > kMostNodes) return;
    // Constants and numbers, however often they are used.
    const bool moved =
        graph_.node(v).op == ToOpId(Primitive::kBroadcastInDim) ||
        graph_.node(v).op == ToOpId(Primitive::kTranspose);
    if (!IsPassed(v) && !moved) {
      if (axes.empty()) return;
      const auto varies = [&](int axis) {
        return std::count(axes.begin(), axes.end(), axis) > 0;
      };
      reads->across |= varies(reads->last) && axes.back() != reads->last;
      reads->along &=
          !varies(reads->last - 1) || axes.back() == reads->last - 1;
      return;
    }
    const Axes inside = AxesInside(graph_, v, axes);
    for (const Value operand : graph_.operands(v)) {
      Survey(operand, inside, reads);
    }
  }

  const Graph& graph_;
  std::vector<int> uses_;
};

// Values with the last two axes exchanged.
class Writer {
 public:
  Writer(GraphCopy& copy, const Surveyor& surveyor)
      : graph_(copy.graph()),
        copy_(copy),
        builder_(copy.builder()),
        surveyor_(surveyor) {}

  Value Exchanged(Value v) {
    Value& known = exchanged_[v];
    if (known.valid()) return known;
    const int rank = graph_.type(v).rank();
    std::vector<int> order(rank);
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[rank - 1], order[rank - 2]);
    const Primitive primitive = IsPrimitive(graph_.node(v).op)
                                    ? ToPrimitive(graph_.node(v).op)
                                    : Primitive::kInput;
    if (primitive == Primitive::kBroadcastInDim) {
      return exchanged_[v] = Broadcast(v, order);
    }
    if (ClassOf(primitive) != PrimitiveClass::kPointwise ||
        !surveyor_.IsPassed(v)) {
      return exchanged_[v] = builder_.Transpose(copy_.of(v), order);
    }
    std::vector<Value> operands;
    for (const Value operand : graph_.operands(v)) {
      operands.push_back(Exchanged(operand));
    }
    TensorType type = graph_.type(v);
    std::swap(type.shape[rank - 1], type.shape[rank - 2]);
    const Node& node = graph_.node(v);
    return exchanged_[v] = builder_.AddTyped(node.op, node.attributes,
                                             builder_.context()->Intern(type),
                                             operands, node.provenance);
  }

 private:
  // Broadcasting keeps the order of axes: a transpose comes first.
  Value Broadcast(Value v, const std::vector<int>& order) {
    Value x = copy_.of(graph_.operands(v)[0]);
    Shape shape = graph_.type(v).shape;
    std::swap(shape[shape.size() - 1], shape[shape.size() - 2]);
    std::vector<int> axes;
    for (const int64_t axis : graph_.attributes(v).GetInts("axes")) {
      axes.push_back(order[axis]);
    }
    std::vector<int> by_axis(axes.size());
    std::iota(by_axis.begin(), by_axis.end(), 0);
    std::sort(by_axis.begin(), by_axis.end(),
              [&](int a, int b) { return axes[a] < axes[b]; });
    std::sort(axes.begin(), axes.end());
    return builder_.BroadcastInDim(builder_.Transpose(x, by_axis), shape, axes);
  }

  const Graph& graph_;
  GraphCopy& copy_;
  GraphBuilder& builder_;
  const Surveyor& surveyor_;
  std::map<Value, Value> exchanged_;
};

}  // namespace

Graph ReductionsAcrossRows(const Graph& graph) {
  const Surveyor surveyor(graph);
  return RewriteNodes(
      graph, [&](Value v) { return surveyor.IsAcrossRows(v); },
      [&](GraphCopy& copy, Value v) {
        const Value x = graph.operands(v)[0];
        Attributes attributes = graph.attributes(v);
        attributes.Set("axes", StaticValue::Ints(
                                   std::vector<int>{graph.type(x).rank() - 2}));
        return copy.builder().Apply(ToPrimitive(graph.node(v).op),
                                    {Writer(copy, surveyor).Exchanged(x)},
                                    attributes);
      });
}

}  // namespace cleave
