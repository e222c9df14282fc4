#include "transforms/vmap/unit_axes.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ops/check.h"
#include "transforms/table/emit.h"

namespace cleave {
namespace {

bool IsUnit(const Dim& extent) { return extent == Dim(1); }

// One copy; see InlineWithoutUnitAxes.
class Copier {
 public:
  Copier(GraphBuilder& builder, const Graph& graph)
      : builder_(builder), graph_(graph), cores_(graph.size()) {}

  std::vector<Value> Run(absl::Span<const Value> arguments) {
    CLEAVE_CHECK(arguments.size() == graph_.inputs().size())
        << arguments.size() << " arguments";
    for (size_t i = 0; i < arguments.size(); ++i) {
      cores_[graph_.inputs()[i].value.id] = Squeeze(arguments[i]);
    }
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const Value v{id};
      const OpId op = graph_.node(v).op;
      CLEAVE_CHECK(IsPrimitive(op)) << graph_.context()->op_name(op);
      if (ToPrimitive(op) != Primitive::kInput) cores_[id] = Copy(v);
    }
    std::vector<Value> outputs;
    for (const NamedValue& output : graph_.outputs()) {
      outputs.push_back(cores_[output.value.id]);
    }
    return outputs;
  }

 private:
  Value Operand(Value v, int i) const {
    return cores_[graph_.operands(v)[i].id];
  }
  const Shape& OperandShape(Value v, int i) const {
    return graph_.type(graph_.operands(v)[i]).shape;
  }

  // x in `shape`, which has the same elements. It needs no proof anew.
  Value Reshaped(Value x, const Shape& shape) {
    const DType dtype = builder_.type(x).dtype;
    while (builder_.graph().node(x).op == ToOpId(Primitive::kReshape)) {
      x = builder_.graph().operands(x)[0];
    }
    if (builder_.type(x).shape == shape) return x;
    return Add(Primitive::kReshape, {{"shape", StaticValue::Dims(shape)}},
               {dtype, shape}, {x});
  }

  Value Squeeze(Value x) {
    return Reshaped(x, WithoutUnitAxes(builder_.type(x).shape));
  }

  Value Add(Primitive primitive, const Attributes& attributes,
            const TensorType& type, absl::Span<const Value> operands) {
    Context& context = *builder_.context();
    return builder_.AddTyped(
        ToOpId(primitive),
        attributes.empty() ? kNoAttributes : context.Intern(attributes),
        context.Intern(type), operands, builder_.provenance());
  }

  // Per axis of `shape`, its place among those that are left; -1: left out.
  static std::vector<int> Places(const Shape& shape) {
    std::vector<int> places;
    int next = 0;
    for (const Dim& extent : shape) {
      places.push_back(IsUnit(extent) ? -1 : next++);
    }
    return places;
  }

  // `axes` of `shape` where they are now; unit ones are dropped.
  static std::vector<int> Kept(const std::vector<int>& axes,
                               const Shape& shape) {
    const std::vector<int> places = Places(shape);
    std::vector<int> kept;
    for (int axis : axes) {
      if (places[axis] >= 0) kept.push_back(places[axis]);
    }
    return kept;
  }

  static bool AnyUnit(const std::vector<int>& axes, const Shape& shape) {
    return std::any_of(axes.begin(), axes.end(),
                       [&](int axis) { return IsUnit(shape[axis]); });
  }

  TensorType SqueezedType(Value v) const {
    TensorType type = graph_.type(v);
    type.shape = WithoutUnitAxes(type.shape);
    return type;
  }

  // The node on operands as they were.
  Value AsItWas(Value v) {
    const Node& node = graph_.node(v);
    std::vector<Value> operands;
    for (Value operand : graph_.operands(v)) {
      const Value core = cores_[operand.id];
      operands.push_back(tuples_.contains(operand.id)
                             ? core
                             : Reshaped(core, graph_.type(operand).shape));
    }
    const Value copy = builder_.AddTyped(node.op, node.attributes, node.type,
                                         operands, node.provenance);
    if (graph_.types(v).size() > 1) {
      tuples_.insert(v.id);
      return copy;
    }
    return Squeeze(copy);
  }

  Value Copy(Value v) {
    if (!IsPrimitive(graph_.node(v).op)) return AsItWas(v);
    const Primitive primitive = ToPrimitive(graph_.node(v).op);
    switch (ClassOf(primitive)) {
      case PrimitiveClass::kPointwise: {
        std::vector<Value> operands;
        for (size_t i = 0; i < graph_.operands(v).size(); ++i) {
          operands.push_back(Operand(v, static_cast<int>(i)));
        }
        return Add(primitive, graph_.attributes(v), SqueezedType(v), operands);
      }
      case PrimitiveClass::kMovement:
        return CopyMovement(v, primitive);
      case PrimitiveClass::kReduction:
        return CopyReduction(v, primitive);
      case PrimitiveClass::kContraction:
        return primitive == Primitive::kDotGeneral ? CopyDotGeneral(v)
                                                   : AsItWas(v);
      default:
        return AsItWas(v);
    }
  }

