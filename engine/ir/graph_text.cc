#include "engine/ir/graph_text.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engine/ir/text_syntax.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_text::IsName;
using internal_text::IsReserved;

namespace {

std::string PrintName(absl::string_view name) {
  if (IsName(name)) return std::string(name);
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(name), "\"");
}

std::string PrintReal(const Exact& value) {
  std::string text = value.ToString();
  // An integer gets a point, which tells it from a dim.
  const bool digits =
      std::all_of(text.begin() + (text[0] == '-' ? 1 : 0), text.end(),
                  [](char c) { return absl::ascii_isdigit(c); });
  if (digits) absl::StrAppend(&text, ".0");
  return text;
}

std::string PrintTypes(const std::vector<TensorType>& types) {
  return absl::StrJoin(types, ", ",
                       [](std::string* out, const TensorType& type) {
                         absl::StrAppend(out, type.ToString());
                       });
}

absl::string_view Symbol(CompareOp op) {
  switch (op) {
    case CompareOp::kEq:
      return "==";
    case CompareOp::kNe:
      return "!=";
    case CompareOp::kLt:
      return "<";
    case CompareOp::kLe:
      return "<=";
    case CompareOp::kGt:
      return ">";
    case CompareOp::kGe:
      return ">=";
  }
  CLEAVE_CHECK(false) << "no such comparison";
}

class Printer {
 public:
  Printer(const Graph& graph, const PrintOptions& options)
      : graph_(graph), options_(options), names_(graph.size()) {}

  std::string Print() {
    NameNodes();
    std::string out = "graph (";
    absl::string_view separator = "";
    for (const NamedValue& input : graph_.inputs()) {
      absl::StrAppend(&out, separator, names_[input.value.id], ": ",
                      PrintTypes(graph_.types(input.value)));
      separator = ", ";
    }
    absl::StrAppend(&out, ") -> (");
    separator = "";
    for (const NamedValue& output : graph_.outputs()) {
      absl::StrAppend(&out, separator, PrintName(output.name), ": ",
                      PrintTypes(graph_.types(output.value)));
      separator = ", ";
    }
    absl::StrAppend(&out, ") {\n");
    for (uint32_t id = 0; id < graph_.size(); ++id) PrintNode(Value{id}, &out);
    PrintGuards(&out);
    absl::StrAppend(&out, "  return");
    separator = " ";
    for (const NamedValue& output : graph_.outputs()) {
      absl::StrAppend(&out, separator, PrintName(output.name), " = ",
                      names_[output.value.id]);
      separator = ", ";
    }
    absl::StrAppend(&out, "\n}\n");
    return out;
  }

 private:
  void NameNodes() {
    for (const NamedValue& input : graph_.inputs()) {
      names_[input.value.id] = absl::StrCat("%", PrintName(input.name));
    }
    int64_t number = 0;
    for (std::string& name : names_) {
      if (name.empty()) name = absl::StrCat("%", ++number);
    }
  }

  void PrintNode(Value v, std::string* out) {
    const Node& node = graph_.node(v);
    if (node.op == ToOpId(Primitive::kInput)) return;
    absl::StrAppend(out, "  ", names_[v.id], ": ", PrintTypes(graph_.types(v)),
                    " = ", PrintName(graph_.context()->op_name(node.op)), "(");
    absl::string_view separator = "";
    for (Value operand : graph_.operands(v)) {
      absl::StrAppend(out, separator, names_[operand.id]);
      separator = ", ";
    }
    for (const auto& [name, value] : graph_.attributes(v).values()) {
      // A region's lines stand deeper than the node that owns it.
      absl::StrAppend(
          out, separator, PrintName(name), ": ",
          absl::StrReplaceAll(PrintAttribute(value), {{"\n", "\n  "}}));
      separator = ", ";
    }
    absl::StrAppend(out, ")");
    if (options_.provenance && node.provenance != 0) {
      const Provenance& p = graph_.context()->provenance(node.provenance);
      absl::StrAppend(out, "  // ", p.rule);
      if (!p.file.empty()) absl::StrAppend(out, ", ", p.file, ":", p.line);
    }
    absl::StrAppend(out, "\n");
  }

