/* The custom call behind `cleave.jax`: XLA runs a graph's kernel.
 *
 * A program for XLA names the call `cleave_graph` and carries the graph, made
 * of primitives alone, as the text attribute `graph`. So an exported program
 * needs nothing but this library, wherever it is loaded again. The kernel is
 * compiled once, as XLA instantiates the program; the same text in another
 * program finds it in a table of this process.
 *
 *   cc -std=c99 -D_POSIX_C_SOURCE=200809L -shared -fPIC -I<repository>
 *      cleave_xla.c -L<folder> -lcleave -lm -o libcleave_xla.so
 *
 * This file is C alone and links with no part of XLA. It declares what it reads
 * of XLA's interface for handlers (version 0.3), so that it is built where
 * no jaxlib is. `cc -fsyntax-only -include c_api.h`, with the one in jaxlib's
 * include/xla/ffi/api, compares each declaration with the original, at the end
 * of the file.
 */

#include <fenv.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/embed/cleave.h"
#include "engine/embed/dlpack.h"

/* ------------------------------------ XLA's interface for handlers, 0.3 -- */

enum {
  kXlaMajor = 0,
  kXlaMinor = 3,
  kXlaMetadataExtension = 1,
  kXlaBuffer = 1,    /* of arguments and of results */
  kXlaAttrString = 4,
  kXlaInstantiate = 0,
  kXlaExecute = 3
};

typedef struct xla_extension {
  size_t struct_size;
  int type;
  struct xla_extension* next;
} xla_extension;

typedef struct {
  size_t struct_size;
  xla_extension* extension_start;
  int major_version;
  int minor_version;
} xla_version;

typedef struct xla_error xla_error;
typedef struct xla_context xla_context;

typedef struct {
  size_t struct_size;
  xla_extension* extension_start;
  const char* message;
  int errc;
} xla_error_create_args;

typedef struct {
  size_t struct_size;
  xla_extension* extension_start;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
} xla_buffer;

typedef struct {
  const char* ptr;
  size_t len;
} xla_bytes;

typedef struct {
  int64_t type_id;
} xla_type_id;

typedef struct {
  size_t struct_size;
  xla_extension* extension_start;
  void (*deleter)(void* object);
} xla_type_info;

/* Of XLA_FFI_Args and XLA_FFI_Rets, which are laid out alike. */
typedef struct {
  size_t struct_size;
  xla_extension* extension_start;
  int64_t size;
  int* types;
  void** values;
} xla_values;

typedef struct {
  size_t struct_size;
  xla_extension* extension_start;
  int64_t size;
  int* types;
  xla_bytes** names;
  void** attrs;
} xla_attributes;

typedef struct {
  size_t struct_size;
  xla_extension* extension_start;
  xla_context* ctx;
  int stage;
  xla_type_id* type_id;
  void* state;
} xla_state_args; /* of State_Set and State_Get */

typedef void xla_unused_function(void);
typedef struct {
  size_t struct_size;
  xla_extension* extension_start;
  xla_version api_version;
  const void* internal_api;
  xla_error* (*error_create)(xla_error_create_args* args);
  xla_unused_function* unused[6];
  xla_error* (*state_set)(xla_state_args* args);
  xla_error* (*state_get)(xla_state_args* args);
} xla_api; /* the head of XLA_FFI_Api, which has more functions */

typedef struct {
  size_t struct_size;
  xla_extension* extension_start;
  const xla_api* api;
  xla_context* ctx;
  int stage;
  xla_values args;
  xla_values rets;
  xla_attributes attrs;
} xla_call_frame; /* without `future`, which this handler leaves alone */

typedef struct {
  size_t struct_size;
  xla_version api_version;
  uint32_t traits;
  xla_type_id state_type_id;
} xla_metadata;

typedef struct {
  xla_extension extension_base;
  xla_metadata* metadata;
} xla_metadata_extension;

/* --------------------------------------------------------------- Errors -- */

static xla_error* Fail(const xla_api* api, int code, const char* message) {
  xla_error_create_args args;
  memset(&args, 0, sizeof args);
  args.struct_size = sizeof args;
  args.message = message;
  args.errc = code;
  return api->error_create(&args);
}

/* The numbers of both sides are those of absl::StatusCode. */
static xla_error* FailAs(const xla_api* api, cleave_status* status) {
  xla_error* error =
      Fail(api, cleave_status_code(status), cleave_status_message(status));
  cleave_status_free(status);
  return error;
}

/* ------------------------------------------------------ Kernels by text -- */

