#include "engine/embed/dlpack_types.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace cleave::embed {
namespace {

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
