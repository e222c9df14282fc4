/* Arrays as DLTensors: numpy's by the buffer protocol, torch's by DLPack's
 * table of C functions, JAX's and others' by `__dlpack__`. No header of any of
 * them is needed. New arrays are made by the framework that the first array
 * has. */
#define _GNU_SOURCE
#include <string.h>

#include "engine/embed/python/cleave_native.h"

/* --------------------------------------------------------------- Dtypes -- */

typedef struct {
  const char* name;
  const char* numpy_name;
  DLDataType type;
} Dtype;

enum { DTYPE_COUNT = 15, DTYPE_BF16 = 10 };

static const Dtype dtypes[DTYPE_COUNT] = {
    {"f32", "float32", {kDLFloat, 32, 1}},
    {"f64", "float64", {kDLFloat, 64, 1}},
    {"i64", "int64", {kDLInt, 64, 1}},
    {"i32", "int32", {kDLInt, 32, 1}},
    {"bool", "bool", {kDLBool, 8, 1}},
    {"u8", "uint8", {kDLUInt, 8, 1}},
    {"u64", "uint64", {kDLUInt, 64, 1}},
    {"i8", "int8", {kDLInt, 8, 1}},
    {"i16", "int16", {kDLInt, 16, 1}},
    {"f16", "float16", {kDLFloat, 16, 1}},
    {"bf16", "bfloat16", {kDLBfloat, 16, 1}},
    {"u16", "uint16", {kDLUInt, 16, 1}},
    {"u32", "uint32", {kDLUInt, 32, 1}},
    {"c64", "complex64", {kDLComplex, 64, 1}},
    {"c128", "complex128", {kDLComplex, 128, 1}}};

/* numpy's dtype objects, made on first use. */
static PyObject* numpy_dtypes[DTYPE_COUNT];
static PyObject* numpy_module = NULL;
static PyObject* numpy_empty = NULL;

static int DtypeNumber(DLDataType type) {
  for (int i = 0; i < DTYPE_COUNT; ++i) {
    if (dtypes[i].type.code == type.code && dtypes[i].type.bits == type.bits &&
        type.lanes == 1) {
      return i;
    }
  }
  return -1;
}

const char* DtypeName(DLDataType type) {
  const int number = DtypeNumber(type);
  return number < 0 ? NULL : dtypes[number].name;
}

static int LoadNumpy(void) {
  if (numpy_empty != NULL) return 0;
  numpy_module = PyImport_ImportModule("numpy");
  if (numpy_module == NULL) return -1;
  numpy_empty = PyObject_GetAttrString(numpy_module, "empty");
  return numpy_empty == NULL ? -1 : 0;
}

/* numpy's dtype, borrowed. bf16 is there if ml_dtypes is installed. */
static PyObject* NumpyDtype(int number) {
  if (numpy_dtypes[number] != NULL) return numpy_dtypes[number];
  if (LoadNumpy() != 0) return NULL;
  PyObject* dtype;
  if (number == DTYPE_BF16) {
    PyObject* extra = PyImport_ImportModule("ml_dtypes");
    if (extra == NULL) {
      PyErr_Clear();
      return RaiseNew(CLEAVE_UNIMPLEMENTED,
                      "numpy has no bf16: install ml_dtypes, or pass arrays of "
                      "a framework that has it");
    }
    PyObject* scalar = PyObject_GetAttrString(extra, "bfloat16");
    Py_DECREF(extra);
    if (scalar == NULL) return NULL;
    dtype = PyObject_CallMethod(numpy_module, "dtype", "N", scalar);
  } else {
    dtype = PyObject_CallMethod(numpy_module, "dtype", "s",
                                dtypes[number].numpy_name);
  }
  numpy_dtypes[number] = dtype;
  return dtype;
}

static int NumberOfName(const char* name) {
  if (name == NULL) return -1;
  if (strcmp(name, "key") == 0) name = "u64";
  for (int i = 0; i < DTYPE_COUNT; ++i) {
    if (strcmp(dtypes[i].name, name) == 0) return i;
  }
  return -1;
}

