// Runs on the caller's own arrays on a device: which are taken, and where the
// values of their slots lie.

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/runtime/cuda_blas.h"
#include "engine/runtime/cuda_driver.h"
#include "engine/runtime/kernel_impl.h"
#include "ops/status_macros.h"

namespace cleave {

using internal_kernel::BufferInstance;
using internal_kernel::IndexRange;
using internal_kernel::ProductInstance;
using internal_kernel::Step;

absl::Status Kernel::Impl::CheckPlace(const ArrayView& view,
                                      absl::string_view what) const {
  if (view.device != Device::kCuda) {
    return absl::UnimplementedError(
        absl::StrCat("not supported: ", what, " on a device of ",
                     DeviceName(view.device), "; CUDA's alone"));
  }
  if (!plan_->static_shapes) {
    return absl::UnimplementedError(
        absl::StrCat("not supported: ", what,
                     " on a device, where extents are known only when they "
                     "are computed"));
  }
  if (plan_->device == nullptr || plan_->device->device() != view.device) {
    return absl::FailedPreconditionError(absl::StrCat(
        what, " is on a device of ", DeviceName(view.device),
        ", where the kernel has no step: it is compiled for another, or the "
        "CPU computes all of it"));
  }
  if (!view.dense) {
    return absl::UnimplementedError(
        absl::StrCat("not supported: ", what,
                     " on a device, which is not dense in row-major order"));
  }
  return absl::OkStatus();
}

std::vector<bool> Kernel::Impl::TouchedByHost(const Instance& instance) const {
  std::vector<bool> touched(slots_.size(), false);
  for (size_t s = 0; s < instance.steps.size(); ++s) {
    const Step& step = plan_->steps[s];
    const StepInstance& one = instance.steps[s];
    for (const IndexRange& range : one.checks) touched[range.slot] = true;
    if (step.finite_checks.empty()) {
      for (const int i : step.finite_inputs) {
        touched[one.inputs[i].slot] = true;
      }
    }
    if (step.device != Device::kCpu) continue;
    for (const auto* operands : {&one.inputs, &one.outputs}) {
      for (const BufferInstance& buffer : *operands) {
        touched[buffer.slot] = true;
      }
    }
  }
  return touched;
}

absl::Status Kernel::Impl::AdoptArrays(
    const Instance& instance, Arrays inputs, Arrays outputs,
    absl::FunctionRef<absl::StatusOr<void*>(int64_t bytes)> allocate,
    absl::Span<void*> addresses, DeviceMemory& memory) const {
  const auto on_device = [](const ArrayView& view) {
    return view.device != Device::kCpu;
  };
  if (std::none_of(inputs.begin(), inputs.end(), on_device) &&
      std::none_of(outputs.begin(), outputs.end(), on_device)) {
    return absl::OkStatus();
  }
  std::vector<bool> touched = TouchedByHost(instance);
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (output_made_[o] || on_device(outputs[o])) continue;
    touched[output_slots_[o]] = true;
  }
  const auto make_room = [&](int slot, int64_t bytes) -> absl::Status {
    addresses[slot] = nullptr;
    if (!touched[slot]) return absl::OkStatus();
    CLEAVE_ASSIGN_OR_RETURN(addresses[slot],
                            allocate(std::max<int64_t>(bytes, 1)));
    return absl::OkStatus();
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!on_device(inputs[i])) continue;
    // Inputs come first among the slots, in their order.
    const int slot = static_cast<int>(i);
    const int64_t bytes = DenseBytes(inputs[i]);
    CLEAVE_RETURN_IF_ERROR(make_room(slot, bytes));
    const ByteRange read = RangeOf(inputs[i]);
    const bool written = std::any_of(
        outputs.begin(), outputs.end(),
        [&](const ArrayView& to) { return Overlaps(read, RangeOf(to)); });
    if (written) {
      CLEAVE_RETURN_IF_ERROR(
          memory.AdoptCopy(slot, inputs[i].data, bytes, addresses[slot]));
    } else {
      memory.Adopt(slot, inputs[i].data, bytes, addresses[slot],
                   /*has_value=*/true);
    }
  }
  for (size_t o = 0; o < outputs.size(); ++o) {
    if (!on_device(outputs[o]) || !output_made_[o]) continue;
    const int slot = output_slots_[o];
    const int64_t bytes = DenseBytes(outputs[o]);
    CLEAVE_RETURN_IF_ERROR(make_room(slot, bytes));
    memory.Adopt(slot, outputs[o].data, bytes, addresses[slot],
                 /*has_value=*/false);
  }
  return absl::OkStatus();
}

