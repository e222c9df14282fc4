// CallOnTensors: a cleave_host_call over the engine's tensors. Internal to
// those that call functions of hosts: engine/embed, and the oracles of the
// checker.

#ifndef CLEAVE_ENGINE_EMBED_HOST_CALL_H_
#define CLEAVE_ENGINE_EMBED_HOST_CALL_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/embed/cleave.h"
#include "ops/tensor.h"
#include "ops/tensor_type.h"

namespace cleave::embed {

// The tensors that `call` writes, of these types; or its error. Unimplemented
// where an extent of a result is no number.
absl::StatusOr<std::vector<Tensor>> CallOnTensors(
    const std::string& op, const std::string& attributes,
    absl::Span<const Tensor> inputs, absl::Span<const TensorType> results,
    const std::function<absl::Status(const cleave_host_call*)>& call);

}  // namespace cleave::embed

#endif  // CLEAVE_ENGINE_EMBED_HOST_CALL_H_
