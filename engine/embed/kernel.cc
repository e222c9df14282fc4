// Kernels: compiled, and run on the caller's memory.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "engine/c_library/ahead_of_time.h"
#include "engine/embed/describe.h"
#include "engine/embed/dlpack_types.h"
#include "engine/embed/dlpack_view.h"
#include "engine/embed/handles.h"
#include "engine/embed/json_text.h"
#include "engine/ir/graph_text.h"
#include "engine/rewrite/in_primitives.h"
#include "engine/runtime/allocator.h"
#include "engine/runtime/thread_pool.h"
#include "nlohmann/json.hpp"
#include "ops/status_macros.h"

namespace cleave::embed {
namespace {

// The host's threads.
class HostThreads : public ThreadPool {
 public:
  explicit HostThreads(const cleave_run_options& options) : options_(options) {}
  int threads() const override { return options_.threads; }
  void ParallelFor(
      int64_t tasks,
      absl::FunctionRef<void(int64_t begin, int64_t end)> body) override {
    if (tasks <= 0) return;
    options_.parallel_for(options_.parallel_context, tasks, &Call, &body);
  }

 private:
  static void Call(void* state, int64_t begin, int64_t end) {
    (*static_cast<absl::FunctionRef<void(int64_t, int64_t)>*>(state))(begin,
                                                                      end);
  }
  const cleave_run_options& options_;
};

// The host's memory.
class HostMemory : public Allocator {
 public:
  explicit HostMemory(const cleave_run_options& options) : options_(options) {}
  void* Allocate(size_t bytes, size_t alignment) override {
    return options_.allocate(options_.allocator_context, bytes, alignment);
  }
  void Free(void* address, size_t bytes) override {
    options_.release(options_.allocator_context, address, bytes);
  }

 private:
  const cleave_run_options& options_;
};

// All that a run takes from its options.
class Run {
 public:
  static absl::Status Check(const cleave_run_options& options) {
    if (options.parallel_for != nullptr && options.threads < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("`parallel_for` has ", options.threads, " threads"));
    }
    if ((options.allocate == nullptr) != (options.release == nullptr)) {
      return absl::InvalidArgumentError(
          "one of `allocate` and `release` is null");
    }
    return absl::OkStatus();
  }

  Run(const cleave_run_options& options, int device_ordinal)
      : options_(options), threads_(options), memory_(options) {
    run_.call.serial = options.serial != 0;
    run_.call.device_ordinal = device_ordinal;
    run_.call.stream = options.stream;
    if (options.parallel_for != nullptr) run_.call.pool = &threads_;
    if (options.allocate != nullptr) run_.call.allocator = &memory_;
    if (options.report != nullptr) run_.report = &report_.emplace();
    if (options.cancel != nullptr) {
      Limits limits;
      limits.cancelled = &options.cancel->now;
      scope_.emplace(limits, BudgetScope::Mode::kRenew);
    }
  }

  const RunOptions& options() const { return run_; }
  void GiveReport() {
    if (options_.report != nullptr) {
      *options_.report = NewText(ReportJson(*report_));
    }
  }

