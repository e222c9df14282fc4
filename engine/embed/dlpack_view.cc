#include "engine/embed/dlpack_view.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/embed/dlpack_types.h"
#include "ops/status_macros.h"
#include "ops/tensor.h"

namespace cleave::embed {
namespace {

// More axes than any graph has, and fewer than would make a message long.
constexpr int kMostAxes = 1024;
// More bytes than any CPU addresses.
constexpr int64_t kMostBytes = int64_t{1} << 56;

template <typename... Parts>
absl::Status Mistake(const char* what, size_t number, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", number, " ", parts...));
}

}  // namespace

absl::StatusOr<ArrayView> ViewOf(const DLTensor* tensor, const char* what,
                                 size_t number) {
  if (tensor == nullptr) return Mistake(what, number, "is null");
  ArrayView view;
  switch (tensor->device.device_type) {
    case kDLCPU:
    case kDLCUDAHost:
      break;
    case kDLCUDA:
    case kDLCUDAManaged:
      view.device = Device::kCuda;
      break;
    default:
      return absl::UnimplementedError(absl::StrCat(
          "not supported: ", what, " ", number, " is on a device of type ",
          static_cast<int>(tensor->device.device_type),
          "; the CPU and CUDA are"));
  }
  CLEAVE_ASSIGN_OR_RETURN(view.dtype, FromDlpackType(tensor->dtype));
  if (tensor->ndim < 0 || tensor->ndim > kMostAxes ||
      (tensor->ndim > 0 && tensor->shape == nullptr)) {
    return Mistake(what, number, "has ", tensor->ndim,
                   tensor->ndim > 0 ? " axes and no shape" : " axes");
  }
  const int rank = tensor->ndim;
  view.shape = absl::MakeConstSpan(tensor->shape, rank);
  if (tensor->strides != nullptr) {
    view.strides = absl::MakeConstSpan(tensor->strides, rank);
  }
  // Sizes are bounded before anything multiplies them.
  int64_t elements = 1;
  bool empty = false;
  for (const int64_t extent : view.shape) {
    if (extent < 0) return Mistake(what, number, "has the extent ", extent);
    empty |= extent == 0;
  }
  __int128 low = 0;
  __int128 high = 0;
  int64_t dense_stride = 1;
  for (int d = rank; d-- > 0 && !empty;) {
    const int64_t extent = view.shape[d];
    if (extent > kMaxTensorElements / elements) {
      return absl::ResourceExhaustedError(
          absl::StrCat(what, " ", number, " has more than ", kMaxTensorElements,
                       " elements"));
    }
    elements *= extent;
    const int64_t stride =
        view.strides.empty() ? dense_stride : view.strides[d];
    const __int128 reach = static_cast<__int128>(extent - 1) * stride;
    (reach < 0 ? low : high) += reach;
    view.dense &= extent == 1 || stride == dense_stride;
    dense_stride *= extent;
  }
  if (empty) {
    view.dense = true;
    view.strides = {};
    return view;
  }
  const int64_t bytes = ByteSize(view.dtype);
  if (low * bytes < -kMostBytes || high * bytes > kMostBytes) {
    return Mistake(what, number,
                   "has strides that go beyond the address space");
  }
  if (tensor->data == nullptr) return Mistake(what, number, "has no data");
  view.data = static_cast<char*>(tensor->data) + tensor->byte_offset;
  // A complex number is two floats.
  const int64_t alignment = IsComplex(view.dtype) ? bytes / 2 : bytes;
  if (reinterpret_cast<uintptr_t>(view.data) % alignment != 0) {
    return Mistake(what, number, "is not aligned to the ", alignment,
                   " bytes of its elements");
  }
  if (view.dense) view.strides = {};
  return view;
}

}  // namespace cleave::embed
