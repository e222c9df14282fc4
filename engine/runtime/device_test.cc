// Kernels on devices: on OpenCL's (PoCL is one without hardware), and on CUDA's
// where there is one; elsewhere kernels compile for CUDA.

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/codegen/collapse_axes.h"
#include "engine/codegen/compile_group.h"
#include "engine/codegen/numerics.h"
#include "engine/runtime/cuda_driver.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_cases_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/skip.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

using ::testing::HasSubstr;

CompileOptions OptionsFor(Device device) {
  CompileOptions options = CaseOptions();
  options.device = device;
  return options;
}

// Whether this machine has NVIDIA's driver.
bool HasCuda() {
  static const bool found = dlopen("libcuda.so.1", RTLD_LAZY) != nullptr;
  return found;
}

class DeviceRuns : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    if (GetParam() == Device::kCuda && !HasCuda()) CLEAVE_SKIP(kHasNoCuda);
  }

  static CompileOptions DeviceOptions() { return OptionsFor(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(Devices, DeviceRuns,
                         ::testing::Values(Device::kOpenCl, Device::kCuda),
                         [](const auto& info) {
                           return std::string(DeviceName(info.param));
                         });

// The same sums in the same order, and every operation rounded alike: the bits
// of the interpreter, on a device that keeps to IEEE 754.
TEST_P(DeviceRuns, ComputesWhatTheInterpreterComputes) {
  for (const KernelCase& one : KernelCases()) {
    ExpectAgreement(one, DeviceOptions());
  }
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

constexpr char kColumns[] = R"(
graph (%x: f32[n, m]) -> (y: f32[n, m], s: f32[m]) {
  %1: f32[m] = reduce_sum(%x, axes: [0])
  %2: f32[m] = reduce_max(%x, axes: [0])
  %3: f32[n, m] = broadcast_in_dim(%2, axes: [1], shape: [n, m])
  %4: f32[n, m] = sub(%x, %3)
  return y = %4, s = %1
})";

// Columns are reduced in blocks of rows. The numbers are whole, so that no
// order of a sum rounds.
TEST_P(DeviceRuns, ReducesColumnsOfManyRows) {
  ASSERT_OK_AND_ASSIGN(
      const Kernel kernel,
      Compile(ParseCase(kColumns), Numerics(), DeviceOptions()));
  ASSERT_OK_AND_ASSIGN(const Kernel host,
                       Compile(ParseCase(kColumns), Numerics(), CaseOptions()));
  for (const int64_t rows : {511, 512, 513, 70000}) {
    for (const int64_t columns : {1, 5, 65}) {
      Tensor x(DType::kF32, {rows, columns});
      for (int64_t i = 0; i < x.size(); ++i) x.SetDouble(i, i * 37 % 101 - 50);
      ASSERT_OK_AND_ASSIGN(const auto got, kernel.Run({x}));
      ASSERT_OK_AND_ASSIGN(const auto want, host.Run({x}));
      EXPECT_TRUE(SameValue(got[0], want[0])) << rows << " " << columns;
      EXPECT_TRUE(SameValue(got[1], want[1])) << rows << " " << columns;
    }
  }
}

constexpr char kLongRows[] = R"(
graph (%x: f32[b, 40000]) -> (y: f32[b, 40000], s: f32[b], i: i64[b], t: f32[]) {
  %1: f32[b] = reduce_sum(%x, axes: [1])
  %2: f32[b] = reduce_max(%x, axes: [1])
  %3: f32[b, 40000] = broadcast_in_dim(%2, axes: [0], shape: [b, 40000])
  %4: f32[b, 40000] = sub(%x, %3)
  %5: i64[b] = argmax(%x, axes: [1])
  %6: f32[] = reduce_sum(%x, axes: [0, 1])
  return y = %4, s = %1, i = %5, t = %6
})";

// Rows of more elements than a block are reduced in blocks, and all elements in
// groups of blocks. The numbers are whole, so that no order of a sum rounds.
TEST_P(DeviceRuns, ReducesLongRowsInBlocks) {
  ASSERT_OK_AND_ASSIGN(
      const Kernel kernel,
      Compile(ParseCase(kLongRows), Numerics(), DeviceOptions()));
  ASSERT_OK_AND_ASSIGN(const Kernel host, Compile(ParseCase(kLongRows),
                                                  Numerics(), CaseOptions()));
  for (const int64_t rows : {1, 3, 70}) {
    Tensor x(DType::kF32, {rows, 40000});
    for (int64_t i = 0; i < x.size(); ++i) x.SetDouble(i, i * 37 % 101 - 50);
    ASSERT_OK_AND_ASSIGN(const auto got, kernel.Run({x}));
    ASSERT_OK_AND_ASSIGN(const auto want, host.Run({x}));
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(SameValue(got[i], want[i])) << rows << " " << i;
    }
  }
}

