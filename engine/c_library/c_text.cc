// The header and the example of a compiled function.

#include <cstdint>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "engine/c_library/c_interface.h"
#include "engine/ir/bind.h"

namespace cleave {
namespace {

constexpr char kCodes[] = R"c(
/* What functions that Cleave compiled return. */
#ifndef CLEAVE_CODES
#define CLEAVE_CODES
enum cleave_code {
  CLEAVE_OK = 0,
  /* A size is negative or above 2^31 - 1, or the sizes do not fit together. */
  CLEAVE_BAD_DIMS = 1,
  /* An array, or one between two kernels, is larger than 2^31 - 1 bytes. */
  CLEAVE_TOO_LARGE = 2,
  /* An array that has elements is NULL, or two outputs overlap. */
  CLEAVE_BAD_ARRAY = 3,
  /* An input is used as an index and is out of range. */
  CLEAVE_BAD_INDEX = 4,
  CLEAVE_OUT_OF_MEMORY = 5,
  /* The CPU lacks the vector instructions that the library was made for. */
  CLEAVE_UNSUPPORTED_CPU = 6,
  /* A mistake of Cleave. */
  CLEAVE_INTERNAL = 7,
  /* A weight of a padded convolution is infinite or NaN. */
  CLEAVE_NOT_FINITE = 8,
  /* An integer is divided by 0. */
  CLEAVE_DIVIDED_BY_ZERO = 9,
  /* The condition of a loop still holds after as many steps as it may take. */
  CLEAVE_TOO_MANY_STEPS = 10
};
#endif
)c";

// $0: the function in the terms of its rules, $1 its C name, $2 the table of
// parameters, $3 the levels, $4 the prototype.
constexpr char kHeader[] = R"c(/* $0
 *
 * Made by `cleave compile`. Link with lib$1.a, -lm and -lpthread.
 *
$2 *
 * Arrays are dense, in row-major order: the last axis is contiguous. f16 and
 * bf16 are uint16_t with their bits; bool is uint8_t, 0 or 1. An output may
 * overlap inputs, of which a copy is then made, but no other output. An array
 * without elements may be NULL.
 *
 * Returns CLEAVE_OK, or another cleave_code if the call fails: then the outputs
 * hold nothing of use. Nothing is printed, and the process is not ended. Any
 * number of threads may call it at once.
 *
 * Large calls run on a pool of threads that the first of them starts: one per
 * CPU, or $$HL_NUM_THREADS of them. The pool is this library's own, and ends
 * with the process.
 *
 * $3
 */
)c";

constexpr char kExample[] = R"c(/* Calls $0 once:
 *
 *   cc -std=c99 -O2 $0_example.c lib$0.a -lm -lpthread -o $0_example
 *   ./$0_example
 */

#include <stdio.h>

#include "$0.h"

$1
int main(void) {
  int i;
  int code;
$2  code = $0($3);
  if (code != CLEAVE_OK) {
    fprintf(stderr, "$0: %s\n", $0_error(code));
    return 1;
  }
$4  return 0;
}
)c";

std::string ParameterLine(absl::string_view name, absl::string_view what) {
  return absl::StrCat(" *   ", name,
                      std::string(name.size() < 10 ? 10 - name.size() : 1, ' '),
                      CommentText(what), "\n");
}

// Renamed parameters say what of.
std::string Named(const std::string& original, const std::string& name) {
  return original == name ? "" : absl::StrCat(", `", original, "`");
}

std::string LevelText(const std::vector<TargetLevel>& levels) {
  std::vector<absl::string_view> names;
  for (const TargetLevel level : levels) {
    names.push_back(TargetLevelName(level));
  }
  if (levels.size() == 1) {
    return absl::StrCat("For x86-64 with ", names[0], ".");
  }
  return absl::StrCat(
      "For x86-64 with ", absl::StrJoin(names, " or "),
      ": the last of these that the CPU has\n * runs, and sums may be added in "
      "another order by each.");
}

// Extents for the example: small ones, as far as they fit.
DimValues ExampleDims(const CInterface& interface, const Graph& graph) {
  const auto fits = [&](const DimValues& values) {
    for (const ShapeGuard& guard : graph.guards()) {
      if (!CheckGuard(guard, values).ok()) return false;
    }
    for (const auto* arrays : {&interface.inputs, &interface.outputs}) {
      for (const CInterface::Array& array : *arrays) {
        const auto shape = EvaluateShape(array.type.shape, values);
        if (!shape.ok()) return false;
        for (const int64_t extent : *shape) {
          if (extent == 0) return false;
        }
      }
    }
    return true;
  };
  const auto make = [&](int64_t code) {
    DimValues values;
    for (const CInterface::Dimension& dim : interface.dims) {
      values.emplace(dim.variable, 1 + code % 8);
      code /= 8;
    }
    return values;
  };
  // 4, 3, 4, 3, .. before the others.
  int64_t pleasant = 0;
  for (size_t i = 0; i < interface.dims.size() && i < 20; ++i) {
    pleasant |= (i % 2 == 0 ? int64_t{3} : int64_t{2}) << (3 * i);
  }
  if (fits(make(pleasant))) return make(pleasant);
  constexpr int64_t kTries = 1 << 12;
  for (int64_t code = 0; code < kTries; ++code) {
    if (fits(make(code))) return make(code);
  }
  return make(pleasant);
}

int64_t CountOf(const CInterface::Array& array, const DimValues& values) {
  int64_t count = 1;
  const auto shape = EvaluateShape(array.type.shape, values);
  if (!shape.ok()) return 0;
  for (const int64_t extent : *shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return 0;
  }
  return count;
}

