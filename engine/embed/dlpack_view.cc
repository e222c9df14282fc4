#include "engine/embed/dlpack_view.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/status_macros.h"
#include "ops/tensor.h"

namespace cleave::embed {
namespace {

// More axes than any graph has, and fewer than would make a message long.
constexpr int kMostAxes = 1024;
// More bytes than any CPU addresses.
constexpr int64_t kMostBytes = int64_t{1} << 56;

// The dtypes by DLPack's codes and bytes: each call of a small kernel asks.
class DLPackTypes {
 public:
  DLPackTypes() {
    for (const DType& dtype : AllDTypes()) {
      if (KindOf(dtype) == DTypeKind::kKey) continue;
      const DLDataType type = ToDlpackType(dtype);
      dtypes_[type.code][type.bits / 8] = &dtype;
    }
  }

  // Null where there is none.
  const DType* Find(DLDataType type) const {
    if (type.lanes != 1 || type.code >= kCodes || type.bits % 8 != 0 ||
        type.bits / 8 >= kSizes) {
      return nullptr;
    }
    return dtypes_[type.code][type.bits / 8];
  }

 private:
  static constexpr int kCodes = 8;
  static constexpr int kSizes = 17;
  const DType* dtypes_[kCodes][kSizes] = {};
};

template <typename... Parts>
absl::Status Mistake(const char* what, size_t number, const Parts&... parts) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " ", number, " ", parts...));
}

}  // namespace

absl::StatusOr<DType> FromDlpackType(DLDataType type) {
  static const DLPackTypes* const types = new DLPackTypes;
  const DType* const dtype = types->Find(type);
  if (dtype != nullptr) return *dtype;
  return absl::UnimplementedError(absl::StrCat(
      "not supported: DLPack's type of code ", static_cast<int>(type.code),
      ", ", static_cast<int>(type.bits), " bits and ",
      static_cast<int>(type.lanes), " lanes"));
}

DLDataType ToDlpackType(DType dtype) {
  DLDataType type = {0, static_cast<uint8_t>(8 * ByteSize(dtype)), 1};
  switch (KindOf(dtype)) {
    case DTypeKind::kBool:
      type.code = kDLBool;
      break;
    case DTypeKind::kInt:
      type.code = IsSigned(dtype) ? kDLInt : kDLUInt;
      break;
    case DTypeKind::kFloat:
      type.code = dtype == DType::kBF16 ? kDLBfloat : kDLFloat;
      break;
    case DTypeKind::kComplex:
      type.code = kDLComplex;
      break;
    case DTypeKind::kKey:
      type.code = kDLUInt;
      break;
  }
  return type;
}

absl::StatusOr<ArrayView> ViewOf(const DLTensor* tensor, const char* what,
                                 size_t number) {
  if (tensor == nullptr) return Mistake(what, number, "is null");
  if (tensor->device.device_type != kDLCPU &&
      tensor->device.device_type != kDLCUDAHost) {
    return absl::UnimplementedError(absl::StrCat(
        "not supported: ", what, " ", number, " is on a device of type ",
        static_cast<int>(tensor->device.device_type), ", not the CPU"));
  }
  ArrayView view;
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

DLTensor DenseTensor(void* data, DType dtype, absl::Span<const int64_t> shape) {
  DLTensor tensor = {};
  tensor.data = data;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = ToDlpackType(dtype);
  // Nobody writes it.
  tensor.shape = const_cast<int64_t*>(shape.data());
  return tensor;
}

}  // namespace cleave::embed