// A row's sum has one order on all targets, however many rows a block takes and
// wherever it stores their values.
TEST_P(DeviceRuns, GivesRowsTheBitsOfTheCpu) {
  for (const char* dtype : {"f32", "bf16", "f64"}) {
    // The device has a library of its own for exp of f64.
    const char* const function =
        absl::string_view(dtype) == "f64" ? "sqrt(" : "exp(";
    for (const int length : {1, 3, 32, 300, 5000, 16384}) {
      const std::string text =
          absl::StrReplaceAll(R"(
graph (%x: T[b, N]) -> (y: T[b, N], m: T[b], i: i64[b]) {
  %1: T[b] = reduce_max(%x, axes: [1], tie: "even")
  %2: T[b, N] = broadcast_in_dim(%1, axes: [0], shape: [b, N])
  %3: T[b, N] = sub(%x, %2)
  %4: T[b, N] = F(%3)
  %5: T[b] = reduce_sum(%4, axes: [1])
  %6: T[b, N] = broadcast_in_dim(%5, axes: [0], shape: [b, N])
  %7: T[b, N] = div(%4, %6)
  %8: i64[b] = argmax(%7, axes: [1])
  return y = %7, m = %5, i = %8
})",
                              {{"T[", absl::StrCat(dtype, "[")},
                               {"N]", absl::StrCat(length, "]")},
                               {"F(", function}});
      SCOPED_TRACE(text);
      const Graph graph = ParseCase(text);
      ASSERT_OK_AND_ASSIGN(const Kernel kernel,
                           Compile(graph, Numerics(), DeviceOptions()));
      ASSERT_OK_AND_ASSIGN(const Kernel host,
                           Compile(graph, Numerics(), CaseOptions()));
      std::mt19937_64 random(length);
      for (const int64_t rows : {1, 5, 33, 300}) {
        const Tensor x = SampleCase(graph.type(graph.inputs()[0].value),
                                    {{"b", rows}}, random);
        ASSERT_OK_AND_ASSIGN(const auto got, kernel.Run({x}));
        ASSERT_OK_AND_ASSIGN(const auto want, host.Run({x}));
        for (size_t i = 0; i < want.size(); ++i) {
          EXPECT_TRUE(SameValue(got[i], want[i])) << rows << " " << i;
        }
      }
    }
  }
}

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

TEST_P(DeviceRuns, KeepsThereWhatPassesFromKernelToKernel) {
  ASSERT_OK_AND_ASSIGN(
      const Kernel kernel,
      Compile(ParseCase(kChained), Numerics(), DeviceOptions()));
  const RunReport report = ReportOf(
      kernel, {Tensor(DType::kF32, {3, 5}), Tensor(DType::kF32, {5, 5})});
  ASSERT_EQ(report.steps.size(), 2);
  EXPECT_EQ(report.steps[0].device, DeviceName(GetParam()));
  EXPECT_EQ(report.steps[1].device, DeviceName(GetParam()));
  EXPECT_EQ(report.bytes_to_device, 4 * (15 + 25));
  EXPECT_EQ(report.bytes_to_host, 4 * 15);
  EXPECT_EQ(report.device_peak_bytes, 4 * (15 + 25 + 15));
}

TEST_P(DeviceRuns, LeavesToTheCpuWhatItHasNoCodeFor) {
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
            absl::StrCat("a structured kernel has no schedule for ",
                         DeviceName(GetParam())));
  EXPECT_THAT(report.ToString(), HasSubstr("on the CPU: a structured kernel"));
  // There and back twice.
  EXPECT_EQ(report.bytes_to_device, 2 * 4 * 280);
  EXPECT_EQ(report.bytes_to_host, 2 * 4 * 280);
}

TEST_P(DeviceRuns, RunsOnManyThreads) {
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

constexpr char kReturned[] = R"(
graph (%x: f32[b, n]) -> (same: f32[b, n], y: f32[b, n], again: f32[b, n]) {
  %1: f32[b, n] = exp(%x)
  return same = %x, y = %1, again = %1
})";

