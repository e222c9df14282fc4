// Kernels on a device: on OpenCL's they run (PoCL is one without hardware), for
// CUDA they compile.

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/codegen/collapse_axes.h"
#include "engine/codegen/compile_group.h"
#include "engine/codegen/numerics.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_cases_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/skip.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

CompileOptions DeviceOptions() {
  CompileOptions options = CaseOptions();
  options.device = Device::kOpenCl;
  return options;
}

// The same sums in the same order, and every operation rounded alike: the bits
// of the interpreter, on a device that keeps to IEEE 754.
TEST(Device, ComputesWhatTheInterpreterComputes) {
  for (const KernelCase& one : KernelCases()) {
    if (one.on_devices) ExpectAgreement(one, DeviceOptions());
  }
}

// Not supported on devices: a loop over nothing whose body reads by the last of
// its places. Halide's check before the loop refuses the place -1, and a buffer
// of a device cannot be taken for larger than it is, as one of the CPU is.
TEST(Device, RefusesLoopsOverNothingThatReadTheirLastPlace) {
  int cases = 0;
  for (const KernelCase& one : KernelCases()) {
    if (one.on_devices) continue;
    ++cases;
    ASSERT_OK_AND_ASSIGN(
        const Kernel kernel,
        Compile(ParseCase(one.text), Numerics(), DeviceOptions()));
    EXPECT_THAT(
        kernel.Run({Tensor(DType::kI32, {5, 5}), Tensor(DType::kBool, {0})}),
        StatusIs(absl::StatusCode::kInternal, HasSubstr("-1")))
        << "it is supported now: run the case on devices, too";
  }
  EXPECT_EQ(cases, 1);
}

constexpr char kNormalized[] = R"(
graph (%x: f32[b, n]) -> (y: f32[b, n], z: f32[b]) {
  %1: f32[b] = reduce_sum(%x, axes: [1])
  %2: f32[b, n] = broadcast_in_dim(%1, axes: [0], shape: [b, n])
  %3: f32[b, n] = div(%x, %2)
  return y = %3, z = %1
})";

constexpr char kScanned[] = R"(
graph (%x: f32[b, n]) -> (y: f32[b, n]) {
  %1: f32[b, n] = exp(%x)
  %2: f32[b, n] = cumulative_max(%1, axis: 1, reverse: false)
  %3: f32[b, n] = neg(%2)
  return y = %3
})";

constexpr char kChained[] = R"(
graph (%x: f32[b, n], %w: f32[n, n]) -> (y: f32[b, n]) {
  %1: f32[b, n] = dot_general(%x, %w, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  %2: f32[b, n] = dot_general(%1, %w, batch_a: [], batch_b: [], contract_a: [1], contract_b: [0])
  return y = %2
})";

RunReport ReportOf(const Kernel& kernel, const std::vector<Tensor>& inputs) {
  RunReport report;
  RunOptions options;
  options.report = &report;
  EXPECT_OK(kernel.Run(inputs, options).status());
  return report;
}

TEST(Device, KeepsThereWhatPassesFromKernelToKernel) {
  ASSERT_OK_AND_ASSIGN(
      const Kernel kernel,
      Compile(ParseCase(kChained), Numerics(), DeviceOptions()));
  const RunReport report = ReportOf(
      kernel, {Tensor(DType::kF32, {3, 5}), Tensor(DType::kF32, {5, 5})});
  ASSERT_EQ(report.steps.size(), 2);
  EXPECT_EQ(report.steps[0].device, "opencl");
  EXPECT_EQ(report.steps[1].device, "opencl");
  EXPECT_EQ(report.bytes_to_device, 4 * (15 + 25));
  EXPECT_EQ(report.bytes_to_host, 4 * 15);
  EXPECT_EQ(report.device_peak_bytes, 4 * (15 + 25 + 15));
}

