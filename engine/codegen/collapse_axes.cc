#include "engine/codegen/collapse_axes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/codegen/axes_inside.h"
#include "ops/check.h"

namespace cleave {
namespace {

// Axes of values that must be treated alike are one class.
class Classes {
 public:
  explicit Classes(const Graph& graph) : graph_(graph), first_(graph.size()) {
    int count = 0;
    for (uint32_t id = 0; id < graph.size(); ++id) {
      first_[id] = count;
      count += graph.type(Value{id}).rank();
    }
    parent_.resize(count);
    std::iota(parent_.begin(), parent_.end(), 0);
    pinned_.resize(count, false);
    for (uint32_t id = 0; id < graph.size(); ++id) Relate(Value{id});
    RelateReductions();
    for (uint32_t id = 0; id < graph.size(); ++id) {
      // One class twice in a value: its axes are not neighbours of others.
      std::set<int> seen;
      for (const int c : Of(Value{id})) {
        if (!seen.insert(c).second) Pin(c);
      }
    }
  }

  int At(Value v, int axis) const { return Find(first_[v.id] + axis); }
  std::vector<int> Of(Value v) const {
    std::vector<int> classes;
    for (int d = 0; d < graph_.type(v).rank(); ++d) {
      classes.push_back(At(v, d));
    }
    return classes;
  }
  bool pinned(int c) const { return pinned_[c]; }
  int count() const { return static_cast<int>(parent_.size()); }

 private:
  int Find(int at) const {
    while (parent_[at] != at) at = parent_[at] = parent_[parent_[at]];
    return at;
  }
  void Unite(Value a, int i, Value b, int j) {
    const int p = At(a, i);
    const int q = At(b, j);
    parent_[p] = q;
    pinned_[q] = pinned_[p] || pinned_[q];
  }
  void Pin(int c) { pinned_[Find(c)] = true; }
  void PinAll(Value v) {
    for (const int c : Of(v)) Pin(c);
  }
  void PinAxis(Value v, int axis) { Pin(At(v, axis)); }

  void Relate(Value v) {
    const Primitive primitive = ToPrimitive(graph_.node(v).op);
    const auto operands = graph_.operands(v);
    const Attributes& attributes = graph_.attributes(v);
    switch (primitive) {
      case Primitive::kInput:
      case Primitive::kConstant:
      case Primitive::kExtent:
        return;
      case Primitive::kBroadcastInDim: {
        const auto axes = attributes.GetInts("axes");
        const Shape& from = graph_.type(operands[0]).shape;
        const Shape& to = graph_.type(v).shape;
        for (size_t d = 0; d < axes.size(); ++d) {
          if (from[d] == Dim(1) && to[axes[d]] != Dim(1)) continue;
          Unite(operands[0], d, v, axes[d]);
        }
        return;
      }
      case Primitive::kTranspose: {
        const auto axes = attributes.GetInts("axes");
        for (size_t d = 0; d < axes.size(); ++d) {
          Unite(operands[0], axes[d], v, d);
        }
        return;
      }
      case Primitive::kReshape:
        return RelateReshape(v);
      case Primitive::kSlice:
      case Primitive::kReverse:
      case Primitive::kPad:
      case Primitive::kConcatenate:
        return RelateMoved(v, primitive);
      case Primitive::kDotGeneral:
        return RelateDot(v);
      // The elements of one key are numbered in row-major order, however many
      // axes they have.
      case Primitive::kRandomBits:
      case Primitive::kRandomUniform:
        for (int d = 0; d < graph_.type(operands[0]).rank(); ++d) {
          Unite(operands[0], d, v, d);
        }
        return;
      default:
        break;
    }
    switch (ClassOf(primitive)) {
      case PrimitiveClass::kPointwise:
        for (const Value operand : operands) {
          for (int d = 0; d < graph_.type(v).rank(); ++d) {
            Unite(operand, d, v, d);
          }
        }
        return;
      case PrimitiveClass::kReduction: {
        const auto axes = attributes.GetInts("axes");
        int next = 0;
        for (int d = 0; d < graph_.type(operands[0]).rank(); ++d) {
          if (std::count(axes.begin(), axes.end(), d) > 0) continue;
          Unite(operands[0], d, v, next++);
        }
        return;
      }
      default:
        PinAll(v);
        for (const Value operand : operands) PinAll(operand);
    }
  }

