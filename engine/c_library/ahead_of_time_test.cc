#include "engine/c_library/ahead_of_time.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <random>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/c_library/c_interface.h"
#include "engine/files/file.h"
#include "engine/ir/bind.h"
#include "engine/ir/context.h"
#include "engine/ir/graph_text.h"
#include "engine/rules/rule_files.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/program.h"
#include "gtest/gtest.h"
#include "ops/check.h"
#include "ops/tensor.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

const RuleSet& Numerics() {
  static const auto* const rules = [] {
    const auto sources = ReadRuleFiles({"rules/numerics"});
    CLEAVE_CHECK(sources.ok());
    LoadResult loaded = LoadRules(*sources, std::make_shared<Context>());
    CLEAVE_CHECK(loaded.diagnostics.empty());
    return new std::shared_ptr<const RuleSet>(loaded.rules);
  }();
  return **rules;
}

Graph Parse(absl::string_view text) {
  auto graph = ParseGraph(text, Numerics().context());
  CLEAVE_CHECK(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::vector<Graph> GraphsOf(const std::string& file) {
  const auto text = ReadFile(file);
  CLEAVE_CHECK(text.ok());
  std::vector<Graph> graphs;
  for (absl::string_view block : absl::StrSplit(*text, "\n\n")) {
    const size_t begin = block.find("graph (");
    if (begin != absl::string_view::npos) {
      graphs.push_back(Parse(block.substr(begin)));
    }
  }
  return graphs;
}

// Numbers of many kinds; small ones, so that some are indices.
Tensor Sample(const TensorType& type, const DimValues& dims,
              std::mt19937_64& random) {
  Tensor tensor(type.dtype, *EvaluateShape(type.shape, dims));
  std::normal_distribution<double> normal(0, 3);
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, kInf, -kInf, NAN, 1e-40, 88.8, 6e-8};
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (IsFloat(type.dtype)) {
      const bool is_special = random() % 5 == 0;
      tensor.SetDouble(i, is_special ? special[random() % 8] : normal(random));
    } else {
      tensor.SetInt(
          i, static_cast<int64_t>(random() % (IsBool(type.dtype) ? 2 : 4)));
    }
  }
  return tensor;
}

// The files, in a folder of their own, and what is called through them.
class Libraries {
 public:
  Libraries()
      : folder_(
            absl::StrCat(::testing::TempDir(), "/ahead_of_time_", getpid())) {}
  ~Libraries() {
    if (handle_ != nullptr) dlclose(handle_);
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  absl::Status Add(const Graph& graph, const std::string& name) {
    AheadOfTimeOptions options;
    options.name = name;
    options.levels = {HostLevel()};
    const auto files = CompileAheadOfTime(graph, Numerics(), options);
    if (!files.ok()) return files.status();
    names_.push_back(name);
    const auto interface = MakeCInterface(graph, name);
    if (!interface.ok()) return interface.status();
    dims_.push_back(interface->dims);
    // A function of one type for all: dims, inputs, outputs.
    std::vector<std::string> arguments;
    for (size_t i = 0; i < interface->dims.size(); ++i) {
      arguments.push_back(absl::StrCat("d[", i, "]"));
    }
    for (size_t i = 0; i < graph.inputs().size(); ++i) {
      arguments.push_back(absl::StrCat("x[", i, "]"));
    }
    for (size_t i = 0; i < graph.outputs().size(); ++i) {
      arguments.push_back(absl::StrCat("y[", i, "]"));
    }
    absl::StrAppend(&source_, "#include \"", name, ".h\"\nint call_", name,
                    "(const int64_t *d, void **x, void **y) {\n  (void)d;\n"
                    "  (void)x;\n  return ",
                    name, "(", absl::StrJoin(arguments, ", "), ");\n}\n");
    return WriteFiles(*files, folder_);
  }

  // All libraries in one.
  void Link() {
    const std::string file = absl::StrCat(folder_, "/call.c");
    const std::string image = absl::StrCat(folder_, "/all.so");
    ASSERT_OK(WriteFileAtomically(file, source_));
    std::vector<std::string> command = {
        FindProgram("cc"), "-std=c99", "-Wall", "-Wextra", "-Werror",
        "-shared",         "-fPIC",    "-o",    image,     file};
    for (const std::string& name : names_) {
      command.push_back(absl::StrCat(folder_, "/lib", name, ".a"));
    }
    command.insert(command.end(), {"-Wl,--no-undefined", "-lm", "-lpthread"});
    ASSERT_OK_AND_ASSIGN(const pid_t child,
                         StartProgram(command, {}, STDERR_FILENO));
    ASSERT_EQ(WaitForProgram(child), "");
    handle_ = dlopen(image.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle_, nullptr) << dlerror();
  }

  int Call(size_t index, const DimValues& values, std::vector<Tensor>& inputs,
           std::vector<Tensor>& outputs) const {
    std::vector<int64_t> dims;
    for (const CInterface::Dimension& dim : dims_[index]) {
      dims.push_back(values.at(dim.variable));
    }
    std::vector<void*> x;
    for (Tensor& tensor : inputs) x.push_back(tensor.mutable_data());
    std::vector<void*> y;
    for (Tensor& tensor : outputs) y.push_back(tensor.mutable_data());
    const auto function =
        reinterpret_cast<int (*)(const int64_t*, void**, void**)>(
            dlsym(handle_, absl::StrCat("call_", names_[index]).c_str()));
    CLEAVE_CHECK(function != nullptr);
    return function(dims.data(), x.data(), y.data());
  }

 private:
  const std::string folder_;
  std::vector<std::string> names_;
  std::vector<std::vector<CInterface::Dimension>> dims_;
  std::string source_ = "#include <stdint.h>\n";
  void* handle_ = nullptr;
};

// Whether the kernel runs code of the runtime's own where a library does not.
bool RunsOwnCode(const Graph& graph) {
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (graph.node(Value{id}).op == ToOpId(Primitive::kSort)) continue;
    if (!RuntimeOperands(graph, Value{id}).empty()) return true;
  }
  return false;
}