// A function of NVIDIA's driver.
template <typename Function>
Function* Driver(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_LAZY);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// A tensor in the memory of CUDA device 0, as PyTorch would hold it.
class CudaArray {
 public:
  explicit CudaArray(const Tensor& tensor)
      : dtype_(tensor.dtype()), shape_(tensor.shape()) {
    const auto driver = CudaDriver::Get();
    EXPECT_OK(driver.status());
    EXPECT_EQ(
        Driver<int(void*)>("cuCtxSetCurrent")(*(*driver)->PrimaryContext(0)),
        0);
    const size_t bytes = std::max<size_t>(tensor.byte_size(), 1);
    EXPECT_EQ(Driver<int(uint64_t*, size_t)>("cuMemAlloc_v2")(&address_, bytes),
              0);
    EXPECT_EQ(Driver<int(uint64_t, const void*, size_t)>("cuMemcpyHtoD_v2")(
                  address_, tensor.data(), tensor.byte_size()),
              0);
  }
  CudaArray(const CudaArray&) = delete;
  CudaArray& operator=(const CudaArray&) = delete;
  ~CudaArray() { Driver<int(uint64_t)>("cuMemFree_v2")(address_); }

  // Waits for the default stream.
  Tensor Read() const {
    Tensor tensor(dtype_, shape_);
    EXPECT_EQ(Driver<int(void*, uint64_t, size_t)>("cuMemcpyDtoH_v2")(
                  tensor.mutable_data(), address_, tensor.byte_size()),
              0);
    return tensor;
  }
  TensorView view() const {
    return {reinterpret_cast<void*>(address_), dtype_, shape_,
            DenseStrides(shape_), Device::kCuda};
  }
  MutableTensorView mutable_view() const {
    return {reinterpret_cast<void*>(address_), dtype_, shape_,
            DenseStrides(shape_), Device::kCuda};
  }

 private:
  uint64_t address_ = 0;
  DType dtype_;
  std::vector<int64_t> shape_;
};

Tensor Sampled(const std::vector<int64_t>& shape) {
  Tensor x(DType::kF32, shape);
  for (int64_t i = 0; i < x.size(); ++i) x.SetDouble(i, (i * 37 % 101) / 64.0);
  return x;
}

class CudaArrays : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasCuda()) CLEAVE_SKIP(kHasNoCuda);
  }

  // Runs the graph on arrays of the device, and compares all results with those
  // of tensors.
  static RunReport ExpectSame(const char* text,
                              const std::vector<Tensor>& inputs) {
    const absl::StatusOr<Kernel> kernel =
        Compile(ParseCase(text), Numerics(), OptionsFor(Device::kCuda));
    EXPECT_OK(kernel.status());
    const auto want = kernel->Run(inputs);
    EXPECT_OK(want.status());
    std::deque<CudaArray> from, to;
    std::vector<TensorView> input_views;
    std::vector<MutableTensorView> output_views;
    for (const Tensor& input : inputs) {
      input_views.push_back(from.emplace_back(input).view());
    }
    for (const Tensor& output : *want) {
      const Tensor empty(output.dtype(), output.shape());
      output_views.push_back(to.emplace_back(empty).mutable_view());
    }
    // Without a report nothing waits.
    EXPECT_OK(kernel->RunInto(input_views, output_views));
    for (size_t i = 0; i < want->size(); ++i) {
      EXPECT_TRUE(SameValue(to[i].Read(), (*want)[i])) << i;
    }
    RunReport report;
    RunOptions options;
    options.report = &report;
    EXPECT_OK(kernel->RunInto(input_views, output_views, options));
    return report;
  }
};

TEST_F(CudaArrays, AreReadAndWrittenWhereTheyLie) {
  const RunReport report =
      ExpectSame(kChained, {Sampled({300, 70}), Sampled({70, 70})});
  EXPECT_EQ(report.bytes_to_device, 0);
  EXPECT_EQ(report.bytes_to_host, 0);
  EXPECT_EQ(report.device_peak_bytes, 4 * 300 * 70);
  ExpectSame(kNormalized, {Sampled({5, 1000})});
  ExpectSame(kNormalized, {Sampled({3, 0})});
  EXPECT_EQ(ExpectSame(kReturned, {Sampled({5, 9})}).bytes_to_host, 0);
}

