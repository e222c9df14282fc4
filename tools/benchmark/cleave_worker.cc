// The worker that tools/bench talks to: compiles functions of a rule file and
// times them on request, so that others can be timed in between.
//
//   cleave_worker --rules rules --functions functions.rules --cache FOLDER
//
// Commands are lines on stdin, words by blanks; each is answered by one line of
// JSON on stdout, {"error": "..."} where it fails. Paths name files of raw
// elements, little-endian, in row-major order.
//
//   prepare NAME FUNCTION none|jvp|vmap|vjp PATH:DTYPE:EXTENTxEXTENT...
//   store NAME PATH...        runs once; a file for each output
//   run NAME SAMPLES CALLS    nanoseconds of one call, as SAMPLES means of
//   CALLS release NAME copy BYTES SAMPLES        nanoseconds to copy so many
//   bytes, by all threads

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/codegen/target_level.h"
#include "engine/files/file.h"
#include "engine/ir/bind.h"
#include "engine/ir/substitute.h"
#include "engine/rewrite/in_primitives.h"
#include "engine/rules/rule_files.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "nlohmann/json.hpp"
#include "ops/status_macros.h"
#include "tools/benchmark/count_hooks.h"
#include "transforms/derived_rules.h"
#include "transforms/jvp/jvp.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

namespace cleave {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Where arrays of other libraries lie, too.
constexpr size_t kAlignment = 64;

struct Array {
  DType dtype;
  std::vector<int64_t> shape;
  size_t bytes = 0;
  std::unique_ptr<char, void (*)(void*)> data{nullptr, &std::free};
};

absl::StatusOr<Array> MakeArray(DType dtype, std::vector<int64_t> shape) {
  Array array;
  array.dtype = dtype;
  array.bytes = ByteSize(dtype);
  for (const int64_t extent : shape) array.bytes *= extent;
  array.shape = std::move(shape);
  const size_t room = (array.bytes / kAlignment + 1) * kAlignment;
  array.data.reset(static_cast<char*>(std::aligned_alloc(kAlignment, room)));
  if (array.data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for ", array.bytes, " bytes"));
  }
  return array;
}

// One function, compiled, with its inputs and room for its outputs.
struct Prepared {
  Kernel kernel;
  std::vector<Array> inputs;
  std::vector<Array> outputs;
  std::vector<TensorView> input_views;
  std::vector<MutableTensorView> output_views;
};

struct WorkerFlags {
  std::string rules;
  std::string functions;
  std::string cache;
  int threads = 2;
  bool open_extents = false;
};

absl::StatusOr<int64_t> ParseCount(const std::string& word) {
  int64_t count = 0;
  if (!absl::SimpleAtoi(word, &count) || count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", word, "` is no number from 1 on"));
  }
  return count;
}

// PATH:DTYPE:EXTENTxEXTENT; nothing after the last colon is a scalar.
absl::StatusOr<Array> ReadArray(const std::string& word) {
  const std::vector<std::string> parts = absl::StrSplit(word, ':');
  if (parts.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", word, "` is not PATH:DTYPE:EXTENTxEXTENT"));
  }
  CLEAVE_ASSIGN_OR_RETURN(const DType dtype, ParseDType(parts[1]));
  std::vector<int64_t> shape;
  for (const auto& extent : absl::StrSplit(parts[2], 'x', absl::SkipEmpty())) {
    CLEAVE_ASSIGN_OR_RETURN(shape.emplace_back(),
                            ParseCount(std::string(extent)));
  }
  CLEAVE_ASSIGN_OR_RETURN(Array array, MakeArray(dtype, std::move(shape)));
  CLEAVE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(parts[0]));
  if (bytes.size() != array.bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        parts[0], " has ", bytes.size(), " bytes, not ", array.bytes));
  }
  std::memcpy(array.data.get(), bytes.data(), bytes.size());
  return array;
}

