#include "engine/codegen/scatters_at_known_places.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/codegen/axes_inside.h"
#include "engine/codegen/fusion.h"
#include "engine/codegen/index_tables.h"
#include "engine/ir/filled_with.h"
#include "engine/ir/interpreter.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/element_cost.h"
#include "ops/exact.h"
#include "ops/primitive.h"
#include "ops/static_value.h"
#include "ops/tensor.h"

namespace cleave {
namespace {

// The most updates of one place: each is read by code of its own.
constexpr int64_t kMostUpdates = 8;
// How many updates each place reads for one that it gets, at most.
constexpr int64_t kMostReads = 4;
// Operations that are done again for each update of a place.
constexpr int kLittleArithmetic = 8;

// The values of a node that no input decides.
std::optional<Tensor> ValueOf(const Graph& graph, Value v) {
  FusionGroup table;
  table.kind = GroupKind::kTable;
  table.nodes = NodesOfTable(graph, v);
  table.outputs = {v};
  auto values = Interpret(ExtractGroup(graph, table).graph, {});
  if (!values.ok()) return std::nullopt;
  return std::move((*values)[0]);
}

// The most updates of one of `places`; nullopt where one is out of range.
std::optional<int64_t> MostUpdates(const Tensor& index, int64_t places) {
  std::vector<int64_t> count(places);
  for (int64_t i = 0; i < index.size(); ++i) {
    const int64_t at = index.GetInt(i);
    if (at < 0 || at >= places) return std::nullopt;
    ++count[at];
  }
  return count.empty() ? 0 : *std::max_element(count.begin(), count.end());
}

// A scatter, as far as its indices are concerned.
struct Known {
  int64_t places = 0;   // the extent that it writes along
  int64_t updates = 0;  // of all places
  int64_t most = 0;     // of one place
};

std::optional<Known> KnownPlaces(const Graph& graph, Value v,
                                 const std::vector<bool>& closed) {
  if (graph.node(v).op != ToOpId(Primitive::kScatter)) return std::nullopt;
  const Attributes& attributes = graph.attributes(v);
  const std::vector<int64_t> axes = attributes.GetInts("axes");
  const TensorType& type = graph.type(v);
  const auto operands = graph.operands(v);
  const auto zero = FilledWith(graph, operands[0]);
  // Sums of narrow floats are kept wider.
  if (attributes.Get("mode").AsString() != "add" || axes.size() != 1 ||
      attributes.GetInt("batch") != 0 || !closed[operands[1].id] ||
      !InClass(type.dtype, DTypeClass::kReal) || ByteSize(type.dtype) < 4 ||
      !zero || *zero != Exact(0)) {
    return std::nullopt;
  }
  Known known;
  const auto places = type.shape[axes[0]].Value();
  if (!places || *places < 1 || *places > kMaxTableElements) {
    return std::nullopt;
  }
  known.places = *places;
  const std::optional<Tensor> index = ValueOf(graph, operands[1]);
  if (!index.has_value() || index->size() < 1) return std::nullopt;
  known.updates = index->size();
  const auto most = MostUpdates(*index, known.places);
  if (!most || *most > kMostUpdates ||
      *most * known.places > kMostReads * known.updates) {
    return std::nullopt;
  }
  known.most = *most;
  return known;
}

// One scatter of a graph whose nodes before it are copied.
class Rewriter {
 public:
  Rewriter(GraphCopy& copy, Value scatter, const Known& known,
           const std::vector<bool>& closed)
      : graph_(copy.graph()),
        copy_(copy),
        builder_(copy.builder()),
        scatter_(scatter),
        known_(known),
        closed_(closed) {
    const Shape& index = graph_.type(graph_.operands(scatter)[1]).shape;
    leading_.assign(index.begin(), index.end() - 1);
  }

  Value Run() {
    const Value updates = graph_.operands(scatter_)[2];
    Axes axes(graph_.type(updates).rank(), -1);
    std::iota(axes.begin(), axes.begin() + leading_.size(), 0);
    const bool cheap = CostOfUpdates(updates, axes) <= kLittleArithmetic;
    // [places, rest]
    const DType dtype = graph_.type(updates).dtype;
    Shape shape = graph_.type(updates).shape;
    shape.erase(shape.begin(), shape.begin() + leading_.size());
    shape.insert(shape.begin(), Dim(known_.places));
    const Value zeros = builder_.Constant(Exact(0), TensorType{dtype, shape});
    // Sums are kept wider and rounded once; those of two terms are as exact.
    const bool wide = dtype == DType::kF32 && known_.most > 2;
    const DType state = wide ? DType::kF64 : dtype;
    Value sum = Converted(zeros, state);
    Value before;
    for (int64_t k = 0; k < known_.most; ++k) {
      before = NextUpdate(before);
      picked_.clear();
      SetPlaces(before);
      const Value update = cheap ? At(updates, axes) : Gathered(updates, axes);
      const Value there =
          builder_.Apply(Primitive::kLt, {before, Numbers(known_.updates)});
      const Value added = builder_.Apply(
          Primitive::kSelect,
          {builder_.BroadcastInDim(there, shape, {0}), update, zeros});
      sum = builder_.Apply(Primitive::kAdd, {sum, Converted(added, state)});
    }
    return ToPlaces(Converted(sum, dtype));
  }