/* Kernels that programs share. A program keeps its kernel alive by itself, so
 * that the table may forget any. Two programs with one text, instantiated at
 * once, both compile it; the folder of kernels makes the second fast. */
enum { kTableSize = 1024 };
typedef struct {
  char* text; /* NULL: free */
  size_t size;
  cleave_kernel* kernel;
} table_entry;
static table_entry table[kTableSize];
static pthread_mutex_t table_mutex = PTHREAD_MUTEX_INITIALIZER;
/* How many kernels this process compiled for XLA, for tests. */
static int64_t compiled_count;

static size_t TableIndex(const char* text, size_t size) {
  uint64_t hash = 14695981039346656037u;
  size_t i;
  for (i = 0; i < size; ++i) {
    hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
  }
  return (size_t)((hash ^ (hash >> 32)) % kTableSize);
}

/* The kernel of `text`, retained for the caller, or NULL. */
static cleave_kernel* FindKernel(const char* text, size_t size) {
  const table_entry* entry = &table[TableIndex(text, size)];
  cleave_kernel* kernel = NULL;
  pthread_mutex_lock(&table_mutex);
  if (entry->text != NULL && entry->size == size &&
      memcmp(entry->text, text, size) == 0) {
    kernel = entry->kernel;
    cleave_kernel_retain(kernel);
  }
  pthread_mutex_unlock(&table_mutex);
  return kernel;
}

/* Takes `text`, and retains `kernel`. */
static void KeepKernel(char* text, size_t size, cleave_kernel* kernel) {
  table_entry* entry = &table[TableIndex(text, size)];
  table_entry old;
  cleave_kernel_retain(kernel);
  pthread_mutex_lock(&table_mutex);
  old = *entry;
  entry->text = text;
  entry->size = size;
  entry->kernel = kernel;
  ++compiled_count;
  pthread_mutex_unlock(&table_mutex);
  free(old.text);
  cleave_kernel_release(old.kernel);
}

/* `text` is `size` bytes and ends with a NUL. */
static cleave_status* CompileKernel(const char* text, cleave_kernel** out) {
  cleave_rules* rules = NULL;
  cleave_graph* graph = NULL;
  /* Primitives need no rules; the shipped ones bring their rewrites. */
  cleave_status* status = cleave_rules_shipped(NULL, &rules);
  if (status == NULL) status = cleave_graph_parse(rules, text, &graph);
  if (status == NULL) status = cleave_kernel_compile(graph, NULL, NULL, out);
  cleave_graph_release(graph);
  cleave_rules_release(rules);
  return status;
}

CLEAVE_API int64_t cleave_xla_compiled_count(void) {
  int64_t count;
  pthread_mutex_lock(&table_mutex);
  count = compiled_count;
  pthread_mutex_unlock(&table_mutex);
  return count;
}

/* -------------------------------------------------- The state of a call -- */

static void ReleaseState(void* state) {
  cleave_kernel_release((cleave_kernel*)state);
}

/* Python registers both under one name, and XLA sets the id, before the
 * handlers are registered. */
CLEAVE_API xla_type_id cleave_xla_type_id = {0};
CLEAVE_API xla_type_info cleave_xla_type_info = {sizeof(xla_type_info), NULL,
                                                 ReleaseState};

/* XLA asks each handler once for the version that it was written for. */
static int AnswersMetadata(xla_call_frame* frame, int creates_state) {
  xla_metadata* metadata;
  if (frame->extension_start == NULL ||
      frame->extension_start->type != kXlaMetadataExtension) {
    return 0;
  }
  metadata = ((xla_metadata_extension*)frame->extension_start)->metadata;
  metadata->api_version.struct_size = sizeof(xla_version);
  metadata->api_version.extension_start = NULL;
  metadata->api_version.major_version = kXlaMajor;
  metadata->api_version.minor_version = kXlaMinor;
  metadata->traits = 0;
  if (metadata->struct_size >= sizeof(xla_metadata)) {
    metadata->state_type_id.type_id =
        creates_state ? cleave_xla_type_id.type_id : 0;
  }
  return 1;
}

/* The text attribute `graph`, or NULL. */
static const xla_bytes* GraphText(const xla_attributes* attrs) {
  int64_t i;
  for (i = 0; i < attrs->size; ++i) {
    if (attrs->types[i] == kXlaAttrString && attrs->names[i]->len == 5 &&
        memcmp(attrs->names[i]->ptr, "graph", 5) == 0) {
      return (const xla_bytes*)attrs->attrs[i];
    }
  }
  return NULL;
}

/* ---------------------------------------------------------- Instantiate -- */

