#include "testing/check/reference/tensor_slices.h"

#include <cstring>
#include <utility>

namespace cleave {

Tensor SliceOf(const Tensor& tensor, int64_t i) {
  std::vector<int64_t> shape(tensor.shape().begin() + 1, tensor.shape().end());
  Tensor slice(tensor.dtype(), std::move(shape));
  if (slice.byte_size() == 0) return slice;
  std::memcpy(slice.mutable_data(), tensor.data() + i * slice.byte_size(),
              slice.byte_size());
  return slice;
}

Tensor Stack(const Tensor& like, const std::vector<Tensor>& slices) {
  std::vector<int64_t> shape = {static_cast<int64_t>(slices.size())};
  shape.insert(shape.end(), like.shape().begin(), like.shape().end());
  Tensor stack(like.dtype(), std::move(shape));
  for (size_t i = 0; i < slices.size() && like.byte_size() > 0; ++i) {
    std::memcpy(stack.mutable_data() + i * slices[i].byte_size(),
                slices[i].data(), slices[i].byte_size());
  }
  return stack;
}

Tensor Ones(const Tensor& like) {
  Tensor ones(like.dtype(), like.shape());
  for (int64_t i = 0; i < ones.size(); ++i) ones.SetDouble(i, 1);
  return ones;
}

void CopyElement(const Tensor& from, int64_t i, Tensor& to, int64_t j) {
  const size_t width = ByteSize(from.dtype());
  std::memcpy(to.mutable_data() + j * width, from.data() + i * width, width);
}

void CopyElements(absl::Span<const Tensor> from, int64_t i,
                  std::vector<Tensor>& to, int64_t j) {
  for (size_t k = 0; k < to.size(); ++k) CopyElement(from[k], i, to[k], j);
}

std::vector<Tensor> SelectElements(absl::Span<const Tensor> tensors,
                                   absl::Span<const int64_t> elements) {
  std::vector<Tensor> selected;
  for (const Tensor& tensor : tensors) {
    Tensor part(tensor.dtype(), {static_cast<int64_t>(elements.size())});
    for (size_t i = 0; i < elements.size(); ++i) {
      CopyElement(tensor, elements[i], part, static_cast<int64_t>(i));
    }
    selected.push_back(std::move(part));
  }
  return selected;
}

}  // namespace cleave
