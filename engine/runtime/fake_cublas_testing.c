/* A cuBLAS on the memory of fake_cuda_testing.c: sums of products in single and
 * double precision, one after the other. Tests load it in place of
 * libcublas.so. */

#include <stdlib.h>

typedef int Status; /* cublasStatus_t; 0 is success */

enum { kF32 = 0, kF64 = 1, kNotSupported = 15 };

Status cublasCreate_v2(void** handle) {
  *handle = malloc(1);
  return *handle == NULL ? 3 : 0; /* CUBLAS_STATUS_ALLOC_FAILED */
}

Status cublasDestroy_v2(void* handle) {
  free(handle);
  return 0;
}

Status cublasSetStream_v2(void* handle, void* stream) {
  (void)handle;
  (void)stream;
  return 0;
}

Status cublasSetMathMode(void* handle, int mode) {
  (void)handle;
  (void)mode;
  return 0;
}

const char* cublasGetStatusString(Status status) {
  (void)status;
  return "the fake library has no such product";
}

static double Get(const void* array, int type, long long at) {
  return type == kF32 ? ((const float*)array)[at] : ((const double*)array)[at];
}

static void Set(void* array, int type, long long at, double value) {
  if (type == kF32) {
    ((float*)array)[at] = (float)value;
  } else {
    ((double*)array)[at] = value;
  }
}

/* Matrices in column-major order: c = op(a) op(b), of m by k and k by n. */
Status cublasGemmStridedBatchedEx(void* handle, int transpose_a,
                                  int transpose_b, int m, int n, int k,
                                  const void* alpha, const void* a, int type_a,
                                  int lead_a, long long stride_a, const void* b,
                                  int type_b, int lead_b, long long stride_b,
                                  const void* beta, void* c, int type_c,
                                  int lead_c, long long stride_c, int batch,
                                  int compute, int algorithm) {
  (void)handle;
  (void)compute;
  (void)algorithm;
  const int is_known = type_a == kF32 || type_a == kF64;
  if (!is_known || type_b != type_a || type_c != type_a) return kNotSupported;
  if (Get(alpha, type_a, 0) != 1 || Get(beta, type_a, 0) != 0) {
    return kNotSupported;
  }
  if (lead_a < (transpose_a ? k : m) || lead_b < (transpose_b ? n : k) ||
      lead_c < m) {
    return 7; /* CUBLAS_STATUS_INVALID_VALUE */
  }
  for (long long at = 0; at < batch; ++at) {
    for (long long j = 0; j < n; ++j) {
      for (long long i = 0; i < m; ++i) {
        double sum = 0;
        for (long long t = 0; t < k; ++t) {
          const long long in_a = transpose_a ? t + i * lead_a : i + t * lead_a;
          const long long in_b = transpose_b ? j + t * lead_b : t + j * lead_b;
          sum += Get(a, type_a, in_a + at * stride_a) *
                 Get(b, type_b, in_b + at * stride_b);
        }
        Set(c, type_c, i + j * lead_c + at * stride_c, sum);
      }
    }
  }
  return 0;
}