struct Compared {
  size_t graphs = 0;
  int results = 0;
  std::set<int> errors;  // codes
};

bool TakesKeys(const Graph& graph) {
  return std::any_of(graph.inputs().begin(), graph.inputs().end(),
                     [&](const NamedValue& input) {
                       return graph.type(input.value).dtype == DType::kKey;
                     });
}

// The same bits as a Kernel, and errors where it has some. The bits of a NaN
// are not promised where different code computes it. Only a graph with
// reference kernels may be refused, and one that takes keys, which are no
// arrays of C.
void CompareWithKernels(const std::string& file, Compared* compared) {
  Libraries libraries;
  KernelCache cache({""});
  CompileOptions options;
  options.cache = &cache;
  std::vector<Graph> graphs;
  std::vector<Kernel> kernels;
  for (const Graph& graph : GraphsOf(file)) {
    SCOPED_TRACE(PrintGraph(graph));
    ASSERT_OK_AND_ASSIGN(Kernel kernel, Compile(graph, Numerics(), options));
    const absl::Status added =
        libraries.Add(graph, absl::StrCat("f", graphs.size()));
    if (TakesKeys(graph)) {
      EXPECT_THAT(added, StatusIs(absl::StatusCode::kUnimplemented,
                                  HasSubstr("is of dtype key")));
      continue;
    }
    if (!added.ok() && kernel.reference_groups() > 0) {
      EXPECT_THAT(added, StatusIs(absl::StatusCode::kUnimplemented,
                                  HasSubstr("not supported: a library with")));
      continue;
    }
    ASSERT_OK(added);
    graphs.push_back(graph);
    kernels.push_back(std::move(kernel));
  }
  compared->graphs = graphs.size();
  libraries.Link();
  if (::testing::Test::HasFatalFailure()) return;
  std::mt19937_64 random(7);
  for (size_t g = 0; g < graphs.size(); ++g) {
    const Graph& graph = graphs[g];
    SCOPED_TRACE(PrintGraph(graph));
    for (const int64_t n : {0, 1, 3, 32, 33, 257}) {
      for (const int64_t b : {1, 2, 0, 17}) {
        const DimValues dims = {{"n", n}, {"b", b}, {"m", 5}, {"k", n}};
        SCOPED_TRACE(absl::StrCat("n = ", n, ", b = ", b));
        std::vector<Tensor> inputs;
        bool typed = true;
        for (const NamedValue& input : graph.inputs()) {
          typed &= EvaluateShape(graph.type(input.value).shape, dims).ok();
        }
        if (!typed) continue;
        for (const NamedValue& input : graph.inputs()) {
          inputs.push_back(Sample(graph.type(input.value), dims, random));
        }
        const auto want = kernels[g].Run(inputs);
        std::vector<Tensor> got;
        for (const NamedValue& output : graph.outputs()) {
          const TensorType& type = graph.type(output.value);
          const auto shape = EvaluateShape(type.shape, dims);
          got.emplace_back(type.dtype,
                           shape.ok() ? *shape : std::vector<int64_t>{});
        }
        const int code = libraries.Call(g, dims, inputs, got);
        if (!want.ok()) {
          EXPECT_NE(code, 0) << want.status();
          compared->errors.insert(code);
          continue;
        }
        if (code == 8) continue;  // an infinite weight: not supported
        ASSERT_EQ(code, 0);
        ++compared->results;
        for (size_t i = 0; i < got.size(); ++i) {
          ASSERT_EQ(got[i].shape(), (*want)[i].shape());
          const size_t bytes = got[i].byte_size();  // 0: there is no data
          ASSERT_TRUE(bytes == 0 ||
                      std::memcmp(got[i].data(), (*want)[i].data(), bytes) ==
                          0 ||
                      (RunsOwnCode(graph) && SameValue(got[i], (*want)[i])))
              << "output " << graph.outputs()[i].name;
        }
      }
    }
  }
}