/* The dtype of a buffer's format; false of one that Cleave lacks. */
static int DtypeOfFormat(const char* format, Py_ssize_t size, DLDataType* out) {
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  DLDataTypeCode code;
  switch (*format) {
    case '?':
      code = kDLBool;
      break;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      code = kDLInt;
      break;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      code = kDLUInt;
      break;
    case 'e':
    case 'f':
    case 'd':
      code = kDLFloat;
      break;
    case 'Z':
      ++format;
      if (*format != 'f' && *format != 'd') return 0;
      code = kDLComplex;
      break;
    default:
      return 0;
  }
  if (format[1] != '\0') return 0;
  *out = (DLDataType){(uint8_t)code, (uint8_t)(size * 8), 1};
  return 1;
}

/* --------------------------------------------------------------- Kinds -- */

enum { KIND_COUNT = 256 };
static ArrayKind kinds[KIND_COUNT];
static int kind_count = 0;
static const ArrayKind numpy_kind = {NULL, FRAMEWORK_NUMPY, NULL, 0};
static const ArrayKind no_kind = {NULL, FRAMEWORK_NONE, NULL, 0};

const ArrayKind* NumpyKind(void) { return &numpy_kind; }

/* DLPack's table of a type, or NULL. Its attribute was renamed once. */
static const DLPackExchangeAPI* ExchangeOf(PyTypeObject* type) {
  static const char* const names[] = {"__dlpack_c_exchange_api__",
                                      "__c_dlpack_exchange_api__"};
  for (int i = 0; i < 2; ++i) {
    PyObject* capsule = PyObject_GetAttrString((PyObject*)type, names[i]);
    if (capsule == NULL) {
      PyErr_Clear();
      continue;
    }
    const DLPackExchangeAPI* api = NULL;
    if (PyCapsule_IsValid(capsule, "dlpack_exchange_api")) {
      api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    }
    Py_DECREF(capsule);
    while (api != NULL && api->header.version.major != DLPACK_MAJOR_VERSION) {
      api = (const DLPackExchangeAPI*)api->header.prev_api;
    }
    if (api != NULL && api->dltensor_from_py_object_no_sync != NULL) return api;
  }
  return NULL;
}

/* Whether a type is an array or a number of numpy's. */
static int IsNumpy(PyTypeObject* type) {
  PyObject* name = PyUnicode_FromString("numpy");
  if (name == NULL) return 0;
  PyObject* module = PyImport_GetModule(name);
  Py_DECREF(name);
  if (module == NULL) return 0;
  static const char* const names[] = {"ndarray", "generic"};
  int found = 0;
  for (int i = 0; i < 2 && !found; ++i) {
    PyObject* base = PyObject_GetAttrString(module, names[i]);
    if (base == NULL) break;
    found = PyType_IsSubtype(type, (PyTypeObject*)base);
    Py_DECREF(base);
  }
  Py_DECREF(module);
  PyErr_Clear();
  return found;
}

static ArrayKind Examine(PyTypeObject* type) {
  ArrayKind kind = {type, FRAMEWORK_NONE, NULL, 0};
  if (PyObject_HasAttrString((PyObject*)type, "__cleave_tracer__")) return kind;
  if (IsNumpy(type)) {
    kind.framework = FRAMEWORK_NUMPY;
  } else if ((kind.exchange = ExchangeOf(type)) != NULL) {
    kind.framework = FRAMEWORK_EXCHANGE;
    kind.is_torch = PyObject_HasAttrString((PyObject*)type, "requires_grad") &&
                    PyObject_HasAttrString((PyObject*)type, "is_neg");
  } else if (PyObject_HasAttrString((PyObject*)type, "__dlpack__")) {
    kind.framework = FRAMEWORK_DLPACK;
  }
  return kind;
}

/* The kind of an object, or NULL. Kinds stay once found: arrays have few types.
 */
static const ArrayKind* KindOf(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  for (int i = 0; i < kind_count; ++i) {
    if (kinds[i].type == type) return &kinds[i];
  }
  if (PyFloat_CheckExact(object) || PyLong_CheckExact(object) ||
      PyBool_Check(object) || PyList_CheckExact(object) ||
      PyTuple_CheckExact(object) || object == Py_None) {
    return &no_kind;
  }
  const ArrayKind kind = Examine(type);
  if (kind.framework == FRAMEWORK_NONE) return &no_kind;
  if (kind_count == KIND_COUNT) {
    RaiseNew(CLEAVE_RESOURCE_EXHAUSTED, "arrays of more than %d types",
             (int)KIND_COUNT);
    return NULL;
  }
  Py_INCREF((PyObject*)type);
  kinds[kind_count] = kind;
  return &kinds[kind_count++];
}