absl::StatusOr<Graph> Transform(const Graph& graph,
                                const std::string& transform,
                                const RuleSet& rules) {
  if (transform == "none") return graph;
  if (transform == "vmap") {
    return Vmap(graph, std::vector<int>(graph.inputs().size(), 0),
                Dim::Variable("batch"),
                std::vector<int>(graph.outputs().size(), 0), rules);
  }
  if (transform == "jvp") {
    CLEAVE_ASSIGN_OR_RETURN(
        JvpResult result,
        Jvp(graph, std::vector<bool>(graph.inputs().size(), true), rules));
    return std::move(result.graph);
  }
  if (transform == "vjp") {
    std::vector<bool> active;
    for (const NamedValue& input : graph.inputs()) {
      active.push_back(IsFloat(graph.type(input.value).dtype));
    }
    CLEAVE_ASSIGN_OR_RETURN(VjpResult result, Vjp(graph, active, rules));
    return std::move(result.graph);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("`", transform, "` is not none, jvp, vmap or vjp"));
}

// The values of the dimension variables, by the inputs' shapes.
absl::StatusOr<DimValues> BindInputs(const Graph& graph,
                                     const std::vector<Array>& inputs) {
  if (inputs.size() != graph.inputs().size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        inputs.size(), " inputs are given, not ", graph.inputs().size()));
  }
  std::vector<DimEquation> equations;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = graph.type(graph.inputs()[i].value).shape;
    if (shape.size() != inputs[i].shape.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the input `", graph.inputs()[i].name, "` has ",
                       shape.size(), " axes"));
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      equations.push_back(
          {shape[d], inputs[i].shape[d], graph.inputs()[i].name});
    }
  }
  DimValues values;
  CLEAVE_RETURN_IF_ERROR(BindEquations(std::move(equations), &values));
  return values;
}

class Worker {
 public:
  Worker(const WorkerFlags& flags, std::shared_ptr<const RuleSet> rules)
      : open_extents_(flags.open_extents),
        rules_(std::move(rules)),
        cache_({flags.cache}),
        pool_(MakeThreadPool(flags.threads)) {}

  absl::StatusOr<Json> Answer(const Words& words) {
    const auto is = [&](const char* command, size_t least) {
      return !words.empty() && words[0] == command && words.size() >= least;
    };
    if (is("prepare", 4)) return Prepare(words);
    if (is("store", 2)) return Store(words);
    if (is("run", 4)) return Run(words);
    if (is("copy", 3)) return Copy(words);
    if (is("release", 2)) {
      prepared_.erase(words[1]);
      return Json::object();
    }
    return absl::InvalidArgumentError("no such command");
  }

 private:
  absl::StatusOr<Json> Prepare(const Words& words) {
    std::vector<Array> inputs;
    for (size_t i = 4; i < words.size(); ++i) {
      CLEAVE_ASSIGN_OR_RETURN(inputs.emplace_back(), ReadArray(words[i]));
    }
    const int64_t compiled_before = cache_.stats().compiled;
    const int64_t start = Now();
    CLEAVE_ASSIGN_OR_RETURN(Graph graph, rules_->Function(words[2]));
    CLEAVE_ASSIGN_OR_RETURN(graph, Transform(graph, words[3], *rules_));
    CLEAVE_ASSIGN_OR_RETURN(const DimValues values, BindInputs(graph, inputs));
    if (!open_extents_) {
      DimSubstitution numbers;
      for (const auto& [name, value] : values) numbers[name] = Dim(value);
      CLEAVE_ASSIGN_OR_RETURN(graph, SubstituteDims(graph, numbers));
    }
    CLEAVE_ASSIGN_OR_RETURN(graph, InPrimitives(graph, *rules_));
    const int64_t expanded = Now();
    CompileOptions options;
    options.cache = &cache_;
    CLEAVE_ASSIGN_OR_RETURN(Kernel kernel, Compile(graph, *rules_, options));
    const int64_t end = Now();
    Prepared entry = {std::move(kernel), std::move(inputs), {}, {}, {}};
    for (const Array& input : entry.inputs) {
      entry.input_views.push_back({input.data.get(), input.dtype, input.shape,
                                   DenseStrides(input.shape)});
    }
    for (const NamedValue& output : entry.kernel.graph().outputs()) {
      const TensorType& type = entry.kernel.graph().type(output.value);
      CLEAVE_ASSIGN_OR_RETURN(std::vector<int64_t> shape,
                              EvaluateShape(type.shape, values));
      CLEAVE_ASSIGN_OR_RETURN(Array array,
                              MakeArray(type.dtype, std::move(shape)));
      entry.output_views.push_back({array.data.get(), array.dtype, array.shape,
                                    DenseStrides(array.shape)});
      entry.outputs.push_back(std::move(array));
    }
    Json answer = {{"expand_ns", expanded - start},
                   {"compile_ns", end - start},
                   {"compiled", cache_.stats().compiled - compiled_before}};
    CLEAVE_RETURN_IF_ERROR(Count(entry, &answer));
    prepared_.insert_or_assign(words[1], std::move(entry));
    return answer;
  }

