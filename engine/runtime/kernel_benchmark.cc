// The costs of loading a kernel, calling it, sharing a loop among threads, and
// giving it scratch memory.

#include <stdlib.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "HalideBuffer.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "benchmark/benchmark.h"
#include "engine/codegen/halide/kernel_testing.h"
#include "engine/runtime/kernel_cache.h"
#include "engine/runtime/kernel_call.h"
#include "engine/runtime/kernel_library.h"
#include "engine/runtime/thread_pool.h"
#include "ops/check.h"

namespace cleave {
namespace {

using LibraryPointer = std::shared_ptr<const KernelLibrary>;

LibraryPointer Get(KernelCache& cache) {
  absl::StatusOr<LibraryPointer> library = cache.Get(
      "key", "target",
      [] { return absl::StatusOr<std::string>(TestKernels()); },
      [] { return absl::StatusOr<std::string>(TestRuntime()); });
  CLEAVE_CHECK_OK(library.status());
  return *std::move(library);
}

// A kernel that writes eight numbers, with or without a call of its own.
template <typename MakeCall>
void CallKernel(benchmark::State& state, MakeCall call) {
  KernelCache cache((KernelCacheOptions()));
  const LibraryPointer library = Get(cache);
  const KernelEntry entry = library->Find("marked").value();
  Halide::Runtime::Buffer<uint64_t> out(8);
  void* arguments[] = {nullptr, out.raw_buffer()};
  for (auto _ : state) {
    CLEAVE_CHECK(call(entry, absl::MakeSpan(arguments)));
  }
}

void BM_CallEntry(benchmark::State& state) {
  KernelCall call;
  void* context = &call;
  CallKernel(state, [&](KernelEntry entry, absl::Span<void*> arguments) {
    arguments[0] = &context;
    return entry(arguments.data()) == 0;
  });
}
BENCHMARK(BM_CallEntry);

void BM_Run(benchmark::State& state) {
  KernelCall call;
  CallKernel(state, [&](KernelEntry entry, absl::Span<void*> arguments) {
    return call.Run(entry, arguments).ok();
  });
}
BENCHMARK(BM_Run);

void BM_MakeCallAndRun(benchmark::State& state) {
  CallKernel(state, [](KernelEntry entry, absl::Span<void*> arguments) {
    KernelCall call;
    return call.Run(entry, arguments).ok();
  });
}
BENCHMARK(BM_MakeCallAndRun);

void BM_Scratch(benchmark::State& state) {
  KernelCall call;
  for (auto _ : state) KernelCall::Free(call.Allocate(4096));
}
BENCHMARK(BM_Scratch);

// By the number of tasks, which do nothing.
void BM_ParallelFor(benchmark::State& state) {
  const std::unique_ptr<ThreadPool> pool = MakeThreadPool(2);
  for (auto _ : state) {
    pool->ParallelFor(state.range(0), [](int64_t begin, int64_t end) {
      benchmark::DoNotOptimize(end);
    });
  }
}
BENCHMARK(BM_ParallelFor)->Arg(1)->Arg(2)->Arg(64)->UseRealTime();

void BM_GetFromMemory(benchmark::State& state) {
  KernelCache cache((KernelCacheOptions()));
  for (auto _ : state) benchmark::DoNotOptimize(Get(cache));
}
BENCHMARK(BM_GetFromMemory);

// Loads and unloads.
void BM_GetFromDisk(benchmark::State& state) {
  KernelCacheOptions options;
  const char* const parent = getenv("TEST_TMPDIR");
  options.folder = std::string(parent != nullptr ? parent : "/tmp") +
                   "/cleave-benchmark-XXXXXX";
  CLEAVE_CHECK(mkdtemp(&options.folder[0]) != nullptr);
  {
    KernelCache cache(options);
    Get(cache);
  }
  for (auto _ : state) {
    KernelCache cache(options);
    Get(cache);
    CLEAVE_CHECK(cache.stats().disk_hits == 1);
  }
  const std::string remove = "rm -r " + options.folder;
  CLEAVE_CHECK(system(remove.c_str()) == 0);
}
BENCHMARK(BM_GetFromDisk)->Unit(benchmark::kMicrosecond);

// The runtime, which a process loads once, and a library.
void BM_LoadRuntime(benchmark::State& state) {
  for (auto _ : state) {
    CLEAVE_CHECK_OK(KernelRuntime::Load(TestRuntime()).status());
  }
}
BENCHMARK(BM_LoadRuntime)->Unit(benchmark::kMicrosecond);

void BM_LoadLibrary(benchmark::State& state) {
  const auto runtime = KernelRuntime::Load(TestRuntime());
  CLEAVE_CHECK_OK(runtime.status());
  for (auto _ : state) {
    CLEAVE_CHECK_OK(KernelLibrary::Load(TestKernels(), *runtime).status());
  }
}
BENCHMARK(BM_LoadLibrary)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace cleave

BENCHMARK_MAIN();
