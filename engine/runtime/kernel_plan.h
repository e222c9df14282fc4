// The plan of a Kernel: the steps of a run, in order, with the values that each
// reads and writes. Internal to engine/runtime and engine/c_library, which
// makes the same steps into a library.

#ifndef CLEAVE_ENGINE_RUNTIME_KERNEL_PLAN_H_
#define CLEAVE_ENGINE_RUNTIME_KERNEL_PLAN_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "HalideRuntime.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/codegen/device.h"
#include "engine/codegen/fusion.h"
#include "engine/codegen/index_check.h"
#include "engine/codegen/matrix_product.h"
#include "engine/ir/bind.h"
#include "engine/ir/graph.h"
#include "engine/ir/host_kernel.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/device_memory.h"
#include "engine/runtime/kernel_library.h"
#include "ops/tensor.h"

namespace cleave {
class Kernel;
}  // namespace cleave

namespace cleave::internal_kernel {

class RegionKernels;

// A buffer of a step: a value of the graph in the shape that the step sees.
struct Operand {
  Value value;
  DType dtype = DType::kF32;
  Shape shape;
};

// Indices that must be in range before a step runs, if `result` has elements.
struct StepCheck {
  IndexCheck check;
  Shape result;
  absl::Status error;
};

// One kernel, reference kernel or host kernel, in the terms of the whole graph.
struct Step {
  GroupKind kind = GroupKind::kPointwise;
  Device device = Device::kCpu;
  std::vector<std::string> ops;
  std::string why;  // of reference kernels, and of those that leave a device
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::vector<StepCheck> checks;
  // The elements of each line of a sort that anything reads, from the first on.
  int64_t sorted = INT64_MAX;
  // Numbers of inputs that are to be finite (FiniteOperands).
  std::vector<int> finite_inputs;
  // For each of them, of a step on a CUDA device, the kernel that says whether
  // one of the elements is not finite: they stay there.
  std::vector<std::shared_ptr<const Kernel>> finite_checks;
  // The code of a step that is a kernel.
  std::shared_ptr<const KernelLibrary> library;
  KernelEntry entry = nullptr;
  // Whether it may read where an index says that its loops compute.
  bool reads_by_index = false;
  std::vector<Dim> dims;
  // The operations for each element, of its nodes and of the arrays that are
  // read and written, and the shapes of all values: a pointwise kernel's or a
  // reduction's. None for others.
  int cost = 0;
  std::vector<Shape> shapes;
  // The product that a library of the device computes where its extents are
  // large; the code of the step does elsewhere.
  std::optional<MatrixProduct> product;
  // The elements of a table.
  std::optional<Tensor> table;
  // Without code: a graph whose inputs and outputs are the operands.
  Graph graph;
  // The regions of a loop or a choice.
  std::shared_ptr<const RegionKernels> regions;
};

struct Plan {
  Graph graph;
  // The graph as it was given, in arithmetic, which the interpreter computes
  // where an input of a step is not finite that is to be; there where a step
  // has one.
  std::optional<Graph> given;
  std::vector<Step> steps;
  HostKernels host_kernels;
  // Whether the extents of all values follow from those of the inputs.
  bool static_shapes = true;
  // The device of the steps that are not on the CPU; null if there are none.
  std::shared_ptr<const DeviceInterface> device;
};

// The type of the elements of a dtype's buffers, as kernels see it: uint16 for
// f16.
halide_type_t HalideTypeOf(DType dtype);

// A step without its code, and what that is made of.
struct PlannedStep {
  Step step;
  Graph kernel;  // empty where there is no code; else as CompileGroup takes it
};

// Its graph and those of the steps have a context of their own,
// which nothing is added to: runs read it while the host goes on to build
// graphs in the context of the graph that was planned.
struct PlannedGraph {
  Graph graph;                 // the values of the steps are its
  std::optional<Graph> given;  // as in Plan
  bool static_shapes = true;
  std::vector<PlannedStep> steps;  // in an order that they can run in
};

// The steps that a graph of primitives and of calls that the host computes runs
// in. InvalidArgument for another composite node (expand first).
absl::StatusOr<PlannedGraph> PlanSteps(const Graph& graph, const RuleSet& rules,
                                       const FusionOptions& fusion,
                                       const ExtractOptions& extract);

}  // namespace cleave::internal_kernel

#endif  // CLEAVE_ENGINE_RUNTIME_KERNEL_PLAN_H_