  // Counts and times the work of one call by the hooks that kernels call: the
  // pool once for each parallel loop, the allocator for values between kernels.
  // A call before it touches the memory of the results.
  absl::Status Count(const Prepared& entry, Json* answer) {
    CLEAVE_RETURN_IF_ERROR(Call(entry));
    CountingPool pool(pool_.get());
    CountingAllocator allocator;
    RunReport report;
    RunOptions options;
    options.call.pool = &pool;
    options.call.allocator = &allocator;
    options.report = &report;
    CLEAVE_RETURN_IF_ERROR(
        entry.kernel.RunInto(entry.input_views, entry.output_views, options));
    Json reference = Json::array();
    Json steps = Json::array();
    for (const StepReport& step : report.steps) {
      if (!step.why.empty()) {
        reference.push_back(absl::StrCat(step.ops.front(), ": ", step.why));
      }
      steps.push_back({{"kind", step.kind},
                       {"operations", step.ops.size()},
                       {"ns", step.nanoseconds}});
    }
    (*answer)["kernels"] = report.steps.size();
    (*answer)["steps"] = std::move(steps);
    (*answer)["reference"] = std::move(reference);
    (*answer)["parallel_loops"] = pool.loops().size();
    (*answer)["allocations"] = allocator.allocations();
    (*answer)["allocated_bytes"] = allocator.peak_bytes();
    Json loops = Json::array();
    for (const CountingPool::Loop& loop : pool.loops()) {
      loops.push_back({{"tasks", loop.tasks}, {"ns", loop.nanoseconds}});
    }
    (*answer)["loops"] = std::move(loops);
    (*answer)["call_ns"] = report.nanoseconds;
    return absl::OkStatus();
  }

  absl::StatusOr<Prepared*> Find(const std::string& name) {
    const auto it = prepared_.find(name);
    if (it == prepared_.end()) {
      return absl::NotFoundError(absl::StrCat("`", name, "` is not prepared"));
    }
    return &it->second;
  }

  absl::Status Call(const Prepared& entry) const {
    RunOptions options;
    options.call.pool = pool_.get();
    return entry.kernel.RunInto(entry.input_views, entry.output_views, options);
  }