  // The reductions of a group are over one space, which outputs of its shape
  // lie in: it stays one.
  void RelateReductions() {
    std::optional<Value> space;
    const auto relate = [&](Value v) {
      if (graph_.type(v).shape != graph_.type(*space).shape) return;
      for (int d = 0; d < graph_.type(v).rank(); ++d) Unite(v, d, *space, d);
    };
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const Value v{id};
      const Primitive primitive = ToPrimitive(graph_.node(v).op);
      if (ClassOf(primitive) != PrimitiveClass::kReduction) continue;
      if (!space.has_value()) space = graph_.operands(v)[0];
      relate(graph_.operands(v)[0]);
    }
    if (!space.has_value()) return;
    for (const NamedValue& output : graph_.outputs()) relate(output.value);
  }

  void RelateReshape(Value v) {
    const Value x = graph_.operands(v)[0];
    std::vector<int> axes(graph_.type(v).rank());
    std::iota(axes.begin(), axes.end(), 0);
    const auto inside = AxesBehindUnitReshape(graph_.type(x).shape,
                                              graph_.type(v).shape, axes, -1);
    if (!inside.has_value()) {
      PinAll(v);
      PinAll(x);
      return;
    }
    for (size_t d = 0; d < inside->size(); ++d) {
      if ((*inside)[d] >= 0) Unite(x, d, v, (*inside)[d]);
    }
  }

  void RelateMoved(Value v, Primitive primitive) {
    for (const Value x : graph_.operands(v)) {
      if (graph_.type(x).rank() != graph_.type(v).rank()) continue;  // a fill
      for (int d = 0; d < graph_.type(v).rank(); ++d) {
        Unite(x, d, v, d);
        if (MovesAxis(graph_, v, primitive, d)) PinAxis(v, d);
      }
    }
  }

  void RelateDot(Value v) {
    const Value a = graph_.operands(v)[0];
    const Value b = graph_.operands(v)[1];
    const Attributes& attributes = graph_.attributes(v);
    const auto batch_a = attributes.GetInts("batch_a");
    const auto batch_b = attributes.GetInts("batch_b");
    const auto contract_a = attributes.GetInts("contract_a");
    const auto contract_b = attributes.GetInts("contract_b");
    int next = 0;
    for (size_t i = 0; i < batch_a.size(); ++i, ++next) {
      Unite(a, batch_a[i], v, next);
      Unite(b, batch_b[i], v, next);
    }
    for (size_t i = 0; i < contract_a.size(); ++i) {
      Unite(a, contract_a[i], b, contract_b[i]);
    }
    const auto free = [&](Value x, const std::vector<int64_t>& batch,
                          const std::vector<int64_t>& contract) {
      for (int d = 0; d < graph_.type(x).rank(); ++d) {
        if (std::count(batch.begin(), batch.end(), d) > 0) continue;
        if (std::count(contract.begin(), contract.end(), d) > 0) continue;
        Unite(x, d, v, next++);
      }
    };
    free(a, batch_a, contract_a);
    free(b, batch_b, contract_b);
  }

 public:
  // Whether a slice, reverse, pad or concatenate does something along `axis`.
  static bool MovesAxis(const Graph& graph, Value v, Primitive primitive,
                        int axis) {
    const Attributes& attributes = graph.attributes(v);
    const Shape& from = graph.type(graph.operands(v)[0]).shape;
    switch (primitive) {
      case Primitive::kSlice:
        return attributes.GetDims("start")[axis] != Dim(0) ||
               attributes.GetInts("stride")[axis] != 1 ||
               graph.type(v).shape[axis] != from[axis];
      case Primitive::kReverse: {
        const auto axes = attributes.GetInts("axes");
        return std::count(axes.begin(), axes.end(), axis) > 0;
      }
      case Primitive::kPad:
        return attributes.GetDims("low")[axis] != Dim(0) ||
               attributes.GetDims("high")[axis] != Dim(0) ||
               attributes.GetDims("interior")[axis] != Dim(0);
      default:
        return attributes.GetInt("axis") == axis;
    }
  }

