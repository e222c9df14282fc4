// Kernels under many threads, processes, refused memory and damaged files.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph_text.h"
#include "engine/rules/rule_files.h"
#include "engine/runtime/kernel.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/check.h"
#include "testing/status_matchers.h"

namespace cleave {
namespace {

// Reads the rules anew: each caller has rules and a context of its own.
std::shared_ptr<const RuleSet> Numerics() {
  const auto sources = ReadRuleFiles({"rules/numerics"});
  CLEAVE_CHECK(sources.ok());
  LoadResult loaded = LoadRules(*sources, std::make_shared<Context>());
  CLEAVE_CHECK(loaded.diagnostics.empty());
  return loaded.rules;
}

// y = x + ... + x: another kernel, and another result, for each number.
absl::StatusOr<Kernel> Multiple(int times, const RuleSet& rules,
                                KernelCache& cache) {
  std::string text = "graph (%x: f32[n]) -> (y: f32[n]) {\n";
  std::string last = "%x";
  for (int i = 1; i < times; ++i) {
    absl::StrAppend(&text, "  %", i, ": f32[n] = add(", last, ", %x)\n");
    last = absl::StrCat("%", i);
  }
  absl::StrAppend(&text, "  return y = ", last, "\n}");
  const auto graph = ParseGraph(text, rules.context());
  CLEAVE_CHECK(graph.ok()) << graph.status();
  CompileOptions options;
  options.cache = &cache;
  return Compile(*graph, rules, options);
}

// Whether the kernel of Multiple(times) gives what it must.
bool IsRight(const Kernel& kernel, int times, int64_t n) {
  Tensor x(DType::kF32, {n});
  for (int64_t i = 0; i < n; ++i) x.SetDouble(i, static_cast<double>(i));
  const auto y = kernel.Run({x});
  if (!y.ok()) return false;
  for (int64_t i = 0; i < n; ++i) {
    if ((*y)[0].GetDouble(i) != static_cast<double>(times * i)) return false;
  }
  return true;
}

std::string Folder(absl::string_view name) {
  return absl::StrCat(::testing::TempDir(), "/", name, "-", getpid());
}

// Kernels outlive their places in the cache; those that were dropped come back.
TEST(KernelStress, ManyThreadsWithEviction) {
  KernelCacheOptions cache_options;
  cache_options.folder = Folder("eviction");
  cache_options.max_libraries = 2;
  KernelCache cache(cache_options);
  constexpr int kKernels = 3;
  std::vector<std::shared_ptr<const Kernel>> shared;
  const auto rules = Numerics();
  for (int k = 0; k < kKernels; ++k) {
    ASSERT_OK_AND_ASSIGN(Kernel kernel, Multiple(k + 2, *rules, cache));
    shared.push_back(std::make_shared<const Kernel>(std::move(kernel)));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 32; ++t) {
    threads.emplace_back([&, t] {
      const auto own = t % 8 == 0 ? Numerics() : nullptr;
      for (int i = 0; i < 1000; ++i) {
        const int k = (i * 7 + t) % kKernels;
        if (!IsRight(*shared[k], k + 2, 1 + (i + t) % 37)) ++wrong;
        if (own == nullptr || i % 50 != 0) continue;
        // Nobody else keeps these: they come and go.
        const int times = 10 + (i / 50 + t) % 4;
        const auto other = Multiple(times, *own, cache);
        if (!other.ok() || !IsRight(*other, times, 9)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(cache.stats().evicted_libraries, 0);
  EXPECT_GT(cache.stats().disk_hits, 0);
  EXPECT_EQ(cache.stats().compiled, kKernels + 4);
}

// Refuses one request, and counts what is not given back.
class RefusesOne : public Allocator {
 public:
  explicit RefusesOne(int number) : number_(number) {}
  void* Allocate(size_t bytes, size_t alignment) override {
    if (requests_++ == number_) {
      refused_ = true;
      return nullptr;
    }
    ++held_;
    return DefaultAllocator().Allocate(bytes, alignment);
  }
  void Free(void* address, size_t bytes) override {
    --held_;
    DefaultAllocator().Free(address, bytes);
  }
  bool refused() const { return refused_; }
  int held() const { return held_; }

 private:
  const int number_;
  std::atomic<int> requests_{0};
  std::atomic<int> held_{0};
  std::atomic<bool> refused_{false};
};

// A request that is refused is an error or, where other memory serves, none.
TEST(KernelStress, RefusalOfAnyRequest) {
  const auto rules = Numerics();
  KernelCache cache((KernelCacheOptions()));
  CompileOptions options;
  options.cache = &cache;
  const auto graph = ParseGraph(R"(
graph (%x: f32[b, n]) -> (y: f32[b, n], s: f32[], c: f32[b, n]) {
  %1: f32[b] = reduce_max(%x, axes: [1], tie: "even")
  %2: f32[b, n] = broadcast_in_dim(%1, axes: [0], shape: [b, n])
  %3: f32[b, n] = sub(%x, %2)
  %4: f32[b, n] = exp(%3)
  %5: f32[b] = reduce_sum(%4, axes: [1])
  %6: f32[b, n] = broadcast_in_dim(%5, axes: [0], shape: [b, n])
  %7: f32[b, n] = div(%4, %6)
  %8: f32[] = reduce_sum(%7, axes: [0, 1])
  %9: f32[b, n] = cumulative_max(%7, axis: 1, reverse: false)
  return y = %7, s = %8, c = %9
})",
                                rules->context());
  ASSERT_OK(graph.status());
  ASSERT_OK_AND_ASSIGN(const Kernel kernel, Compile(*graph, *rules, options));
  Tensor x(DType::kF32, {300, 400});
  for (int64_t i = 0; i < x.size(); ++i) x.SetDouble(i, (i * 37) % 101 * 0.1);
  // In other strides, so that it is packed first.
  const TensorView input = {x.data(), DType::kF32, {400, 300}, {1, 400}};
  const auto run = [&](Allocator* allocator, std::vector<Tensor>* outputs) {
    outputs->clear();
    std::vector<MutableTensorView> views;
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{400, 300}, {}, {400, 300}}) {
      outputs->emplace_back(DType::kF32, shape);
      views.push_back({outputs->back().mutable_data(), DType::kF32, shape,
                       DenseStrides(shape)});
    }
    RunOptions run_options;
    run_options.call.allocator = allocator;
    run_options.call.serial = true;
    return kernel.RunInto({input}, views, run_options);
  };
  std::vector<Tensor> want;
  ASSERT_OK(run(&DefaultAllocator(), &want));
  int number = 0;
  while (true) {
    RefusesOne allocator(number);
    std::vector<Tensor> got;
    const absl::Status status = run(&allocator, &got);
    EXPECT_EQ(allocator.held(), 0) << "request " << number;
    if (status.ok()) {
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_TRUE(SameValue(got[i], want[i])) << "request " << number;
      }
    } else {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    }
    if (!allocator.refused()) break;
    ASSERT_LT(++number, 1000);
  }
  EXPECT_GE(number, 1);
}

TEST(KernelStress, TwoProcessesShareAFolder) {
  KernelCacheOptions options;
  options.folder = Folder("processes");
  std::vector<pid_t> children;
  for (int c = 0; c < 2; ++c) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      KernelCache cache(options);
      const auto rules = Numerics();
      bool right = true;
      for (int times = 2; times < 5; ++times) {
        const auto kernel = Multiple(times, *rules, cache);
        right = right && kernel.ok() && IsRight(*kernel, times, 100);
      }
      _exit(right ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  // The files that they left are whole.
  KernelCache cache(options);
  const auto rules = Numerics();
  for (int times = 2; times < 5; ++times) {
    ASSERT_OK_AND_ASSIGN(const Kernel kernel, Multiple(times, *rules, cache));
    EXPECT_TRUE(IsRight(kernel, times, 100));
  }
  EXPECT_EQ(cache.stats().disk_hits, 3);
}

TEST(KernelStress, CompilesAgainWhereFilesAreDamaged) {
  KernelCacheOptions options;
  options.folder = Folder("damaged");
  const auto rules = Numerics();
  for (int damage = 0; damage < 3; ++damage) {
    KernelCache cache(options);
    ASSERT_OK_AND_ASSIGN(const Kernel kernel, Multiple(3, *rules, cache));
    EXPECT_TRUE(IsRight(kernel, 3, 50));
    EXPECT_EQ(cache.stats().compiled, 1);
    EXPECT_EQ(cache.stats().corrupt_files > 0, damage > 0);
    int files = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(options.folder)) {
      if (!entry.is_regular_file() || entry.file_size() == 0) continue;
      ++files;
      const auto size = entry.file_size();
      std::filesystem::permissions(entry.path(),
                                   std::filesystem::perms::owner_write,
                                   std::filesystem::perm_options::add);
      if (damage == 0) {
        std::filesystem::resize_file(entry.path(), size / 2);
      } else {
        std::fstream file(entry.path(),
                          std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(damage == 1 ? size / 2 : 0));
        file.write("damaged!", 8);
      }
    }
    EXPECT_GT(files, 0);
    // The kernel at hand does not depend on its file.
    EXPECT_TRUE(IsRight(kernel, 3, 50));
  }
}

}  // namespace
}  // namespace cleave
