#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/codegen/fusion.h"
#include "engine/ir/map_dims.h"
#include "ops/check.h"

namespace cleave {
namespace {

class Extractor {
 public:
  Extractor(const Graph& graph, const FusionGroup& group,
            const ExtractOptions& options)
      : graph_(graph),
        group_(group),
        options_(options),
        builder_(graph.context()),
        members_(group.nodes.begin(), group.nodes.end()) {}

  ExtractedGroup Extract() {
    std::vector<NamedValue> outputs;
    for (const Value output : group_.outputs) {
      const Value source = Reshaped(output);
      // Memory has no shape.
      const bool stored = HasCode(group_.kind) && members_.count(source) > 0;
      outputs.push_back(
          {absl::StrCat("y", outputs.size()), Copy(stored ? source : output)});
    }
    result_.graph = *std::move(builder_).Build(std::move(outputs));
    return std::move(result_);
  }

 private:
  // A number, or one of the group's variables. A group without code keeps the
  // dims of the graph, since its regions name them, too.
  Dim Rename(const Dim& dim) {
    if (!HasCode(group_.kind)) return dim;
    const auto number = dim.Value();
    if (number.has_value() && !(options_.generalize_extents && *number > 1)) {
      return dim;
    }
    const std::string text = dim.ToString();
    auto [it, inserted] = names_.try_emplace(text);
    if (inserted) {
      it->second = Dim::Variable(absl::StrCat("d", result_.dims.size()));
      result_.dims.push_back(dim);
    }
    return it->second;
  }

  Shape Rename(const Shape& shape) {
    Shape renamed;
    for (const Dim& dim : shape) renamed.push_back(Rename(dim));
    return renamed;
  }

  TypeId RenameTypes(Value v) {
    std::vector<TensorType> types = graph_.types(v);
    for (TensorType& type : types) type.shape = Rename(type.shape);
    return builder_.context()->Intern(types);
  }

  AttributesId RenameAttributes(Value v) {
    if (!HasCode(group_.kind)) {
      return builder_.context()->Intern(graph_.attributes(v));
    }
    const auto renamed = internal_ir::MapDims(
        graph_.attributes(v),
        [&](const Dim& dim) -> absl::StatusOr<Dim> { return Rename(dim); });
    CLEAVE_CHECK(renamed.ok());
    return builder_.context()->Intern(*renamed);
  }

  // The value that `v` is a reshape of, with the same elements in the same
  // order. Reshapes outside the group are seen through.
  Value Reshaped(Value v) const {
    while (members_.count(v) == 0 &&
           ToPrimitive(graph_.node(v).op) == Primitive::kReshape) {
      v = graph_.operands(v)[0];
    }
    return v;
  }

  bool IsInside(Value v) const {
    if (members_.count(v) > 0) return true;
    return IsMovement(graph_, v);
  }

  Value Copy(Value v) {
    const auto known = copies_.find(v);
    if (known != copies_.end()) return known->second;
    // Depth first without recursion: graphs may be deep.
    std::vector<Value> stack = {v};
    while (!stack.empty()) {
      const Value at = stack.back();
      if (copies_.count(at) > 0) {
        stack.pop_back();
        continue;
      }
      const Value source = Reshaped(at);
      if (!IsInside(source)) {
        copies_[at] = Input(at, source);
        stack.pop_back();
        continue;
      }
      bool ready = true;
      for (const Value operand : graph_.operands(at)) {
        if (copies_.count(operand) > 0) continue;
        stack.push_back(operand);
        ready = false;
      }
      if (!ready) continue;
      std::vector<Value> operands;
      for (const Value operand : graph_.operands(at)) {
        operands.push_back(copies_.at(operand));
      }
      copies_[at] = builder_.AddTyped(graph_.node(at).op, RenameAttributes(at),
                                      RenameTypes(at), operands,
                                      graph_.node(at).provenance);
      stack.pop_back();
    }
    return copies_.at(v);
  }

  // `source` in the shape that `at` reshapes it to.
  Value Input(Value at, Value source) {
    const auto key = std::make_pair(source, graph_.type(at).ToString());
    const auto known = inputs_.find(key);
    if (known != inputs_.end()) return known->second;
    TensorType type = graph_.type(at);
    result_.inputs.push_back(source);
    result_.input_shapes.push_back(type.shape);
    type.shape = Rename(type.shape);
    const Value input =
        builder_.Input(absl::StrCat("x", result_.inputs.size() - 1), type);
    inputs_[key] = input;
    return input;
  }

  const Graph& graph_;
  const FusionGroup& group_;
  const ExtractOptions options_;
  GraphBuilder builder_;
  const std::set<Value> members_;
  std::map<Value, Value> copies_;
  std::map<std::pair<Value, std::string>, Value> inputs_;
  std::map<std::string, Dim> names_;
  ExtractedGroup result_;
};

}  // namespace

ExtractedGroup ExtractGroup(const Graph& graph, const FusionGroup& group,
                            const ExtractOptions& options) {
  return Extractor(graph, group, options).Extract();
}

}  // namespace cleave