 private:
  const Graph& graph_;
  std::vector<int> first_;
  mutable std::vector<int> parent_;
  std::vector<bool> pinned_;
};

class Collapser {
 public:
  explicit Collapser(const Graph& graph)
      : graph_(graph), classes_(graph), builder_(graph.context()) {
    FindDropped();
    FindRuns();
  }

  absl::StatusOr<Graph> Collapse() {
    std::vector<Value> copies(graph_.size());
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      copies[id] = Copy(Value{id}, copies);
    }
    std::vector<NamedValue> outputs;
    for (const NamedValue& output : graph_.outputs()) {
      outputs.push_back({output.name, copies[output.value.id]});
    }
    return std::move(builder_).Build(std::move(outputs));
  }

 private:
  // Unpinned classes all of whose extents are 1.
  void FindDropped() {
    dropped_.assign(classes_.count(), true);
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const Shape& shape = graph_.type(Value{id}).shape;
      for (size_t d = 0; d < shape.size(); ++d) {
        const int c = classes_.At(Value{id}, d);
        if (classes_.pinned(c) || shape[d] != Dim(1)) dropped_[c] = false;
      }
    }
  }

  // joined_[c]: c's axis is merged into the one before it.
  void FindRuns() {
    constexpr int kUnseen = -2;
    constexpr int kNone = -1;
    std::vector<int> before(classes_.count(), kUnseen);
    std::vector<int> behind(classes_.count(), kUnseen);
    const auto note = [](std::vector<int>& table, int c, int neighbour) {
      if (table[c] == kUnseen) {
        table[c] = neighbour;
      } else if (table[c] != neighbour) {
        table[c] = kNone;
      }
    };
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      int last = kNone;
      for (const int c : classes_.Of(Value{id})) {
        if (dropped_[c]) continue;
        note(before, c, last);
        if (last >= 0) note(behind, last, c);
        last = c;
      }
      if (last >= 0) note(behind, last, kNone);
    }
    joined_.assign(classes_.count(), false);
    for (int c = 0; c < classes_.count(); ++c) {
      const int p = before[c];
      joined_[c] = p >= 0 && behind[p] == c && !classes_.pinned(c) &&
                   !classes_.pinned(p);
    }
  }

  // For each old axis its new one, -1 where it is dropped.
  std::vector<int> NewAxes(Value v) const {
    std::vector<int> axes;
    int next = -1;
    for (const int c : classes_.Of(v)) {
      if (dropped_[c]) {
        axes.push_back(-1);
        continue;
      }
      if (!joined_[c]) ++next;
      axes.push_back(next);
    }
    return axes;
  }

  Shape NewShape(Value v) const {
    Shape shape;
    const std::vector<int> axes = NewAxes(v);
    const Shape& old = graph_.type(v).shape;
    for (size_t d = 0; d < old.size(); ++d) {
      if (axes[d] < 0) continue;
      if (axes[d] == static_cast<int>(shape.size())) {
        shape.push_back(old[d]);
      } else {
        shape.back() = shape.back() * old[d];
      }
    }
    return shape;
  }

  // The new axes of old ones, each once.
  static std::vector<int64_t> Translate(const std::vector<int64_t>& old,
                                        const std::vector<int>& axes) {
    std::vector<int64_t> result;
    for (const int64_t d : old) {
      if (axes[d] < 0) continue;
      if (std::count(result.begin(), result.end(), axes[d]) == 0) {
        result.push_back(axes[d]);
      }
    }
    return result;
  }

  Value Copy(Value v, const std::vector<Value>& copies) {
    const Node& node = graph_.node(v);
    const Primitive primitive = ToPrimitive(node.op);
    const TensorType type = {graph_.type(v).dtype, NewShape(v)};
    if (primitive == Primitive::kInput) {
      for (const NamedValue& input : graph_.inputs()) {
        if (input.value == v) return builder_.Input(input.name, type);
      }
    }
    std::vector<Value> operands;
    for (const Value operand : graph_.operands(v)) {
      operands.push_back(copies[operand.id]);
    }
    Attributes attributes = graph_.attributes(v);
    if (!Rewrite(v, primitive, type, operands, &attributes)) {
      return operands[0];
    }
    return builder_.AddTyped(node.op, builder_.context()->Intern(attributes),
                             builder_.context()->Intern(type), operands,
                             node.provenance);
  }

  // The attributes for the new axes; false where nothing is left to do.
  bool Rewrite(Value v, Primitive primitive, const TensorType& type,
               const std::vector<Value>& operands, Attributes* attributes) {
    const std::vector<int> axes = NewAxes(v);
    const auto same_shape = [&] {
      return builder_.type(operands[0]).shape == type.shape;
    };
    switch (primitive) {
      case Primitive::kBroadcastInDim: {
        const std::vector<int> from = NewAxes(graph_.operands(v)[0]);
        const auto old = attributes->GetInts("axes");
        std::vector<int64_t> changed;
        for (size_t d = 0; d < from.size(); ++d) {
          if (from[d] == static_cast<int>(changed.size())) {
            changed.push_back(axes[old[d]]);
          }
        }
        attributes->Set("axes", StaticValue::Ints(changed));
        attributes->Set("shape", StaticValue::Dims(type.shape));
        return !same_shape();
      }
      case Primitive::kReshape:
        attributes->Set("shape", StaticValue::Dims(type.shape));
        return !same_shape();
      case Primitive::kTranspose: {
        const std::vector<int64_t> changed = Translate(
            attributes->GetInts("axes"), NewAxes(graph_.operands(v)[0]));
        attributes->Set("axes", StaticValue::Ints(changed));
        return !std::is_sorted(changed.begin(), changed.end());
      }
      case Primitive::kSlice:
      case Primitive::kPad:
        return RewriteLists(v, primitive, axes, type.shape, attributes);
      case Primitive::kReverse: {
        const auto changed = Translate(attributes->GetInts("axes"), axes);
        attributes->Set("axes", StaticValue::Ints(changed));
        return !changed.empty();
      }
      case Primitive::kConcatenate:
        attributes->Set("axis", axes[attributes->GetInt("axis")]);
        return true;
      case Primitive::kRandomBits:
      case Primitive::kRandomUniform:
        attributes->Set(
            "shape", StaticValue::Dims(Shape(
                         type.shape.begin() + builder_.type(operands[0]).rank(),
                         type.shape.end())));
        return true;
      case Primitive::kDotGeneral:
        for (const char* side : {"a", "b"}) {
          const std::vector<int> of =
              NewAxes(graph_.operands(v)[side[0] == 'a' ? 0 : 1]);
          for (const char* role : {"batch_", "contract_"}) {
            const std::string name = std::string(role) + side;
            attributes->Set(name, StaticValue::Ints(Translate(
                                      attributes->GetInts(name), of)));
          }
        }
        return true;
      default:
        break;
    }
    if (ClassOf(primitive) == PrimitiveClass::kReduction) {
      attributes->Set(
          "axes", StaticValue::Ints(Translate(attributes->GetInts("axes"),
                                              NewAxes(graph_.operands(v)[0]))));
    }
    return true;
  }

  // Lists with an entry per axis: only pinned axes have one that matters.
  bool RewriteLists(Value v, Primitive primitive, const std::vector<int>& axes,
                    const Shape& shape, Attributes* attributes) {
    const std::vector<const char*> names =
        primitive == Primitive::kSlice
            ? std::vector<const char*>{"start", "size", "stride"}
            : std::vector<const char*>{"low", "high", "interior"};
    bool moves = false;
    std::vector<int> source(shape.size(), -1);
    for (size_t d = 0; d < axes.size(); ++d) {
      if (!Classes::MovesAxis(graph_, v, primitive, d)) continue;
      source[axes[d]] = static_cast<int>(d);
      moves = true;
    }
    for (const char* name : names) {
      const std::vector<Dim> old = attributes->GetDims(name);
      std::vector<Dim> changed;
      for (size_t d = 0; d < shape.size(); ++d) {
        if (source[d] >= 0) {
          changed.push_back(old[source[d]]);
        } else if (name == std::string("size")) {
          changed.push_back(shape[d]);
        } else {
          changed.push_back(name == std::string("stride") ? Dim(1) : Dim(0));
        }
      }
      attributes->Set(name, StaticValue::Dims(changed));
    }
    return moves;
  }

  const Graph& graph_;
  const Classes classes_;
  GraphBuilder builder_;
  std::vector<bool> dropped_;
  std::vector<bool> joined_;
};

}  // namespace

absl::StatusOr<Graph> CollapseAxes(const Graph& graph) {
  return Collapser(graph).Collapse();
}

}  // namespace cleave
