// RegionKernels: the regions of a step that is a loop or a choice, compiled.
// Internal to engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_REGION_KERNELS_H_
#define CLEAVE_ENGINE_RUNTIME_REGION_KERNELS_H_

#include <map>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/ir/region_function.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/choice.h"
#include "engine/runtime/kernel.h"
#include "engine/runtime/kernel_call.h"
#include "engine/runtime/scan_loop.h"

namespace cleave::internal_kernel {

class RegionKernels {
 public:
  RegionKernels() = default;

  // The kernels of the regions of `step`'s nodes, which must outlive them, on
  // the CPU. Unimplemented where an extent within a region does not follow from
  // those of its inputs. Errors of Compile.
  static absl::StatusOr<RegionKernels> Make(const Graph& step,
                                            const RuleSet& rules,
                                            CompileOptions options);

  // The kernel of a region of the step.
  const Kernel& Of(const Graph& region) const { return *kernels_.at(&region); }

  // The scan or choice that the step is, where it is one.
  const std::optional<ScanLoop>& scan() const { return scan_; }
  const std::optional<Choice>& choice() const { return choice_; }

  // The functions that run them as a part of a call with these options. Borrows
  // the kernels.
  RegionFunctions Functions(const KernelCallOptions& options) const;

 private:
  std::map<const Graph*, std::shared_ptr<const Kernel>> kernels_;
  std::optional<ScanLoop> scan_;
  std::optional<Choice> choice_;
};

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_REGION_KERNELS_H_
