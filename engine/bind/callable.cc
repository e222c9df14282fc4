// Callable: one form for ops, fns, and the hosts' declarations.

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/bind/library.h"

namespace cleave {
namespace {

ExprPtr MakeExpr(ExprKind kind, absl::string_view text, SourceRange range) {
  auto expr = std::make_shared<Expr>();
  expr->kind = kind;
  expr->text = std::string(text);
  expr->range = range;
  return expr;
}

// The dtype of a ScalarType: `long`, or its number, which schemas are printed
// with (c10/core/ScalarType.h). Empty for those that there is no dtype for.
absl::string_view DTypeOfScalarType(absl::string_view text) {
  static constexpr struct {
    absl::string_view name;
    absl::string_view number;
    absl::string_view dtype;
  } kScalarTypes[] = {
      {"byte", "0", "u8"},          {"char", "1", "i8"},
      {"short", "2", "i16"},        {"int", "3", "i32"},
      {"long", "4", "i64"},         {"half", "5", "f16"},
      {"float", "6", "f32"},        {"double", "7", "f64"},
      {"complexfloat", "9", "c64"}, {"complexdouble", "10", "c128"},
      {"bool", "11", "bool"},       {"bfloat16", "15", "bf16"},
      {"uint16", "27", "u16"},      {"uint32", "28", "u32"},
      {"uint64", "29", "u64"},
  };
  for (const auto& type : kScalarTypes) {
    if (absl::EqualsIgnoreCase(text, type.name) || text == type.number) {
      return type.dtype;
    }
  }
  return "";
}

// A default as PyTorch writes it: `None`, `1e-05`, `True`, `'none'`, `[0, 1]`,
// `Mean`. Null for None and for what is only an option of storage.
ExprPtr AtenDefault(absl::string_view text, absl::string_view type,
                    SourceRange range) {
  text = absl::StripAsciiWhitespace(text);
  if (text == "None") return nullptr;
  if (text == "True" || text == "False") {
    return MakeExpr(ExprKind::kName, text == "True" ? "true" : "false", range);
  }
  if (type == "ScalarType") {
    const absl::string_view dtype = DTypeOfScalarType(text);
    if (!dtype.empty()) return MakeExpr(ExprKind::kName, dtype, range);
  }
  // The numbers of at::Reduction.
  if (text == "Mean") return MakeExpr(ExprKind::kNumber, "1", range);
  if (text == "Sum") return MakeExpr(ExprKind::kNumber, "2", range);
  if (absl::StartsWith(text, "'") || absl::StartsWith(text, "\"")) {
    return MakeExpr(ExprKind::kString, text.substr(1, text.size() - 2), range);
  }
  if (absl::StartsWith(text, "[")) {
    auto list = std::make_shared<Expr>();
    list->kind = ExprKind::kList;
    list->range = range;
    text = absl::StripAsciiWhitespace(text.substr(1, text.size() - 2));
    if (!text.empty()) {
      for (absl::string_view element : absl::StrSplit(text, ',')) {
        list->children.push_back(AtenDefault(element, type, range));
      }
    }
    return list;
  }
  if (absl::StartsWith(text, "-")) {
    auto negative = std::make_shared<Expr>();
    negative->kind = ExprKind::kUnary;
    negative->text = "-";
    negative->range = range;
    negative->children.push_back(AtenDefault(text.substr(1), type, range));
    return negative;
  }
  double number = 0;
  if (absl::SimpleAtod(text, &number) && absl::ascii_isdigit(text[0])) {
    return MakeExpr(ExprKind::kNumber, text, range);
  }
  if (text == "inf" || text == "nan") {
    return MakeExpr(ExprKind::kName, text, range);
  }
  return MakeExpr(ExprKind::kString, text, range);
}

// The attribute type of a schema's; empty for tensors.
std::string AtenAttributeType(absl::string_view base) {
  if (base == "int" || base == "SymInt") return "int";
  if (base == "float") return "real";
  if (base == "bool") return "bool";
  if (base == "Scalar") return "scalar";
  if (base == "ScalarType") return "dtype";
  if (base == "str" || base == "Layout" || base == "Device" ||
      base == "MemoryFormat" || base == "Generator") {
    return "str";
  }
  return "";
}

void AddAtenArguments(const Item& item, std::vector<Diagnostic>* diagnostics,
                      Callable* callable) {
  for (const AtenArgument& argument : item.aten_arguments) {
    // Tensor(a!)?[], SymInt[2]?: base, list, optional parts.
    absl::string_view type = argument.type;
    bool outer_optional = absl::ConsumeSuffix(&type, "?");
    bool list = false;
    absl::string_view length;
    if (absl::EndsWith(type, "]")) {
      const size_t open = type.rfind('[');
      length = type.substr(open + 1, type.size() - open - 2);
      type = type.substr(0, open);
      list = true;
    }
    const bool inner_optional = list && absl::ConsumeSuffix(&type, "?");
    const size_t alias = type.find('(');
    const absl::string_view base = type.substr(0, alias);
    if (!argument.keyword_only) callable->positional.push_back(argument.name);
    if (base == "Tensor") {
      InputDecl input;
      input.name = argument.name;
      if (list) input.variadic_index = "i";
      input.optional = outer_optional || inner_optional;
      input.range = argument.range;
      input.type.range = argument.range;
      callable->inputs.push_back(std::move(input));
      continue;
    }
    AttributeDecl attribute;
    attribute.name = argument.name;
    attribute.type = AtenAttributeType(base);
    if (attribute.type.empty()) {
      diagnostics->push_back({DiagnosticKind::kType,
                              absl::StrCat("`", argument.type,
                                           "` is no type of PyTorch's schemas "
                                           "that is supported"),
                              argument.range, "", ""});
      continue;
    }
    attribute.list = list;
    if (list && !length.empty()) {
      attribute.list_length =
          MakeExpr(ExprKind::kNumber, length, argument.range);
    }
    attribute.optional = outer_optional;
    if (argument.default_text.has_value()) {
      attribute.default_value =
          AtenDefault(*argument.default_text, base, argument.range);
    }
    attribute.range = argument.range;
    callable->attributes.push_back(std::move(attribute));
  }
  for (size_t i = 0; i < item.aten_results.size(); ++i) {
    ResultDecl result;
    result.name = item.aten_results[i].name;
    if (result.name.empty() && item.aten_results.size() > 1) {
      result.name = absl::StrCat("y", i);
    }
    result.range = item.aten_results[i].range;
    callable->results.push_back(std::move(result));
  }
  callable->has_result_list = item.aten_results.size() == 1 &&
                              item.mutates.empty() &&
                              absl::EndsWith(item.aten_results[0].type, "[]");
}

}  // namespace

std::string ResultName(const Callable& callable, size_t i) {
  return callable.has_result_list ? absl::StrCat("y", i)
                                  : callable.results[i].name;
}

Callable MakeCallable(const Item& item, const Source& source,
                      std::vector<Diagnostic>* diagnostics) {
  Callable callable;
  callable.name = CallableName(item);
  callable.item = &item;
  callable.source = &source;
  if (item.kind == ItemKind::kAten) {
    callable.has_result_types = false;
    AddAtenArguments(item, diagnostics, &callable);
  } else {
    callable.has_result_types = item.kind != ItemKind::kOnnx;
    callable.inputs = item.inputs;
    callable.attributes = item.attributes;
    callable.results = item.results;
    for (const InputDecl& input : item.inputs) {
      callable.positional.push_back(input.name);
    }
  }
  for (ResultDecl& result : callable.results) {
    if (result.name.empty()) result.name = "y";
  }
  for (const Equation& mutates : item.mutates) {
    ResultDecl result;
    result.name = mutates.name;
    result.range = mutates.range;
    callable.results.push_back(std::move(result));
  }
  return callable;
}

}  // namespace cleave
