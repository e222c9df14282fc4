// CudaBlas: NVIDIA's library of matrix products, where the process has it.
//
//   CLEAVE_ASSIGN_OR_RETURN(const CudaBlas* blas, CudaBlas::Get());
//   CLEAVE_RETURN_IF_ERROR(blas->Multiply(product, ordinal, stream));
//
// It is looked for with the first kernel for CUDA: the library that the process
// has loaded already (PyTorch and JAX bring one), else one that the system
// finds. Nothing is linked against it.
// Source: cuBLAS Library User Guide, "cublasGemmStridedBatchedEx" and
// "Results reproducibility". Internal to engine/runtime.

#ifndef CLEAVE_ENGINE_RUNTIME_CUDA_BLAS_H_
#define CLEAVE_ENGINE_RUNTIME_CUDA_BLAS_H_

#include <cstdint>
#include <list>
#include <mutex>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/runtime/cuda_driver.h"
#include "ops/dtype.h"

namespace cleave {

// result[b, i, j] = sum over t < terms of left[b, i, t] * right[b, t, j], on
// arrays of one device. Strides count elements; each matrix of the result lies
// in row-major order. Sums of f16 and bf16 are kept in f32.
struct DeviceProduct {
  struct Side {
    const void* data = nullptr;
    int64_t of_batch = 0;
    int64_t of_own = 0;  // rows of the left side, columns of the right one
    int64_t of_terms = 0;
  };
  DType dtype = DType::kF32;
  int64_t batch = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t terms = 0;
  Side left, right;
  void* result = nullptr;
  int64_t result_of_batch = 0;
};

class CudaBlas {
 public:
  // Whether the library takes a product of these extents and strides: each side
  // has its elements side by side along one of its axes.
  static bool Takes(const DeviceProduct& product);

  // The process's one. FailedPrecondition with the reason where it has none,
  // Internal where the library does not work with the device's driver.
  static absl::StatusOr<const CudaBlas*> Get();

  CudaBlas(const CudaBlas&) = delete;
  CudaBlas& operator=(const CudaBlas&) = delete;

  // Computes a product that it takes, once `stream` (a CUstream; null is the
  // default stream) has done all before. Single precision is IEEE's, not TF32.
  // The same product on the same device has the same bits each time.
  absl::Status Multiply(const DeviceProduct& product, int ordinal,
                        void* stream) const;

 private:
  using Result = int;  // cublasStatus_t; 0 is success
  using Handle = void*;

  // A handle serves one stream: each has a workspace of its own, so that
  // products of several streams neither wait for nor disturb each other.
  struct StreamHandle {
    int ordinal;
    void* stream;
    Handle handle;
  };

  CudaBlas() = default;
  absl::Status Load();
  // One of `handles_`; made where there is none yet.
  absl::StatusOr<Handle> FindHandle(int ordinal, void* stream) const;
  absl::Status ToStatus(Result result, absl::string_view what) const;

  const CudaDriver* driver_ = nullptr;
  Result (*create_)(Handle* handle) = nullptr;
  Result (*destroy_)(Handle handle) = nullptr;
  Result (*set_stream_)(Handle handle, void* stream) = nullptr;
  Result (*set_math_mode_)(Handle handle, int mode) = nullptr;
  Result (*multiply_)(Handle handle, int transpose_a, int transpose_b, int m,
                      int n, int k, const void* alpha, const void* a,
                      int type_a, int lead_a, long long stride_a,  // NOLINT
                      const void* b, int type_b, int lead_b,
                      long long stride_b,  // NOLINT
                      const void* beta, void* c, int type_c, int lead_c,
                      long long stride_c, int batch, int compute,  // NOLINT
                      int algorithm) = nullptr;
  const char* (*status_string_)(Result result) = nullptr;

  mutable std::mutex mutex_;
  // The latest used first; guarded by mutex_.
  mutable std::list<StreamHandle> handles_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_CUDA_BLAS_H_
