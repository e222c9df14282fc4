#include "engine/runtime/cuda_blas.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/runtime/loaded_library.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

// The versions whose functions have these parameters, the newest first.
constexpr const char* kFileNames[] = {"libcublas.so.13", "libcublas.so.12",
                                      "libcublas.so.11"};

// Streams whose handles are kept: each has some tens of MB of the device.
constexpr size_t kMaxHandles = 16;

// Constants of cublas_api.h and library_types.h.
constexpr int kNotTransposed = 0;
constexpr int kTransposed = 1;
constexpr int kTypeF32 = 0;
constexpr int kTypeF64 = 1;
constexpr int kTypeF16 = 2;
constexpr int kTypeBF16 = 14;
constexpr int kComputeF32 = 68;
constexpr int kComputeF64 = 70;
constexpr int kDefaultAlgorithm = -1;
// CUBLAS_DEFAULT_MATH, which has no TF32, and sums of f16 in f32 throughout.
constexpr int kStrictMath = 16;

int TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return kTypeF64;
    case DType::kF16:
      return kTypeF16;
    case DType::kBF16:
      return kTypeBF16;
    default:
      return kTypeF32;
  }
}

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();

// A matrix in column-major order, as the library counts: `own` by `terms`, or
// that transposed.
struct Matrix {
  bool own_first = false;  // along a column
  int64_t lead = 0;        // elements from one column to the next
};

// False where the matrix has no such form.
bool ToMatrix(const DeviceProduct::Side& side, int64_t own, int64_t terms,
              Matrix* matrix) {
  // An axis of one element has any stride.
  const bool own_dense = side.of_own == 1 || own == 1;
  const bool terms_dense = side.of_terms == 1 || terms == 1;
  const int64_t of_own = own == 1 ? terms : side.of_own;
  const int64_t of_terms = terms == 1 ? own : side.of_terms;
  if (terms_dense && of_own >= terms) {
    *matrix = {false, of_own};
  } else if (own_dense && of_terms >= own) {
    *matrix = {true, of_terms};
  } else {
    return false;
  }
  return matrix->lead <= kMost;
}

}  // namespace

bool CudaBlas::Takes(const DeviceProduct& product) {
  const int64_t least =
      std::min({product.rows, product.columns, product.terms});
  const int64_t most =
      std::max({product.rows, product.columns, product.terms, product.batch});
  Matrix matrix;
  return least > 0 && product.batch > 0 && most <= kMost &&
         ToMatrix(product.left, product.rows, product.terms, &matrix) &&
         ToMatrix(product.right, product.columns, product.terms, &matrix);
}

absl::StatusOr<const CudaBlas*> CudaBlas::Get() {
  static const auto* const blas = new absl::StatusOr<const CudaBlas*>(
      Loaded(std::unique_ptr<CudaBlas>(new CudaBlas), &CudaBlas::Load));
  return *blas;
}

absl::Status CudaBlas::Load() {
  CLEAVE_ASSIGN_OR_RETURN(driver_, CudaDriver::Get());
  // Kept open, as the driver is.
  void* library = nullptr;
  for (const int already : {RTLD_NOLOAD, 0}) {
    for (const char* name : kFileNames) {
      if (library != nullptr) break;
      library = dlopen(name, RTLD_LAZY | RTLD_LOCAL | already);
    }
  }
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("there is no ", kFileNames[0], " nor an earlier one"));
  }
  const auto look = [&](const char* name, auto** function) {
    return Look(library, "libcublas.so", name, function);
  };
  CLEAVE_RETURN_IF_ERROR(look("cublasCreate_v2", &create_));
  CLEAVE_RETURN_IF_ERROR(look("cublasDestroy_v2", &destroy_));
  CLEAVE_RETURN_IF_ERROR(look("cublasSetStream_v2", &set_stream_));
  CLEAVE_RETURN_IF_ERROR(look("cublasSetMathMode", &set_math_mode_));
  CLEAVE_RETURN_IF_ERROR(look("cublasGemmStridedBatchedEx", &multiply_));
  CLEAVE_RETURN_IF_ERROR(look("cublasGetStatusString", &status_string_));
  // A library that the driver is too old for is found here.
  return driver_->InContext(0, [&] { return FindHandle(0, nullptr).status(); });
}

absl::Status CudaBlas::ToStatus(Result result, absl::string_view what) const {
  if (result == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, " failed with ", result, ": ",
                                          status_string_(result)));
}

absl::StatusOr<CudaBlas::Handle> CudaBlas::FindHandle(int ordinal,
                                                      void* stream) const {
  const auto found = std::find_if(
      handles_.begin(), handles_.end(), [&](const StreamHandle& one) {
        return one.ordinal == ordinal && one.stream == stream;
      });
  if (found != handles_.end()) {
    handles_.splice(handles_.begin(), handles_, found);
    return found->handle;
  }
  if (handles_.size() >= kMaxHandles) {
    // It waits for what the handle was given.
    CLEAVE_RETURN_IF_ERROR(
        ToStatus(destroy_(handles_.back().handle), "cublasDestroy"));
    handles_.pop_back();
  }
  Handle handle = nullptr;
  CLEAVE_RETURN_IF_ERROR(ToStatus(create_(&handle), "cublasCreate"));
  handles_.push_front({ordinal, stream, handle});
  CLEAVE_RETURN_IF_ERROR(
      ToStatus(set_math_mode_(handle, kStrictMath), "cublasSetMathMode"));
  CLEAVE_RETURN_IF_ERROR(
      ToStatus(set_stream_(handle, stream), "cublasSetStream"));
  return handle;
}

absl::Status CudaBlas::Multiply(const DeviceProduct& product, int ordinal,
                                void* stream) const {
  CLEAVE_CHECK(Takes(product));
  Matrix left;
  Matrix right;
  ToMatrix(product.left, product.rows, product.terms, &left);
  ToMatrix(product.right, product.columns, product.terms, &right);
  const bool is_double = product.dtype == DType::kF64;
  const double ones[] = {1, 0};
  const float single_ones[] = {1, 0};
  const auto scalar = [&](int i) -> const void* {
    if (is_double) return &ones[i];
    return &single_ones[i];
  };
  const int type = TypeOf(product.dtype);
  return driver_->InContext(ordinal, [&]() -> absl::Status {
    // A handle is given to one thread at a time.
    const std::lock_guard<std::mutex> lock(mutex_);
    CLEAVE_ASSIGN_OR_RETURN(const Handle handle, FindHandle(ordinal, stream));
    // Rows of ours are columns of the library: it computes the transposed
    // result from the right side and the left one.
    return ToStatus(
        multiply_(handle, right.own_first ? kNotTransposed : kTransposed,
                  left.own_first ? kTransposed : kNotTransposed,
                  static_cast<int>(product.columns),
                  static_cast<int>(product.rows),
                  static_cast<int>(product.terms), scalar(0),
                  product.right.data, type, static_cast<int>(right.lead),
                  product.right.of_batch, product.left.data, type,
                  static_cast<int>(left.lead), product.left.of_batch, scalar(1),
                  product.result, type, static_cast<int>(product.columns),
                  product.result_of_batch, static_cast<int>(product.batch),
                  is_double ? kComputeF64 : kComputeF32, kDefaultAlgorithm),
        "cublasGemmStridedBatchedEx");
  });
}

}  // namespace cleave