 private:
  // For each axis of a value which of the updates' leading axes it is; -1 for
  // another.
  using Axes = std::vector<int>;

  Value Converted(Value x, DType dtype) {
    if (builder_.type(x).dtype == dtype) return x;
    Attributes attributes;
    attributes.Set("dtype", dtype);
    return builder_.Apply(Primitive::kConvert, {x}, attributes);
  }

  Value Numbers(int64_t number) {
    return builder_.Constant(Exact(number),
                             TensorType{DType::kI64, {Dim(known_.places)}});
  }

  // For each place the number of its first update behind `before`, or of all;
  // the number of updates where there is none.
  Value NextUpdate(Value before) {
    const Dim updates(known_.updates);
    Attributes size;
    size.Set("size", updates);
    const Value index = builder_.Reshape(copy_.of(graph_.operands(scatter_)[1]),
                                         {updates, Dim(1)});
    Value number = builder_.Apply(Primitive::kIota, {}, size);
    if (before.valid()) {
      const Value beyond =
          builder_.Constant(Exact(known_.updates), DType::kI64);
      const Value last = builder_.Apply(Primitive::kGather,
                                        {before, index, beyond}, Along({0}));
      const Value behind = builder_.Apply(Primitive::kGt, {number, last});
      number = builder_.Apply(
          Primitive::kSelect,
          {behind, number,
           builder_.Constant(Exact(known_.updates),
                             TensorType{DType::kI64, {updates}})});
    }
    Attributes least;
    least.Set("axes", StaticValue::Ints(std::vector<int>{0}));
    least.Set("batch", 0);
    least.Set("mode", "min");
    return builder_.Apply(Primitive::kScatter,
                          {Numbers(known_.updates), index, number}, least);
  }

  static Attributes Along(const std::vector<int>& axes) {
    Attributes attributes;
    attributes.Set("axes", StaticValue::Ints(axes));
    attributes.Set("batch", 0);
    attributes.Set("mode", "fill");
    return attributes;
  }

  // The coordinates of the updates `numbers`, each [places, 1]. Where there is
  // none, the last one's.
  void SetPlaces(Value numbers) {
    coordinates_.clear();
    Value rest =
        builder_.Apply(Primitive::kMin, {numbers, Numbers(known_.updates - 1)});
    for (size_t d = leading_.size(); d-- > 0;) {
      const int64_t extent = *leading_[d].Value();
      const Value by = Numbers(extent);
      coordinates_.push_back(builder_.Reshape(
          d == 0 ? rest : builder_.Apply(Primitive::kFloorMod, {rest, by}),
          {Dim(known_.places), Dim(1)}));
      if (d > 0) rest = builder_.Apply(Primitive::kFloorDiv, {rest, by});
    }
    std::reverse(coordinates_.begin(), coordinates_.end());
  }

  // Whether the elements of v are computed anew for each update, rather than
  // read: what no input decides is little.
  bool IsPassed(Value v, const Axes& axes) const {
    if (closed_[v.id] || std::all_of(axes.begin(), axes.end(),
                                     [](int axis) { return axis < 0; })) {
      return false;
    }
    const OpId op = graph_.node(v).op;
    if (!IsPrimitive(op) || !CanLower(graph_, v).ok()) return false;
    const Primitive primitive = ToPrimitive(op);
    return primitive == Primitive::kBroadcastInDim ||
           primitive == Primitive::kTranspose ||
           ClassOf(primitive) == PrimitiveClass::kPointwise;
  }

  int CostOfUpdates(Value updates, const Axes& axes) const {
    std::set<std::pair<Value, Axes>> seen;
    std::vector<std::pair<Value, Axes>> stack = {{updates, axes}};
    int cost = 0;
    while (!stack.empty() && cost <= kLittleArithmetic) {
      const auto [v, at] = stack.back();
      stack.pop_back();
      if (!seen.insert({v, at}).second || !IsPassed(v, at)) continue;
      const Primitive primitive = ToPrimitive(graph_.node(v).op);
      if (ClassOf(primitive) == PrimitiveClass::kPointwise) {
        cost += CostOf(primitive);
      }
      for (const Value operand : graph_.operands(v)) {
        stack.push_back({operand, AxesInside(graph_, v, at)});
      }
    }
    return cost;
  }

  // [places, the axes of v that are none of the updates' leading ones].
  Shape ShapeAt(Value v, const Axes& axes) const {
    Shape shape = {Dim(known_.places)};
    for (size_t d = 0; d < axes.size(); ++d) {
      if (axes[d] < 0) shape.push_back(graph_.type(v).shape[d]);
    }
    return shape;
  }