int IsArray(PyObject* object) {
  const ArrayKind* kind = KindOf(object);
  if (kind == NULL) PyErr_Clear();
  return kind != NULL && kind->framework != FRAMEWORK_NONE;
}

/* -------------------------------------------------------------- Reading -- */

static int64_t* RoomForSizes(Array* array, int axes) {
  if (axes <= INLINE_AXES) return array->sizes;
  array->many_sizes = PyMem_Calloc((size_t)axes * 2, sizeof(int64_t));
  if (array->many_sizes == NULL) PyErr_NoMemory();
  return array->many_sizes;
}

/* Reads array->view. Returns 1 where a copy is needed first. */
static int ReadView(Array* array) {
  const Py_buffer* view = &array->view;
  DLTensor* tensor = &array->tensor;
  if (!DtypeOfFormat(view->format == NULL ? "B" : view->format, view->itemsize,
                     &tensor->dtype)) {
    RaiseNew(CLEAVE_INVALID_ARGUMENT, "an array of the format %s",
             view->format);
    return -1;
  }
  const Py_ssize_t part =
      tensor->dtype.code == kDLComplex ? view->itemsize / 2 : view->itemsize;
  if ((uintptr_t)view->buf % (size_t)part != 0) return 1;
  int64_t* sizes = RoomForSizes(array, view->ndim);
  if (sizes == NULL) return -1;
  tensor->data = view->buf;
  tensor->device = (DLDevice){kDLCPU, 0};
  tensor->ndim = view->ndim;
  tensor->shape = sizes;
  tensor->strides = sizes + view->ndim;
  tensor->byte_offset = 0;
  const Py_ssize_t item = view->itemsize;
  for (int axis = 0; axis < view->ndim; ++axis) {
    const Py_ssize_t stride = view->strides[axis];
    if (stride % item != 0) return 1;
    sizes[axis] = view->shape[axis];
    sizes[view->ndim + axis] = stride / item;
  }
  return 0;
}

static int ReadBuffer(PyObject* object, int writable, Array* array) {
  const int flags = writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO;
  if (PyObject_GetBuffer(object, &array->view, flags) != 0) return -1;
  const int answer = ReadView(array);
  if (answer != 1) return answer;
  PyBuffer_Release(&array->view);
  if (writable) {
    RaiseNew(CLEAVE_INVALID_ARGUMENT,
             "an output is an array whose strides are whole elements");
    return -1;
  }
  if (LoadNumpy() != 0) return -1;
  PyMem_Free(array->many_sizes);
  array->many_sizes = NULL;
  array->owner = PyObject_CallMethod(numpy_module, "array", "O", object);
  if (array->owner == NULL ||
      PyObject_GetBuffer(array->owner, &array->view, flags) != 0) {
    return -1;
  }
  return ReadView(array);
}

/* ml_dtypes' bf16 has no buffer: its bits are read as u16. */
static int ReadNumpy(PyObject* object, int writable, Array* array) {
  if (ReadBuffer(object, writable, array) == 0) return 0;
  if (array->view.obj != NULL) return -1;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* dtype = PyObject_GetAttrString(object, "dtype");
  PyObject* name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
  const int is_bf16 =
      name != NULL && PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0;
  Py_XDECREF(dtype);
  Py_XDECREF(name);
  PyErr_Clear();
  if (!is_bf16) {
    PyErr_Restore(type, value, traceback);
    return -1;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  PyObject* bits = PyObject_CallMethod(object, "view", "s", "uint16");
  if (bits == NULL) return -1;
  const int failed = ReadBuffer(bits, writable, array);
  Py_DECREF(bits); /* the view holds it */
  if (failed == 0) array->tensor.dtype = dtypes[DTYPE_BF16].type;
  return failed;
}

static int ReadDlpack(PyObject* object, int writable, Array* array) {
  static PyObject* keywords = NULL;
  if (keywords == NULL) {
    keywords = Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR_VERSION,
                             DLPACK_MINOR_VERSION);
    if (keywords == NULL) return -1;
  }
  PyObject* method = PyObject_GetAttrString(object, "__dlpack__");
  if (method == NULL) return -1;
  PyObject* nothing = PyTuple_New(0);
  PyObject* capsule = PyObject_Call(method, nothing, keywords);
  if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    capsule = PyObject_Call(method, nothing, NULL);
  }
  Py_DECREF(nothing);
  Py_DECREF(method);
  if (capsule == NULL) return -1;
  array->owner = capsule;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    DLManagedTensorVersioned* managed =
        PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (managed->version.major != DLPACK_MAJOR_VERSION) {
      RaiseNew(CLEAVE_UNIMPLEMENTED, "an array of DLPack %u",
               (unsigned)managed->version.major);
      return -1;
    }
    if (writable && (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0) {
      RaiseNew(CLEAVE_INVALID_ARGUMENT, "an output is read-only");
      return -1;
    }
    array->tensor = managed->dl_tensor;
    return 0;
  }
  DLManagedTensor* managed = PyCapsule_GetPointer(capsule, "dltensor");
  if (managed == NULL) return -1;
  array->tensor = managed->dl_tensor;
  return 0;
}