  absl::StatusOr<Json> Store(const Words& words) {
    CLEAVE_ASSIGN_OR_RETURN(Prepared* const entry, Find(words[1]));
    if (words.size() != 2 + entry->outputs.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", words[1], "` has ", entry->outputs.size(), " outputs"));
    }
    // Bytes of an earlier call must not pass for a result.
    for (const Array& output : entry->outputs) {
      std::memset(output.data.get(), 0xff, output.bytes);
    }
    CLEAVE_RETURN_IF_ERROR(Call(*entry));
    for (size_t i = 0; i < entry->outputs.size(); ++i) {
      const Array& output = entry->outputs[i];
      CLEAVE_RETURN_IF_ERROR(WriteFileAtomically(
          words[2 + i], absl::string_view(output.data.get(), output.bytes),
          Durability::kVolatile));
    }
    return Json::object();
  }

  absl::StatusOr<Json> Run(const Words& words) {
    CLEAVE_ASSIGN_OR_RETURN(Prepared* const entry, Find(words[1]));
    CLEAVE_ASSIGN_OR_RETURN(const int64_t samples, ParseCount(words[2]));
    CLEAVE_ASSIGN_OR_RETURN(const int64_t calls, ParseCount(words[3]));
    CLEAVE_RETURN_IF_ERROR(Call(*entry));  // wakes the threads, warms the cache
    std::vector<double> times;
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t start = Now();
      for (int64_t c = 0; c < calls; ++c) CLEAVE_RETURN_IF_ERROR(Call(*entry));
      times.push_back(static_cast<double>(Now() - start) / calls);
    }
    return Json{{"ns", times}};
  }

  absl::StatusOr<Json> Copy(const Words& words) {
    CLEAVE_ASSIGN_OR_RETURN(const int64_t bytes, ParseCount(words[1]));
    CLEAVE_ASSIGN_OR_RETURN(const int64_t samples, ParseCount(words[2]));
    if (static_cast<int64_t>(from_.size()) != bytes) {
      from_.assign(bytes, '\1');
      to_.assign(bytes, '\2');
    }
    const int64_t parts = pool_->threads();
    const auto copy = [&](int64_t begin, int64_t end) {
      const int64_t first = bytes * begin / parts;
      const int64_t size = bytes * end / parts - first;
      std::memcpy(&to_[first], &from_[first], size);
    };
    pool_->ParallelFor(parts, copy);
    std::vector<double> times;
    for (int64_t s = 0; s < samples; ++s) {
      const int64_t start = Now();
      pool_->ParallelFor(parts, copy);
      times.push_back(static_cast<double>(Now() - start));
    }
    return Json{{"ns", times}};
  }

  const bool open_extents_;
  const std::shared_ptr<const RuleSet> rules_;
  KernelCache cache_;
  const std::unique_ptr<ThreadPool> pool_;
  std::map<std::string, Prepared> prepared_;
  std::string from_, to_;
};

int Serve(const WorkerFlags& flags) {
  const int64_t start = Now();
  const absl::StatusOr<std::vector<NamedSource>> sources =
      ReadRuleFiles({flags.rules, flags.functions});
  if (!sources.ok()) {
    std::cerr << "cleave_worker: " << sources.status().message() << "\n";
    return 2;
  }
  LoadResult loaded =
      LoadRules(*sources, std::make_shared<Context>(), WithTransforms());
  for (const std::string& diagnostic : loaded.diagnostics) {
    std::cerr << diagnostic;
  }
  if (loaded.rules == nullptr) return 2;
  Worker worker(flags, std::move(loaded.rules));
  std::cout << Json{{"version", TargetLevelName(HostLevel())},
                    {"load_ns", Now() - start}}
            << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    const Words words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    const absl::StatusOr<Json> answer = worker.Answer(words);
    if (answer.ok()) {
      std::cout << *answer << std::endl;
    } else {
      std::cout << Json{{"error", std::string(answer.status().message())}}
                << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace cleave

int main(int argc, char** argv) {
  CLI::App app("Times functions of a rule file on request.", "cleave_worker");
  cleave::WorkerFlags flags;
  app.add_option("--rules", flags.rules, "The shipped rules")->required();
  app.add_option("--functions", flags.functions, "The functions to time")
      ->required();
  app.add_option("--cache", flags.cache, "The folder of compiled kernels")
      ->required();
  app.add_option("--threads", flags.threads, "Threads of a call")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--open-extents", flags.open_extents,
               "Kernels for all extents, not for the inputs' own");
  CLI11_PARSE(app, argc, argv);
  return cleave::Serve(flags);
}
