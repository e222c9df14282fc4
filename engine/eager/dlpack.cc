#include "engine/eager/dlpack.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/runtime/kernel.h"
#include "ops/status_macros.h"
#include "ops/tensor.h"

namespace cleave::functional {
namespace {

// The code of bool in later versions of DLPack, which producers may send.
constexpr int kBoolCode = 6;

absl::Status CheckDevice(const DLDevice& device) {
  if (device.device_type == kDLCPU) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("not supported: DLPack memory of device type ",
                   static_cast<int>(device.device_type), "; only the CPU's (",
                   static_cast<int>(kDLCPU), ") is"));
}

// Row-major strides, those of extents of 1 aside.
bool IsDense(const std::vector<int64_t>& shape,
             const std::vector<int64_t>& strides) {
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != stride) return false;
    stride *= shape[d];
  }
  return true;
}

// Whether all elements have addresses: the largest distance from the first.
bool InAddressSpace(const std::vector<int64_t>& shape,
                    const std::vector<int64_t>& strides, int element_bytes) {
  __int128 low = 0, high = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    const __int128 reach =
        static_cast<__int128>(shape[d] - 1) * strides[d] * element_bytes;
    (reach < 0 ? low : high) += reach;
  }
  constexpr int64_t kMost = int64_t{1} << 56;  // more than any CPU has
  return low >= -kMost && high <= kMost;
}

absl::StatusOr<cleave::Tensor> CopyStrided(
    const std::byte* first, DType dtype, const std::vector<int64_t>& shape,
    const std::vector<int64_t>& strides) {
  CLEAVE_ASSIGN_OR_RETURN(cleave::Tensor result,
                          cleave::Tensor::CreateUninitialized(dtype, shape));
  const int64_t bytes = ByteSize(dtype);
  std::vector<int64_t> index(shape.size());
  std::byte* to = result.mutable_data();
  int64_t at = 0;
  for (int64_t i = 0; i < result.size(); ++i, to += bytes) {
    std::memcpy(to, first + at * bytes, bytes);
    for (size_t d = shape.size(); d-- > 0;) {
      at += strides[d];
      if (++index[d] < shape[d]) break;
      at -= strides[d] * shape[d];
      index[d] = 0;
    }
  }
  return result;
}

// `owner` is kept as long as the memory is shared.
absl::StatusOr<cleave::Tensor> Import(const DLTensor& from,
                                      std::shared_ptr<DLManagedTensor> owner) {
  CLEAVE_RETURN_IF_ERROR(CheckDevice(from.device));
  CLEAVE_ASSIGN_OR_RETURN(const DType dtype, FromDlpackType(from.dtype));
  if (from.ndim < 0 || (from.ndim > 0 && from.shape == nullptr)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a DLPack tensor of ", from.ndim, " axes has no shape"));
  }
  const std::vector<int64_t> shape(from.shape, from.shape + from.ndim);
  int64_t size = 1;
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a DLPack tensor has the extent ", extent));
    }
    empty |= extent == 0;
  }
  for (const int64_t extent : shape) {
    if (!empty && extent > kMaxTensorElements / size) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a DLPack tensor has more than ", kMaxTensorElements, " elements"));
    }
    if (!empty) size *= extent;
  }
  if (empty) return cleave::Tensor::Create(dtype, shape);
  if (from.data == nullptr) {
    return absl::InvalidArgumentError("a DLPack tensor has no memory");
  }
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = from.strides == nullptr ? stride : from.strides[d];
    if (shape[d] == 1) strides[d] = stride;  // says nothing, and may be any
    stride *= shape[d];
  }
  if (!InAddressSpace(shape, strides, ByteSize(dtype))) {
    return absl::InvalidArgumentError(
        "the strides of a DLPack tensor go beyond the address space");
  }
  std::byte* const first =
      static_cast<std::byte*>(from.data) + from.byte_offset;
  if (IsDense(shape, strides)) {
    absl::StatusOr<cleave::Tensor> shared = cleave::Tensor::FromMemory(
        dtype, shape, std::shared_ptr<std::byte>(owner, first));
    if (shared.ok()) return shared;  // else not aligned: copied
  }
  return CopyStrided(first, dtype, shape, strides);
}

// The memory that a tensor given to another framework owns.
struct Export {
  DLManagedTensor managed = {};
  cleave::Tensor tensor;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

}  // namespace

absl::StatusOr<DLDataType> ToDlpackType(DType dtype) {
  DLDataType type = {0, static_cast<uint8_t>(8 * ByteSize(dtype)), 1};
  switch (KindOf(dtype)) {
    case DTypeKind::kBool:
      type.code = kDLUInt;
      return type;
    case DTypeKind::kInt:
      type.code = IsSigned(dtype) ? kDLInt : kDLUInt;
      return type;
    case DTypeKind::kFloat:
      type.code = dtype == DType::kBF16 ? kDLBfloat : kDLFloat;
      return type;
    case DTypeKind::kComplex:
      type.code = kDLComplex;
      return type;
    default:
      return absl::UnimplementedError(absl::StrCat(
          "not supported: DLPack has no dtype for ", DTypeName(dtype)));
  }
}

absl::StatusOr<DType> FromDlpackType(DLDataType type) {
  if (type.lanes != 1) {
    return absl::UnimplementedError(absl::StrCat(
        "not supported: DLPack vectors of ", type.lanes, " lanes"));
  }
  if (type.code == kBoolCode && type.bits == 8) return DType::kBool;
  for (const DType dtype : AllDTypes()) {
    if (IsBool(dtype)) continue;
    const absl::StatusOr<DLDataType> same = ToDlpackType(dtype);
    if (same.ok() && same->code == type.code && same->bits == type.bits) {
      return dtype;
    }
  }
  return absl::UnimplementedError(absl::StrCat(
      "not supported: the DLPack dtype with code ", static_cast<int>(type.code),
      " and ", static_cast<int>(type.bits), " bits"));
}

Tensor FromDlpack(DLManagedTensor* managed) {
  if (managed == nullptr) {
    return Tensor::Invalid(
        absl::InvalidArgumentError("a null pointer is no DLPack tensor"));
  }
  std::shared_ptr<DLManagedTensor> owner(managed, [](DLManagedTensor* self) {
    if (self->deleter != nullptr) self->deleter(self);
  });
  absl::StatusOr<cleave::Tensor> tensor =
      Import(managed->dl_tensor, std::move(owner));
  return tensor.ok() ? Tensor(*std::move(tensor))
                     : Tensor::Invalid(tensor.status());
}

absl::StatusOr<DLManagedTensor*> ToDlpack(const Tensor& x) {
  CLEAVE_ASSIGN_OR_RETURN(cleave::Tensor value, x.Concrete());
  CLEAVE_ASSIGN_OR_RETURN(const DLDataType type, ToDlpackType(value.dtype()));
  auto out = std::make_unique<Export>();
  out->tensor = std::move(value);
  out->shape = out->tensor.shape();
  out->strides = DenseStrides(out->shape);
  DLTensor& tensor = out->managed.dl_tensor;
  tensor.data = out->tensor.mutable_data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = out->tensor.rank();
  tensor.dtype = type;
  tensor.shape = out->shape.data();
  tensor.strides = out->strides.data();
  out->managed.manager_ctx = out.get();
  out->managed.deleter = [](DLManagedTensor* self) {
    delete static_cast<Export*>(self->manager_ctx);
  };
  return &out.release()->managed;
}

}  // namespace cleave::functional