// Element i of an input of the example, as a C expression.
std::string ExampleElement(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF64:
      return absl::StrCat(dtype == DType::kF32 ? "(float)" : "",
                          "(0.25 * (i % 9) - 1)");
    case DType::kF16:
      return "(uint16_t)(i % 2 ? 0x3c00 : 0x3800) /* 1 or 0.5 */";
    case DType::kBF16:
      return "(uint16_t)(i % 2 ? 0x3f80 : 0x3f00) /* 1 or 0.5 */";
    default:
      return "(i % 2)";
  }
}

std::string PrintElement(const CInterface::Array& array) {
  const std::string element = absl::StrCat("out_", array.name, "[i]");
  switch (KindOf(array.type.dtype)) {
    case DTypeKind::kFloat:
      if (array.element == "uint16_t") {
        return absl::StrCat("\" 0x%04x\", (unsigned)", element);
      }
      return absl::StrCat("\" %g\", (double)", element);
    default:
      return IsSigned(array.type.dtype)
                 ? absl::StrCat("\" %lld\", (long long)", element)
                 : absl::StrCat("\" %llu\", (unsigned long long)", element);
  }
}

}  // namespace

std::string CHeader(const CInterface& interface,
                    const std::vector<TargetLevel>& levels) {
  std::vector<std::string> inputs;
  for (const CInterface::Array& array : interface.inputs) {
    inputs.push_back(absl::StrCat(array.name, ": ", array.shown));
  }
  std::vector<std::string> outputs;
  for (const CInterface::Array& array : interface.outputs) {
    outputs.push_back(absl::StrCat(array.name, ": ", array.shown));
  }
  const std::string separator = ",\n *     ";
  std::string title =
      absl::StrCat(interface.function, "(", absl::StrJoin(inputs, ", "),
                   ") -> (", absl::StrJoin(outputs, ", "), ")");
  if (title.size() > 76) {
    title = absl::StrCat(interface.function, "(\n *     ",
                         absl::StrJoin(inputs, separator), ")\n *     -> (",
                         absl::StrJoin(outputs, separator), ")");
  }
  std::string parameters;
  for (const CInterface::Dimension& dim : interface.dims) {
    absl::StrAppend(
        &parameters,
        ParameterLine(dim.name,
                      absl::StrCat("a size", Named(dim.variable, dim.name))));
  }
  for (const CInterface::Array& array : interface.inputs) {
    absl::StrAppend(
        &parameters,
        ParameterLine(array.name,
                      absl::StrCat("input, ", array.shown,
                                   Named(array.original, array.name))));
  }
  for (const CInterface::Array& array : interface.outputs) {
    absl::StrAppend(
        &parameters,
        ParameterLine(array.name,
                      absl::StrCat("output, ", array.shown,
                                   Named(array.original, array.name))));
  }
  if (!interface.guards.empty()) {
    absl::StrAppend(&parameters, " *\n * The sizes must fit:\n");
    for (const std::string& guard : interface.guards) {
      absl::StrAppend(&parameters, " *   ", CommentText(guard), "\n");
    }
  }
  const std::string guard = absl::StrCat(
      "CLEAVE_", absl::AsciiStrToUpper(interface.function), "_", "H_");
  return absl::StrCat(
      absl::Substitute(kHeader, title, interface.function, parameters,
                       LevelText(levels)),
      "\n#ifndef ", guard, "\n#define ", guard, "\n\n#include <stdint.h>\n",
      kCodes, "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
      interface.Prototype(), ";\n\n/* What a code means. Never NULL. */\n",
      "const char *", interface.function,
      "_error(int code);\n\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

std::string CExample(const CInterface& interface, const Graph& graph) {
  const DimValues values = ExampleDims(interface, graph);
  std::string arrays;
  std::string fills;
  std::string prints;
  std::vector<std::string> arguments;
  for (const CInterface::Dimension& dim : interface.dims) {
    arguments.push_back(
        absl::StrCat(values.at(dim.variable), " /* ", dim.name, " */"));
  }
  const auto declare = [&](const CInterface::Array& array,
                           absl::string_view prefix) {
    const int64_t count = CountOf(array, values);
    // Arrays of C have an element.
    absl::StrAppend(&arrays, "static ", array.element, " ", prefix, array.name,
                    "[", count > 0 ? count : 1, "]; /* ", array.shown, " */\n");
    arguments.push_back(absl::StrCat(prefix, array.name));
    return count;
  };
  for (const CInterface::Array& array : interface.inputs) {
    const int64_t count = declare(array, "in_");
    absl::StrAppend(&fills, "  for (i = 0; i < ", count, "; ++i) {\n    in_",
                    array.name, "[i] = ", ExampleElement(array.type.dtype),
                    ";\n  }\n");
  }
  for (const CInterface::Array& array : interface.outputs) {
    const int64_t count = declare(array, "out_");
    absl::StrAppend(&prints, "  printf(\"", array.name,
                    ":\");\n  for (i = 0; i < ", count > 8 ? 8 : count,
                    "; ++i) printf(", PrintElement(array), ");\n  printf(\"",
                    count > 8 ? " ..." : "", "\\n\");\n");
  }
  const std::string separator = ",\n      ";
  std::string joined = absl::StrJoin(arguments, ", ");
  if (joined.size() + interface.function.size() > 60) {
    joined = absl::StrCat("\n      ", absl::StrJoin(arguments, separator));
  }
  return absl::Substitute(kExample, interface.function, arrays, fills, joined,
                          prints);
}

}  // namespace cleave