CLEAVE_API xla_error* cleave_xla_instantiate(xla_call_frame* frame) {
  const xla_bytes* graph;
  cleave_kernel* kernel;
  xla_state_args args;
  xla_error* error;
  if (AnswersMetadata(frame, 1)) return NULL;
  graph = GraphText(&frame->attrs);
  if (graph == NULL) {
    return Fail(frame->api, CLEAVE_INVALID_ARGUMENT,
                "cleave_graph: the text attribute `graph` is missing");
  }
  kernel = FindKernel(graph->ptr, graph->len);
  if (kernel == NULL) {
    cleave_status* status;
    char* text = (char*)malloc(graph->len + 1);
    if (text == NULL) {
      return Fail(frame->api, CLEAVE_RESOURCE_EXHAUSTED, "out of memory");
    }
    memcpy(text, graph->ptr, graph->len);
    text[graph->len] = '\0';
    status = CompileKernel(text, &kernel);
    if (status != NULL) {
      free(text);
      return FailAs(frame->api, status);
    }
    KeepKernel(text, graph->len, kernel);
  }
  memset(&args, 0, sizeof args);
  args.struct_size = sizeof args;
  args.ctx = frame->ctx;
  args.stage = kXlaInstantiate;
  args.type_id = &cleave_xla_type_id;
  args.state = kernel;
  error = frame->api->state_set(&args);
  if (error != NULL) cleave_kernel_release(kernel);
  return error;
}

/* -------------------------------------------------------------- Execute -- */

/* The dtype of DLPack for one of XLA; 0 bits for what Cleave does not have. */
static DLDataType DTypeOf(int dtype) {
  static const struct {
    int xla;
    uint8_t code;
    uint8_t bits;
  } kDTypes[] = {
      {1, kDLBool, 8},    {2, kDLInt, 8},      {3, kDLInt, 16},
      {4, kDLInt, 32},    {5, kDLInt, 64},     {6, kDLUInt, 8},
      {7, kDLUInt, 16},   {8, kDLUInt, 32},    {9, kDLUInt, 64},
      {10, kDLFloat, 16}, {11, kDLFloat, 32},  {12, kDLFloat, 64},
      {16, kDLBfloat, 16}, {15, kDLComplex, 64}, {18, kDLComplex, 128}};
  DLDataType result = {0, 0, 1};
  size_t i;
  for (i = 0; i < sizeof kDTypes / sizeof kDTypes[0]; ++i) {
    if (kDTypes[i].xla == dtype) {
      result.code = kDTypes[i].code;
      result.bits = kDTypes[i].bits;
    }
  }
  return result;
}

/* `values` as tensors, with a pointer to each. XLA's buffers are row-major:
 * the lowering asks for that. */
static const char* Tensors(const xla_values* values, DLTensor* tensors,
                           const DLTensor** pointers) {
  int64_t i;
  for (i = 0; i < values->size; ++i) {
    const xla_buffer* buffer = (const xla_buffer*)values->values[i];
    if (values->types[i] != kXlaBuffer) {
      return "cleave_graph: an operand or result is no buffer";
    }
    memset(&tensors[i], 0, sizeof tensors[i]);
    tensors[i].data = buffer->data;
    tensors[i].device.device_type = kDLCPU;
    tensors[i].ndim = (int32_t)buffer->rank;
    tensors[i].dtype = DTypeOf(buffer->dtype);
    tensors[i].shape = buffer->dims;
    if (tensors[i].dtype.bits == 0) {
      return "cleave_graph: no dtype of Cleave is the one of an operand or "
             "result";
    }
    pointers[i] = &tensors[i];
  }
  return NULL;
}

