// RegionFunctions: functions that compute the regions of loops and choices in
// the interpreter's place, as kernels do.
//
//   RegionFunctions functions;
//   functions[scan.AsRegion().graph.get()] = [&](const auto& inputs) {
//     return kernel.Run(inputs);
//   };
//   InterpretOptions options;
//   options.regions = &functions;

#ifndef CLEAVE_ENGINE_IR_REGION_FUNCTION_H_
#define CLEAVE_ENGINE_IR_REGION_FUNCTION_H_

#include <functional>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "ops/tensor.h"

namespace cleave {

// One tensor per output of the region.
using RegionFunction = std::function<absl::StatusOr<std::vector<Tensor>>(
    const std::vector<Tensor>& inputs)>;

// By the graphs of the regions: Region::graph of an attribute of a scan, a cond
// or a while.
using RegionFunctions = std::map<const Graph*, RegionFunction>;

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_REGION_FUNCTION_H_
