#include "engine/c_library/driver.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/substitute.h"
#include "engine/c_library/dim_to_c.h"
#include "engine/ir/loop_operands.h"
#include "engine/runtime/all_finite.h"
#include "ops/check.h"

namespace cleave {
namespace {

using internal_kernel::ExponentBits;
using internal_kernel::HalideTypeOf;
using internal_kernel::Operand;
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
  explicit Tables(const std::vector<DriverProgram>& programs)
      : programs_(programs) {}

  std::string Print(const CInterface& interface,
                    const std::vector<TargetLevel>& levels);

  // Whether a step runs that function of the driver. Behind Print.
  bool Runs(const std::string& function) const {
    return functions_.count(function) > 0;
  }

 private:
  // The array of the driver that holds a value of a program.
  struct Array {
    DType dtype = DType::kF32;
    Shape shape;
    int last = -1;
  };
  // The program whose tables are printed.
  struct Current {
    const DriverProgram* program = nullptr;
    int first_step = 0;
    std::map<Value, int> places;
    std::vector<Array> arrays;
  };
  // Code of the driver's own for a step.
  struct OwnCode {
    std::string definitions;
    std::string function;
    std::string about;  // the name of what it reads
  };

  int SizeOf(const Dim& dim) {
    const int next = static_cast<int>(size_order_.size());
    const auto [it, is_new] = sizes_.try_emplace(dim, next);
    if (is_new) size_order_.push_back(dim);
    return it->second;
  }

  int ArrayOf(Value v) const {
    const auto it = current_.places.find(v);
    CLEAVE_CHECK(it != current_.places.end())
        << "a step reads what none has made";
    return it->second;
  }

  void AddArray(Value v, DType dtype, const Shape& shape) {
    const int next = static_cast<int>(current_.arrays.size());
    if (current_.places.try_emplace(v, next).second) {
      current_.arrays.push_back({dtype, shape, -1});
    }
  }

  void FindArrays();
  void AddProgram(int index);
  std::string ShapeText(const Shape& shape);
  std::string IntTable(const std::string& name, const std::vector<int>& values);
  OwnCode SortText(const Step& step, const std::string& prefix);
  OwnCode LoopText(const Step& step, const std::vector<int>& regions,
                   const std::string& prefix);
  void AddStep(int index);
  std::string OperandText(const Operand& operand);
  std::string CheckText(const StepCheck& one);
  std::string GuardFunction() const;
  std::string SizeFunction(const CInterface& interface) const;
  std::string LevelFunction(const std::vector<TargetLevel>& levels) const;
  std::string KernelTable(const std::vector<TargetLevel>& levels) const;

