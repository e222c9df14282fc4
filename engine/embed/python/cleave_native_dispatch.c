/* `cleave._native.Dispatch`: a function that chooses a kernel by its arguments.
 *
 * It is the base of compiled functions and of ops. A call with arrays by
 * position, and simple values by name, that is like one before runs the kernel
 * of that one, without Python in between. Any other call goes to the method
 * `_general(args, kwargs)`, which may call `remember` for the next one. */
#include <string.h>

#include "engine/embed/python/cleave_native.h"

enum { ENTRY_COUNT = 32 };

/* An array's dtype and shape. */
typedef struct {
  const ArrayKind* kind;
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[INLINE_AXES];
} Likeness;

/* The calls that one kernel serves. */
typedef struct {
  PyObject* kernel;
  PyObject* keywords; /* a dict, or NULL */
  PyObject* captured; /* a tuple of arrays behind the arguments, or NULL */
  PyObject* wrap;     /* of the results: a callable; or NULL: the first one */
  size_t count;       /* of arguments */
  int any_types;      /* the kernel judges them itself */
  Likeness inputs[FEW];
} Entry;

typedef struct {
  PyObject_HEAD Entry* entries;
  size_t count, next;
} DispatchObject;

static void ClearEntry(Entry* entry) {
  Py_CLEAR(entry->kernel);
  Py_CLEAR(entry->keywords);
  Py_CLEAR(entry->captured);
  Py_CLEAR(entry->wrap);
}

static int DispatchTraverse(PyObject* object, visitproc visit, void* arg) {
  DispatchObject* self = (DispatchObject*)object;
  Py_VISIT((PyObject*)Py_TYPE(object));
  for (size_t i = 0; i < self->count; ++i) {
    Py_VISIT(self->entries[i].kernel);
    Py_VISIT(self->entries[i].keywords);
    Py_VISIT(self->entries[i].captured);
    Py_VISIT(self->entries[i].wrap);
  }
  return 0;
}

static int DispatchClear(PyObject* object) {
  DispatchObject* self = (DispatchObject*)object;
  const size_t count = self->count;
  self->count = self->next = 0;
  for (size_t i = 0; i < count; ++i) ClearEntry(&self->entries[i]);
  return 0;
}

static void DispatchDealloc(PyObject* object) {
  PyObject_GC_UnTrack(object);
  PyTypeObject* type = Py_TYPE(object);
  DispatchClear(object);
  PyMem_Free(((DispatchObject*)object)->entries);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

/* ------------------------------------------------------------ Comparing -- */

static int IsLike(const Likeness* like, const ArrayKind* kind,
                  const DLTensor* tensor) {
  return like->kind == kind && like->dtype.code == tensor->dtype.code &&
         like->dtype.bits == tensor->dtype.bits && like->ndim == tensor->ndim &&
         memcmp(like->shape, tensor->shape,
                (size_t)tensor->ndim * sizeof(int64_t)) == 0;
}

/* Whether a value is one that can be told apart by `==` and its type. 0.0 is
 * none: -0.0 equals it. */
static int IsSimple(PyObject* value) {
  if (value == Py_None || PyBool_Check(value)) return 1;
  if (PyUnicode_CheckExact(value) || PyLong_CheckExact(value)) return 1;
  return PyFloat_CheckExact(value) && PyFloat_AsDouble(value) != 0;
}

static int SameKeywords(PyObject* kept, PyObject* given) {
  const Py_ssize_t count = given == NULL ? 0 : PyDict_Size(given);
  if (count == 0) return kept == NULL;
  if (kept == NULL || PyDict_Size(kept) != count) return 0;
  Py_ssize_t position = 0;
  PyObject *name, *value;
  while (PyDict_Next(given, &position, &name, &value)) {
    PyObject* other = PyDict_GetItemWithError(kept, name);
    if (other == NULL) {
      PyErr_Clear();
      return 0;
    }
    if (Py_TYPE(other) != Py_TYPE(value) || !IsSimple(value) ||
        PyObject_RichCompareBool(other, value, Py_EQ) != 1) {
      PyErr_Clear();
      return 0;
    }
  }
  return 1;
}

static int Matches(const Entry* entry, const Arrays* arrays,
                   const ArrayKind* const* kinds, PyObject* keywords) {
  if (entry->count != arrays->count) return 0;
  for (size_t i = 0; !entry->any_types && i < entry->count; ++i) {
    if (!IsLike(&entry->inputs[i], kinds[i], &arrays->items[i].tensor)) {
      return 0;
    }
  }
  return SameKeywords(entry->keywords, keywords);
}

/* --------------------------------------------------------------- Calling -- */

/* Reads what is behind the arrays that were read before. */
static int ReadMore(PyObject* tuple, Arrays* arrays, const ArrayKind** kinds) {
  const size_t count = (size_t)PyTuple_Size(tuple);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = arrays->count;
    if (ReadArray(PyTuple_GetItem(tuple, (Py_ssize_t)i), NULL, 0,
                  &arrays->items[at], &kinds[at]) != 0) {
      return -1;
    }
    arrays->tensors[at] = &arrays->items[at].tensor;
    ++arrays->count;
  }
  return 0;
}

