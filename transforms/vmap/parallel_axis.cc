#include "transforms/vmap/parallel_axis.h"

#include <algorithm>
#include <string>

#include "engine/rewrite/expand.h"
#include "engine/rules/call_of.h"
#include "transforms/table/emit.h"

namespace cleave {
namespace {

constexpr char kExtentName[] = "parallel.extent";

bool Contains(const std::vector<int>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

// One walk; see ParallelOutputs. The axis of a value is where the extent stands
// in its type, so that types say it all but how nodes map slices.
class Walk {
 public:
  Walk(const Graph& graph, const Dim& extent)
      : graph_(graph),
        extent_(extent),
        variable_(*extent.Variables().begin()) {}

  std::optional<std::vector<int>> Run() {
    for (const ShapeGuard& guard : graph_.guards()) {
      if (Mentions(guard.lhs) || Mentions(guard.rhs)) return std::nullopt;
    }
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      const Value v{id};
      for (const TensorType& type : graph_.types(v)) {
        if (!OneAxisAtMost(type.shape)) return std::nullopt;
      }
      if (!MapsSlices(v)) return std::nullopt;
    }
    std::vector<int> axes;
    for (const NamedValue& output : graph_.outputs()) {
      axes.push_back(AxisOf(graph_.type(output.value)));
    }
    return axes;
  }

 private:
  bool Mentions(const Dim& d) const {
    return d.Variables().count(variable_) > 0;
  }
  bool Mentions(const StaticValue& value) const {
    switch (value.kind()) {
      case StaticValue::Kind::kInt:
        return Mentions(value.AsDim());
      case StaticValue::Kind::kList:
        return std::any_of(value.AsList().begin(), value.AsList().end(),
                           [&](const StaticValue& e) { return Mentions(e); });
      case StaticValue::Kind::kRecord:
      case StaticValue::Kind::kRegion:
        return true;  // not looked into
      default:
        return false;
    }
  }
  bool MentionsAnywhere(const Attributes& attributes) const {
    return std::any_of(
        attributes.values().begin(), attributes.values().end(),
        [&](const auto& named) { return Mentions(named.second); });
  }

  bool OneAxisAtMost(const Shape& shape) const {
    int count = 0;
    for (const Dim& d : shape) {
      if (d == extent_) {
        ++count;
      } else if (Mentions(d)) {
        return false;
      }
    }
    return count <= 1;
  }

  // -1: it has none.
  int AxisOf(const TensorType& type) const {
    for (int d = 0; d < type.rank(); ++d) {
      if (type.shape[d] == extent_) return d;
    }
    return -1;
  }
  int OperandAxis(Value v, int i) const {
    return AxisOf(graph_.type(graph_.operands(v)[i]));
  }

  static Dim Before(const Shape& shape, int axis) {
    Dim product = 1;
    for (int d = 0; d < axis; ++d) product = product * shape[d];
    return product;
  }

  bool MapsSlices(Value v) const {
    const Primitive primitive = ToPrimitive(graph_.node(v).op);
    const Attributes& attributes = graph_.attributes(v);
    if (primitive == Primitive::kInput || primitive == Primitive::kResult) {
      return true;
    }
    bool any = false;
    for (Value operand : graph_.operands(v)) {
      for (const TensorType& type : graph_.types(operand)) {
        any = any || AxisOf(type) >= 0;
      }
    }
    // Slices of what has no such axis are all the same.
    const bool repeats = primitive == Primitive::kBroadcastInDim;
    if (!any && !repeats) return !MentionsAnywhere(attributes);
    // A call that has no body here, as of a host's op.
    if (!IsPrimitive(graph_.node(v).op)) return false;
    switch (ClassOf(primitive)) {
      case PrimitiveClass::kPointwise:
        return true;
      case PrimitiveClass::kMovement:
        return Movement(v, primitive, attributes);
      case PrimitiveClass::kWindow:
        return Window(v, primitive, attributes);
      case PrimitiveClass::kReduction:
        return !Contains(emit::Ints(attributes, "axes"), OperandAxis(v, 0));
      case PrimitiveClass::kContraction:
        return Contraction(v, primitive, attributes);
      case PrimitiveClass::kScan:
      case PrimitiveClass::kSort:
        return attributes.GetInt("axis") != OperandAxis(v, 0) &&
               !MentionsAnywhere(attributes);
      case PrimitiveClass::kGather:
        return Gather(v, attributes);
      case PrimitiveClass::kScatter:
        return Scatter(v, attributes);
      default:
        return false;
    }
  }

  bool Movement(Value v, Primitive primitive,
                const Attributes& attributes) const {
    const int axis = OperandAxis(v, 0);
    const Shape& from = graph_.type(graph_.operands(v)[0]).shape;
    const Shape& to = graph_.type(v).shape;
    switch (primitive) {
      case Primitive::kBroadcastInDim:  // to the only axis of that extent
        return true;
      case Primitive::kReshape: {
        const int at = AxisOf(graph_.type(v));
        return at >= 0 && Before(from, axis) == Before(to, at);
      }
      case Primitive::kTranspose:
        return true;
      case Primitive::kSlice: {
        const std::vector<Dim> start = attributes.GetDims("start");
        const std::vector<Dim> size = attributes.GetDims("size");
        const std::vector<Dim> stride = attributes.GetDims("stride");
        for (int d = 0; d < static_cast<int>(from.size()); ++d) {
          if (d != axis && (Mentions(start[d]) || Mentions(stride[d]))) {
            return false;
          }
        }
        return start[axis] == Dim(0) && size[axis] == extent_ &&
               stride[axis] == Dim(1);
      }
      case Primitive::kReverse:
        return !Contains(emit::Ints(attributes, "axes"), axis);
      case Primitive::kPad: {
        if (MentionsAnywhere(attributes) || axis < 0) return false;
        for (const char* name : {"low", "high", "interior"}) {
          if (attributes.GetDims(name)[axis] != Dim(0)) return false;
        }
        return true;
      }
      default:  // concatenate: of operands that all have the axis
        for (int i = 0; i < static_cast<int>(graph_.operands(v).size()); ++i) {
          if (OperandAxis(v, i) != axis) return false;
        }
        return axis >= 0 && attributes.GetInt("axis") != axis;
    }
  }

  // Windows lie on the trailing axes of x; positions and their elements are the
  // trailing axes of the other side.
  bool Window(Value v, Primitive primitive,
              const Attributes& attributes) const {
    const int axis = OperandAxis(v, 0);
    const int windowed = static_cast<int>(attributes.GetDims("sizes").size());
    const int spread = primitive == Primitive::kWindows ? 1 : 2;
    return axis >= 0 &&
           axis <
               graph_.type(graph_.operands(v)[0]).rank() - spread * windowed &&
           !MentionsAnywhere(attributes);
  }

  bool Contraction(Value v, Primitive primitive,
                   const Attributes& attributes) const {
    const int a = OperandAxis(v, 0);
    const int b = OperandAxis(v, 1);
    if (primitive == Primitive::kConv) {
      // The batch N, by one kernel.
      return a == 0 && b < 0 && !MentionsAnywhere(attributes) &&
             attributes.Get("batch_groups").AsDim() == Dim(1);
    }
    // Free in one, or a batch axis of both: two free ones would be two axes of
    // the result.
    return (a < 0 || !Contains(emit::Ints(attributes, "contract_a"), a)) &&
           (b < 0 || !Contains(emit::Ints(attributes, "contract_b"), b));
  }

  bool Gather(Value v, const Attributes& attributes) const {
    const int x = OperandAxis(v, 0);
    const int index = OperandAxis(v, 1);
    const int batch = static_cast<int>(attributes.GetInt("batch"));
    const int last = graph_.type(graph_.operands(v)[1]).rank() - 1;
    if (OperandAxis(v, 2) >= 0) return false;
    if (x >= 0 && Contains(emit::Ints(attributes, "axes"), x)) return false;
    if (index >= 0 && index == last) return false;
    // Shared leading axes belong to both.
    if (x >= 0 && index >= 0) return x == index && x < batch;
    return x >= 0 ? x >= batch : index >= batch;
  }

  // Each slice is written by its own updates alone.
  bool Scatter(Value v, const Attributes& attributes) const {
    const int x = OperandAxis(v, 0);
    const int batch = static_cast<int>(attributes.GetInt("batch"));
    return x >= 0 && x < batch && OperandAxis(v, 1) == x &&
           OperandAxis(v, 2) == x;
  }

  const Graph& graph_;
  const Dim& extent_;
  const std::string variable_;
};

bool Mentions(const ShapeGuard& guard, const std::string& variable) {
  return guard.lhs.Variables().count(variable) > 0 ||
         guard.rhs.Variables().count(variable) > 0;
}

}  // namespace

std::optional<std::vector<int>> ParallelOutputs(const Graph& graph,
                                                const Dim& extent) {
  return Walk(graph, extent).Run();
}

bool IsParallelInFront(const Signature& signature,
                       const std::vector<bool>& batched,
                       const std::vector<bool>& batched_results,
                       const RuleSet& rules) {
  Context& context = *rules.context();
  const Dim extent = Dim::Variable(kExtentName);
  Signature changed = signature;
  std::optional<Dim> first;
  for (size_t i = 0; i < batched.size(); ++i) {
    if (!batched[i]) continue;
    TensorType type = context.types(signature.operands[i])[0];
    if (type.rank() == 0) return false;
    if (!first) first = type.shape[0];
    if (type.shape[0] != *first) return false;
    type.shape[0] = extent;
    changed.operands[i] = context.Intern(type);
  }
  const absl::StatusOr<Graph> call = CallOf(rules, changed);
  if (!call.ok()) return false;
  for (const ShapeGuard& guard : call->guards()) {
    if (Mentions(guard, kExtentName)) return false;
  }
  const absl::StatusOr<Graph> expanded = Expand(*call, rules);
  if (!expanded.ok()) return false;
  const auto results = ParallelOutputs(*expanded, extent);
  if (!results || results->size() != batched_results.size()) return false;
  for (size_t i = 0; i < results->size(); ++i) {
    if ((*results)[i] != (batched_results[i] ? 0 : -1)) return false;
  }
  return true;
}

}  // namespace cleave
