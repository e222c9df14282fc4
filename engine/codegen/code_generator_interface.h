// The C interface of libcleave_codegen.so, the shared object with all that
// needs Halide. Internal to engine/codegen: code_generator.h loads it, and
// halide/generate_code.cc is behind it.
//
// Graphs cross as their text (engine/ir/graph_text.h) and enums as numbers, so
// that the process and the shared object share no C++ type. Both have the same
// CLEAVE_CODE_GENERATOR_VERSION, or the process refuses the shared object.

#ifndef CLEAVE_ENGINE_CODEGEN_CODE_GENERATOR_INTERFACE_H_
#define CLEAVE_ENGINE_CODEGEN_CODE_GENERATOR_INTERFACE_H_

#include <cstddef>
#include <cstdint>

#include "HalideRuntime.h"
#include "engine/codegen/lowering_digest.h"

#define CLEAVE_CODE_GENERATOR_TEXT_INNER(x) #x
#define CLEAVE_CODE_GENERATOR_TEXT(x) CLEAVE_CODE_GENERATOR_TEXT_INNER(x)

// The versions that decide over machine code beside a request: "lowering
// 0123.., Halide 21.0.0".
#define CLEAVE_CODE_GENERATOR_VERSION \
  "lowering " CLEAVE_LOWERING_DIGEST                    \
  ", Halide " CLEAVE_CODE_GENERATOR_TEXT(               \
      HALIDE_VERSION_MAJOR) "." CLEAVE_CODE_GENERATOR_TEXT( \
      HALIDE_VERSION_MINOR) "." CLEAVE_CODE_GENERATOR_TEXT(HALIDE_VERSION_PATCH)

extern "C" {

struct CleaveKernelSource {
  const char* name;
  const char* graph;  // its text
  size_t graph_size;
  int32_t group_kind;  // a GroupKind
};

// With no kernels: the object of Halide's runtime.
struct CleaveCodeRequest {
  int32_t level;   // a TargetLevel
  int32_t device;  // a Device
  int32_t plain_schedule;
  size_t kernel_count;
  const CleaveKernelSource* kernels;
};

// Called once, before the request's call returns: with 0 and the object, or
// with an absl::StatusCode and its message.
typedef void CleaveCodeResult(void* context, int32_t status_code,
                              const char* bytes, size_t size);

// The two functions of the shared object, by their names.
typedef const char* CleaveCodeGeneratorVersion();
typedef void CleaveGenerateCode(const CleaveCodeRequest* request,
                                CleaveCodeResult* result, void* context);
#define CLEAVE_CODE_GENERATOR_VERSION_NAME "cleave_code_generator_version"
#define CLEAVE_GENERATE_CODE_NAME "cleave_generate_code"

}  // extern "C"

#endif  // CLEAVE_ENGINE_CODEGEN_CODE_GENERATOR_INTERFACE_H_
