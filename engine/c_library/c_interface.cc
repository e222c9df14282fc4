#include "engine/c_library/c_interface.h"

#include <dlfcn.h>

#include <map>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engine/c_library/dim_to_c.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// Whether `name` is a keyword of C11 or of C++17: both may include the header.
bool IsKeyword(const std::string& name) {
  static const auto* const keywords = new std::set<std::string>{
      "alignas",      "alignof",  "and",           "and_eq",
      "asm",          "auto",     "bitand",        "bitor",
      "bool",         "break",    "case",          "catch",
      "char",         "char16_t", "char32_t",      "class",
      "compl",        "const",    "const_cast",    "constexpr",
      "continue",     "decltype", "default",       "delete",
      "do",           "double",   "dynamic_cast",  "else",
      "enum",         "explicit", "export",        "extern",
      "false",        "float",    "for",           "friend",
      "goto",         "if",       "inline",        "int",
      "long",         "mutable",  "namespace",     "new",
      "noexcept",     "not",      "not_eq",        "nullptr",
      "operator",     "or",       "or_eq",         "private",
      "protected",    "public",   "register",      "reinterpret_cast",
      "restrict",     "return",   "short",         "signed",
      "sizeof",       "static",   "static_assert", "static_cast",
      "struct",       "switch",   "template",      "this",
      "thread_local", "throw",    "true",          "try",
      "typedef",      "typeid",   "typename",      "typeof",
      "union",        "unsigned", "using",         "virtual",
      "void",         "volatile", "wchar_t",       "while",
      "xor",          "xor_eq",   "main",          "errno",
      "linux",        "unix"};
  return keywords->count(name) != 0;
}

// Whether libc or libm has a function or a variable of that name.
bool IsOfTheCLibrary(const std::string& name) {
  static void* const libraries[] = {dlopen("libc.so.6", RTLD_LAZY),
                                    dlopen("libm.so.6", RTLD_LAZY)};
  for (void* library : libraries) {
    if (library != nullptr && dlsym(library, name.c_str()) != nullptr) {
      return true;
    }
  }
  return false;
}

// Whether `name` may be one of the driver's, or of a type that C reserves.
bool IsReserved(const std::string& name) {
  return IsKeyword(name) || name[0] == '_' || absl::EndsWith(name, "_t") ||
         absl::StartsWith(name, "cleave_") ||
         absl::StartsWith(name, "CLEAVE_") ||
         ((absl::StartsWith(name, "INT") || absl::StartsWith(name, "UINT")) &&
          absl::StrContains(name, '_'));
}

bool IsIdentifier(const std::string& name) {
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '_') return false;
  }
  return !name.empty() && !absl::ascii_isdigit(name[0]);
}