/* Numbers, lists and buffers, by way of numpy. */
static int ReadOther(PyObject* object, const char* dtype, int writable,
                     Array* array) {
  if (PyObject_CheckBuffer(object)) return ReadBuffer(object, writable, array);
  if (writable || LoadNumpy() != 0) {
    if (!PyErr_Occurred()) {
      RaiseNew(CLEAVE_INVALID_ARGUMENT, "an output is an array");
    }
    return -1;
  }
  const int number = NumberOfName(dtype);
  PyObject* type = Py_None;
  if (number >= 0 && (type = NumpyDtype(number)) == NULL) return -1;
  PyObject* made =
      PyObject_CallMethod(numpy_module, "asarray", "OO", object, type);
  if (made == NULL) return -1;
  const int failed = ReadNumpy(made, writable, array);
  Py_DECREF(made); /* the view holds it */
  return failed;
}

static int CheckDevice(const Array* array) {
  const int device = (int)array->tensor.device.device_type;
  if (device == kDLCPU || device == kDLCUDAHost || device == kDLROCMHost) {
    return 0;
  }
  RaiseNew(CLEAVE_INVALID_ARGUMENT,
           "an array on a device (type %d of DLPack): copy it to the CPU first",
           device);
  return -1;
}

/* 1 where an attribute is true, or a method without arguments says so. */
static int Says(PyObject* object, const char* name, int is_method) {
  PyObject* answer = is_method ? PyObject_CallMethod(object, name, NULL)
                               : PyObject_GetAttrString(object, name);
  if (answer == NULL) return -1;
  const int truth = PyObject_IsTrue(answer);
  Py_DECREF(answer);
  return truth;
}

/* A kernel would lose the history of a tensor that requires grad, and read the
 * wrong numbers of one that is conjugated or negated when it is read. */
static int CheckTorch(PyObject* object, const DLTensor* tensor) {
  const int requires_grad = Says(object, "requires_grad", 0);
  if (requires_grad < 0) return -1;
  if (requires_grad) {
    PyObject* torch = PyImport_ImportModule("torch");
    const int enabled = torch ? Says(torch, "is_grad_enabled", 1) : -1;
    Py_XDECREF(torch);
    if (enabled < 0) return -1;
    if (enabled) {
      RaiseNew(CLEAVE_INVALID_ARGUMENT,
               "a tensor that requires grad: the functions of cleave.torch are "
               "differentiated by PyTorch; others take tensor.detach()");
      return -1;
    }
  }
  const int code = tensor->dtype.code;
  int lazy = 0;
  if (code == kDLComplex) lazy = Says(object, "is_conj", 1);
  if (lazy == 0 && (code == kDLComplex || code == kDLFloat)) {
    lazy = Says(object, "is_neg", 1);
  }
  if (lazy > 0) {
    RaiseNew(CLEAVE_INVALID_ARGUMENT,
             "a tensor that is conjugated or negated when it is read: "
             "resolve_conj() and resolve_neg() do that now");
  }
  return lazy == 0 ? 0 : -1;
}