CLEAVE_API xla_error* cleave_xla_execute(xla_call_frame* frame) {
  enum { kFew = 16 };
  DLTensor few_tensors[kFew];
  const DLTensor* few_pointers[kFew];
  DLTensor* tensors = few_tensors;
  const DLTensor** pointers = few_pointers;
  xla_state_args state;
  xla_error* error;
  const char* mistake;
  size_t inputs, count;
  if (AnswersMetadata(frame, 0)) return NULL;
  memset(&state, 0, sizeof state);
  state.struct_size = sizeof state;
  state.ctx = frame->ctx;
  state.stage = kXlaInstantiate;
  state.type_id = &cleave_xla_type_id;
  error = frame->api->state_get(&state);
  if (error != NULL) return error;

  inputs = (size_t)frame->args.size;
  count = inputs + (size_t)frame->rets.size;
  if (count > kFew) {
    tensors = (DLTensor*)malloc(count * (sizeof *tensors + sizeof *pointers));
    if (tensors == NULL) {
      return Fail(frame->api, CLEAVE_RESOURCE_EXHAUSTED, "out of memory");
    }
    pointers = (const DLTensor**)(void*)(tensors + count);
  }
  mistake = Tensors(&frame->args, tensors, pointers);
  if (mistake == NULL) {
    mistake = Tensors(&frame->rets, tensors + inputs, pointers + inputs);
  }
  if (mistake != NULL) {
    error = Fail(frame->api, CLEAVE_UNIMPLEMENTED, mistake);
  } else {
    cleave_status* status;
    fenv_t environment;
    /* XLA's threads flush subnormal numbers to zero; kernels compute them. */
    fegetenv(&environment);
    fesetenv(FE_DFL_ENV);
    status = cleave_kernel_run((const cleave_kernel*)state.state, pointers,
                               inputs, pointers + inputs, count - inputs, NULL);
    fesetenv(&environment);
    if (status != NULL) error = FailAs(frame->api, status);
  }
  if (tensors != few_tensors) free(tensors);
  return error;
}

/* -------------------------------------------- The declarations compared -- */

#ifdef XLA_FFI_API_C_API_H_
/* Arrays of negative extent, which do not compile, where they differ. */
#define SAME_SIZE(ours, theirs) \
  typedef char ours##_size[sizeof(ours) == sizeof(theirs) ? 1 : -1]
#define SAME_PLACE(ours, field, theirs, their_field)                       \
  typedef char ours##_##field[offsetof(ours, field) ==                     \
                                          offsetof(theirs, their_field) && \
                                      sizeof(((ours*)0)->field) ==         \
                                          sizeof(((theirs*)0)->their_field) \
                                  ? 1                                      \
                                  : -1]
#define SAME_NUMBER(name, ours, theirs) \
  typedef char same_##name[(int)(ours) == (int)(theirs) ? 1 : -1]

SAME_NUMBER(major, kXlaMajor, XLA_FFI_API_MAJOR);
SAME_NUMBER(metadata, kXlaMetadataExtension, XLA_FFI_Extension_Metadata);
SAME_NUMBER(argument, kXlaBuffer, XLA_FFI_ArgType_BUFFER);
SAME_NUMBER(result, kXlaBuffer, XLA_FFI_RetType_BUFFER);
SAME_NUMBER(string, kXlaAttrString, XLA_FFI_AttrType_STRING);
SAME_NUMBER(instantiate, kXlaInstantiate, XLA_FFI_ExecutionStage_INSTANTIATE);
SAME_NUMBER(execute, kXlaExecute, XLA_FFI_ExecutionStage_EXECUTE);
SAME_NUMBER(pred, 1, XLA_FFI_DataType_PRED);
SAME_NUMBER(s8, 2, XLA_FFI_DataType_S8);
SAME_NUMBER(s64, 5, XLA_FFI_DataType_S64);
SAME_NUMBER(u8, 6, XLA_FFI_DataType_U8);
SAME_NUMBER(u64, 9, XLA_FFI_DataType_U64);
SAME_NUMBER(f16, 10, XLA_FFI_DataType_F16);
SAME_NUMBER(f32, 11, XLA_FFI_DataType_F32);
SAME_NUMBER(f64, 12, XLA_FFI_DataType_F64);
SAME_NUMBER(c64, 15, XLA_FFI_DataType_C64);
SAME_NUMBER(bf16, 16, XLA_FFI_DataType_BF16);
SAME_NUMBER(c128, 18, XLA_FFI_DataType_C128);
SAME_NUMBER(invalid, CLEAVE_INVALID_ARGUMENT,
            XLA_FFI_Error_Code_INVALID_ARGUMENT);
SAME_NUMBER(exhausted, CLEAVE_RESOURCE_EXHAUSTED,
            XLA_FFI_Error_Code_RESOURCE_EXHAUSTED);
SAME_NUMBER(unimplemented, CLEAVE_UNIMPLEMENTED,
            XLA_FFI_Error_Code_UNIMPLEMENTED);
