/* `cleave._native.Memory`: a result that JAX and other frameworks import by
 * `__dlpack__` and `__dlpack_device__`. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "engine/embed/python/cleave_native.h"

/* What a Memory object and the capsules that it gave share. */
typedef struct {
  int references; /* changed by the atomic operations */
  DLTensor tensor;
  int64_t sizes[]; /* the shape, then the strides */
} Block;

typedef struct {
  PyObject_HEAD Block* block;
} MemoryObject;

static PyTypeObject* memory_type = NULL;

static void DropBlock(Block* block) {
  if (block == NULL) return;
  if (__atomic_sub_fetch(&block->references, 1, __ATOMIC_ACQ_REL) != 0) return;
  free(block->tensor.data);
  free(block);
}

static Block* NewBlock(const DLTensor* like) {
  const size_t axes = (size_t)like->ndim;
  Block* block = malloc(sizeof *block + 2 * axes * sizeof(int64_t));
  if (block == NULL) return NULL;
  block->references = 1;
  block->tensor = *like;
  block->tensor.device = (DLDevice){kDLCPU, 0};
  block->tensor.byte_offset = 0;
  block->tensor.shape = block->sizes;
  block->tensor.strides = block->sizes + axes;
  int64_t elements = 1;
  for (size_t axis = axes; axis-- > 0;) {
    block->sizes[axis] = like->shape[axis];
    block->sizes[axes + axis] = elements;
    elements *= like->shape[axis];
  }
  /* XLA takes memory as it is if it is aligned so. */
  const size_t bytes = (size_t)elements * (like->dtype.bits / 8u);
  if (posix_memalign(&block->tensor.data, 64, bytes == 0 ? 64 : bytes) != 0) {
    free(block);
    return NULL;
  }
  return block;
}

static void DeleteManaged(DLManagedTensor* managed) {
  DropBlock(managed->manager_ctx);
  free(managed);
}

static void DeleteVersioned(DLManagedTensorVersioned* managed) {
  DropBlock(managed->manager_ctx);
  free(managed);
}

/* A capsule that nobody took is released; one that was taken has another name.
 */
static void DeleteCapsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    DeleteVersioned(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
  } else if (PyCapsule_IsValid(capsule, "dltensor")) {
    DeleteManaged(PyCapsule_GetPointer(capsule, "dltensor"));
  }
}

static PyObject* MemoryDlpack(PyObject* self, PyObject* arguments,
                              PyObject* keywords) {
  static char* names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None,
           *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO", names,
                                   &stream, &version, &device, &copy)) {
    return NULL;
  }
  int major = 0, minor = 0;
  if (version != Py_None && !PyArg_ParseTuple(version, "ii", &major, &minor)) {
    return NULL;
  }
  if (copy == Py_True) {
    PyErr_SetString(PyExc_BufferError, "this memory gives no copies");
    return NULL;
  }
  Block* block = ((MemoryObject*)self)->block;
  void* managed = NULL;
  if (major >= 1) {
    DLManagedTensorVersioned* made = calloc(1, sizeof *made);
    if (made == NULL) return PyErr_NoMemory();
    made->version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    made->manager_ctx = block;
    made->deleter = DeleteVersioned;
    made->dl_tensor = block->tensor;
    managed = made;
  } else {
    DLManagedTensor* made = calloc(1, sizeof *made);
    if (made == NULL) return PyErr_NoMemory();
    made->manager_ctx = block;
    made->deleter = DeleteManaged;
    made->dl_tensor = block->tensor;
    managed = made;
  }
  PyObject* capsule = PyCapsule_New(
      managed, major >= 1 ? "dltensor_versioned" : "dltensor", DeleteCapsule);
  if (capsule == NULL) {
    free(managed);
    return NULL;
  }
  __atomic_add_fetch(&block->references, 1, __ATOMIC_RELAXED);
  return capsule;
}

static PyObject* MemoryDevice(PyObject* self, PyObject* nothing) {
  (void)self;
  (void)nothing;
  return Py_BuildValue("(ii)", (int)kDLCPU, 0);
}

static void MemoryDealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  DropBlock(((MemoryObject*)self)->block);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

static PyMethodDef memory_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))MemoryDlpack,
     METH_VARARGS | METH_KEYWORDS, "A capsule of DLPack."},
    {"__dlpack_device__", MemoryDevice, METH_NOARGS, "The CPU."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot memory_slots[] = {
    {Py_tp_dealloc, MemoryDealloc},
    {Py_tp_methods, memory_methods},
    {Py_tp_doc, "A result, for a framework to import by `from_dlpack`."},
    {0, NULL}};

static PyType_Spec memory_spec = {
    "cleave._native.Memory", sizeof(MemoryObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, memory_slots};

/* The result is imported once it is written: JAX's arrays do not change. Until
 * then a Memory stands for it, which FinishArray turns into an array. */
PyObject* MakeMemory(DLTensor* tensor) {
  allocfunc allocate = (allocfunc)PyType_GetSlot(memory_type, Py_tp_alloc);
  MemoryObject* self = (MemoryObject*)allocate(memory_type, 0);
  if (self == NULL) return NULL;
  self->block = NewBlock(tensor);
  if (self->block == NULL) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  tensor->data = self->block->tensor.data;
  return (PyObject*)self;
}

PyObject* FinishArray(PyObject* made, PyObject* like) {
  if (Py_TYPE(made) != memory_type) return made;
  /* arrays.py knows how the type of `like` imports memory. */
  PyObject* module = PyImport_ImportModule("cleave.arrays");
  PyObject* array = NULL;
  if (module != NULL) {
    array = PyObject_CallMethod(module, "import_like", "OO", made, like);
  }
  Py_XDECREF(module);
  Py_DECREF(made);
  return array;
}

int AddMemoryType(PyObject* module) {
  memory_type = AddType(module, &memory_spec);
  return memory_type == NULL ? -1 : 0;
}