int ReadArray(PyObject* object, const char* dtype, int writable, Array* array,
              const ArrayKind** kind) {
  array->many_sizes = NULL;
  array->view.obj = NULL;
  array->owner = NULL;
  const ArrayKind* found = KindOf(object);
  if (found == NULL) return -1;
  *kind = found;
  int failed;
  switch (found->framework) {
    case FRAMEWORK_NUMPY:
      failed = ReadNumpy(object, writable, array);
      break;
    case FRAMEWORK_EXCHANGE:
      failed = found->exchange->dltensor_from_py_object_no_sync(
                   object, &array->tensor) != 0 ||
               CheckDevice(array) != 0 ||
               (found->is_torch && CheckTorch(object, &array->tensor) != 0);
      break;
    case FRAMEWORK_DLPACK:
      failed =
          ReadDlpack(object, writable, array) != 0 || CheckDevice(array) != 0;
      break;
    default:
      failed = ReadOther(object, dtype, writable, array);
  }
  if (failed) ReleaseArray(array);
  return failed ? -1 : 0;
}

void ReleaseArray(Array* array) {
  if (array->view.obj != NULL) PyBuffer_Release(&array->view);
  array->view.obj = NULL;
  if (array->many_sizes != NULL) PyMem_Free(array->many_sizes);
  array->many_sizes = NULL;
  if (array->owner != NULL) Py_DECREF(array->owner);
  array->owner = NULL;
}

/* --------------------------------------------------------------- Making -- */

static PyObject* MakeNumpy(DLTensor* tensor) {
  const int number = DtypeNumber(tensor->dtype);
  if (number < 0) {
    return RaiseNew(CLEAVE_INTERNAL, "a result of an unknown dtype");
  }
  PyObject* dtype = NumpyDtype(number);
  if (dtype == NULL) return NULL;
  PyObject* shape = PyTuple_New(tensor->ndim);
  if (shape == NULL) return NULL;
  for (int axis = 0; axis < tensor->ndim; ++axis) {
    PyObject* size = PyLong_FromLongLong(tensor->shape[axis]);
    if (size == NULL || PyTuple_SetItem(shape, axis, size) != 0) {
      Py_DECREF(shape);
      return NULL;
    }
  }
  PyObject* array =
      PyObject_CallFunctionObjArgs(numpy_empty, shape, dtype, NULL);
  Py_DECREF(shape);
  if (array == NULL) return NULL;
  Py_buffer view;
  int failed;
  if (number == DTYPE_BF16) {
    PyObject* bits = PyObject_CallMethod(array, "view", "s", "uint16");
    failed =
        bits == NULL || PyObject_GetBuffer(bits, &view, PyBUF_WRITABLE) != 0;
    Py_XDECREF(bits);
  } else {
    failed = PyObject_GetBuffer(array, &view, PyBUF_WRITABLE) != 0;
  }
  if (failed) {
    Py_DECREF(array);
    return NULL;
  }
  tensor->data = view.buf;
  PyBuffer_Release(&view);
  return array;
}

static void SetExchangeError(void* context, const char* kind,
                             const char* message) {
  (void)context;
  PyGILState_STATE lock = PyGILState_Ensure();
  PyErr_Format(PyExc_RuntimeError, "%s: %s", kind, message);
  PyGILState_Release(lock);
}

static PyObject* MakeByExchange(const DLPackExchangeAPI* api,
                                DLTensor* tensor) {
  DLManagedTensorVersioned* managed = NULL;
  if (api->managed_tensor_allocator(tensor, &managed, NULL, SetExchangeError) !=
      0) {
    if (!PyErr_Occurred()) PyErr_NoMemory();
    return NULL;
  }
  tensor->data =
      (char*)managed->dl_tensor.data + managed->dl_tensor.byte_offset;
  void* array = NULL;
  if (api->managed_tensor_to_py_object_no_sync(managed, &array) != 0) {
    return NULL;
  }
  return (PyObject*)array;
}

PyObject* MakeArray(const ArrayKind* kind, DLTensor* tensor) {
  switch (kind->framework) {
    case FRAMEWORK_EXCHANGE:
      return MakeByExchange(kind->exchange, tensor);
    case FRAMEWORK_DLPACK:
      return MakeMemory(tensor);
    default:
      return MakeNumpy(tensor);
  }
}