  const std::vector<DriverProgram>& programs_;
  Current current_;
  std::map<Dim, int, DimOrder> sizes_;
  std::vector<Dim> size_order_;
  size_t own_sizes_ = 0;  // of the function: without them it does not run
  std::map<std::vector<int>, std::string> shape_names_;
  std::set<std::string> functions_;
  // Texts.
  std::string shapes_;
  std::string definitions_;  // of what the steps name
  std::string steps_;
  std::string arrays_;
  std::string outputs_;
  std::string program_rows_;
  std::string guards_;
  std::string counts_;
  std::vector<const DriverKernel*> kernels_;  // of all steps
  int array_count_ = 0;
  int max_rank_ = 1;
  int max_operands_ = 1;
  int max_dims_ = 1;
};

void Tables::FindArrays() {
  const Graph& graph = current_.program->plan.graph;
  for (const NamedValue& input : graph.inputs()) {
    const TensorType& type = graph.type(input.value);
    AddArray(input.value, type.dtype, type.shape);
  }
  std::vector<Array>& arrays = current_.arrays;
  int s = current_.first_step;
  for (const PlannedStep& one : current_.program->plan.steps) {
    const Step& step = one.step;
    for (const Operand& operand : step.outputs) {
      AddArray(operand.value, operand.dtype, operand.shape);
      arrays[ArrayOf(operand.value)].last = s;
    }
    for (const Operand& operand : step.inputs) {
      arrays[ArrayOf(operand.value)].last = s;
    }
    for (const StepCheck& check : step.checks) {
      if (check.check.base.valid()) arrays[ArrayOf(check.check.base)].last = s;
    }
    ++s;
  }
  for (const NamedValue& output : graph.outputs()) {
    arrays[ArrayOf(output.value)].last = -1;
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

Tables::OwnCode Tables::SortText(const Step& step, const std::string& prefix) {
  const Graph& graph = step.graph;
  const Value sort = graph.operands(graph.outputs()[0].value)[0];
  const Attributes& attributes = graph.attributes(sort);
  const Operand& x = step.inputs[0];
  int results[] = {-1, -1};  // values and indices
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Value output = graph.outputs()[i].value;
    results[graph.attributes(output).GetInt("index")] =
        ArrayOf(step.outputs[i].value);
  }
  const bool is_signed = IsInt(x.dtype) && IsSigned(x.dtype);
  OwnCode code;
  code.function = "cleave_sort_lines";
  code.about = prefix + "_sort";
  code.definitions = absl::StrCat(
      "static const struct cleave_sort ", code.about, " = {\n    ",
      ArrayOf(x.value), ", ", results[0], ", ", results[1], ", ",
      ShapeText(x.shape), ", ", attributes.GetInt("axis"), ", ",
      static_cast<int>(attributes.GetBool("descending")), ", ",
      ByteSize(x.dtype), ", ", static_cast<int>(is_signed), ",\n    ",
      IsFloat(x.dtype) ? NumberText(static_cast<int64_t>(ExponentBits(x.dtype)))
                       : "0",
      ", ", NumberText(step.sorted), "};\n");
  return code;
}

Tables::OwnCode Tables::LoopText(const Step& step,
                                 const std::vector<int>& regions,
                                 const std::string& prefix) {
  const Graph& graph = step.graph;
  const Value control = *ControlOf(step);
  const Attributes& attributes = graph.attributes(control);
  std::vector<int> operands;
  for (const Value operand : graph.operands(control)) {
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      if (graph.inputs()[i].value != operand) continue;
      operands.push_back(ArrayOf(step.inputs[i].value));
    }
  }
  CLEAVE_CHECK(operands.size() == graph.operands(control).size())
      << "an operand of a loop is not stored";
  std::vector<int> results(graph.types(control).size(), -1);
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Value output = graph.outputs()[i].value;
    const int64_t index =
        output == control ? 0 : graph.attributes(output).GetInt("index");
    results[index] = ArrayOf(step.outputs[i].value);
  }
  const Primitive primitive = ToPrimitive(graph.node(control).op);
  const auto size_of = [&](absl::string_view name) {
    const StaticValue* const value = attributes.Find(name);
    return value == nullptr ? -1 : SizeOf(value->AsDim());
  };
  LoopOperands loop;
  if (primitive != Primitive::kCond) loop = LoopOperands::Of(graph, control);
  const bool reverse =
      primitive == Primitive::kScan && attributes.GetBool("reverse");
  OwnCode code;
  code.function = absl::StrCat("cleave_", PrimitiveName(primitive));
  code.about = prefix + "_loop";
  code.definitions = absl::StrCat(
      IntTable(prefix + "_arguments", operands),
      IntTable(prefix + "_results", results),
      "static const struct cleave_loop ", code.about, " = {\n    ",
      operands.empty() ? "NULL" : prefix + "_arguments", ", ",
      results.empty() ? "NULL" : prefix + "_results", ", ", loop.consts, ", ",
      loop.carries, ", ", static_cast<int>(reverse), ", ", size_of("length"),
      ", ", size_of("max"), ", {", absl::StrJoin(regions, ", "), "}};\n");
  return code;
}

// Step `index` of the program, to the texts.
void Tables::AddStep(int index) {
  const Step& step = current_.program->plan.steps[index].step;
  const std::string prefix =
      absl::StrCat("cleave_step_", current_.first_step + index);
  const size_t operand_count = step.inputs.size() + step.outputs.size();
  std::string text =
      absl::StrCat("\n/* ", GroupKindName(step.kind), ": ",
                   CommentText(absl::StrJoin(step.ops, " ")), " */\n");
  std::vector<int> dims;
  for (const Dim& dim : step.dims) dims.push_back(SizeOf(dim));
  absl::StrAppend(&text, IntTable(prefix + "_dims", dims));
  if (operand_count > 0) {
    absl::StrAppend(&text, "static const struct cleave_operand ", prefix,
                    "_operands[] = {\n");
    for (const auto* operands : {&step.inputs, &step.outputs}) {
      for (const Operand& operand : *operands) {
        absl::StrAppend(&text, OperandText(operand));
      }
    }
    absl::StrAppend(&text, "};\n");
  }
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
  OwnCode code;
  if (step.kind == GroupKind::kRuntime) code = SortText(step, prefix);
  if (step.kind == GroupKind::kLoop) {
    code = LoopText(step, current_.program->regions[index], prefix);
  }
  if (!code.function.empty()) functions_.insert(code.function);
  absl::StrAppend(&definitions_, text, code.definitions);
  const auto name_if = [&](bool there, absl::string_view name) {
    return there ? absl::StrCat(prefix, "_", name) : "NULL";
  };
  absl::StrAppend(
      &steps_, "    {", dims.size(), ", ", step.inputs.size(), ", ",
      operand_count, ", ", step.checks.size(), ", ", step.finite_inputs.size(),
      ", ", name_if(!dims.empty(), "dims"), ", ",
      name_if(operand_count > 0, "operands"), ", ",
      name_if(!step.checks.empty(), "checks"), ", ",
      name_if(!step.finite_inputs.empty(), "finite"), ", ",
      code.function.empty() ? "NULL, NULL"
                            : absl::StrCat(code.function, ", &", code.about),
      "},\n");
  kernels_.push_back(&current_.program->kernels[index]);
  max_dims_ = std::max(max_dims_, static_cast<int>(dims.size()));
  max_operands_ = std::max(max_operands_, static_cast<int>(operand_count));
}

