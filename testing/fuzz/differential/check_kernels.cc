#include "testing/fuzz/differential/check_kernels.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/interpreter.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/thread_pool.h"
#include "testing/fuzz/differential/compare.h"
#include "testing/fuzz/differential/layout.h"
#include "testing/fuzz/differential/random.h"

namespace cleave::fuzz {
namespace {

// One way to compile.
struct Way {
  std::string name;
  CompileOptions options;
};

// Two of them, since code takes time to make.
std::vector<Way> WaysOf(uint64_t choice, KernelCache& cache) {
  const std::vector<TargetLevel> levels = HostLevels();
  Random random(choice);
  Way first;
  first.options.cache = &cache;
  const size_t level = random.Next() % levels.size();
  first.options.level = levels[level];
  first.name = std::string(TargetLevelName(levels[level]));
  Way second = first;
  switch (random.Between(0, 3)) {
    case 0:
      second.options.plain_schedule = true;
      second.name += ", plain loops";
      break;
    case 1:
      second.options.generalize_extents = true;
      second.name += ", open extents";
      break;
    default: {
      const size_t other = (level + 1) % levels.size();
      if (other == level) return {first};
      second.options.level = levels[other];
      second.name = std::string(TargetLevelName(levels[other]));
    }
  }
  return {first, second};
}

// The kernel on inputs of any strides, and results within arrays, held to what
// it gives on tensors.
bool CheckLayouts(const Kernel& kernel, const std::vector<Tensor>& inputs,
                  const std::string& what, Random& random, Outcome& outcome) {
  std::vector<Tensor> dense;
  std::vector<LaidOut> laid_out;
  std::string layouts;
  for (const Tensor& input : inputs) {
    std::vector<bool> repeated(input.rank(), false);
    for (size_t d = 0; d < repeated.size(); ++d) repeated[d] = random.OneIn(6);
    dense.push_back(Repeated(input, repeated));
    laid_out.push_back(LaidOut::Any(dense.back(), repeated, random));
    absl::StrAppend(&layouts, laid_out.back().Describe(), "\n");
  }
  RunOptions serial;
  serial.call.serial = true;
  const Results want = kernel.Run(dense, serial);
  if (!want.ok()) return true;  // as what shape, nothing says
  std::vector<LaidOut> results;
  for (const Tensor& tensor : *want) {
    results.push_back(
        LaidOut::Dense(Tensor(tensor.dtype(), tensor.shape()), random));
    absl::StrAppend(&layouts, "result ", results.back().Describe(), "\n");
  }
  std::vector<TensorView> from;
  std::vector<MutableTensorView> to;
  for (const LaidOut& one : laid_out) from.push_back(one.view());
  for (LaidOut& one : results) to.push_back(one.mutable_view());
  const absl::Status status = kernel.RunInto(from, to, serial);
  ++outcome.comparisons;
  if (!status.ok()) {
    if (absl::IsResourceExhausted(status)) return true;
    return Differs(outcome, absl::StrCat(what, " on strided arrays"),
                   absl::StrCat(status.ToString(), "\n", layouts));
  }
  std::vector<Tensor> got;
  for (const LaidOut& one : results) {
    got.push_back(one.Elements());
    if (!one.GapsUntouched()) {
      return Differs(outcome, absl::StrCat(what, " writes beside its results"),
                     layouts);
    }
  }
  for (const LaidOut& one : laid_out) {
    if (!one.GapsUntouched()) {
      return Differs(outcome, absl::StrCat(what, " writes to an input"),
                     layouts);
    }
  }
  const std::string parting = Parting(got, want);
  if (parting.empty()) return true;
  return Differs(outcome, absl::StrCat(what, " on strided arrays"),
                 absl::StrCat(parting, "\n", layouts));
}

}  // namespace

bool CheckKernels(const Graph& meant, const Graph& made,
                  const std::vector<std::vector<Tensor>>& points,
                  const std::string& what, const RuleSet& rules,
                  KernelCache& cache, uint64_t choice, Outcome& outcome) {
  static ThreadPool* const pool = MakeThreadPool(3).release();
  Random random(choice);
  for (const Way& way : WaysOf(choice, cache)) {
    const absl::StatusOr<Kernel> kernel = Compile(made, rules, way.options);
    if (!kernel.ok()) {
      return Failed(outcome, absl::StrCat(what, " is not made"),
                    kernel.status());
    }
    for (const std::vector<Tensor>& inputs : points) {
      const Results want = Interpret(meant, inputs);
      // A simplified graph may not need the node that fails.
      if (!want.ok() && Interpret(made, inputs).ok()) continue;
      RunOptions serial;
      serial.call.serial = true;
      const Results got = kernel->Run(inputs, serial);
      ++outcome.comparisons;
      if (!IsNear(meant, inputs, got, want, what, outcome)) {
        outcome.text = absl::StrCat(way.name, ": ", outcome.text);
        return false;
      }
      RunOptions parallel;
      parallel.call.pool = pool;
      const std::string parting = Parting(kernel->Run(inputs, parallel), got);
      if (!parting.empty()) {
        return Differs(outcome, absl::StrCat(what, " on several threads"),
                       absl::StrCat(way.name, ": ", parting));
      }
      if (!CheckLayouts(*kernel, inputs, what, random, outcome)) return false;
    }
  }
  return true;
}

}  // namespace cleave::fuzz