TEST(Device, LeavesToTheCpuWhatItHasNoCodeFor) {
  const Graph graph = ParseCase(kScanned);
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), DeviceOptions()));
  ASSERT_OK_AND_ASSIGN(const Kernel host,
                       Compile(graph, Numerics(), CaseOptions()));
  std::mt19937_64 random(3);
  const Tensor x = SampleCase(graph.type(graph.inputs()[0].value),
                              {{"b", 4}, {"n", 70}}, random);
  ASSERT_OK_AND_ASSIGN(const auto got, kernel.Run({x}));
  ASSERT_OK_AND_ASSIGN(const auto want, host.Run({x}));
  EXPECT_TRUE(SameValue(got[0], want[0]));
  const RunReport report = ReportOf(kernel, {x});
  ASSERT_EQ(report.steps.size(), 3);
  EXPECT_EQ(report.steps[1].device, "cpu");
  EXPECT_EQ(report.steps[1].why,
            "a structured kernel has no schedule for opencl");
  EXPECT_THAT(report.ToString(), HasSubstr("on the CPU: a structured kernel"));
  // There and back twice.
  EXPECT_EQ(report.bytes_to_device, 2 * 4 * 280);
  EXPECT_EQ(report.bytes_to_host, 2 * 4 * 280);
}

TEST(Device, RunsOnManyThreads) {
  const Graph graph = ParseCase(kNormalized);
  ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                       Compile(graph, Numerics(), DeviceOptions()));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        const int64_t n = 1 + (i * 7 + t) % 90;
        Tensor x(DType::kF32, {2, n});
        for (int64_t j = 0; j < 2 * n; ++j) x.SetDouble(j, t + 1);
        const auto y = kernel.Run({x});
        if (!y.ok() || (*y)[1].GetDouble(1) != n * (t + 1)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Device, SaysThatItIsNotThere) {
  if (std::system("ldconfig -p | grep -q libcuda.so") == 0) {
    CLEAVE_SKIP(kHasCuda);
  }
  CompileOptions options = CaseOptions();
  options.device = Device::kCuda;
  const auto kernel = Compile(ParseCase(kNormalized), Numerics(), options);
  EXPECT_EQ(kernel.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(kernel.status().message()),
              HasSubstr("there is no cuda device: "));
}

// The PTX of all groups of a graph.
std::vector<std::string> PtxOf(const std::string& text) {
  std::vector<std::string> sources;
  const Graph graph = ParseCase(text);
  const auto plan = PlanFusion(graph, {/*totals_with_rows=*/false});
  EXPECT_OK(plan.status());
  for (const FusionGroup& group : plan->groups) {
    if (!CanRunOn(Device::kCuda, group.kind).ok()) continue;
    const auto extracted = ExtractGroup(graph, group, {});
    const auto body = ApplyNumerics(*CollapseAxes(extracted.graph), Numerics());
    EXPECT_OK(body.status());
    const auto object = CompileGroups({{&*body, group.kind, "kernel"}},
                                      TargetLevel::kSse41, Device::kCuda);
    EXPECT_OK(object.status());
    if (!object.ok()) continue;
    const size_t begin = object->find(".version");
    EXPECT_NE(begin, std::string::npos);
    sources.push_back(object->substr(begin, object->find('\0', begin) - begin));
  }
  return sources;
}

// The errors of ptxas for the source; empty if it takes it.
std::string Assemble(const std::string& ptx) {
  const std::string file = ::testing::TempDir() + "/kernel.ptx";
  const std::string words = file + ".out";
  std::ofstream(file) << ptx;
  const std::string command =
      absl::StrCat("ptxas --gpu-name sm_90 ", file, " -o ", file, ".cubin > ",
                   words, " 2>&1");
  if (std::system(command.c_str()) == 0) return "";
  std::ifstream in(words);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

TEST(Device, CompilesForCuda) {
  const bool has_ptxas = std::system("ptxas --version > /dev/null 2>&1") == 0;
  int count = 0;
  for (const KernelCase& one : KernelCases()) {
    SCOPED_TRACE(one.text);
    for (const std::string& ptx : PtxOf(one.text)) {
      ++count;
      // Nothing flushes subnormal numbers, and no product is left unrounded,
      // so that nothing can be fused.
      EXPECT_FALSE(absl::StrContains(ptx, ".ftz"));
      EXPECT_FALSE(absl::StrContains(ptx, "\tmul.f32"));
      // CUDA's own ldexp scales by products.
      EXPECT_TRUE(!absl::StrContains(ptx, "\tmul.f64") ||
                  absl::StrContains(one.text, "reduce_prod"));
      EXPECT_FALSE(absl::StrContains(ptx, "div.full"));
      EXPECT_FALSE(absl::StrContains(ptx, "approx"));
      if (has_ptxas) {
        EXPECT_EQ(Assemble(ptx), "");
      }
    }
  }
  EXPECT_GT(count, 30);
}

}  // namespace
}  // namespace cleave
