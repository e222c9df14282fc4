// generate_core_ops HEADER SOURCE TABLE FILE.rules...: writes core_ops.h,
// core_ops.cc and core_op_table.cc: a C++ function for each op that the rule
// files declare, and each primitive, with the parameters that its declaration
// has, in that order. Parameters have defaults as far as all that follow do.
//
// An op or primitive with no function stands in one list below, with its
// reason; a name in it that could have one is an error, as is one that has none
// and is not in it.

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "engine/lang/ast.h"
#include "engine/lang/diagnostic.h"
#include "engine/lang/parser.h"
#include "engine/lang/source.h"
#include "ops/primitive.h"

namespace cleave::functional {
namespace {

// No function, and why.
const std::map<std::string, std::string>& WithoutFunctions() {
  static const auto* const reasons = new std::map<std::string, std::string>{
      {"input", "TraceScope::Input makes inputs"},
      {"constant", "Full makes constants"},
      {"extent", "a Dim is a number among tensors"},
      {"iota", "Arange makes it"},
      {"result", "each result is a tensor of its own"},
      {"scan", "its body is a graph: CallGraph runs graphs that have it"},
      {"cond", "its branches are graphs: CallGraph runs graphs that have it"},
      {"while", "its body is a graph: CallGraph runs graphs that have it"},
  };
  return *reasons;
}

// Names that C++ or this namespace takes otherwise.
const std::map<std::string, std::string>& Renamed() {
  static const auto* const names = new std::map<std::string, std::string>{
      {"index", "IndexBy"},
  };
  return *names;
}

struct Parameter {
  std::string name;
  std::string type;      // as it is taken: `const Dim&`
  std::string held;      // `Dim`
  std::string fallback;  // the default as C++; empty if there is none
};

struct Input {
  std::string name;
  bool optional = false;
  bool list = false;
  bool optional_elements = false;
  bool is_static = false;
};

struct Result {
  std::string name;
  bool optional = false;
};

struct Op {
  std::string name;
  std::string function;
  bool is_primitive = false;
  std::vector<std::string> docs;
  std::vector<Input> inputs;
  std::vector<Parameter> attributes;
  std::vector<Result> results;
};

// `max_pool2d_with_indices` becomes MaxPool2dWithIndices.
std::string CamelCase(const std::string& name) {
  const auto renamed = Renamed().find(name);
  if (renamed != Renamed().end()) return renamed->second;
  std::string result;
  for (const absl::string_view word : absl::StrSplit(name, '_')) {
    std::string part(word);
    if (!part.empty()) part[0] = absl::ascii_toupper(part[0]);
    result += part;
  }
  return result;
}

// A parameter's name in C++.
std::string SafeName(const std::string& name) {
  static const auto* const reserved = new std::set<std::string>{
      "and", "or", "not", "xor", "default", "register", "switch", "case"};
  return reserved->count(name) > 0 ? name + "_" : name;
}

// The C++ type of an attribute; nullopt for what has none.
std::optional<std::string> TypeOf(const std::string& type, bool list) {
  static const auto* const types = new std::map<std::string, std::string>{
      {"int", "Dim"},     {"dim", "Dim"},
      {"axis", "Dim"},    {"axes", "std::vector<Dim>"},
      {"real", "Number"}, {"scalar", "Number"},
      {"bool", "bool"},   {"str", "absl::string_view"},
      {"dtype", "DType"}, {"enum", "absl::string_view"},
  };
  const auto found = types->find(type);
  if (found == types->end()) return std::nullopt;
  if (!list) return found->second;
  return absl::StrCat("std::vector<", found->second, ">");
}

// A literal default as C++; nullopt for one that is computed.
std::optional<std::string> Literal(const std::string& type, bool list,
                                   const std::string& text) {
  if (list || type == "axes") return std::nullopt;
  const bool number =
      !text.empty() &&
      text.find_first_not_of("-0123456789.e") == std::string::npos;
  const bool integer = number && text.find_first_of(".e") == std::string::npos;
  if (type == "int" || type == "axis" || type == "dim") {
    if (integer) return text;
  } else if (type == "real" || type == "scalar") {
    if (integer) return text;
    if (number) return absl::StrCat("Number(\"", text, "\")");
  } else if (type == "bool") {
    if (text == "true" || text == "false") return text;
  } else if (type == "enum" || type == "str") {
    // A string of a rule is a literal of C++, too; enum values, and the strings
    // of primitives, are bare.
    const bool quoted = !text.empty() && text.front() == '"';
    return quoted ? text : absl::StrCat("\"", text, "\"");
  }
  return std::nullopt;
}

Parameter MakeParameter(const std::string& name, const std::string& type,
                        bool list, bool optional,
                        const std::optional<std::string>& fallback) {
  Parameter parameter;
  parameter.name = name;
  std::string held = *TypeOf(type, list);
  const std::optional<std::string> literal =
      fallback.has_value() ? Literal(type, list, *fallback) : std::nullopt;
  if (literal.has_value()) {
    parameter.fallback = *literal;
  } else if (optional || fallback.has_value()) {
    held = absl::StrCat("std::optional<", held, ">");
    parameter.fallback = "std::nullopt";
  }
  const bool by_value =
      held == "bool" || held == "DType" || held == "absl::string_view";
  parameter.type = by_value ? held : absl::StrCat("const ", held, "&");
  parameter.held = std::move(held);
  return parameter;
}

// The op of an item; a reason if it can have no function.
std::optional<std::string> FromItem(const Item& item, Op* op) {
  op->name = item.name;
  op->function = CamelCase(item.name);
  op->docs = item.docs;
  for (const InputDecl& input : item.inputs) {
    const bool list = !input.variadic_index.empty();
    op->inputs.push_back({input.name, input.optional && !list, list,
                          list && input.optional, input.is_static});
  }
  for (const AttributeDecl& attribute : item.attributes) {
    if (!TypeOf(attribute.type, attribute.list).has_value()) {
      return absl::StrCat("attribute ", attribute.name, " is of type ",
                          attribute.type);
    }
    std::optional<std::string> fallback;
    if (attribute.default_value != nullptr) {
      fallback = PrintExpr(*attribute.default_value);
    }
    op->attributes.push_back(MakeParameter(attribute.name, attribute.type,
                                           attribute.list, attribute.optional,
                                           fallback));
  }
  for (const ResultDecl& result : item.results) {
    op->results.push_back(
        {result.name.empty() ? "y" : result.name, result.condition != nullptr});
  }
  if (op->results.empty()) return "it declares no results";
  return std::nullopt;
}

Parameter FromAttribute(const PrimitiveAttribute& attribute) {
  std::string type(attribute.type);
  const bool list = absl::EndsWith(type, "[]");
  if (list) type.resize(type.size() - 2);
  return MakeParameter(std::string(attribute.name), type, list,
                       attribute.may_lack,
                       attribute.fallback.empty()
                           ? std::nullopt
                           : std::optional<std::string>(attribute.fallback));
}

std::optional<std::string> FromPrimitive(Primitive primitive, Op* op) {
  op->name = std::string(PrimitiveName(primitive));
  op->function = CamelCase(op->name);
  op->is_primitive = true;
  switch (ClassOf(primitive)) {
    case PrimitiveClass::kLeaf:
    case PrimitiveClass::kProjection:
    case PrimitiveClass::kControl:
      return "it is no function of tensors";
    default:
      break;
  }
  for (const PrimitiveAttribute& attribute : AttributesOf(primitive)) {
    if (primitive == Primitive::kNonzero) continue;  // the size is found
    op->attributes.push_back(FromAttribute(attribute));
  }
  for (const PrimitiveOperand& operand : OperandsOf(primitive)) {
    Input input;
    input.list = absl::EndsWith(operand.name, "..");
    input.name = std::string(absl::StripSuffix(operand.name, ".."));
    op->inputs.push_back(std::move(input));
  }
  if (op->name == "sort") {
    op->results = {{"values"}, {"indices"}};
  } else {
    op->results = {{"y"}};
  }
  return std::nullopt;
}

std::string InputType(const Input& input) {
  if (input.is_static) return "const StaticValue&";
  if (input.list) {
    return input.optional_elements ? "const std::vector<std::optional<Tensor>>&"
                                   : "const std::vector<Tensor>&";
  }
  return input.optional ? "const std::optional<Tensor>&" : "const Tensor&";
}

// All parameters, those of a tail that may be left out with their defaults.
std::string Parameters(const Op& op, bool with_defaults) {
  struct Written {
    std::string text;
    std::string fallback;
  };
  std::vector<Written> all;
  for (const Input& input : op.inputs) {
    all.push_back({absl::StrCat(InputType(input), " ", SafeName(input.name)),
                   input.optional ? "std::nullopt" : ""});
  }
  for (const Parameter& attribute : op.attributes) {
    all.push_back({absl::StrCat(attribute.type, " ", SafeName(attribute.name)),
                   attribute.fallback});
  }
  for (size_t i = all.size(); with_defaults && i-- > 0;) {
    if (all[i].fallback.empty()) break;
    absl::StrAppend(&all[i].text, " = ", all[i].fallback);
  }
  return absl::StrJoin(all, ",\n    ", [](std::string* out, const Written& w) {
    absl::StrAppend(out, w.text);
  });
}

std::string ResultType(const Op& op) {
  return op.results.size() == 1 ? "Tensor"
                                : absl::StrCat(op.function, "Result");
}

void WriteHeader(const std::vector<Op>& ops, std::ostream& out) {
  out << "// The ops of core and the primitives as functions of tensors. Made\n"
         "// by generate_core_ops from the rule files: an op that is declared\n"
         "// there stands here.\n"
         "//\n"
         "// Parameters are those of the declaration, in its order: inputs,\n"
         "// then attributes. An optional one that is not given is left to "
         "the\n"
         "// rule. Integers and sizes are Dims (dim_scope.h), enums strings.\n"
         "// A mistake gives tensors that carry it; see Call for what may be\n"
         "// wrong. Primitives that are pointwise broadcast as operators "
         "do.\n\n"
         "#ifndef CLEAVE_TRANSFORMS_FUNCTIONAL_CORE_OPS_H_\n"
         "#define CLEAVE_TRANSFORMS_FUNCTIONAL_CORE_OPS_H_\n\n"
         "#include <optional>\n"
         "#include <vector>\n\n"
         "#include \"absl/strings/string_view.h\"\n"
         "#include \"ops/dim.h\"\n"
         "#include \"ops/dtype.h\"\n"
         "#include \"ops/static_value.h\"\n"
         "#include \"engine/eager/op_values.h\"\n"
         "#include \"engine/eager/tensor.h\"\n\n"
         "namespace cleave::functional {\n";
  for (const Op& op : ops) {
    out << "\n";
    if (op.is_primitive) {
      out << "// The primitive " << op.name << " (ops/primitive.h).\n";
    }
    for (const std::string& line : op.docs) {
      out << "//" << (line.empty() || line[0] == ' ' ? "" : " ") << line
          << "\n";
    }
    if (op.results.size() > 1) {
      out << "struct " << ResultType(op) << " {\n";
      for (const Result& result : op.results) {
        out << "  " << (result.optional ? "std::optional<Tensor> " : "Tensor ")
            << SafeName(result.name) << ";\n";
      }
      out << "};\n";
    }
    out << ResultType(op) << " " << op.function << "(\n    "
        << Parameters(op, true) << ");\n";
  }
  out << "\n}  // namespace cleave::functional\n\n"
         "#endif  // CLEAVE_TRANSFORMS_FUNCTIONAL_CORE_OPS_H_\n";
}

void WriteSource(const std::vector<Op>& ops, std::ostream& out) {
  out << "// Made by generate_core_ops.\n\n"
         "#include \"engine/eager/core_ops.h\"\n\n"
         "namespace cleave::functional {\n";
  for (const Op& op : ops) {
    out << "\n"
        << ResultType(op) << " " << op.function << "(\n    "
        << Parameters(op, false) << ") {\n  Attributes attributes_;\n";
    for (const Parameter& attribute : op.attributes) {
      out << "  internal_ops::Set(\"" << attribute.name << "\", "
          << SafeName(attribute.name) << ", &attributes_);\n";
    }
    std::vector<std::string> inputs;
    for (const Input& input : op.inputs) {
      inputs.push_back(
          absl::StrCat("CallArgument(", SafeName(input.name), ")"));
    }
    const std::string arguments = absl::StrJoin(inputs, ", ");
    if (op.results.size() == 1) {
      out << "  return CallOne(\"" << op.name << "\", {" << arguments
          << "}, attributes_);\n}\n";
      continue;
    }
    out << "  std::vector<std::optional<Tensor>> results_ =\n"
           "      internal_ops::CallAll(\""
        << op.name << "\", " << op.results.size() << ", {" << arguments
        << "}, attributes_);\n  return {";
    for (size_t i = 0; i < op.results.size(); ++i) {
      const std::string result = absl::StrCat("results_[", i, "]");
      out << (i > 0 ? ", " : "")
          << (op.results[i].optional
                  ? result
                  : absl::StrCat("internal_ops::Always(", result, ")"));
    }
    out << "};\n}\n";
  }
  out << "\n}  // namespace cleave::functional\n";
}

void WriteTable(const std::vector<Op>& ops, std::ostream& out) {
  out << "// Made by generate_core_ops.\n\n"
         "#include \"engine/eager/core_op_table.h\"\n\n"
         "#include \"engine/eager/core_ops.h\"\n\n"
         "namespace cleave::functional {\n\n"
         "const std::vector<GeneratedOp>& GeneratedOps() {\n"
         "  using Results = std::vector<std::optional<Tensor>>;\n"
         "  using Arguments = std::vector<CallArgument>;\n"
         "  using internal_ops::Taker;\n"
         "  static const auto* const ops = new std::vector<GeneratedOp>{\n";
  for (const Op& op : ops) {
    out << "      {\"" << op.name << "\", \"" << op.function << "\", "
        << (op.is_primitive ? "true" : "false")
        << ",\n       [](const Arguments& x, const Attributes& a) -> Results "
           "{\n         const Taker t(x, a);\n         const auto r = "
        << op.function << "(";
    std::vector<std::string> given;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const Input& input = op.inputs[i];
      given.push_back(absl::StrCat("t.",
                                   input.is_static           ? "Static"
                                   : input.optional_elements ? "List"
                                   : input.list              ? "FullList"
                                   : input.optional          ? "OptionalInput"
                                                             : "Input",
                                   "(", i, ")"));
    }
    for (const Parameter& attribute : op.attributes) {
      given.push_back(absl::StrCat(
          "t.Get<", attribute.held, ">(\"", attribute.name, "\"",
          attribute.fallback.empty() ? "" : ", ", attribute.fallback, ")"));
    }
    out << absl::StrJoin(given, ",\n             ") << ");\n         return {";
    if (op.results.size() == 1) {
      out << "r";
    } else {
      out << absl::StrJoin(op.results, ", ",
                           [](std::string* text, const Result& result) {
                             absl::StrAppend(text, "r.", SafeName(result.name));
                           });
    }
    out << "};\n       }},\n";
  }
  out << "  };\n  return *ops;\n}\n\n"
         "const std::vector<OpWithoutFunction>& OpsWithoutFunctions() {\n"
         "  static const auto* const ops = new "
         "std::vector<OpWithoutFunction>{\n";
  for (const auto& [name, why] : WithoutFunctions()) {
    out << "      {\"" << name << "\", \"" << why << "\"},\n";
  }
  out << "  };\n  return *ops;\n}\n\n}  // namespace cleave::functional\n";
}

bool Fail(const std::string& message) {
  std::cerr << "generate_core_ops: " << message << "\n";
  return false;
}

// Adds the op, unless it has no function and that is known.
bool Add(Op op, const std::optional<std::string>& impossible,
         std::vector<Op>* ops) {
  const bool excepted = WithoutFunctions().count(op.name) > 0;
  if (impossible.has_value() && !excepted) {
    return Fail(absl::StrCat(op.name, " can have no function (", *impossible,
                             "), and is not in the list of those"));
  }
  if (!impossible.has_value() && excepted) {
    return Fail(
        absl::StrCat(op.name, " can have a function: take it off the list"));
  }
  if (!excepted) ops->push_back(std::move(op));
  return true;
}

bool Generate(const std::vector<std::string>& arguments) {
  std::vector<Op> ops;
  std::vector<std::string> paths(arguments.begin() + 3, arguments.end());
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    std::ifstream file(path);
    if (!file.good()) return Fail(absl::StrCat("cannot read ", path));
    std::ostringstream text;
    text << file.rdbuf();
    const Source source(path, text.str());
    const ParseResult parsed = ParseRules(source);
    if (!parsed.ok()) {
      return Fail(absl::StrCat("mistakes in ", path, ": cleave check tells"));
    }
    for (const RuleFile::Entry& entry : parsed.file.entries) {
      if (!entry.item.has_value() || entry.item->kind != ItemKind::kOp) {
        continue;
      }
      Op op;
      const std::optional<std::string> impossible = FromItem(*entry.item, &op);
      if (!Add(std::move(op), impossible, &ops)) return false;
    }
  }
  for (int i = 0; i < kNumPrimitives; ++i) {
    Op op;
    const std::optional<std::string> impossible =
        FromPrimitive(static_cast<Primitive>(i), &op);
    if (!Add(std::move(op), impossible, &ops)) return false;
  }
  std::set<std::string> functions;
  for (const Op& op : ops) {
    if (!functions.insert(op.function).second) {
      return Fail(absl::StrCat("two ops are called ", op.function));
    }
  }
  std::ofstream header(arguments[0]), source(arguments[1]), table(arguments[2]);
  WriteHeader(ops, header);
  WriteSource(ops, source);
  WriteTable(ops, table);
  header.close();
  source.close();
  table.close();
  if (!header || !source || !table) return Fail("cannot write the results");
  return true;
}

}  // namespace
}  // namespace cleave::functional

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 4) {
    std::cerr << "usage: generate_core_ops HEADER SOURCE TABLE FILE.rules...\n";
    return 2;
  }
  return cleave::functional::Generate(arguments) ? 0 : 1;
}