  // Where each axis of v is in ShapeAt; -1 for those that are not.
  static std::vector<int> PlacesOf(const Axes& axes) {
    std::vector<int> places;
    int next = 1;
    for (const int axis : axes) places.push_back(axis < 0 ? next++ : -1);
    return places;
  }

  // The elements of v for the updates at coordinates_.
  Value At(Value v, const Axes& axes) {
    const auto key = std::make_pair(v, axes);
    if (const auto known = picked_.find(key); known != picked_.end()) {
      return known->second;
    }
    return picked_[key] = Made(v, axes);
  }

  Value Made(Value v, const Axes& axes) {
    if (!IsPassed(v, axes)) return Gathered(v, axes);
    const Axes inside = AxesInside(graph_, v, axes);
    std::vector<Value> operands;
    for (const Value operand : graph_.operands(v)) {
      operands.push_back(At(operand, inside));
    }
    const Shape shape = ShapeAt(v, axes);
    const std::vector<int> places = PlacesOf(axes);
    const Primitive primitive = ToPrimitive(graph_.node(v).op);
    const Node& node = graph_.node(v);
    if (ClassOf(primitive) == PrimitiveClass::kPointwise) {
      const TensorType type = {graph_.type(v).dtype, shape};
      return builder_.AddTyped(node.op, node.attributes,
                               builder_.context()->Intern(type), operands,
                               node.provenance);
    }
    const std::vector<int64_t> to = graph_.attributes(v).GetInts("axes");
    const std::vector<int> from = PlacesOf(inside);
    if (primitive == Primitive::kTranspose) {
      std::vector<int> order = {0};
      for (size_t d = 0; d < to.size(); ++d) {
        if (places[d] >= 0) order.push_back(from[to[d]]);
      }
      return builder_.Transpose(operands[0], order);
    }
    // A broadcast: its operand's axes of extent 1 along leading ones go.
    Shape kept = {Dim(known_.places)};
    std::vector<int> targets = {0};
    const Shape& given = graph_.type(graph_.operands(v)[0]).shape;
    for (size_t d = 0; d < to.size(); ++d) {
      if (inside[d] >= 0 || places[to[d]] < 0) continue;
      kept.push_back(given[d]);
      targets.push_back(places[to[d]]);
    }
    return builder_.BroadcastInDim(builder_.Reshape(operands[0], kept), shape,
                                   targets);
  }

  Value Gathered(Value v, const Axes& axes) {
    std::vector<int> read;
    std::vector<Value> parts;
    for (size_t d = 0; d < axes.size(); ++d) {
      if (axes[d] < 0) continue;
      read.push_back(static_cast<int>(d));
      parts.push_back(coordinates_[axes[d]]);
    }
    const Value x = copy_.of(v);
    if (read.empty()) {
      std::vector<int> targets(axes.size());
      std::iota(targets.begin(), targets.end(), 1);
      return builder_.BroadcastInDim(x, ShapeAt(v, axes), targets);
    }
    Attributes last;
    last.Set("axis", 1);
    const Value index =
        parts.size() == 1
            ? parts[0]
            : builder_.Apply(Primitive::kConcatenate, parts, last);
    const Value none = builder_.Constant(Exact(0), graph_.type(v).dtype);
    return builder_.Apply(Primitive::kGather, {x, index, none}, Along(read));
  }

  // The places, which come first, where the scatter has them.
  Value ToPlaces(Value sum) {
    const int axis =
        static_cast<int>(graph_.attributes(scatter_).GetInts("axes")[0]);
    std::vector<int> order(graph_.type(scatter_).rank());
    for (int d = 0; d < static_cast<int>(order.size()); ++d) {
      order[d] = d < axis ? d + 1 : d == axis ? 0 : d;
    }
    return builder_.Transpose(sum, order);
  }

  const Graph& graph_;
  GraphCopy& copy_;
  GraphBuilder& builder_;
  const Value scatter_;
  const Known known_;
  const std::vector<bool>& closed_;
  Shape leading_;  // of the updates
  // For the updates in work.
  std::vector<Value> coordinates_;
  std::map<std::pair<Value, Axes>, Value> picked_;
};

}  // namespace

Graph ScattersAtKnownPlaces(const Graph& graph) {
  bool any = false;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    any |= graph.node(Value{id}).op == ToOpId(Primitive::kScatter);
  }
  if (!any) return graph;
  const std::vector<bool> closed = ClosedNodes(graph);
  return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    const std::optional<Known> known = KnownPlaces(graph, v, closed);
    if (!known.has_value()) return copy.Keep(v);
    copy.builder().SetProvenance(graph.node(v).provenance);
    return Rewriter(copy, v, *known, closed).Run();
  });
}

}  // namespace cleave
