#include "engine/runtime/pack.h"

#include <cstring>
#include <vector>

namespace cleave {
namespace {

template <typename View>
ArrayView Array(const View& view) {
  ArrayView array;
  array.data = const_cast<void*>(view.data);
  array.dtype = view.dtype;
  array.shape = view.shape;
  array.strides = view.strides;
  array.device = view.device;
  array.dense = array.shape.size() == array.strides.size() &&
                IsDense(array.shape, array.strides);
  return array;
}

}  // namespace

ArrayView ArrayOf(const TensorView& view) { return Array(view); }
ArrayView ArrayOf(const MutableTensorView& view) { return Array(view); }

ArrayView ArrayOf(const Tensor& tensor) {
  ArrayView array;
  array.data = const_cast<std::byte*>(tensor.data());
  array.dtype = tensor.dtype();
  array.shape = tensor.shape();
  return array;
}

bool IsDense(absl::Span<const int64_t> shape,
             absl::Span<const int64_t> strides) {
  int64_t stride = 1;
  for (const int64_t extent : shape) {
    if (extent == 0) return true;
  }
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != stride) return false;
    stride *= shape[d];
  }
  return true;
}

ByteRange RangeOf(const ArrayView& view) {
  const auto* data = static_cast<const std::byte*>(view.data);
  if (view.dense) return {data, data + DenseBytes(view)};
  const int64_t size = ByteSize(view.dtype);
  int64_t low = 0;
  int64_t high = size;
  for (size_t d = 0; d < view.shape.size(); ++d) {
    if (view.shape[d] == 0) return {};
    const int64_t reach = (view.shape[d] - 1) * view.strides[d] * size;
    (reach < 0 ? low : high) += reach;
  }
  return {data + low, data + high};
}

int64_t DenseBytes(const ArrayView& view) {
  int64_t bytes = ByteSize(view.dtype);
  for (const int64_t extent : view.shape) bytes *= extent;
  return bytes;
}

void Pack(const ArrayView& view, void* target) {
  if (DenseBytes(view) == 0) return;
  const int64_t size = ByteSize(view.dtype);
  const size_t rank = view.shape.size();
  const auto* source = static_cast<const std::byte*>(view.data);
  auto* out = static_cast<std::byte*>(target);
  // Whole rows at once where the last axis is dense.
  if (view.dense) {
    std::memcpy(target, view.data, DenseBytes(view));
    return;
  }
  const bool rows = rank > 0 && view.strides[rank - 1] == 1;
  const int64_t run = rows ? view.shape[rank - 1] * size : size;
  const size_t outer = rows ? rank - 1 : rank;
  std::vector<int64_t> index(outer, 0);
  while (true) {
    std::memcpy(out, source, run);
    out += run;
    size_t d = outer;
    while (d > 0) {
      --d;
      source += view.strides[d] * size;
      if (++index[d] < view.shape[d]) break;
      source -= view.strides[d] * view.shape[d] * size;
      index[d] = 0;
      if (d == 0) return;
    }
    if (outer == 0) return;
  }
}

}  // namespace cleave