SAME_NUMBER(internal, CLEAVE_INTERNAL, XLA_FFI_Error_Code_INTERNAL);
SAME_SIZE(xla_extension, XLA_FFI_Extension_Base);
SAME_PLACE(xla_extension, type, XLA_FFI_Extension_Base, type);
SAME_PLACE(xla_extension, next, XLA_FFI_Extension_Base, next);
SAME_SIZE(xla_version, XLA_FFI_Api_Version);
SAME_PLACE(xla_version, major_version, XLA_FFI_Api_Version, major_version);
SAME_PLACE(xla_version, minor_version, XLA_FFI_Api_Version, minor_version);
SAME_SIZE(xla_error_create_args, XLA_FFI_Error_Create_Args);
SAME_PLACE(xla_error_create_args, message, XLA_FFI_Error_Create_Args, message);
SAME_PLACE(xla_error_create_args, errc, XLA_FFI_Error_Create_Args, errc);
SAME_SIZE(xla_buffer, XLA_FFI_Buffer);
SAME_PLACE(xla_buffer, dtype, XLA_FFI_Buffer, dtype);
SAME_PLACE(xla_buffer, data, XLA_FFI_Buffer, data);
SAME_PLACE(xla_buffer, rank, XLA_FFI_Buffer, rank);
SAME_PLACE(xla_buffer, dims, XLA_FFI_Buffer, dims);
SAME_SIZE(xla_bytes, XLA_FFI_ByteSpan);
SAME_PLACE(xla_bytes, ptr, XLA_FFI_ByteSpan, ptr);
SAME_PLACE(xla_bytes, len, XLA_FFI_ByteSpan, len);
SAME_SIZE(xla_type_id, XLA_FFI_TypeId);
SAME_SIZE(xla_type_info, XLA_FFI_TypeInfo);
SAME_PLACE(xla_type_info, deleter, XLA_FFI_TypeInfo, deleter);
SAME_SIZE(xla_values, XLA_FFI_Args);
SAME_PLACE(xla_values, size, XLA_FFI_Args, size);
SAME_PLACE(xla_values, types, XLA_FFI_Args, types);
SAME_PLACE(xla_values, values, XLA_FFI_Args, args);
typedef char same_rets[sizeof(xla_values) == sizeof(XLA_FFI_Rets) &&
                               offsetof(xla_values, values) ==
                                   offsetof(XLA_FFI_Rets, rets)
                           ? 1
                           : -1];
SAME_SIZE(xla_attributes, XLA_FFI_Attrs);
SAME_PLACE(xla_attributes, types, XLA_FFI_Attrs, types);
SAME_PLACE(xla_attributes, names, XLA_FFI_Attrs, names);
SAME_PLACE(xla_attributes, attrs, XLA_FFI_Attrs, attrs);
SAME_SIZE(xla_state_args, XLA_FFI_State_Set_Args);
SAME_PLACE(xla_state_args, ctx, XLA_FFI_State_Set_Args, ctx);
SAME_PLACE(xla_state_args, stage, XLA_FFI_State_Set_Args, stage);
SAME_PLACE(xla_state_args, type_id, XLA_FFI_State_Set_Args, type_id);
SAME_PLACE(xla_state_args, state, XLA_FFI_State_Set_Args, state);
typedef char same_get[sizeof(xla_state_args) ==
                                  sizeof(XLA_FFI_State_Get_Args) &&
                              offsetof(xla_state_args, state) ==
                                  offsetof(XLA_FFI_State_Get_Args, state)
                          ? 1
                          : -1];
SAME_PLACE(xla_api, api_version, XLA_FFI_Api, api_version);
SAME_PLACE(xla_api, error_create, XLA_FFI_Api, XLA_FFI_Error_Create);
SAME_PLACE(xla_api, state_set, XLA_FFI_Api, XLA_FFI_State_Set);
SAME_PLACE(xla_api, state_get, XLA_FFI_Api, XLA_FFI_State_Get);
SAME_PLACE(xla_call_frame, api, XLA_FFI_CallFrame, api);
SAME_PLACE(xla_call_frame, ctx, XLA_FFI_CallFrame, ctx);
SAME_PLACE(xla_call_frame, stage, XLA_FFI_CallFrame, stage);
SAME_PLACE(xla_call_frame, args, XLA_FFI_CallFrame, args);
SAME_PLACE(xla_call_frame, rets, XLA_FFI_CallFrame, rets);
SAME_PLACE(xla_call_frame, attrs, XLA_FFI_CallFrame, attrs);
SAME_SIZE(xla_metadata, XLA_FFI_Metadata);
SAME_PLACE(xla_metadata, api_version, XLA_FFI_Metadata, api_version);
SAME_PLACE(xla_metadata, traits, XLA_FFI_Metadata, traits);
SAME_PLACE(xla_metadata, state_type_id, XLA_FFI_Metadata, state_type_id);
SAME_PLACE(xla_metadata_extension, metadata, XLA_FFI_Metadata_Extension,
           metadata);
#endif