 private:
  const cleave_run_options& options_;
  HostThreads threads_;
  HostMemory memory_;
  std::optional<RunReport> report_;
  std::optional<BudgetScope> scope_;
  RunOptions run_;
};

using Views = absl::InlinedVector<ArrayView, 8>;

// The caller's tensors.
struct Tensors {
  const DLTensor* const* data = nullptr;
  size_t count = 0;
};

// The number of the CUDA device that tensors of a run are on; none so far.
using Ordinal = std::optional<int>;

// The views, with the dtypes that the graph gives them: a key comes as u64.
absl::Status ReadViews(Tensors tensors, const std::vector<NamedValue>& declared,
                       const Graph& graph, const char* what, Ordinal* ordinal,
                       Views* views) {
  if (tensors.data == nullptr && tensors.count > 0) {
    return absl::InvalidArgumentError(absl::StrCat("`", what, "s` is null"));
  }
  for (size_t i = 0; i < tensors.count; ++i) {
    CLEAVE_ASSIGN_OR_RETURN(ArrayView view, ViewOf(tensors.data[i], what, i));
    if (view.dtype == DType::kU64 && i < declared.size() &&
        graph.type(declared[i].value).dtype == DType::kKey) {
      view.dtype = DType::kKey;
    }
    if (view.device == Device::kCuda) {
      const int number = tensors.data[i]->device.device_id;
      if (ordinal->value_or(number) != number) {
        return absl::InvalidArgumentError(
            absl::StrCat(what, " ", i, " is on device ", number,
                         ", others of this run are on device ", **ordinal));
      }
      *ordinal = number;
    }
    views->push_back(view);
  }
  return absl::OkStatus();
}

// A run on them: `run` gets the kernel, views of both, and the options.
// `outputs` has none where the caller makes room later.
template <typename F>
cleave_status* RunOn(const cleave_kernel* kernel, Tensors inputs,
                     Tensors outputs, const cleave_run_options* options,
                     const F& run) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"kernel", kernel}}));
    CLEAVE_ASSIGN_OR_RETURN(const cleave_run_options read,
                            ReadStruct(options, "options"));
    CLEAVE_RETURN_IF_ERROR(Run::Check(read));
    const Graph& graph = kernel->kernel.graph();
    Ordinal ordinal;
    Views from;
    CLEAVE_RETURN_IF_ERROR(
        ReadViews(inputs, graph.inputs(), graph, "input", &ordinal, &from));
    Views to;
    CLEAVE_RETURN_IF_ERROR(
        ReadViews(outputs, graph.outputs(), graph, "output", &ordinal, &to));
    Run own(read, ordinal.value_or(0));
    CLEAVE_RETURN_IF_ERROR(run(kernel->kernel, from, to, own.options()));
    own.GiveReport();
    return absl::OkStatus();
  });
}

absl::StatusOr<CompileOptions> ReadCompileOptions(
    const cleave_compile_options& given) {
  CompileOptions options;
  if (given.device != nullptr) {
    CLEAVE_ASSIGN_OR_RETURN(options.device, ParseDevice(given.device));
  }
  if (given.level != nullptr) {
    CLEAVE_ASSIGN_OR_RETURN(options.level, ParseTargetLevel(given.level));
  }
  options.generalize_extents = given.generalize != 0;
  if (given.host_kernels != nullptr) {
    options.host_kernels = given.host_kernels->kernels;
  }
  return options;
}

absl::StatusOr<Kernel> CompileGraph(const cleave_graph& graph,
                                    const cleave_compile_options& given) {
  CLEAVE_ASSIGN_OR_RETURN(const CompileOptions options,
                          ReadCompileOptions(given));
  InPrimitivesOptions in_primitives;
  in_primitives.expand.preserve = options.host_kernels.Ops();
  in_primitives.simplify.approx = given.approx != 0;
  CLEAVE_ASSIGN_OR_RETURN(
      const Graph primitives,
      InPrimitives(graph.graph, *graph.rules, in_primitives));
  return Compile(primitives, *graph.rules, options);
}

absl::Status MakeLibrary(const cleave_graph& graph, const char* name,
                         const char* folder, const char* levels,
                         std::string* names) {
  AheadOfTimeOptions options;
  options.name = name;
  for (const absl::string_view level : absl::StrSplit(
           levels == nullptr ? "" : levels, ',', absl::SkipEmpty())) {
    CLEAVE_ASSIGN_OR_RETURN(options.levels.emplace_back(),
                            ParseTargetLevel(level));
  }
  CLEAVE_ASSIGN_OR_RETURN(const Graph primitives,
                          InPrimitives(graph.graph, *graph.rules, {}));
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<NamedFile> files,
      CompileAheadOfTime(primitives, *graph.rules, options));
  CLEAVE_RETURN_IF_ERROR(WriteFiles(files, folder));
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const NamedFile& file : files) list.push_back(file.name);
  *names = DumpJson(list);
  return absl::OkStatus();
}

}  // namespace
}  // namespace cleave::embed

