// Host kernels that tests give to whatever runs graphs.

#ifndef CLEAVE_ENGINE_IR_HOST_KERNEL_TESTING_H_
#define CLEAVE_ENGINE_IR_HOST_KERNEL_TESTING_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/host_kernel.h"
#include "ops/dtype.h"
#include "ops/tensor.h"

namespace cleave {

inline Tensor F32(std::vector<int64_t> shape,
                  const std::vector<double>& values) {
  return Tensor::FromDoubles(DType::kF32, std::move(shape), values);
}

// Each element times the attribute `by`.
inline absl::StatusOr<std::vector<Tensor>> Times(const HostCall& call) {
  Tensor y(call.inputs[0].dtype(), call.inputs[0].shape());
  const auto by = static_cast<double>(call.attributes.GetInt("by"));
  for (int64_t i = 0; i < y.size(); ++i) {
    y.SetDouble(i, by * call.inputs[0].GetDouble(i));
  }
  return std::vector<Tensor>{y};
}

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_HOST_KERNEL_TESTING_H_