TEST_F(CudaArrays, AreCopiedForStepsOfTheCpu) {
  const RunReport report = ExpectSame(kScanned, {Sampled({4, 70})});
  EXPECT_EQ(report.bytes_to_host, 4 * 280);
  EXPECT_EQ(report.bytes_to_device, 4 * 280);
}

constexpr char kSums[] = R"(
graph (%x: f32[b, n]) -> (y: f32[b, n]) {
  %1: f32[b, n] = cumulative_sum(%x, axis: 1, reverse: false)
  return y = %1
})";

TEST_F(CudaArrays, AreCopiedWhereTheDeviceHasNoStep) {
  const RunReport report = ExpectSame(kSums, {Sampled({4, 70})});
  ASSERT_EQ(report.steps.size(), 1);
  EXPECT_EQ(report.steps[0].device, "cpu");
  EXPECT_EQ(report.bytes_to_host, 4 * 280);
  EXPECT_EQ(report.bytes_to_device, 4 * 280);
}

constexpr char kConvolved[] = R"(
graph (%x: f32[2, 3, 9, 9], %w: f32[4, 3, 3, 3]) -> (y: f32[2, 4, 9, 9]) {
  %1: f32[2, 4, 9, 9] = conv(%x, %w, batch_groups: 1, groups: 1, high: [1, 1], lhs_dilation: [1, 1], low: [1, 1], rhs_dilation: [1, 1], stride: [1, 1])
  return y = %1
})";

// Weights are looked at on the device, whether they are finite.
TEST_F(CudaArrays, AreConvolved) {
  ExpectSame(kConvolved, {Sampled({2, 3, 9, 9}), Sampled({4, 3, 3, 3})});
}

TEST_F(CudaArrays, MayOverlap) {
  const Tensor x = Sampled({5, 1000});
  ASSERT_OK_AND_ASSIGN(
      const Kernel kernel,
      Compile(ParseCase(kNormalized), Numerics(), OptionsFor(Device::kCuda)));
  ASSERT_OK_AND_ASSIGN(const auto want, kernel.Run({x}));
  const CudaArray both(x);
  Tensor sums(DType::kF32, {5});
  ASSERT_OK(kernel.RunInto(
      {both.view()},
      {both.mutable_view(), {sums.mutable_data(), DType::kF32, {5}, {1}}}));
  EXPECT_TRUE(SameValue(both.Read(), want[0]));
  EXPECT_TRUE(SameValue(sums, want[1]));
}

TEST_F(CudaArrays, AreDense) {
  ASSERT_OK_AND_ASSIGN(
      const Kernel kernel,
      Compile(ParseCase(kReturned), Numerics(), OptionsFor(Device::kCuda)));
  const CudaArray x(Sampled({4, 4}));
  TensorView transposed = x.view();
  transposed.strides = {1, 4};
  const MutableTensorView y = x.mutable_view();
  EXPECT_THAT(kernel.RunInto({transposed}, {y, y, y}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("the input `x` on a device, which is not")));
}

// No address is read.
TEST(Device, RefusesArraysOfOtherDevices) {
  ASSERT_OK_AND_ASSIGN(const Kernel kernel, Compile(ParseCase(kReturned),
                                                    Numerics(), CaseOptions()));
  const Tensor x = Sampled({2, 2});
  TensorView view = ViewOf(x);
  Tensor y = x;
  const MutableTensorView out = {
      y.mutable_data(), DType::kF32, {2, 2}, {2, 1}, Device::kCpu};
  view.device = Device::kCuda;
  EXPECT_THAT(kernel.RunInto({view}, {out, out, out}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("the input `x` is on a device of cuda")));
  view.device = Device::kOpenCl;
  EXPECT_THAT(kernel.RunInto({view}, {out, out, out}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("the input `x` on a device of opencl")));
}

TEST(Device, SaysThatItIsNotThere) {
  if (HasCuda()) CLEAVE_SKIP(kHasCuda);
  const auto kernel =
      Compile(ParseCase(kNormalized), Numerics(), OptionsFor(Device::kCuda));
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
      // CUDA's own fmod and ldexp scale by products.
      const bool takes_remainders = absl::StrContains(one.text, "] = rem(%");
      EXPECT_TRUE(!absl::StrContains(ptx, "\tmul.f32") || takes_remainders);
      EXPECT_TRUE(!absl::StrContains(ptx, "\tmul.f64") || takes_remainders ||
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
