// Host kernels: ops that the host program computes by functions of its own.
//
//   HostKernels kernels;
//   kernels.Set("my_sort", [](const HostCall& call) {
//     return absl::StatusOr<std::vector<Tensor>>(
//         {SortOf(call.inputs[0], call.attributes.GetInt("axis"))});
//   });
//   InterpretOptions options;
//   options.host_kernels = kernels;
//   Interpret(graph, {x}, options);  // each call of my_sort runs the function
//
// They are given to what runs graphs: InterpretOptions, CompileOptions,
// SessionOptions, and the compilers of an AotFunction. Before that, the ops
// stay calls: ExpandOptions::preserve takes Ops(). A transform of a function
// that calls the op goes by the op's rule, as for any other op; where the
// result has calls of the op again, as that of vmap with its axis moved, the
// host computes these, too.
//
// A function may be called from any thread that runs a graph, and from several
// at once: it guards what it shares. It throws nothing.

#ifndef CLEAVE_ENGINE_IR_HOST_KERNEL_H_
#define CLEAVE_ENGINE_IR_HOST_KERNEL_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/ir/bind.h"
#include "ops/static_value.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave {

// One call of an op, valid until the function returns.
struct HostCall {
  absl::string_view op;
  // The operands, in the order of the op's tensor inputs, without the absent
  // ones (kLayout in call_attributes.h says which those are). Their elements
  // may lie in memory that is used for something else afterwards: a function
  // that keeps one beyond the call copies it.
  absl::Span<const Tensor> inputs;
  // The attributes of the call, with numbers for the extents in them.
  const Attributes& attributes;
  // The types that the results must have. An extent is a number. If the results
  // decide it, as the count of a search does, it is a variable.
  absl::Span<const TensorType> results;
};

// One tensor per result, of those dtypes and shapes; each may be an input. A
// status is that of the whole run, with the op's name.
using HostFunction =
    std::function<absl::StatusOr<std::vector<Tensor>>(const HostCall& call)>;

// Functions by the names of ops. A copy is cheap: it shares the functions.
class HostKernels {
 public:
  // Replaces the function that `op` has.
  void Set(absl::string_view op, HostFunction function);

  bool empty() const { return functions_.empty(); }
  bool Has(absl::string_view op) const { return functions_.count(op) > 0; }
  // The ops that have a function: those that Expand is to preserve.
  std::set<std::string> Ops() const;

  // Runs the function of the op `call.op` (CHECK that there is one), where the
  // dims of `call.results` may be any that `dims` has values for. Variables
  // without a value that the results determine are added to `dims`. Errors of
  // the function, and InvalidArgument where its results are not those that the
  // call must have; each names the op.
  absl::StatusOr<std::vector<Tensor>> Run(const HostCall& call,
                                          DimValues& dims) const;

 private:
  std::map<std::string, std::shared_ptr<const HostFunction>, std::less<>>
      functions_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_HOST_KERNEL_H_