absl::Status Kernel::Impl::CopyToArray(const Tensor& value,
                                       const ArrayView& view,
                                       const RunOptions& options) {
  const auto bytes = static_cast<int64_t>(value.byte_size());
  if (bytes == 0) return absl::OkStatus();
  if (view.device == Device::kCpu) {
    std::memcpy(view.data, value.data(), bytes);
    return absl::OkStatus();
  }
  CLEAVE_ASSIGN_OR_RETURN(const CudaDriver* driver, CudaDriver::Get());
  return driver->Copy(options.call.device_ordinal, view.data, value.data(),
                      bytes, options.call.stream);
}

absl::Status Kernel::Impl::CopyOutput(int output, const ArrayView& view,
                                      Addresses addresses,
                                      DeviceMemory* memory) const {
  const int slot = output_slots_[output];
  const int64_t bytes = DenseBytes(view);
  if (bytes == 0) return absl::OkStatus();
  if (view.device != Device::kCpu) {
    return memory->CopyTo(slot, bytes, addresses[slot], view.data);
  }
  if (memory != nullptr) CLEAVE_RETURN_IF_ERROR(memory->BringToHost(slot));
  std::memcpy(view.data, addresses[slot], bytes);
  return absl::OkStatus();
}

absl::Status Kernel::Impl::CheckFiniteOnDevice(const Step& step,
                                               const StepInstance& instance,
                                               Addresses addresses,
                                               KernelCall& call,
                                               DeviceMemory& memory) {
  for (size_t k = 0; k < step.finite_inputs.size(); ++k) {
    const int i = step.finite_inputs[k];
    const BufferInstance& input = instance.inputs[i];
    if (input.bytes == 0) continue;
    halide_buffer_t buffer = {};
    buffer.host = static_cast<uint8_t*>(addresses[input.slot]);
    CLEAVE_RETURN_IF_ERROR(memory.Read(input.slot, input.bytes, buffer));
    const int64_t elements = input.bytes / ByteSize(step.inputs[i].dtype);
    ArrayView x;
    x.data = reinterpret_cast<void*>(buffer.device);
    x.dtype = step.inputs[i].dtype;
    x.shape = absl::MakeConstSpan(&elements, 1);
    x.device = Device::kCuda;
    bool found = false;
    ArrayView y;
    y.data = &found;
    y.dtype = DType::kBool;
    RunOptions options;
    options.call = call.options();
    CLEAVE_RETURN_IF_ERROR(step.finite_checks[k]->RunViews(
        absl::MakeConstSpan(&x, 1), absl::MakeConstSpan(&y, 1), options));
    if (found) return internal_kernel::NotFinite();
  }
  return absl::OkStatus();
}

absl::Status Kernel::Impl::RunProduct(const Step& step,
                                      const StepInstance& instance,
                                      Addresses addresses, KernelCall& call,
                                      DeviceMemory& memory) {
  const ProductInstance& products = *instance.product;
  const auto buffer_of = [&](const BufferInstance& operand) {
    halide_buffer_t buffer = {};
    buffer.host = static_cast<uint8_t*>(addresses[operand.slot]);
    return buffer;
  };
  const BufferInstance& of_left = instance.inputs[step.product->left.input];
  const BufferInstance& of_right = instance.inputs[step.product->right.input];
  const BufferInstance& of_result = instance.outputs[0];
  halide_buffer_t left = buffer_of(of_left);
  halide_buffer_t right = buffer_of(of_right);
  halide_buffer_t result = buffer_of(of_result);
  CLEAVE_RETURN_IF_ERROR(memory.Read(of_left.slot, of_left.bytes, left));
  CLEAVE_RETURN_IF_ERROR(memory.Read(of_right.slot, of_right.bytes, right));
  CLEAVE_RETURN_IF_ERROR(memory.Write(of_result.slot, of_result.bytes, result));
  CLEAVE_ASSIGN_OR_RETURN(const CudaBlas* blas, CudaBlas::Get());
  for (int64_t i = 0; i < products.count; ++i) {
    const auto at = [&](const halide_buffer_t& buffer,
                        const ProductInstance::Place& place) {
      return reinterpret_cast<void*>(buffer.device + place.bytes +
                                     i * place.step_bytes);
    };
    DeviceProduct product = products.product;
    product.left.data = at(left, products.left);
    product.right.data = at(right, products.right);
    product.result = at(result, products.result);
    CLEAVE_RETURN_IF_ERROR(
        blas->Multiply(product, call.device_ordinal(), call.stream()));
  }
  return absl::OkStatus();
}

}  // namespace cleave