// The graphs that engine/runtime tests its kernels with.
TEST(AheadOfTime, LibrariesComputeWhatKernelsDo) {
  Compared compared;
  CompareWithKernels("engine/runtime/testdata/kernels.graphs", &compared);
  EXPECT_GT(compared.graphs, 25);
  EXPECT_GT(compared.results, 500);
  EXPECT_GT(compared.errors.size(), 0);
}

TEST(AheadOfTime, LibrariesSortAndGoAroundRegions) {
  Compared compared;
  CompareWithKernels("engine/c_library/testdata/loops.graphs", &compared);
  EXPECT_EQ(compared.graphs,
            GraphsOf("engine/c_library/testdata/loops.graphs").size());
  EXPECT_GT(compared.results, 200);
  // Sizes, an index, a condition that holds for too long.
  EXPECT_EQ(compared.errors, (std::set<int>{1, 4, 10}));
}

// Not supported: padding is absent, which an infinite weight would make NaN of,
// and a library has no interpreter to begin again with.
TEST(AheadOfTime, RefusesInfiniteWeightsBesidePadding) {
  Libraries libraries;
  for (const char* dtype : {"f16", "bf16", "f32", "f64"}) {
    const std::string x = absl::StrCat(dtype, "[2, 1, 5, 4]");
    ASSERT_OK(libraries.Add(
        Parse(absl::StrCat(
            "graph (%x: ", x, ", %w: ", dtype, "[1, 1, 3, 3]) -> (y: ", x,
            ") {\n  %1: ", x,
            " = conv(%x, %w, batch_groups: 1, groups: 1, high: [1, 1], "
            "lhs_dilation: [1, 1], low: [1, 1], rhs_dilation: [1, 1], stride: "
            "[1, 1])\n  return y = %1\n}\n")),
        absl::StrCat("conv_", dtype)));
  }
  libraries.Link();
  if (HasFatalFailure()) return;
  size_t index = 0;
  for (const DType dtype :
       {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    std::vector<Tensor> inputs = {Tensor(dtype, {2, 1, 5, 4}),
                                  Tensor(dtype, {1, 1, 3, 3})};
    std::vector<Tensor> y = {Tensor(dtype, {2, 1, 5, 4})};
    inputs[1].SetDouble(8, 65504);
    EXPECT_EQ(libraries.Call(index, {}, inputs, y), 0);
    for (const double weight : {std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::numeric_limits<double>::quiet_NaN()}) {
      inputs[1].SetDouble(8, weight);
      EXPECT_EQ(libraries.Call(index, {}, inputs, y), 8) << weight;
    }
    ++index;
  }
}

TEST(AheadOfTime, SaysWhyARegionIsNotSupported) {
  AheadOfTimeOptions options;
  options.name = "f";
  options.levels = {TargetLevel::kSse41};
  const Graph graph = Parse(
      "graph (%x: f32[n, m]) -> (y: i64[n]) {\n"
      "  %1: i64[n] = scan(%x, body: graph (%x: f32[m]) -> (y: i64[]) {\n"
      "    %1: i64[k, 1] = nonzero(%x, size: k)\n"
      "    %2: i64[] = reduce_sum(%1, axes: [0, 1])\n"
      "    return y = %2\n"
      "  }, carries: 0, consts: 0, length: n, reverse: false)\n"
      "  return y = %1\n"
      "}\n");
  EXPECT_THAT(
      CompileAheadOfTime(graph, Numerics(), options).status(),
      StatusIs(absl::StatusCode::kUnimplemented,
               HasSubstr("only a reference kernel computes: `nonzero`")));
}

TEST(AheadOfTime, EqualKernelsShareTheirCode) {
  AheadOfTimeOptions options;
  options.name = "f";
  options.levels = {TargetLevel::kSse41};
  // Over axes of their own: two kernels with the same loops.
  const Graph graph = Parse(
      "graph (%x: f32[n], %y: f32[m]) -> (a: f32[], b: f32[]) {\n"
      "  %2: f32[] = reduce_sum(%x, axes: [0])\n"
      "  %3: f32[] = reduce_sum(%y, axes: [0])\n"
      "  return a = %2, b = %3\n"
      "}\n");
  ASSERT_OK_AND_ASSIGN(const std::vector<NamedFile> files,
                       CompileAheadOfTime(graph, Numerics(), options));
  ASSERT_EQ(files.size(), 4);
  EXPECT_EQ(files[2].name, "f_driver.c");
  EXPECT_THAT(files[2].content, HasSubstr("cleave_kernels[1][2]"));
  EXPECT_THAT(files[2].content, HasSubstr("{cleave_f_0_level_0_argv,\n"
                                          "     cleave_f_0_level_0_argv}"));
}

}  // namespace
}  // namespace cleave
