#include "engine/c_library/driver.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "engine/c_library/dim_to_c.h"
#include "engine/runtime/all_finite.h"
#include "ops/check.h"

namespace cleave {
namespace {

using internal_kernel::ExponentBits;
using internal_kernel::HalideTypeOf;
using internal_kernel::Operand;
using internal_kernel::PlannedGraph;
using internal_kernel::PlannedStep;
using internal_kernel::Step;
using internal_kernel::StepCheck;

struct DimOrder {
  bool operator()(const Dim& a, const Dim& b) const {
    return Dim::Order(a, b) < 0;
  }
};

// The tables of a driver, as they grow.
class Tables {
 public:
  Tables(const PlannedGraph& plan, const std::vector<DriverKernel>& kernels)
      : plan_(plan), kernels_(kernels) {}

  std::string Print(const CInterface& interface,
                    const std::vector<TargetLevel>& levels);

 private:
  // The array of the driver that holds a value of the graph.
  struct Array {
    DType dtype = DType::kF32;
    Shape shape;
    int last = -1;
  };

  int SizeOf(const Dim& dim) {
    const int next = static_cast<int>(size_order_.size());
    const auto [it, is_new] = sizes_.try_emplace(dim, next);
    if (is_new) size_order_.push_back(dim);
    return it->second;
  }

  int ArrayOf(Value v) const {
    const auto it = places_.find(v);
    CLEAVE_CHECK(it != places_.end()) << "a step reads what none has made";
    return it->second;
  }

  void AddArray(Value v, DType dtype, const Shape& shape) {
    const int next = static_cast<int>(arrays_.size());
    if (places_.try_emplace(v, next).second) {
      arrays_.push_back({dtype, shape, -1});
    }
  }

  void FindArrays();
  std::string ShapeText(const Shape& shape);
  std::string IntTable(const std::string& name, const std::vector<int>& values);
  std::string StepText(int index);
  std::string OperandText(const Operand& operand);
  std::string CheckText(const StepCheck& one);
  std::string SizeFunction(const CInterface& interface);
  std::string LevelFunction(const std::vector<TargetLevel>& levels) const;
  std::string KernelTable(const std::vector<TargetLevel>& levels) const;

