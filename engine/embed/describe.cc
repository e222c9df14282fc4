#include "engine/embed/describe.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/embed/json_text.h"
#include "engine/ir/graph_text.h"
#include "engine/lang/ast.h"
#include "engine/lang/declaration_text.h"
#include "engine/lang/diagnostic.h"
#include "nlohmann/json.hpp"
#include "ops/primitive.h"
#include "ops/status_macros.h"
#include "transforms/report/coverage.h"

namespace cleave::embed {
namespace {

using Json = nlohmann::ordered_json;

absl::string_view KindName(ItemKind kind) {
  switch (kind) {
    case ItemKind::kOp:
      return "op";
    case ItemKind::kAten:
      return "aten";
    case ItemKind::kOnnx:
      return "onnx";
    case ItemKind::kFn:
      return "fn";
    default:
      return "other";
  }
}

constexpr ItemKind kCallableKinds[] = {ItemKind::kOp, ItemKind::kAten,
                                       ItemKind::kOnnx};

std::vector<std::string> PrimitiveNames() {
  std::vector<std::string> names;
  for (int i = 0; i < kNumPrimitives; ++i) {
    const Primitive primitive = static_cast<Primitive>(i);
    if (primitive == Primitive::kInput || primitive == Primitive::kResult) {
      continue;
    }
    names.emplace_back(PrimitiveName(primitive));
  }
  return names;
}

std::string TypeText(const TypeExpr& type) {
  if (type.dtype == nullptr) return "";
  std::string text = PrintExpr(*type.dtype);
  if (!type.has_shape) return text;
  std::vector<std::string> axes;
  for (const AxisExpr& axis : type.axes) {
    axes.push_back(absl::StrCat(axis.is_new ? "new " : "",
                                PrintExpr(*axis.size),
                                axis.at.empty() ? "" : "@", axis.at));
  }
  return absl::StrCat(text, "[", absl::StrJoin(axes, ", "), "]");
}

Json InputsJson(const Item& item) {
  Json inputs = Json::array();
  for (const InputDecl& input : item.inputs) {
    inputs.push_back({{"name", input.name},
                      {"type", TypeText(input.type)},
                      {"optional", input.optional},
                      {"variadic", !input.variadic_index.empty()},
                      {"static", input.is_static}});
  }
  return inputs;
}

Json AttributesJson(const Item& item) {
  Json attributes = Json::array();
  for (const AttributeDecl& attribute : item.attributes) {
    Json json = {
        {"name", attribute.name},
        {"type", absl::StrCat(attribute.type, attribute.list ? "[]" : "")}};
    if (!attribute.enum_values.empty()) json["values"] = attribute.enum_values;
    if (!attribute.axis_of.empty()) json["axis_of"] = attribute.axis_of;
    json["optional"] = attribute.optional;
    json["default"] = attribute.default_value == nullptr
                          ? Json()
                          : Json(PrintExpr(*attribute.default_value));
    json["required"] =
        attribute.default_value == nullptr && !attribute.optional;
    attributes.push_back(std::move(json));
  }
  return attributes;
}

// PyTorch's schema: tensors are inputs, all else is attributes.
void AddAten(const Item& item, Json* json) {
  Json inputs = Json::array();
  Json attributes = Json::array();
  Json order = Json::array();
  bool keyword_only = false;
  for (const AtenArgument& argument : item.aten_arguments) {
    keyword_only |= argument.keyword_only;
    if (absl::StartsWith(argument.type, "Tensor")) {
      const bool variadic = absl::StrContains(argument.type, "[");
      inputs.push_back({{"name", argument.name},
                        {"type", argument.type},
                        {"optional", absl::EndsWith(argument.type, "?")},
                        {"variadic", variadic},
                        {"static", false}});
    } else {
      attributes.push_back({{"name", argument.name},
                            {"type", argument.type},
                            {"optional", absl::EndsWith(argument.type, "?")},
                            {"default", argument.default_text.has_value()
                                            ? Json(*argument.default_text)
                                            : Json()},
                            {"required", !argument.default_text.has_value()}});
    }
    if (!argument.keyword_only) order.push_back(argument.name);
  }
  (*json)["inputs"] = std::move(inputs);
  (*json)["attributes"] = std::move(attributes);
  (*json)["positional"] = std::move(order);
  Json results = Json::array();
  for (const AtenArgument& result : item.aten_results) {
    results.push_back({{"name", result.name}, {"type", result.type}});
  }
  (*json)["results"] = std::move(results);
}

Json CoverageOf(const Coverage& coverage) {
  const char* kind = "not supported";
  if (coverage.kind == Coverage::Kind::kGiven) kind = "given";
  if (coverage.kind == Coverage::Kind::kDerived) kind = "derived";
  if (coverage.kind == Coverage::Kind::kImpossible) kind = "impossible";
  return {{"kind", kind}, {"why", coverage.why}};
}

Json ValueJson(const Graph& graph, const NamedValue& named) {
  const TensorType& type = graph.type(named.value);
  Json shape = Json::array();
  for (const Dim& extent : type.shape) shape.push_back(extent.ToString());
  return {{"name", named.name},
          {"dtype", DTypeName(type.dtype)},
          {"shape", std::move(shape)}};
}

}  // namespace

absl::Status NoSuchName(absl::string_view what, absl::string_view name,
                        const std::vector<std::string>& names) {
  const std::string closest = ClosestName(name, names);
  return absl::NotFoundError(absl::StrCat(
      "there is no ", what, " `", name, "`",
      closest.empty() ? "" : absl::StrCat(" (did you mean `", closest, "`?)")));
}

std::string NamesJson(const RuleSet& rules) {
  Json json;
  for (const ItemKind kind :
       {ItemKind::kOp, ItemKind::kFn, ItemKind::kAten, ItemKind::kOnnx}) {
    json[std::string(KindName(kind))] = rules.Names(kind);
  }
  json["primitive"] = PrimitiveNames();
  return DumpJson(json);
}

absl::StatusOr<std::string> DescribeJson(const RuleSet& rules,
                                         absl::string_view name) {
  const Item* item = rules.Find(name);
  if (item == nullptr) {
    std::vector<std::string> all = rules.Names(ItemKind::kFn);
    for (const ItemKind kind : kCallableKinds) {
      for (std::string& other : rules.Names(kind)) {
        all.push_back(std::move(other));
      }
    }
    return NoSuchName("op or fn", name, all);
  }
  const auto place = [&](const Item& declared, Json* json) {
    const Source& source = rules.SourceOf(declared);
    (*json)["declaration"] = DeclarationText(declared);
    (*json)["file"] = source.name();
    (*json)["line"] = source.PositionOf(declared.range.begin).line;
  };
  Json json = {{"name", name},
               {"kind", KindName(item->kind)},
               {"doc", absl::StrJoin(item->docs, "\n")}};
  place(*item, &json);
  if (item->kind == ItemKind::kAten) {
    AddAten(*item, &json);
  } else {
    json["inputs"] = InputsJson(*item);
    json["attributes"] = AttributesJson(*item);
    Json order = Json::array();
    for (const InputDecl& input : item->inputs) order.push_back(input.name);
    json["positional"] = std::move(order);
    Json results = Json::array();
    for (const ResultDecl& result : item->results) {
      results.push_back({{"name", result.name},
                         {"type", TypeText(result.type)},
                         {"optional", result.condition != nullptr}});
    }
    json["results"] = std::move(results);
  }
  // `-> Tensor[]`: as many results as the body gives.
  json["result_list"] = item->kind == ItemKind::kAten &&
                        item->mutates.empty() && json["results"].size() == 1 &&
                        absl::EndsWith(item->aten_results[0].type, "[]");
  for (const Equation& mutates : item->mutates) {
    json["results"].push_back(
        {{"name", mutates.name}, {"type", "Tensor"}, {"mutated", true}});
  }
  json["overrides"] = Json::array();
  for (const Item* other : rules.Overrides(name)) {
    Json& added = json["overrides"].emplace_back(Json::object());
    place(*other, &added);
  }
  return DumpJson(json);
}

absl::StatusOr<std::string> CoverageJson(const RuleSet& rules,
                                         absl::string_view op) {
  CLEAVE_ASSIGN_OR_RETURN(const OpCoverage coverage,
                          TransformCoverage(rules, op));
  Json json;
  for (const Transform transform : kTransforms) {
    json[std::string(TransformName(transform))] =
        CoverageOf(coverage.of(transform));
  }
  return DumpJson(json);
}

std::string SignatureJson(const Graph& graph) {
  Json json = {{"inputs", Json::array()},
               {"outputs", Json::array()},
               {"guards", Json::array()},
               {"variables", Json::array()}};
  std::set<std::string> variables;
  for (const NamedValue& input : graph.inputs()) {
    json["inputs"].push_back(ValueJson(graph, input));
    for (const Dim& extent : graph.type(input.value).shape) {
      variables.merge(extent.Variables());
    }
  }
  for (const NamedValue& output : graph.outputs()) {
    json["outputs"].push_back(ValueJson(graph, output));
  }
  for (const ShapeGuard& guard : graph.guards()) {
    json["guards"].push_back(PrintGuard(guard));
  }
  for (const std::string& name : variables) json["variables"].push_back(name);
  json["nodes"] = graph.size();
  return DumpJson(json);
}

std::string ReportJson(const RunReport& report) {
  Json json = {{"nanoseconds", report.nanoseconds},
               {"packed_bytes", report.packed_bytes},
               {"temporary_bytes", report.temporary_bytes},
               {"peak_bytes", report.peak_bytes},
               {"bytes_to_device", report.bytes_to_device},
               {"bytes_to_host", report.bytes_to_host},
               {"device_peak_bytes", report.device_peak_bytes},
               {"steps", Json::array()}};
  for (const StepReport& step : report.steps) {
    json["steps"].push_back({{"kind", step.kind},
                             {"device", step.device},
                             {"ops", step.ops},
                             {"why", step.why},
                             {"library", step.library},
                             {"bytes_read", step.bytes_read},
                             {"bytes_written", step.bytes_written},
                             {"nanoseconds", step.nanoseconds}});
  }
  return DumpJson(json);
}

}  // namespace cleave::embed
