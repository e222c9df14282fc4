#include "engine/ir/graph_dot.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "engine/ir/call_attributes.h"
#include "engine/ir/graph_text.h"
#include "ops/primitive.h"

namespace cleave {
namespace {

// Longer attributes are cut, so that boxes stay boxes, and longer numbers are
// rounded.
constexpr size_t kMaxAttribute = 40;
constexpr size_t kMaxNumber = 10;

std::string NumberText(const StaticValue& value) {
  std::string text = PrintAttribute(value);
  if (text.size() <= kMaxNumber || value.kind() != StaticValue::Kind::kReal) {
    return text;
  }
  return absl::StrFormat("%.5g", value.AsReal().ToDouble());
}

std::string Quoted(absl::string_view text) {
  return absl::StrCat(
      "\"",
      absl::StrReplaceAll(text,
                          {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}),
      "\"");
}

absl::string_view Colour(OpId op) {
  if (!IsPrimitive(op)) return "#f6d5a8";  // calls
  switch (ClassOf(ToPrimitive(op))) {
    case PrimitiveClass::kPointwise:
      return "#d8ead3";
    case PrimitiveClass::kMovement:
    case PrimitiveClass::kProjection:
    case PrimitiveClass::kWindow:
      return "#eeeeee";
    case PrimitiveClass::kReduction:
      return "#cfe2f3";
    case PrimitiveClass::kContraction:
      return "#f4cccc";
    default:
      return "#e3d5f0";
  }
}

class Drawing {
 public:
  Drawing(const Graph& graph, const DotOptions& options)
      : graph_(graph), options_(options), constants_(graph.size()) {
    for (uint32_t id = 0; id < graph.size(); ++id) {
      constants_[id] = ConstantText(Value{id});
    }
  }

  std::string Draw() {
    std::string out =
        "digraph {\n"
        "  graph [fontname=\"sans-serif\", labelloc=t, rankdir=TB, "
        "nodesep=0.25, ranksep=0.35];\n"
        "  node [fontname=\"sans-serif\", fontsize=11, shape=box, "
        "style=\"filled,rounded\", color=\"#555555\", margin=\"0.08,0.04\"];\n"
        "  edge [fontname=\"sans-serif\", fontsize=9, color=\"#555555\", "
        "arrowsize=0.6];\n";
    if (!options_.title.empty()) {
      absl::StrAppend(&out, "  label=", Quoted(options_.title), ";\n");
    }
    for (const NamedValue& input : graph_.inputs()) {
      absl::StrAppend(
          &out, "  n", input.value.id, " [label=",
          Quoted(absl::StrCat(input.name, "\n", TypesText(input.value))),
          End(input.name), "];\n");
    }
    for (uint32_t id = 0; id < graph_.size(); ++id) DrawNode(Value{id}, &out);
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const NamedValue& output = graph_.outputs()[i];
      std::string label = output.name;
      const std::string& constant = constants_[output.value.id];
      if (!constant.empty()) absl::StrAppend(&label, "\n", constant);
      absl::StrAppend(&out, "  out", i, " [label=", Quoted(label),
                      End(output.name), "];\n");
      if (constant.empty()) {
        absl::StrAppend(&out, "  n", output.value.id, " -> out", i, ";\n");
      }
    }
    absl::StrAppend(&out, "}\n");
    return out;
  }

 private:
  std::string TypesText(Value v) const {
    return absl::StrJoin(graph_.types(v), ", ",
                         [](std::string* out, const TensorType& type) {
                           absl::StrAppend(out, type.ToString());
                         });
  }

  // The style of the box of an input or output.
  std::string End(const std::string& name) const {
    return absl::StrCat(
        ", shape=ellipse, fillcolor=",
        options_.emphasized.count(name) > 0 ? "\"#ffe599\"" : "white");
  }

  // The number of a node all of whose elements are that number; empty for
  // others.
  std::string ConstantText(Value v) const {
    const OpId op = graph_.node(v).op;
    if (op == ToOpId(Primitive::kConstant)) {
      return NumberText(graph_.attributes(v).Get("value"));
    }
    if (op == ToOpId(Primitive::kBroadcastInDim) ||
        op == ToOpId(Primitive::kReshape)) {
      return constants_[graph_.operands(v)[0].id];
    }
    return "";
  }

  std::string AttributesText(Value v) const {
    std::string text;
    for (const auto& [name, value] : graph_.attributes(v).values()) {
      // Which operands a call has can be seen; no axes are no news.
      const bool is_empty =
          value.kind() == StaticValue::Kind::kList && value.AsList().empty();
      if (name == kLayout || is_empty) continue;
      std::string printed =
          value.kind() == StaticValue::Kind::kRegion
              ? absl::StrCat(value.AsRegion().graph->size(), " nodes")
              : PrintAttribute(value);
      if (printed.size() > kMaxAttribute) {
        printed = absl::StrCat(printed.substr(0, kMaxAttribute), "..");
      }
      absl::StrAppend(&text, "\n", name, ": ", printed);
    }
    return text;
  }

  void DrawNode(Value v, std::string* out) const {
    const Node& node = graph_.node(v);
    if (node.op == ToOpId(Primitive::kInput) || !constants_[v.id].empty()) {
      return;
    }
    const absl::Span<const Value> operands = graph_.operands(v);
    std::string label(graph_.context()->op_name(node.op));
    // Operands that are numbers stand in the box, the others are its edges.
    if (std::any_of(operands.begin(), operands.end(), [&](Value operand) {
          return !constants_[operand.id].empty();
        })) {
      absl::StrAppend(
          &label, "(",
          absl::StrJoin(operands, ", ",
                        [&](std::string* text, Value operand) {
                          const std::string& constant = constants_[operand.id];
                          absl::StrAppend(text,
                                          constant.empty() ? "_" : constant);
                        }),
          ")");
    }
    absl::StrAppend(
        out, "  n", v.id, " [label=",
        Quoted(absl::StrCat(label, AttributesText(v), "\n", TypesText(v))),
        ", fillcolor=\"", Colour(node.op), "\"];\n");
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!constants_[operands[i].id].empty()) continue;
      absl::StrAppend(out, "  n", operands[i].id, " -> n", v.id);
      // Which operand it is, where that cannot be seen otherwise.
      if (operands.size() > 1) absl::StrAppend(out, " [headlabel=\"", i, "\"]");
      absl::StrAppend(out, ";\n");
    }
  }

  const Graph& graph_;
  const DotOptions& options_;
  std::vector<std::string> constants_;  // by node
};

}  // namespace

std::string GraphToDot(const Graph& graph, const DotOptions& options) {
  return Drawing(graph, options).Draw();
}

}  // namespace cleave