  const PlannedGraph& plan_;
  const std::vector<DriverKernel>& kernels_;
  std::map<Dim, int, DimOrder> sizes_;
  std::vector<Dim> size_order_;
  std::map<Value, int> places_;
  std::vector<Array> arrays_;
  std::map<std::vector<int>, std::string> shape_names_;
  std::string shapes_;  // their definitions
  int max_rank_ = 1;
  int max_operands_ = 1;
  int max_dims_ = 1;
};

void Tables::FindArrays() {
  const Graph& graph = plan_.graph;
  for (const NamedValue& input : graph.inputs()) {
    const TensorType& type = graph.type(input.value);
    AddArray(input.value, type.dtype, type.shape);
  }
  const int steps = static_cast<int>(plan_.steps.size());
  for (int s = 0; s < steps; ++s) {
    const Step& step = plan_.steps[s].step;
    for (const Operand& operand : step.outputs) {
      AddArray(operand.value, operand.dtype, operand.shape);
      arrays_[ArrayOf(operand.value)].last = s;
    }
    for (const Operand& operand : step.inputs) {
      arrays_[ArrayOf(operand.value)].last = s;
    }
    for (const StepCheck& one : step.checks) {
      if (one.check.base.valid()) arrays_[ArrayOf(one.check.base)].last = s;
    }
  }
  for (const NamedValue& output : graph.outputs()) {
    arrays_[ArrayOf(output.value)].last = steps;
  }
}

// The members of a cleave_shape.
std::string Tables::ShapeText(const Shape& shape) {
  if (shape.empty()) return "{0, NULL}";
  std::vector<int> sizes;
  for (const Dim& dim : shape) sizes.push_back(SizeOf(dim));
  max_rank_ = std::max(max_rank_, static_cast<int>(shape.size()));
  const auto [it, is_new] = shape_names_.try_emplace(
      sizes, absl::StrCat("cleave_shape_", shape_names_.size()));
  if (is_new) {
    absl::StrAppend(&shapes_, "static const int ", it->second, "[] = {",
                    absl::StrJoin(sizes, ", "), "}; /* ",
                    CommentText(ShapeToString(shape)), " */\n");
  }
  return absl::StrCat("{", sizes.size(), ", ", it->second, "}");
}

std::string Tables::IntTable(const std::string& name,
                             const std::vector<int>& values) {
  if (values.empty()) return "";
  return absl::StrCat("static const int ", name, "[] = {",
                      absl::StrJoin(values, ", "), "};\n");
}

std::string Tables::OperandText(const Operand& operand) {
  const halide_type_t type = HalideTypeOf(operand.dtype);
  return absl::StrCat(
      "    {", ArrayOf(operand.value), ", ", static_cast<int>(type.code), ", ",
      static_cast<int>(type.bits), ", ", ShapeText(operand.shape), "},\n");
}

// C has no literal for the least number.
std::string NumberText(int64_t number) {
  if (number == std::numeric_limits<int64_t>::min()) return "INT64_MIN";
  return absl::StrCat("INT64_C(", number, ")");
}

std::string Tables::CheckText(const StepCheck& one) {
  const IndexCheck& check = one.check;
  Shape reads = one.result;
  reads.insert(reads.end(), check.repeats.begin(), check.repeats.end());
  const bool stored = check.base.valid();
  const int array = stored ? ArrayOf(check.base) : -1;
  const int first = stored ? 0 : SizeOf(check.first);
  const int count = stored ? 0 : SizeOf(check.count);
  return absl::StrCat("    {", array, ", ", check.component, ", ",
                      check.components, ", ", NumberText(check.replaced), ", ",
                      NumberText(check.replacement), ", ", first, ", ", count,
                      ", ", SizeOf(check.extent), ", ", check.divisor_bytes,
                      ", ", ShapeText(reads), "}, /* ",
                      CommentText(one.error.message()), " */\n");
}

std::string Tables::StepText(int index) {
  const Step& step = plan_.steps[index].step;
  const std::string prefix = absl::StrCat("cleave_step_", index);
  std::string text =
      absl::StrCat("\n/* ", GroupKindName(step.kind), ": ",
                   CommentText(absl::StrJoin(step.ops, " ")), " */\n");
  std::vector<int> dims;
  for (const Dim& dim : step.dims) dims.push_back(SizeOf(dim));
  absl::StrAppend(&text, IntTable(prefix + "_dims", dims),
                  "static const struct cleave_operand ", prefix,
                  "_operands[] = {\n");
  for (const auto* operands : {&step.inputs, &step.outputs}) {
    for (const Operand& operand : *operands) {
      absl::StrAppend(&text, OperandText(operand));
    }
  }
  absl::StrAppend(&text, "};\n");
  if (!step.checks.empty()) {
    absl::StrAppend(&text, "static const struct cleave_check ", prefix,
                    "_checks[] = {\n");
    for (const StepCheck& one : step.checks) {
      absl::StrAppend(&text, CheckText(one));
    }
    absl::StrAppend(&text, "};\n");
  }
  if (!step.finite_inputs.empty()) {
    absl::StrAppend(&text, "static const struct cleave_finite ", prefix,
                    "_finite[] = {\n");
    for (const int i : step.finite_inputs) {
      const Operand& operand = step.inputs[i];
      absl::StrAppend(
          &text, "    {", ArrayOf(operand.value), ", ", ByteSize(operand.dtype),
          ", ", NumberText(static_cast<int64_t>(ExponentBits(operand.dtype))),
          "},\n");
    }
    absl::StrAppend(&text, "};\n");
  }
  max_dims_ = std::max(max_dims_, static_cast<int>(dims.size()));
  max_operands_ =
      std::max(max_operands_,
               static_cast<int>(step.inputs.size() + step.outputs.size()));
  return text;
}

std::string Tables::SizeFunction(const CInterface& interface) {
  std::map<std::string, std::string> variables;
  for (size_t i = 0; i < interface.dims.size(); ++i) {
    variables.emplace(interface.dims[i].variable,
                      absl::StrCat("dims[", i, "]"));
  }
  std::string guards;
  for (const ShapeGuard& guard : plan_.graph.guards()) {
    const int lhs = SizeOf(guard.lhs);
    const int rhs = SizeOf(guard.rhs);
    absl::StrAppend(&guards, "  /* ", CommentText(guard.why), " */\n  if (!(",
                    "sizes[", lhs, "] ", ComparisonInC(guard.op), " sizes[",
                    rhs, "])) return CLEAVE_BAD_DIMS;\n");
  }
  std::string text =
      "\n/* The sizes that the tables and conditions name. */\n"
      "static int cleave_compute_sizes(const int64_t *dims, int64_t *sizes) {\n"
      "  int failed = 0;\n"
      "  int *const bad = &failed;\n"
      "  (void)dims;\n"
      "  (void)sizes;\n"
      "  (void)bad;\n";
  for (size_t i = 0; i < size_order_.size(); ++i) {
    const Dim& dim = size_order_[i];
    absl::StrAppend(&text, "  sizes[", i, "] = ", DimToC(dim, variables), ";");
    if (!dim.IsConstant()) {
      absl::StrAppend(&text, " /* ", CommentText(dim.ToString()), " */");
    }
    absl::StrAppend(&text, "\n");
  }
  return absl::StrCat(text, "  if (failed) return CLEAVE_BAD_DIMS;\n", guards,
                      "  return CLEAVE_OK;\n}\n");
}

std::string Tables::LevelFunction(
    const std::vector<TargetLevel>& levels) const {
  std::string text =
      "\n/* Which column of kernels the CPU, and its operating system, can "
      "run; "
      "-1: none.\n */\n"
      "static int cleave_level(void) {\n"
      "  __builtin_cpu_init();\n";
  for (size_t i = levels.size(); i-- > 0;) {
    std::vector<std::string> features;
    switch (levels[i]) {
      case TargetLevel::kSse41:
        features = {"sse4.1"};
        break;
      case TargetLevel::kAvx2:
        features = {"avx2", "fma"};
        break;
      case TargetLevel::kAvx512:
        features = {"avx2",     "fma",      "avx512f", "avx512cd",
                    "avx512vl", "avx512dq", "avx512bw"};
        break;
    }
    for (std::string& feature : features) {
      feature = absl::StrCat("__builtin_cpu_supports(\"", feature, "\")");
    }
    absl::StrAppend(&text, "  if (", absl::StrJoin(features, " &&\n      "),
                    ") {\n    return ", i, ";\n  }\n");
  }
  return absl::StrCat(text, "  return -1;\n}\n");
}

std::string Tables::KernelTable(const std::vector<TargetLevel>& levels) const {
  std::string declarations =
      "\n/* Kernels: 0 is success. */\n"
      "typedef int (*cleave_kernel)(void **arguments);\n";
  std::vector<std::string> declared;
  std::string table =
      absl::StrCat("static const cleave_kernel cleave_kernels[", levels.size(),
                   "][", std::max<size_t>(plan_.steps.size(), 1), "] = {\n");
  for (size_t level = 0; level < levels.size(); ++level) {
    std::vector<std::string> row;
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      row.push_back(kernels_[s].entries[level]);
      if (std::count(declared.begin(), declared.end(), row.back()) > 0) {
        continue;
      }
      declared.push_back(row.back());
      absl::StrAppend(&declarations, "int ", row.back(),
                      "(void **arguments);\n");
    }
    if (row.empty()) row.push_back("NULL");
    absl::StrAppend(&table, "    {", absl::StrJoin(row, ",\n     "), "}, /* ",
                    TargetLevelName(levels[level]), " */\n");
  }
  return absl::StrCat(declarations, table, "};\n");
}

std::string Tables::Print(const CInterface& interface,
                          const std::vector<TargetLevel>& levels) {
  FindArrays();
  std::string steps;
  std::string step_table =
      "\nstatic const struct cleave_step cleave_steps[] = {\n";
  const int step_count = static_cast<int>(plan_.steps.size());
  for (int s = 0; s < step_count; ++s) {
    absl::StrAppend(&steps, StepText(s));
    const Step& step = plan_.steps[s].step;
    const std::string prefix = absl::StrCat("cleave_step_", s);
    absl::StrAppend(
        &step_table, "    {", step.dims.size(), ", ", step.inputs.size(), ", ",
        step.inputs.size() + step.outputs.size(), ", ", step.checks.size(),
        ", ", step.finite_inputs.size(), ", ",
        step.dims.empty() ? "NULL" : prefix + "_dims", ", ", prefix,
        "_operands, ", step.checks.empty() ? "NULL" : prefix + "_checks", ", ",
        step.finite_inputs.empty() ? "NULL" : prefix + "_finite", "},\n");
  }
  if (step_count == 0) {
    absl::StrAppend(&step_table,
                    "    {0, 0, 0, 0, 0, NULL, NULL, NULL, NULL},\n");
  }
  absl::StrAppend(&step_table, "};\n");
  std::string arrays =
      "\n/* Inputs first. */\n"
      "static const struct cleave_array cleave_arrays[] = {\n";
  for (const Array& array : arrays_) {
    absl::StrAppend(&arrays, "    {", ShapeText(array.shape), ", ",
                    ByteSize(array.dtype), ", ", array.last, "},\n");
  }
  absl::StrAppend(&arrays, "};\n");
  const int input_count = static_cast<int>(plan_.graph.inputs().size());
  std::vector<int> outputs;
  std::vector<int> made;
  for (const NamedValue& output : plan_.graph.outputs()) {
    const int array = ArrayOf(output.value);
    const bool again = std::count(outputs.begin(), outputs.end(), array) > 0;
    outputs.push_back(array);
    made.push_back(!again && array >= input_count);
  }
  // Last: it names all sizes.
  const std::string size_function = SizeFunction(interface);
  const std::string counts = absl::Substitute(
      "\nenum {\n  CLEAVE_DIMS = $0,\n  CLEAVE_INPUTS = $1,\n"
      "  CLEAVE_OUTPUTS = $2,\n  CLEAVE_ARRAYS = $3,\n  CLEAVE_STEPS = $4,\n",
      interface.dims.size(), input_count, outputs.size(), arrays_.size(),
      step_count);
  const std::string limits = absl::Substitute(
      "  CLEAVE_SIZES = $0,\n  CLEAVE_MAX_RANK = $1,\n"
      "  CLEAVE_MAX_OPERANDS = $2,\n  CLEAVE_MAX_DIMS = $3\n};\n",
      std::max<size_t>(size_order_.size(), 1), max_rank_, max_operands_,
      max_dims_);
  return absl::StrCat(
      counts, limits, "\n", shapes_, steps, step_table, arrays,
      "\n/* The array of each output; whether a kernel writes it where the "
      "caller wants it,\n * or it is copied there. */\n",
      IntTable("cleave_outputs", outputs), IntTable("cleave_made", made),
      KernelTable(levels), LevelFunction(levels), size_function);
}

std::string PublicFunctions(const CInterface& interface) {
  std::string text =
      absl::StrCat("\n", interface.Prototype(),
                   " {\n  const int64_t cleave_dims[CLEAVE_DIMS + 1] = {");
  for (const CInterface::Dimension& dim : interface.dims) {
    absl::StrAppend(&text, dim.name, ", ");
  }
  absl::StrAppend(&text, "0};\n",
                  "  const void *const cleave_inputs[CLEAVE_INPUTS + 1] = {");
  for (const CInterface::Array& array : interface.inputs) {
    absl::StrAppend(&text, array.name, ", ");
  }
  absl::StrAppend(&text, "NULL};\n",
                  "  void *const cleave_results[CLEAVE_OUTPUTS + 1] = {");
  for (const CInterface::Array& array : interface.outputs) {
    absl::StrAppend(&text, array.name, ", ");
  }
  absl::StrAppend(
      &text, "NULL};\n",
      "  return cleave_run(cleave_dims, cleave_inputs, cleave_results);\n}\n");
  absl::StrAppend(&text, "\nconst char *", interface.function,
                  "_error(int code) {", R"c(
  switch (code) {
    case CLEAVE_OK:
      return "no error";
    case CLEAVE_BAD_DIMS:
      return "a size is negative or above 2^31 - 1, or the sizes do not fit "
             "together";
    case CLEAVE_TOO_LARGE:
      return "an array is larger than 2^31 - 1 bytes";
    case CLEAVE_BAD_ARRAY:
      return "an array that has elements is NULL, or two outputs overlap";
    case CLEAVE_BAD_INDEX:
      return "an index is out of range";
    case CLEAVE_OUT_OF_MEMORY:
      return "out of memory";
    case CLEAVE_UNSUPPORTED_CPU:
      return "the CPU lacks vector instructions that the library needs";
    case CLEAVE_INTERNAL:
      return "a kernel failed: a mistake of Cleave";
    case CLEAVE_NOT_FINITE:
      return "not supported: a weight of a padded convolution is infinite or "
             "NaN";
    case CLEAVE_DIVIDED_BY_ZERO:
      return "an integer is divided by 0";
    default:
      return "no code of Cleave";
  }
}
)c");
  return text;
}

}  // namespace

std::string CDriver(const CInterface& interface, const PlannedGraph& plan,
                    const std::vector<DriverKernel>& kernels,
                    const std::vector<TargetLevel>& levels) {
  CLEAVE_CHECK(plan.static_shapes && kernels.size() == plan.steps.size());
  for (const PlannedStep& one : plan.steps) {
    CLEAVE_CHECK(HasCode(one.step.kind));
  }
  Tables tables(plan, kernels);
  const std::string printed = tables.Print(interface, levels);
  return absl::StrCat(
      "/* The driver of ", interface.function,
      ": it computes the sizes of a call, checks it, and runs the\n"
      " * kernels. lib",
      interface.function,
      ".a has it already, with the kernels; this file is for reading.\n"
      " */\n\n#include \"",
      interface.function,
      ".h\"\n\n#include <stddef.h>\n#include <stdint.h>\n#include <stdlib.h>\n"
      "#include <string.h>\n",
      internal_aot::kDriverTypes, kDimFunctions, printed,
      internal_aot::kDriverFunctions, PublicFunctions(interface));
}

}  // namespace cleave