  void PrintGuards(std::string* out) {
    std::vector<std::string> lines;
    for (const ShapeGuard& guard : graph_.guards()) {
      lines.push_back(absl::StrCat("  guard ", PrintGuard(guard), "\n"));
    }
    std::sort(lines.begin(), lines.end());
    for (const std::string& line : lines) absl::StrAppend(out, line);
  }

  const Graph& graph_;
  const PrintOptions& options_;
  std::vector<std::string> names_;
};

}  // namespace

namespace internal_text {

bool IsName(absl::string_view text) {
  return !text.empty() && (absl::ascii_isalpha(text[0]) || text[0] == '_') &&
         std::all_of(text.begin(), text.end(), IsNameCharacter);
}

bool IsReserved(absl::string_view text) {
  for (absl::string_view word :
       {"none", "true", "false", "inf", "nan", "dim", "graph"}) {
    if (text == word) return true;
  }
  return ParseDType(text).ok();
}

}  // namespace internal_text

std::string PrintGuard(const ShapeGuard& guard) {
  return absl::StrCat(guard.lhs.ToString(), " ", Symbol(guard.op), " ",
                      guard.rhs.ToString(), ": \"",
                      absl::Utf8SafeCHexEscape(guard.why), "\"");
}

std::string PrintAttribute(const StaticValue& value) {
  switch (value.kind()) {
    case StaticValue::Kind::kNone:
      return "none";
    case StaticValue::Kind::kBool:
      return value.AsBool() ? "true" : "false";
    case StaticValue::Kind::kInt: {
      const std::string text = value.AsDim().ToString();
      // Variables named like another value, and -inf, as a Dim's text.
      if (IsReserved(text) || text == "-inf") {
        return absl::StrCat("dim(", text, ")");
      }
      return text;
    }
    case StaticValue::Kind::kReal:
      return PrintReal(value.AsReal());
    case StaticValue::Kind::kString:
      return absl::StrCat("\"", absl::Utf8SafeCHexEscape(value.AsString()),
                          "\"");
    case StaticValue::Kind::kDType:
      return std::string(DTypeName(value.AsDType()));
    case StaticValue::Kind::kList:
      return absl::StrCat(
          "[",
          absl::StrJoin(value.AsList(), ", ",
                        [](std::string* out, const StaticValue& element) {
                          absl::StrAppend(out, PrintAttribute(element));
                        }),
          "]");
    case StaticValue::Kind::kRecord: {
      std::string out = "(";
      absl::string_view separator = "";
      for (const auto& [name, field] : value.AsRecord()) {
        absl::StrAppend(&out, separator, PrintName(name), " = ",
                        PrintAttribute(field));
        separator = ", ";
      }
      absl::StrAppend(&out, ")");
      return out;
    }
    case StaticValue::Kind::kRegion: {
      const Region& region = value.AsRegion();
      CLEAVE_CHECK(region.graph != nullptr) << "a region without a graph";
      std::string text = PrintGraph(*region.graph);
      text.pop_back();  // the last line's end
      return text;
    }
  }
  CLEAVE_CHECK(false) << "a static value of no kind";
}

std::string PrintGraph(const Graph& graph, const PrintOptions& options) {
  return Printer(graph, options).Print();
}

absl::StatusOr<Region> BuildRegion(GraphBuilder builder,
                                   std::vector<NamedValue> outputs) {
  CLEAVE_ASSIGN_OR_RETURN(Graph graph,
                          std::move(builder).Build(std::move(outputs)));
  return MakeRegion(std::move(graph));
}

Region MakeRegion(Graph graph) {
  Region region;
  region.text = PrintGraph(graph);
  graph.context_.StopOwning();
  region.graph = std::make_shared<const Graph>(std::move(graph));
  return region;
}

}  // namespace cleave