absl::Status CheckFunctionName(const std::string& name) {
  const auto fail = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", name, "` cannot name a function in C: ", why,
                     "; --name gives it another name"));
  };
  if (!IsIdentifier(name)) return fail("it is no identifier");
  if (IsReserved(name)) return fail("it is reserved");
  for (const std::string& symbol : {name, name + "_error"}) {
    if (IsOfTheCLibrary(symbol)) {
      return fail(absl::StrCat("the C library has a `", symbol, "`"));
    }
  }
  return absl::OkStatus();
}

// Names for parameters, each one once.
class ParameterNames {
 public:
  std::string Take(absl::string_view name) {
    std::string base;
    for (const char c : name) base += absl::ascii_isalnum(c) ? c : '_';
    if (base.empty() || absl::ascii_isdigit(base[0]) || IsReserved(base)) {
      base = absl::StrCat("p_", base);
      if (IsReserved(base)) base += "_";
    }
    std::string result = base;
    for (int i = 2; !used_.insert(result).second; ++i) {
      result = absl::StrCat(base, "_", i);
    }
    return result;
  }

 private:
  std::set<std::string> used_;
};

// Empty where there is none.
std::string ElementType(DType dtype) {
  switch (KindOf(dtype)) {
    case DTypeKind::kBool:
      return "uint8_t";
    case DTypeKind::kInt:
      return absl::StrCat(IsSigned(dtype) ? "int" : "uint", 8 * ByteSize(dtype),
                          "_t");
    case DTypeKind::kFloat:
      return dtype == DType::kF32   ? "float"
             : dtype == DType::kF64 ? "double"
                                    : "uint16_t";
    case DTypeKind::kComplex:
    case DTypeKind::kKey:
      break;
  }
  return "";
}

absl::StatusOr<std::vector<CInterface::Array>> MakeArrays(
    const Graph& graph, const std::vector<NamedValue>& values,
    absl::string_view what, ParameterNames& names) {
  std::vector<CInterface::Array> result;
  for (const NamedValue& value : values) {
    const TensorType& type = graph.type(value.value);
    CInterface::Array array = {names.Take(value.name), value.name,
                               ElementType(type.dtype), type, ""};
    if (array.element.empty()) {
      return absl::UnimplementedError(absl::StrCat(
          "not supported: the ", what, " `", value.name, "` is of dtype ",
          DTypeName(type.dtype), ", which C arrays do not have here"));
    }
    result.push_back(std::move(array));
  }
  return result;
}

void AddDims(const Dim& dim, ParameterNames& names, std::set<std::string>& seen,
             std::vector<CInterface::Dimension>& dims) {
  for (const std::string& variable : dim.Variables()) {
    if (!seen.insert(variable).second) continue;
    dims.push_back({names.Take(variable), variable});
  }
}

}  // namespace

std::string CommentText(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"*/", "* /"}, {"/*", "/ *"}, {"\n", " "}, {"\\", "\\ "}});
}

std::string CInterface::Prototype() const {
  std::vector<std::string> parameters;
  for (const Dimension& dim : dims) {
    parameters.push_back(absl::StrCat("int64_t ", dim.name));
  }
  for (const Array& array : inputs) {
    parameters.push_back(
        absl::StrCat("const ", array.element, " *", array.name));
  }
  for (const Array& array : outputs) {
    parameters.push_back(absl::StrCat(array.element, " *", array.name));
  }
  // In lines of at most 80 characters, behind the parenthesis.
  std::string text = absl::StrCat("int ", function, "(");
  const std::string indent(text.size() < 40 ? text.size() : 4, ' ');
  size_t width = text.size();
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool last = i + 1 == parameters.size();
    const std::string item = absl::StrCat(parameters[i], last ? ")" : ",");
    const size_t needed = item.size() + (i > 0 ? 1 : 0);
    // A semicolon or a brace may follow the last one.
    if (width + needed + (last ? 2 : 0) > 80 && width > indent.size()) {
      absl::StrAppend(&text, "\n", indent, item);
      width = indent.size() + item.size();
      continue;
    }
    absl::StrAppend(&text, i > 0 ? " " : "", item);
    width += needed;
  }
  return text;
}

absl::StatusOr<CInterface> MakeCInterface(const Graph& graph,
                                          const std::string& name) {
  CLEAVE_RETURN_IF_ERROR(CheckFunctionName(name));
  CInterface result;
  result.function = name;
  ParameterNames names;
  CLEAVE_ASSIGN_OR_RETURN(result.inputs,
                          MakeArrays(graph, graph.inputs(), "input", names));
  CLEAVE_ASSIGN_OR_RETURN(result.outputs,
                          MakeArrays(graph, graph.outputs(), "output", names));
  std::set<std::string> seen;
  for (const auto* arrays : {&result.inputs, &result.outputs}) {
    for (const CInterface::Array& array : *arrays) {
      for (const Dim& dim : array.type.shape) {
        AddDims(dim, names, seen, result.dims);
      }
    }
  }
  for (const ShapeGuard& guard : graph.guards()) {
    AddDims(guard.lhs, names, seen, result.dims);
    AddDims(guard.rhs, names, seen, result.dims);
  }
  std::map<std::string, Dim> shown;
  for (const CInterface::Dimension& dim : result.dims) {
    shown.emplace(dim.variable, Dim::Variable(dim.name));
  }
  for (auto* arrays : {&result.inputs, &result.outputs}) {
    for (CInterface::Array& array : *arrays) {
      TensorType type = array.type;
      for (Dim& dim : type.shape) {
        CLEAVE_ASSIGN_OR_RETURN(dim, dim.CheckedSubstitute(shown));
      }
      array.shown = type.ToString();
    }
  }
  for (const ShapeGuard& guard : graph.guards()) {
    CLEAVE_ASSIGN_OR_RETURN(const Dim lhs, guard.lhs.CheckedSubstitute(shown));
    CLEAVE_ASSIGN_OR_RETURN(const Dim rhs, guard.rhs.CheckedSubstitute(shown));
    result.guards.push_back(absl::StrCat(lhs.ToString(), " ",
                                         ComparisonInC(guard.op), " ",
                                         rhs.ToString(), ": ", guard.why));
  }
  return result;
}

}  // namespace cleave