  Value CopyMovement(Value v, Primitive primitive) {
    const Attributes& attributes = graph_.attributes(v);
    const TensorType type = SqueezedType(v);
    switch (primitive) {
      case Primitive::kReshape:
        return Reshaped(Operand(v, 0), type.shape);
      case Primitive::kBroadcastInDim: {
        const std::vector<int> axes = emit::Ints(attributes, "axes");
        const Shape& from = OperandShape(v, 0);
        std::vector<int> kept;
        for (size_t d = 0; d < from.size(); ++d) {
          if (!IsUnit(from[d])) kept.push_back(axes[d]);
        }
        return emit::Broadcast(builder_, Operand(v, 0), type.shape,
                               Kept(kept, graph_.type(v).shape));
      }
      case Primitive::kTranspose: {
        const std::vector<int> axes =
            Kept(emit::Ints(attributes, "axes"), OperandShape(v, 0));
        return builder_.Transpose(Operand(v, 0), axes);
      }
      default:
        return AsItWas(v);
    }
  }

  Value CopyReduction(Value v, Primitive primitive) {
    Attributes attributes = graph_.attributes(v);
    const std::vector<int> axes = emit::Ints(attributes, "axes");
    const Shape& from = OperandShape(v, 0);
    // A sum over one element begins with +0: it is not that element.
    if (AnyUnit(axes, from)) return AsItWas(v);
    attributes.Set("axes", StaticValue::Ints(Kept(axes, from)));
    return Add(primitive, attributes, SqueezedType(v), {Operand(v, 0)});
  }

  // Free axes may be left out, and batch axes where both are.
  Value CopyDotGeneral(Value v) {
    Attributes attributes = graph_.attributes(v);
    const Shape& a = OperandShape(v, 0);
    const Shape& b = OperandShape(v, 1);
    std::vector<int> batch_a = emit::Ints(attributes, "batch_a");
    std::vector<int> batch_b = emit::Ints(attributes, "batch_b");
    std::vector<int> contract_a = emit::Ints(attributes, "contract_a");
    std::vector<int> contract_b = emit::Ints(attributes, "contract_b");
    if (AnyUnit(contract_a, a) || AnyUnit(contract_b, b)) return AsItWas(v);
    for (size_t i = 0; i < batch_a.size(); ++i) {
      if (IsUnit(a[batch_a[i]]) != IsUnit(b[batch_b[i]])) return AsItWas(v);
    }
    batch_a = Kept(batch_a, a);
    batch_b = Kept(batch_b, b);
    contract_a = Kept(contract_a, a);
    contract_b = Kept(contract_b, b);
    const Value x = Untransposed(Operand(v, 0), batch_a, contract_a);
    const Value y = Untransposed(Operand(v, 1), batch_b, contract_b);
    attributes.Set("batch_a", StaticValue::Ints(batch_a));
    attributes.Set("batch_b", StaticValue::Ints(batch_b));
    attributes.Set("contract_a", StaticValue::Ints(contract_a));
    attributes.Set("contract_b", StaticValue::Ints(contract_b));
    return Add(Primitive::kDotGeneral, attributes, SqueezedType(v), {x, y});
  }

  // The value that a transposed operand of a contraction is read from; the
  // lists of axes follow. The operand itself, if its free axes would change
  // their order.
  Value Untransposed(Value x, std::vector<int>& batch,
                     std::vector<int>& contract) {
    const Graph& graph = builder_.graph();
    if (graph.node(x).op != ToOpId(Primitive::kTranspose)) return x;
    const std::vector<int> from = emit::Ints(graph.attributes(x), "axes");
    int last = -1;
    for (int d = 0; d < static_cast<int>(from.size()); ++d) {
      if (std::count(batch.begin(), batch.end(), d) > 0 ||
          std::count(contract.begin(), contract.end(), d) > 0) {
        continue;
      }
      if (from[d] < last) return x;
      last = from[d];
    }
    for (std::vector<int>* axes : {&batch, &contract}) {
      for (int& axis : *axes) axis = from[axis];
    }
    return graph.operands(x)[0];
  }

  GraphBuilder& builder_;
  const Graph& graph_;
  std::vector<Value> cores_;  // by node, without unit axes
  absl::flat_hash_set<uint32_t> tuples_;
};

}  // namespace

Shape WithoutUnitAxes(const Shape& shape) {
  Shape kept;
  for (const Dim& extent : shape) {
    if (!IsUnit(extent)) kept.push_back(extent);
  }
  return kept;
}

std::vector<Value> InlineWithoutUnitAxes(GraphBuilder& builder,
                                         const Graph& graph,
                                         absl::Span<const Value> arguments) {
  return Copier(builder, graph).Run(arguments);
}

}  // namespace cleave
