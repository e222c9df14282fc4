/* Shared by the files of the extension module `cleave._native`.
 *
 * The module is a thin layer over engine/embed/cleave.h: it turns Python's
 * objects into handles, texts and DLTensors, and statuses into exceptions. The
 * pure Python files beside it make that comfortable.
 *
 *   cleave_native.c         the module, exceptions, calls that Ctrl-C ends
 *   cleave_native_rules.c   Rules and Builder
 *   cleave_native_graph.c   Graph, with its transforms
 *   cleave_native_array.c   arrays of numpy, torch, JAX, .. as DLTensors
 *   cleave_native_memory.c  results that frameworks import by DLPack
 *   cleave_native_kernel.c  Kernel, and ops that Python functions compute
 *   cleave_native_dispatch.c  functions that choose a kernel by their arguments
 *
 * It keeps to the limited API of Python 3.11, so that one file serves that
 * version and all later ones. Functions that return a PyObject* return NULL,
 * and those that return an int return -1, with a Python exception set.
 */
#ifndef CLEAVE_ENGINE_EMBED_PYTHON_CLEAVE_NATIVE_H_
#define CLEAVE_ENGINE_EMBED_PYTHON_CLEAVE_NATIVE_H_

#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030b0000
#endif
#include <Python.h>

#include "engine/embed/cleave.h"

#define NATIVE_LOCAL __attribute__((visibility("hidden")))

/* Each object owns one reference to its handle. */
typedef struct {
  PyObject_HEAD cleave_rules* handle;
} RulesObject;
typedef struct {
  PyObject_HEAD cleave_graph* handle;
} GraphObject;

extern NATIVE_LOCAL PyTypeObject* rules_type;
extern NATIVE_LOCAL PyTypeObject* graph_type;

/* -------------------------------------------------------- cleave_native.c --
 */

/* Sets the exception that belongs to a status, and frees it. Returns NULL. */
NATIVE_LOCAL PyObject* Raise(cleave_status* status);
/* Sets the exception of a mistake that this module found. Returns NULL. */
NATIVE_LOCAL PyObject* RaiseNew(int32_t code, const char* format, ...);
/* The str of a text, which it frees. */
NATIVE_LOCAL PyObject* TakeText(cleave_text* text);
/* Remembers the exception now set as the cause of the status to come. */
NATIVE_LOCAL void KeepCause(void);
NATIVE_LOCAL void ForgetCause(void);

typedef cleave_status* (*LongBody)(void* arguments,
                                   const cleave_call_options* options);
/* Runs the body without the interpreter's lock; in the main thread by another
 * thread, so that a signal's handler can run and end the call. Returns 0, or -1
 * with an exception set. */
NATIVE_LOCAL int CallLong(LongBody body, void* arguments);
/* Whether the calling thread is the one that gets signals. */
NATIVE_LOCAL int InMainThread(void);

/* Texts of a sequence of str. `owner` keeps them. */
typedef struct {
  PyObject* owner;
  const char** items;
  size_t count;
} Texts;
/* None is no texts. */
NATIVE_LOCAL int TextsOf(PyObject* sequence, Texts* texts);
NATIVE_LOCAL void FreeTexts(Texts* texts);

/* Sets a variable that owns its object. */
static inline void Replace(PyObject** variable, PyObject* value) {
  PyObject* old = *variable;
  *variable = value;
  Py_XDECREF(old);
}

/* Adds a type to the module, and returns it. */
NATIVE_LOCAL PyTypeObject* AddType(PyObject* module, PyType_Spec* spec);

/* -------------------------------------------- The types, each in its file --
 */

NATIVE_LOCAL int AddRulesTypes(PyObject* module);
NATIVE_LOCAL int AddGraphType(PyObject* module);
NATIVE_LOCAL int AddKernelType(PyObject* module);
NATIVE_LOCAL int AddMemoryType(PyObject* module);
NATIVE_LOCAL int AddDispatchType(PyObject* module);
/* New objects, which take the handles. */
NATIVE_LOCAL PyObject* NewRules(cleave_rules* handle);
NATIVE_LOCAL PyObject* NewGraph(cleave_graph* handle);
/* The functions of a dict from names of ops to callables; NULL of None, which
 * is no error. */