// Program `index`, to the texts.
void Tables::AddProgram(int index) {
  current_ = {};
  current_.program = &programs_[index];
  current_.first_step = static_cast<int>(kernels_.size());
  FindArrays();
  const Graph& graph = current_.program->plan.graph;
  const int step_count = static_cast<int>(current_.program->plan.steps.size());
  for (int s = 0; s < step_count; ++s) AddStep(s);
  for (const Array& array : current_.arrays) {
    absl::StrAppend(&arrays_, "    {", ShapeText(array.shape), ", ",
                    ByteSize(array.dtype), ", ", array.last, "},\n");
  }
  const int input_count = static_cast<int>(graph.inputs().size());
  std::vector<int> outputs;
  std::vector<int> made;
  for (const NamedValue& output : graph.outputs()) {
    const int array = ArrayOf(output.value);
    const bool again = std::count(outputs.begin(), outputs.end(), array) > 0;
    outputs.push_back(array);
    made.push_back(static_cast<int>(!again && array >= input_count));
  }
  const std::string prefix = absl::StrCat("cleave_program_", index);
  absl::StrAppend(&outputs_, IntTable(prefix + "_outputs", outputs),
                  IntTable(prefix + "_made", made));
  absl::StrAppend(&program_rows_, "    {", input_count, ", ", outputs.size(),
                  ", ", current_.arrays.size(), ", ", current_.first_step, ", ",
                  step_count, ", cleave_arrays + ", array_count_, ",\n     ",
                  outputs.empty()
                      ? "NULL, NULL"
                      : absl::StrCat(prefix, "_outputs, ", prefix, "_made"),
                  "},\n");
  array_count_ += static_cast<int>(current_.arrays.size());
  for (const ShapeGuard& guard : graph.guards()) {
    const int lhs = SizeOf(guard.lhs);
    const int rhs = SizeOf(guard.rhs);
    // No condition of the function is reached without its sizes.
    const std::string known =
        index == 0 ? ""
                   : absl::StrCat("sizes[", lhs,
                                  "] != CLEAVE_NO_SIZE &&\n        sizes[", rhs,
                                  "] != CLEAVE_NO_SIZE && ");
    absl::StrAppend(&guards_, "  /* ", CommentText(guard.why),
                    " */\n  if (program == &cleave_programs[", index,
                    "] &&\n      !(", known, "sizes[", lhs, "] ",
                    ComparisonInC(guard.op), " sizes[", rhs,
                    "])) {\n    return 0;\n  }\n");
  }
  if (index == 0) own_sizes_ = size_order_.size();
}

std::string Tables::GuardFunction() const {
  return absl::StrCat(
      "\n/* Whether the sizes fit together. */\n"
      "static int cleave_guards_hold(const struct cleave_program *program,\n"
      "                              const int64_t *sizes) {\n"
      "  (void)program;\n"
      "  (void)sizes;\n",
      guards_, "  return 1;\n}\n");
}

