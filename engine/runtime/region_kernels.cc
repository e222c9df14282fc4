#include "engine/runtime/region_kernels.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/ir/bind.h"
#include "engine/ir/copy_graph.h"
#include "ops/status_macros.h"

namespace cleave::internal_kernel {
namespace {

// Whether all extents of a graph follow from those of its inputs.
bool ExtentsFollow(const Graph& graph) {
  // Each variable that an input has, with some number.
  DimValues known;
  for (const NamedValue& input : graph.inputs()) {
    for (const Dim& extent : graph.type(input.value).shape) {
      for (const std::string& name : extent.Variables()) known[name] = 1;
    }
  }
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const Value v{id};
    for (const TensorType& type : graph.types(v)) {
      for (const Dim& extent : type.shape) {
        for (const std::string& name : extent.Variables()) {
          if (known.count(name) == 0) return false;
        }
      }
    }
    const Attributes& attributes = graph.attributes(v);
    if (!HasDimVariables(attributes)) continue;
    const absl::StatusOr<Attributes> evaluated =
        EvaluateDims(attributes, known);
    if (!evaluated.ok() || HasDimVariables(*evaluated)) return false;
    for (const auto& [name, value] : attributes.values()) {
      if (value.kind() == StaticValue::Kind::kRegion &&
          !ExtentsFollow(*value.AsRegion().graph)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<RegionKernels> RegionKernels::Make(const Graph& step,
                                                  const RuleSet& rules,
                                                  CompileOptions options) {
  options.device = Device::kCpu;
  RegionKernels result;
  result.scan_ = ScanLoop::Make(step);
  result.choice_ = Choice::Make(step);
  for (uint32_t id = 0; id < step.size(); ++id) {
    for (const auto& [name, value] : step.attributes(Value{id}).values()) {
      if (value.kind() != StaticValue::Kind::kRegion) continue;
      const Graph& region = *value.AsRegion().graph;
      if (!ExtentsFollow(region)) {
        return absl::UnimplementedError(
            "a region has extents that its inputs do not give");
      }
      // Numerics are graphs of the context of the rules.
      CLEAVE_ASSIGN_OR_RETURN(
          Kernel kernel,
          Compile(CopyGraph(region, rules.context()), rules, options));
      result.kernels_[&region] =
          std::make_shared<const Kernel>(std::move(kernel));
    }
  }
  return result;
}

RegionFunctions RegionKernels::Functions(
    const KernelCallOptions& options) const {
  RegionFunctions functions;
  for (const auto& [region, kernel] : kernels_) {
    functions[region] = [&kernel = *kernel,
                         options](const std::vector<Tensor>& inputs) {
      RunOptions run;
      run.call = options;
      return kernel.Run(inputs, run);
    };
  }
  return functions;
}

}  // namespace cleave::internal_kernel