NATIVE_LOCAL int HostKernelsOf(PyObject* functions, cleave_host_kernels** out);

/* -------------------------------------------------- cleave_native_array.c --
 */

enum { INLINE_AXES = 6 };

typedef enum {
  FRAMEWORK_NONE = 0, /* numbers, lists, buffers: they count as numpy's */
  FRAMEWORK_NUMPY,
  FRAMEWORK_EXCHANGE, /* by DLPack's table of C functions: torch */
  FRAMEWORK_DLPACK    /* by `__dlpack__`: JAX and others */
} Framework;

/* How the arrays of one Python type are read and made. */
typedef struct {
  PyTypeObject* type;
  Framework framework;
  const DLPackExchangeAPI* exchange;
  int is_torch; /* its tensors have flags that DLPack does not tell */
} ArrayKind;

/* An array as a DLTensor. `tensor` is valid until ReleaseArray. */
typedef struct {
  DLTensor tensor;
  int64_t sizes[2 * INLINE_AXES];
  int64_t* many_sizes; /* those of an array of more axes, or NULL */
  Py_buffer view;      /* obj is NULL where it is not used */
  PyObject* owner;     /* a capsule or a copy, or NULL */
} Array;

/* Whether an object is an array of a framework. */
NATIVE_LOCAL int IsArray(PyObject* object);
/* Reads an array. `dtype` names what a number or a list becomes: "f32".
 * `writable` asks for memory that the caller may write. */
NATIVE_LOCAL int ReadArray(PyObject* object, const char* dtype, int writable,
                           Array* array, const ArrayKind** kind);
NATIVE_LOCAL void ReleaseArray(Array* array);
/* A new array of the kind for the dtype and shape that stand in `tensor`, whose
 * `data` it sets. */
NATIVE_LOCAL PyObject* MakeArray(const ArrayKind* kind, DLTensor* tensor);
/* An object that has new memory, aligned as XLA likes it. */
NATIVE_LOCAL PyObject* MakeMemory(DLTensor* tensor);
/* The caller's result for `made`, which it takes, once it is written: an array
 * of the framework of `like`. */
NATIVE_LOCAL PyObject* FinishArray(PyObject* made, PyObject* like);
/* The kind of numpy's arrays. */
NATIVE_LOCAL const ArrayKind* NumpyKind(void);
/* "f32" of a DLPack dtype; NULL of one that Cleave lacks. */
NATIVE_LOCAL const char* DtypeName(DLDataType dtype);

/* ------------------------------------------------- cleave_native_kernel.c --
 */

typedef struct {
  PyObject_HEAD cleave_kernel* handle;
  PyObject* dtypes; /* a tuple of the inputs' dtypes, as str */
  const char** dtype_names;
  size_t input_count, output_count;
  int calls_python;
  int has_loops;
} KernelObject;

/* The kernel that an object is, or NULL with an exception. */
NATIVE_LOCAL KernelObject* KernelOf(PyObject* object);

enum { FEW = 8 };

/* Arrays of a call, with room for few on the stack. */
typedef struct {
  Array few[FEW];
  const DLTensor* few_tensors[FEW];
  Array* items;
  const DLTensor** tensors;
  size_t count;
} Arrays;

NATIVE_LOCAL void StartArrays(Arrays* arrays);
NATIVE_LOCAL void ReleaseArrays(Arrays* arrays);
/* Runs the kernel. The results, a tuple, are arrays of `kind`; `like` is an
 * array of it, or NULL for numpy's. `report` may be NULL. */
NATIVE_LOCAL PyObject* RunKernel(const KernelObject* kernel,
                                 const Arrays* arrays, const ArrayKind* kind,
                                 PyObject* like, cleave_text** report);

#endif /* CLEAVE_ENGINE_EMBED_PYTHON_CLEAVE_NATIVE_H_ */