/* Whether all are arrays of frameworks, so that reading them costs little. */
static int AreArrays(PyObject* tuple) {
  const Py_ssize_t count = PyTuple_Size(tuple);
  if (count == 0 || count > FEW) return 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!IsArray(PyTuple_GetItem(tuple, i))) return 0;
  }
  return 1;
}

static PyObject* RunEntry(Entry* entry, Arrays* arrays, const ArrayKind** kinds,
                          PyObject* like) {
  /* A run may call `remember`: the entry is not looked at afterwards. */
  PyObject* kernel = entry->kernel;
  PyObject* wrap = entry->wrap;
  const ArrayKind* kind = kinds[0];
  Py_INCREF(kernel);
  Py_XINCREF(wrap);
  PyObject* results = NULL;
  if (entry->captured == NULL ||
      ReadMore(entry->captured, arrays, kinds) == 0) {
    results = RunKernel((KernelObject*)kernel, arrays, kind, like, NULL);
  }
  Py_DECREF(kernel);
  if (results != NULL) {
    PyObject* answer;
    if (wrap == NULL) {
      answer = PyTuple_GetItem(results, 0);
      Py_XINCREF(answer);
    } else {
      answer = PyObject_CallFunctionObjArgs(wrap, results, NULL);
    }
    Py_DECREF(results);
    results = answer;
  }
  Py_XDECREF(wrap);
  return results;
}

static PyObject* DispatchCall(PyObject* object, PyObject* tuple,
                              PyObject* keywords) {
  DispatchObject* self = (DispatchObject*)object;
  if (self->count > 0 && AreArrays(tuple)) {
    const ArrayKind* kinds[FEW];
    Arrays arrays;
    StartArrays(&arrays);
    PyObject* results = NULL;
    int found = 0;
    if (ReadMore(tuple, &arrays, kinds) != 0) {
      found = 1; /* an exception */
    }
    for (size_t i = 0; !found && i < self->count; ++i) {
      if (!Matches(&self->entries[i], &arrays, kinds, keywords)) continue;
      found = 1;
      results = RunEntry(&self->entries[i], &arrays, kinds,
                         PyTuple_GetItem(tuple, 0));
    }
    ReleaseArrays(&arrays);
    if (found) return results;
  }
  if (keywords != NULL) {
    return PyObject_CallMethod(object, "_general", "OO", tuple, keywords);
  }
  return PyObject_CallMethod(object, "_general", "ON", tuple, PyDict_New());
}

/* remember(kernel, args, kwargs, captured, wrap, any_types) -> bool: later
 * calls that are like this one run the kernel. `wrap` is None for the first
 * result. */