std::string Tables::SizeFunction(const CInterface& interface) const {
  std::map<std::string, std::string> variables;
  for (size_t i = 0; i < interface.dims.size(); ++i) {
    variables.emplace(interface.dims[i].variable,
                      absl::StrCat("dims[", i, "]"));
  }
  std::string text =
      "\n/* The sizes that the tables and conditions name. */\n"
      "static int cleave_compute_sizes(const int64_t *dims, int64_t *sizes) {\n"
      "  int failed = 0;\n"
      "  int *const bad = &failed;\n"
      "  (void)dims;\n"
      "  (void)sizes;\n"
      "  (void)bad;\n";
  for (size_t i = 0; i <= size_order_.size(); ++i) {
    if (i == own_sizes_) {
      absl::StrAppend(&text, "  if (failed) return CLEAVE_BAD_DIMS;\n");
    }
    if (i == size_order_.size()) break;
    const Dim& dim = size_order_[i];
    absl::StrAppend(&text, "  sizes[", i, "] = ", DimToC(dim, variables), ";");
    if (!dim.IsConstant()) {
      absl::StrAppend(&text, " /* ", CommentText(dim.ToString()), " */");
    }
    absl::StrAppend(&text, "\n");
    if (i < own_sizes_ || dim.IsConstant()) continue;
    absl::StrAppend(&text, "  if (failed) sizes[", i,
                    "] = CLEAVE_NO_SIZE;\n  failed = 0;\n");
  }
  return absl::StrCat(text, "  return CLEAVE_OK;\n}\n");
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
  std::set<std::string> declared;
  std::string table =
      absl::StrCat("static const cleave_kernel cleave_kernels[", levels.size(),
                   "][", std::max<size_t>(kernels_.size(), 1), "] = {\n");
  for (size_t level = 0; level < levels.size(); ++level) {
    std::vector<std::string> row;
    for (const DriverKernel* kernel : kernels_) {
      if (kernel->entries.empty()) {
        row.push_back("NULL");
        continue;
      }
      row.push_back(kernel->entries[level]);
      if (!declared.insert(row.back()).second) continue;
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
  for (size_t p = 0; p < programs_.size(); ++p) {
    AddProgram(static_cast<int>(p));
    if (p > 0) continue;
    absl::StrAppend(&counts_,
                    "\nenum {\n  CLEAVE_DIMS = ", interface.dims.size(),
                    ",\n  CLEAVE_INPUTS = ", interface.inputs.size(),
                    ",\n  CLEAVE_OUTPUTS = ", interface.outputs.size(),
                    ",\n  CLEAVE_ARRAYS = ", array_count_, ",\n");
  }
  if (kernels_.empty()) {
    steps_ = "    {0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL},\n";
  }
  const std::string limits = absl::Substitute(
      "  CLEAVE_SIZES = $0,\n  CLEAVE_MAX_RANK = $1,\n"
      "  CLEAVE_MAX_OPERANDS = $2,\n  CLEAVE_MAX_DIMS = $3\n};\n",
      std::max<size_t>(size_order_.size(), 1), max_rank_, max_operands_,
      max_dims_);
  return absl::StrCat(
      counts_, limits, "\n", shapes_, definitions_,
      "\n/* Of all programs. */\n"
      "static const struct cleave_step cleave_steps[] = {\n",
      steps_,
      "};\n\n/* Of each program, inputs first. */\n"
      "static const struct cleave_array cleave_arrays[] = {\n",
      arrays_, "};\n\n", outputs_,
      "\n/* The function first. */\n"
      "static const struct cleave_program cleave_programs[] = {\n",
      program_rows_, "};\n", KernelTable(levels), LevelFunction(levels),
      SizeFunction(interface), GuardFunction());
}

}  // namespace

std::string CDriver(const CInterface& interface,
                    const std::vector<DriverProgram>& programs,
                    const std::vector<TargetLevel>& levels) {
  Tables tables(programs);
  const std::string printed = tables.Print(interface, levels);
  std::string types = internal_aot::kDriverTypes;
  std::string functions = internal_aot::kDriverFunctions;
  if (tables.Runs("cleave_sort_lines")) {
    types += internal_aot::kSortTypes;
    functions += internal_aot::kSortFunctions;
  }
  if (programs.size() > 1) {
    types += internal_aot::kLoopTypes;
    functions += internal_aot::kLoopFunctions;
  }
  if (tables.Runs("cleave_scan") || tables.Runs("cleave_while")) {
    functions += internal_aot::kCarryFunctions;
  }
  for (const auto& [name, text] :
       {std::make_pair("cleave_scan", internal_aot::kScanFunction),
        std::make_pair("cleave_while", internal_aot::kWhileFunction),
        std::make_pair("cleave_cond", internal_aot::kCondFunction)}) {
    if (!tables.Runs(name)) continue;
    absl::StrAppend(&types, "\nstatic int ", name,
                    "(const void *about, int level, const int64_t *sizes,\n"
                    "    struct cleave_memory *memory);\n");
    functions += text;
  }
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
      types, kDimFunctions, printed, functions, internal_aot::kDriverRun,
      internal_aot::PublicFunctions(interface));
}

}  // namespace cleave
