/* A driver of CUDA whose device is the host's memory: arrays are copied, and
 * kernels do nothing. Tests load it in place of libcuda.so.1, for what happens
 * around kernels. */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef int Result; /* CUresult; 0 is success */

static const Result kInvalidValue = 1;

static void* const kContext = (void*)1;

/* Of what Halide's runtime asks for: a device of compute capability 9.0. */
enum {
  kMaxThreads = 1,
  kWarpSize = 10,
  kProcessors = 16,
  kMajor = 75,
  kMinor = 76
};

Result cuInit(unsigned flags) {
  (void)flags;
  return 0;
}

Result cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}

Result cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}

Result cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  switch (attribute) {
    case kMaxThreads:
      *value = 1024;
      return 0;
    case kWarpSize:
      *value = 32;
      return 0;
    case kProcessors:
      *value = 1;
      return 0;
    case kMajor:
      *value = 9;
      return 0;
    case kMinor:
      *value = 0;
      return 0;
    default:
      *value = 65536;
      return 0;
  }
}

Result cuDeviceGetName(char* name, int length, int device) {
  (void)device;
  strncpy(name, "fake", (size_t)length);
  return 0;
}

Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  *bytes = (size_t)1 << 32;
  return 0;
}

Result cuDevicePrimaryCtxRetain(void** context, int device) {
  (void)device;
  *context = kContext;
  return 0;
}

Result cuCtxCreate_v2(void** context, unsigned flags, int device) {
  (void)flags;
  (void)device;
  *context = kContext;
  return 0;
}

Result cuCtxDestroy_v2(void* context) {
  (void)context;
  return 0;
}

Result cuCtxGetApiVersion(void* context, unsigned* version) {
  (void)context;
  *version = 12000;
  return 0;
}

Result cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}

Result cuCtxPushCurrent_v2(void* context) {
  (void)context;
  return 0;
}

Result cuCtxPopCurrent_v2(void** context) {
  *context = kContext;
  return 0;
}

Result cuCtxSynchronize(void) { return 0; }

Result cuStreamSynchronize(void* stream) {
  (void)stream;
  return 0;
}

Result cuProfilerStop(void) { return 0; }

Result cuGetErrorString(Result result, const char** text) {
  (void)result;
  *text = "a fake driver does not fail";
  return 0;
}

Result cuModuleLoadData(void** module, const void* image) {
  (void)image;
  *module = kContext;
  return 0;
}

Result cuModuleLoadDataEx(void** module, const void* image, unsigned count,
                          int* options, void** values) {
  (void)count;
  (void)options;
  (void)values;
  return cuModuleLoadData(module, image);
}

Result cuModuleUnload(void* module) {
  (void)module;
  return 0;
}

Result cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)name;
  *function = module;
  return 0;
}

/* Refuses what a device of compute capability 9.0 refuses. */
Result cuLaunchKernel(void* function, unsigned blocks_x, unsigned blocks_y,
                      unsigned blocks_z, unsigned threads_x, unsigned threads_y,
                      unsigned threads_z, unsigned shared_bytes, void* stream,
                      void** parameters, void** extra) {
  const unsigned kGridRows = 65535, kThreads = 1024, kSharedBytes = 49152;
  const unsigned long long threads =
      (unsigned long long)threads_x * threads_y * threads_z;
  (void)function;
  (void)stream;
  (void)parameters;
  (void)extra;
  if (blocks_x == 0 || blocks_x > 0x7fffffff) return kInvalidValue;
  if (blocks_y == 0 || blocks_y > kGridRows) return kInvalidValue;
  if (blocks_z == 0 || blocks_z > kGridRows) return kInvalidValue;
  if (threads == 0 || threads > kThreads || threads_z > 64) {
    return kInvalidValue;
  }
  return shared_bytes > kSharedBytes ? kInvalidValue : 0;
}

Result cuMemAlloc_v2(void** address, size_t bytes) {
  *address = calloc(bytes, 1);
  return *address == NULL ? 2 : 0; /* CUDA_ERROR_OUT_OF_MEMORY */
}

Result cuMemFree_v2(void* address) {
  free(address);
  return 0;
}

static Result Copy(void* target, const void* source, size_t bytes) {
  memcpy(target, source, bytes);
  return 0;
}

Result cuMemcpyHtoD_v2(void* target, const void* source, size_t bytes) {
  return Copy(target, source, bytes);
}

Result cuMemcpyDtoH_v2(void* target, const void* source, size_t bytes) {
  return Copy(target, source, bytes);
}

Result cuMemcpyDtoD_v2(void* target, const void* source, size_t bytes) {
  return Copy(target, source, bytes);
}

Result cuMemcpyAsync(void* target, const void* source, size_t bytes,
                     void* stream) {
  (void)stream;
  return Copy(target, source, bytes);
}

Result cuMemcpyHtoDAsync_v2(void* target, const void* source, size_t bytes,
                            void* stream) {
  return cuMemcpyAsync(target, source, bytes, stream);
}

Result cuMemcpyDtoHAsync_v2(void* target, const void* source, size_t bytes,
                            void* stream) {
  return cuMemcpyAsync(target, source, bytes, stream);
}

Result cuMemcpyDtoDAsync_v2(void* target, const void* source, size_t bytes,
                            void* stream) {
  return cuMemcpyAsync(target, source, bytes, stream);
}

/* Only contiguous arrays are copied. */
Result cuMemcpy3D_v2(const void* copy) {
  (void)copy;
  return 1; /* CUDA_ERROR_INVALID_VALUE */
}

Result cuMemcpy3DAsync_v2(const void* copy, void* stream) {
  (void)stream;
  return cuMemcpy3D_v2(copy);
}

Result cuPointerGetAttribute(void* value, int attribute, void* address) {
  (void)attribute;
  *(void**)value = address;
  return 0;
}
