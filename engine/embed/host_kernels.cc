// Host kernels: ops that functions of the caller compute.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/embed/handles.h"
#include "engine/embed/host_call.h"
#include "engine/ir/interpreter.h"
#include "ops/status_macros.h"
#include "ops/tensor.h"

namespace cleave::embed {
namespace {

// The caller's function, and what it works with, for as long as a kernel or a
// set of functions needs it.
class CallerFunction {
 public:
  CallerFunction(cleave_host_function function, void* context,
                 void (*destroy)(void* context))
      : function_(function), context_(context), destroy_(destroy) {}
  CallerFunction(const CallerFunction&) = delete;
  CallerFunction& operator=(const CallerFunction&) = delete;
  ~CallerFunction() {
    if (destroy_ != nullptr) destroy_(context_);
  }

  absl::StatusOr<std::vector<Tensor>> operator()(const HostCall& call) const {
    return CallOnTensors(
        std::string(call.op), call.attributes.ToString(), call.inputs,
        call.results, [&](const cleave_host_call* given) -> absl::Status {
          const std::unique_ptr<cleave_status, void (*)(cleave_status*)> status(
              function_(context_, given), cleave_status_free);
          if (status == nullptr) return absl::OkStatus();
          return absl::Status(static_cast<absl::StatusCode>(status->code),
                              status->message);
        });
  }

 private:
  const cleave_host_function function_;
  void* const context_;
  void (*const destroy_)(void* context);
};

}  // namespace
}  // namespace cleave::embed

using cleave::embed::CheckGiven;
using cleave::embed::Guarded;

cleave_status* cleave_host_kernels_new(cleave_host_kernels** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"out", out}}));
    *out = new cleave_host_kernels;
    return absl::OkStatus();
  });
}

cleave_status* cleave_host_kernels_set(cleave_host_kernels* kernels,
                                       const char* op,
                                       cleave_host_function function,
                                       void* context,
                                       void (*destroy)(void* context)) {
  // Destroyed by whoever owns it, on every path.
  std::unique_ptr<void, void (*)(void*)> owner(
      destroy != nullptr && context != nullptr ? context : nullptr,
      destroy != nullptr ? destroy : +[](void*) {});
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(CheckGiven({{"kernels", kernels}, {"op", op}}));
    if (function == nullptr) {
      return absl::InvalidArgumentError("`function` is null");
    }
    const auto held = std::make_shared<cleave::embed::CallerFunction>(
        function, context, owner != nullptr ? destroy : nullptr);
    static_cast<void>(owner.release());
    kernels->kernels.Set(
        op, [held](const cleave::HostCall& call) { return (*held)(call); });
    return absl::OkStatus();
  });
}

cleave_status* cleave_host_kernels_set_graph(cleave_host_kernels* kernels,
                                             const char* op,
                                             const cleave_graph* graph) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(
        CheckGiven({{"kernels", kernels}, {"op", op}, {"graph", graph}}));
    // The rules own what the graph refers to.
    kernels->kernels.Set(op, [rules = graph->rules,
                              body = std::make_shared<const cleave::Graph>(
                                  graph->graph)](const cleave::HostCall& call) {
      return cleave::Interpret(*body, call.inputs);
    });
    return absl::OkStatus();
  });
}

void cleave_host_kernels_free(cleave_host_kernels* kernels) { delete kernels; }