static PyObject* DispatchRemember(PyObject* object, PyObject* arguments) {
  DispatchObject* self = (DispatchObject*)object;
  PyObject *kernel, *tuple, *keywords, *captured, *wrap;
  int any_types;
  if (!PyArg_ParseTuple(arguments, "OO!O!O!Op", &kernel, &PyTuple_Type, &tuple,
                        &PyDict_Type, &keywords, &PyTuple_Type, &captured,
                        &wrap, &any_types) ||
      KernelOf(kernel) == NULL) {
    return NULL;
  }
  const size_t count = (size_t)PyTuple_Size(tuple);
  if (!AreArrays(tuple) || count + (size_t)PyTuple_Size(captured) > FEW) {
    Py_RETURN_FALSE;
  }
  Py_ssize_t position = 0;
  PyObject *name, *value;
  while (PyDict_Next(keywords, &position, &name, &value)) {
    if (!IsSimple(value)) Py_RETURN_FALSE;
  }
  Entry entry;
  memset(&entry, 0, sizeof entry);
  entry.count = count;
  entry.any_types = any_types;
  const ArrayKind* kinds[FEW];
  Arrays arrays;
  StartArrays(&arrays);
  int fits = ReadMore(tuple, &arrays, kinds) == 0;
  for (size_t i = 0; fits && i < count; ++i) {
    const DLTensor* tensor = &arrays.items[i].tensor;
    Likeness* like = &entry.inputs[i];
    fits = tensor->ndim <= INLINE_AXES;
    if (!fits) break;
    like->kind = kinds[i];
    like->dtype = tensor->dtype;
    like->ndim = tensor->ndim;
    memcpy(like->shape, tensor->shape, (size_t)tensor->ndim * sizeof(int64_t));
  }
  ReleaseArrays(&arrays);
  if (PyErr_Occurred()) return NULL;
  if (!fits) Py_RETURN_FALSE;
  if (self->entries == NULL) {
    self->entries = PyMem_Calloc(ENTRY_COUNT, sizeof *self->entries);
    if (self->entries == NULL) return PyErr_NoMemory();
  }
  if (PyDict_Size(keywords) != 0) {
    entry.keywords = PyDict_Copy(keywords);
    if (entry.keywords == NULL) return NULL;
  }
  Py_INCREF(kernel);
  entry.kernel = kernel;
  if (PyTuple_Size(captured) != 0) {
    Py_INCREF(captured);
    entry.captured = captured;
  }
  if (wrap != Py_None) {
    Py_INCREF(wrap);
    entry.wrap = wrap;
  }
  /* The oldest entry gives way. */
  Entry old = self->entries[self->next];
  self->entries[self->next] = entry;
  if (self->count < ENTRY_COUNT) {
    ++self->count;
  } else {
    ClearEntry(&old);
  }
  self->next = (self->next + 1) % ENTRY_COUNT;
  Py_RETURN_TRUE;
}

static PyObject* DispatchForget(PyObject* object, PyObject* nothing) {
  (void)nothing;
  DispatchClear(object);
  Py_RETURN_NONE;
}

static PyMethodDef dispatch_methods[] = {
    {"remember", DispatchRemember, METH_VARARGS,
     "remember(kernel, args, kwargs, captured, wrap, any_types) -> bool"},
    {"forget", DispatchForget, METH_NOARGS, "Forgets all kernels."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot dispatch_slots[] = {
    {Py_tp_dealloc, DispatchDealloc},
    {Py_tp_traverse, DispatchTraverse},
    {Py_tp_clear, DispatchClear},
    {Py_tp_call, DispatchCall},
    {Py_tp_methods, dispatch_methods},
    {Py_tp_doc, "A function that chooses a kernel by its arguments."},
    {0, NULL}};

static PyType_Spec dispatch_spec = {
    "cleave._native.Dispatch", sizeof(DispatchObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    dispatch_slots};

int AddDispatchType(PyObject* module) {
  return AddType(module, &dispatch_spec) == NULL ? -1 : 0;
}
