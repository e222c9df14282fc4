#include "engine/embed/host_call.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/embed/dlpack_types.h"
#include "ops/status_macros.h"

namespace cleave::embed {

absl::StatusOr<std::vector<Tensor>> CallOnTensors(
    const std::string& op, const std::string& attributes,
    absl::Span<const Tensor> inputs, absl::Span<const TensorType> results,
    const std::function<absl::Status(const cleave_host_call*)>& call) {
  std::vector<Tensor> made;
  for (const TensorType& type : results) {
    std::vector<int64_t> shape;
    for (const Dim& extent : type.shape) {
      const std::optional<int64_t> value = extent.Value();
      if (!value.has_value()) {
        return absl::UnimplementedError(
            absl::StrCat("not supported: a host function in C for `", op,
                         "`, whose results decide their own sizes"));
      }
      shape.push_back(*value);
    }
    CLEAVE_ASSIGN_OR_RETURN(Tensor tensor,
                            Tensor::Create(type.dtype, std::move(shape)));
    made.push_back(std::move(tensor));
  }
  std::vector<DLTensor> tensors;
  tensors.reserve(inputs.size() + made.size());
  std::vector<const DLTensor*> read;
  for (const Tensor& input : inputs) {
    read.push_back(&tensors.emplace_back(DenseTensor(
        const_cast<std::byte*>(input.data()), input.dtype(), input.shape())));
  }
  std::vector<DLTensor*> written;
  for (Tensor& result : made) {
    written.push_back(&tensors.emplace_back(
        DenseTensor(result.mutable_data(), result.dtype(), result.shape())));
  }
  cleave_host_call given = {};
  given.struct_size = sizeof(given);
  given.op = op.c_str();
  given.attributes = attributes.c_str();
  given.inputs = read.data();
  given.input_count = read.size();
  given.results = written.data();
  given.result_count = written.size();
  CLEAVE_RETURN_IF_ERROR(call(&given));
  return made;
}

}  // namespace cleave::embed