using cleave::ArrayView;
using cleave::embed::CallScope;
using cleave::embed::CheckGiven;
using cleave::embed::Guarded;
using cleave::embed::ReadStruct;

void cleave_kernel_retain(cleave_kernel* kernel) {
  cleave::embed::Retain(kernel);
}
void cleave_kernel_release(cleave_kernel* kernel) {
  cleave::embed::Release(kernel);
}

cleave_status* cleave_kernel_compile(const cleave_graph* graph,
                                     const cleave_compile_options* compile,
                                     const cleave_call_options* options,
                                     cleave_kernel** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"graph", graph}, {"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(const auto scope, CallScope::Open(options));
    CLEAVE_ASSIGN_OR_RETURN(const cleave_compile_options given,
                            ReadStruct(compile, "compile"));
    CLEAVE_ASSIGN_OR_RETURN(cleave::Kernel kernel,
                            cleave::embed::CompileGraph(*graph, given));
    *out = new cleave_kernel{{1}, graph->rules, std::move(kernel)};
    return absl::OkStatus();
  });
}

void cleave_release_kept_memory(void) { cleave::ReleaseKeptMemory(); }

cleave_status* cleave_kernel_graph(const cleave_kernel* kernel,
                                   cleave_graph** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"kernel", kernel}, {"out", out}}));
    *out = cleave::embed::NewGraph(kernel->kernel.graph(), kernel->rules);
    return absl::OkStatus();
  });
}

cleave_status* cleave_kernel_run(const cleave_kernel* kernel,
                                 const DLTensor* const* inputs,
                                 size_t input_count,
                                 const DLTensor* const* outputs,
                                 size_t output_count,
                                 const cleave_run_options* options) {
  return cleave::embed::RunOn(
      kernel, {inputs, input_count}, {outputs, output_count}, options,
      [](const cleave::Kernel& run, const cleave::embed::Views& from,
         const cleave::embed::Views& to,
         const cleave::RunOptions& run_options) -> absl::Status {
        return run.RunViews(from, to, run_options);
      });
}

cleave_status* cleave_kernel_run_alloc(const cleave_kernel* kernel,
                                       const DLTensor* const* inputs,
                                       size_t input_count,
                                       cleave_make_output make_output,
                                       void* context,
                                       const cleave_run_options* options) {
  const auto make =
      [&](int output, cleave::DType dtype,
          absl::Span<const int64_t> shape) -> absl::StatusOr<void*> {
    DLTensor tensor = cleave::embed::DenseTensor(nullptr, dtype, shape);
    if (make_output(context, output, &tensor) != 0) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no room was made for output ", output));
    }
    // The caller may have set more than `data`.
    const DLTensor made = cleave::embed::DenseTensor(tensor.data, dtype, shape);
    CLEAVE_ASSIGN_OR_RETURN(const ArrayView view,
                            cleave::embed::ViewOf(&made, "output", output));
    return view.data;
  };
  return cleave::embed::RunOn(
      kernel, {inputs, input_count}, {}, options,
      [&](const cleave::Kernel& run, const cleave::embed::Views& from,
          const cleave::embed::Views&,
          const cleave::RunOptions& run_options) -> absl::Status {
        if (make_output == nullptr) {
          return absl::InvalidArgumentError("`make_output` is null");
        }
        return run.RunViews(from, make, run_options);
      });
}

cleave_status* cleave_compile_library(const cleave_graph* graph,
                                      const char* name, const char* folder,
                                      const char* levels,
                                      const cleave_call_options* options,
                                      cleave_text** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven(
        {{"graph", graph}, {"name", name}, {"folder", folder}, {"out", out}}));
    CLEAVE_ASSIGN_OR_RETURN(const auto scope, CallScope::Open(options));
    std::string names;
    CLEAVE_RETURN_IF_ERROR(
        cleave::embed::MakeLibrary(*graph, name, folder, levels, &names));
    *out = cleave::embed::NewText(std::move(names));
    return absl::OkStatus();
  });
}
