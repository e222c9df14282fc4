// Host kernels: ops that functions of the caller compute.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/embed/dlpack_types.h"
#include "engine/embed/dlpack_view.h"
#include "engine/embed/handles.h"
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
    std::vector<Tensor> results;
    for (const TensorType& type : call.results) {
      std::vector<int64_t> shape;
      for (const Dim& extent : type.shape) {
        const std::optional<int64_t> value = extent.Value();
        if (!value.has_value()) {
          return absl::UnimplementedError(
              absl::StrCat("not supported: a host function in C for `", call.op,
                           "`, whose results decide their own sizes"));
        }
        shape.push_back(*value);
      }
      CLEAVE_ASSIGN_OR_RETURN(Tensor tensor,
                              Tensor::Create(type.dtype, std::move(shape)));
      results.push_back(std::move(tensor));
    }
    std::vector<DLTensor> tensors;
    tensors.reserve(call.inputs.size() + results.size());
    std::vector<const DLTensor*> inputs;
    for (const Tensor& input : call.inputs) {
      inputs.push_back(&tensors.emplace_back(DenseTensor(
          const_cast<std::byte*>(input.data()), input.dtype(), input.shape())));
    }
    std::vector<DLTensor*> written;
    for (Tensor& result : results) {
      written.push_back(&tensors.emplace_back(
          DenseTensor(result.mutable_data(), result.dtype(), result.shape())));
    }
    const std::string op(call.op);
    const std::string attributes = call.attributes.ToString();
    cleave_host_call given = {};
    given.struct_size = sizeof(given);
    given.op = op.c_str();
    given.attributes = attributes.c_str();
    given.inputs = inputs.data();
    given.input_count = inputs.size();
    given.results = written.data();
    given.result_count = written.size();
    const std::unique_ptr<cleave_status, void (*)(cleave_status*)> status(
        function_(context_, &given), cleave_status_free);
    if (status != nullptr) {
      return absl::Status(static_cast<absl::StatusCode>(status->code),
                          status->message);
    }
    return results;
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

void cleave_host_kernels_free(cleave_host_kernels* kernels) { delete kernels; }
