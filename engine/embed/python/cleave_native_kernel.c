/* `cleave._native.Kernel`: machine code that Python calls on arrays; and ops
 * that Python functions compute.
 *
 * A call of a kernel is one call of the library: arrays become DLTensors on the
 * stack, and results are made as their shapes are known. */
#include <string.h>

#include "engine/embed/python/cleave_native.h"

enum {
  /* A run on fewer bytes than these keeps the interpreter's lock: it takes
   * microseconds, and giving the lock away may cost more. */
  LOCKED_BYTES = 16 << 10,
  /* A run on more bytes than these can be ended by Ctrl-C. */
  LONG_BYTES = 8 << 20
};

static PyTypeObject* kernel_type = NULL;

/* --------------------------------------------------- Functions of Python -- */

static PyObject* DescribeTensors(const DLTensor* const* tensors, size_t count,
                                 int flags) {
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list != NULL && i < count; ++i) {
    const DLTensor* tensor = tensors[i];
    Py_ssize_t bytes = (Py_ssize_t)(tensor->dtype.bits / 8);
    PyObject* shape = PyTuple_New(tensor->ndim);
    for (int axis = 0; shape != NULL && axis < tensor->ndim; ++axis) {
      bytes *= (Py_ssize_t)tensor->shape[axis];
      PyTuple_SetItem(shape, axis, PyLong_FromLongLong(tensor->shape[axis]));
    }
    static char nothing[1];
    char* data =
        bytes == 0 ? nothing : (char*)tensor->data + tensor->byte_offset;
    PyObject* entry =
        Py_BuildValue("NsN", PyMemoryView_FromMemory(data, bytes, flags),
                      DtypeName(tensor->dtype), shape);
    if (entry == NULL || PyList_SetItem(list, (Py_ssize_t)i, entry) != 0) {
      Py_DECREF(list);
      return NULL;
    }
  }
  return list;
}

/* The text of the exception now set, as a status. */
static cleave_status* StatusOfException(const char* op) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* text = PyUnicode_FromFormat("the function of `%s`: %R", op,
                                        value == NULL ? Py_None : value);
  cleave_status* status = NULL;
  const char* message =
      text == NULL ? NULL : PyUnicode_AsUTF8AndSize(text, NULL);
  if (message == NULL) message = "a Python function failed";
  /* A function that does not do such a call says so, and no more. */
  const int refuses = value != NULL && PyErr_GivenExceptionMatches(
                                           value, PyExc_NotImplementedError);
  status = cleave_status_new(refuses ? CLEAVE_UNIMPLEMENTED : CLEAVE_UNKNOWN,
                             message);
  Py_XDECREF(text);
  PyErr_Restore(type, value, traceback);
  KeepCause();
  return status;
}

static cleave_status* CallPython(void* context, const cleave_host_call* call) {
  PyGILState_STATE lock = PyGILState_Ensure();
  cleave_status* status = NULL;
  PyObject* inputs =
      DescribeTensors(call->inputs, call->input_count, PyBUF_READ);
  PyObject* results =
      inputs == NULL ? NULL
                     : DescribeTensors((const DLTensor* const*)call->results,
                                       call->result_count, PyBUF_WRITE);
  PyObject* answer = results == NULL ? NULL
                                     : PyObject_CallFunction(
                                           (PyObject*)context, "ssOO", call->op,
                                           call->attributes, inputs, results);
  if (answer == NULL) status = StatusOfException(call->op);
  Py_XDECREF(answer);
  Py_XDECREF(inputs);
  Py_XDECREF(results);
  PyGILState_Release(lock);
  return status;
}

static void DropPython(void* context) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE lock = PyGILState_Ensure();
  Py_DECREF((PyObject*)context);
  PyGILState_Release(lock);
}

int HostKernelsOf(PyObject* functions, cleave_host_kernels** out) {
  *out = NULL;
  if (functions == Py_None) return 0;
  PyObject* items = PyMapping_Items(functions);
  if (items == NULL) return -1;
  cleave_status* error = cleave_host_kernels_new(out);
  const Py_ssize_t count = PyList_Size(items);
  int failed = error != NULL;
  for (Py_ssize_t i = 0; i < count && !failed; ++i) {
    const char* op;
    PyObject* function;
    failed = !PyArg_ParseTuple(PyList_GetItem(items, i), "sO", &op, &function);
    if (failed) break;
    if (PyObject_TypeCheck(function, graph_type)) {
      error = cleave_host_kernels_set_graph(*out, op,
                                            ((GraphObject*)function)->handle);
    } else {
      Py_INCREF(function);
      error =
          cleave_host_kernels_set(*out, op, CallPython, function, DropPython);
    }
    failed = error != NULL;
  }
  Py_DECREF(items);
  if (error != NULL) Raise(error);
  if (failed) {
    cleave_host_kernels_free(*out);
    *out = NULL;
    return -1;
  }
  return 0;
}

/* ------------------------------------------------------------ Compiling -- */

typedef struct {
  const cleave_graph* graph;
  const cleave_compile_options* compile;
  cleave_kernel* out;
} CompileWork;

static cleave_status* CompileBody(void* arguments,
                                  const cleave_call_options* options) {
  CompileWork* work = arguments;
  return cleave_kernel_compile(work->graph, work->compile, options, &work->out);
}

/* Kernel(graph, device, level, generalize, approx, functions, dtypes, loops) */
static PyObject* KernelNew(PyTypeObject* type, PyObject* arguments,
                           PyObject* keywords) {
  PyObject *graph, *functions, *dtypes;
  int generalize, approx, loops;
  cleave_compile_options compile;
  memset(&compile, 0, sizeof compile);
  compile.struct_size = sizeof compile;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "O!zzppOOp", graph_type, &graph,
                        &compile.device, &compile.level, &generalize, &approx,
                        &functions, &dtypes, &loops)) {
    return NULL;
  }
  compile.generalize = generalize;
  compile.approx = approx;
  Texts names;
  if (TextsOf(dtypes, &names) != 0) return NULL;
  CompileWork work = {((GraphObject*)graph)->handle, &compile, NULL};
  cleave_host_kernels* host_kernels = NULL;
  KernelObject* self = NULL;
  if (names.count != cleave_graph_input_count(work.graph)) {
    PyErr_SetString(PyExc_ValueError, "one dtype for each input is needed");
  } else if (HostKernelsOf(functions, &host_kernels) == 0) {
    compile.host_kernels = host_kernels;
    if (CallLong(CompileBody, &work) == 0) {
      allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
      self = (KernelObject*)allocate(type, 0);
    }
    if (self == NULL) cleave_kernel_release(work.out);
  }
  cleave_host_kernels_free(host_kernels);
  if (self == NULL) {
    FreeTexts(&names);
    return NULL;
  }
  self->handle = work.out;
  self->dtypes = names.owner;
  self->dtype_names = names.items;
  self->input_count = names.count;
  self->output_count = cleave_graph_output_count(work.graph);
  self->calls_python = functions != Py_None;
  self->has_loops = loops;
  return (PyObject*)self;
}

static void KernelDealloc(PyObject* object) {
  KernelObject* self = (KernelObject*)object;
  PyTypeObject* type = Py_TYPE(object);
  cleave_kernel_release(self->handle);
  Texts names = {self->dtypes, self->dtype_names, 0};
  FreeTexts(&names);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(object);
  Py_DECREF(type);
}

static PyObject* KernelGraph(PyObject* self, PyObject* nothing) {
  (void)nothing;
  cleave_graph* out;
  cleave_status* error =
      cleave_kernel_graph(((KernelObject*)self)->handle, &out);
  return error != NULL ? Raise(error) : NewGraph(out);
}

/* -------------------------------------------------------------- Running -- */

typedef struct {
  const KernelObject* kernel;
  const DLTensor* const* inputs;
  size_t input_count;
  const DLTensor* const* outputs; /* NULL: results are made */
  size_t output_count;
  const ArrayKind* kind; /* of the results */
  PyObject* results;
  int unlocked;
  PyObject *type, *value, *traceback; /* what making a result raised */
  cleave_text** report;
} Run;

static int32_t MakeOutput(void* context, size_t index, DLTensor* tensor) {
  Run* run = context;
  PyGILState_STATE lock = PyGILState_UNLOCKED;
  if (run->unlocked) lock = PyGILState_Ensure();
  PyObject* array = MakeArray(run->kind, tensor);
  const int failed =
      array == NULL ||
      PyTuple_SetItem(run->results, (Py_ssize_t)index, array) != 0;
  if (failed) PyErr_Fetch(&run->type, &run->value, &run->traceback);
  if (run->unlocked) PyGILState_Release(lock);
  return failed;
}

static cleave_status* RunBody(void* arguments,
                              const cleave_call_options* options) {
  Run* run = arguments;
  cleave_run_options run_options;
  const cleave_run_options* used = NULL;
  if (run->report != NULL || (options != NULL && options->cancel != NULL)) {
    memset(&run_options, 0, sizeof run_options);
    run_options.struct_size = sizeof run_options;
    run_options.report = run->report;
    if (options != NULL) run_options.cancel = options->cancel;
    used = &run_options;
  }
  if (run->outputs != NULL) {
    return cleave_kernel_run(run->kernel->handle, run->inputs, run->input_count,
                             run->outputs, run->output_count, used);
  }
  return cleave_kernel_run_alloc(run->kernel->handle, run->inputs,
                                 run->input_count, MakeOutput, run, used);
}

static int64_t BytesOf(const DLTensor* tensor) {
  int64_t bytes = tensor->dtype.bits / 8;
  for (int axis = 0; axis < tensor->ndim; ++axis) bytes *= tensor->shape[axis];
  return bytes;
}

static int Start(Run* run) {
  int64_t bytes = 0;
  for (size_t i = 0; i < run->input_count; ++i) {
    bytes += BytesOf(run->inputs[i]);
  }
  const KernelObject* kernel = run->kernel;
  int answer = 0;
  if (kernel->has_loops || kernel->calls_python || bytes > LONG_BYTES) {
    run->unlocked = 1;
    answer = CallLong(RunBody, run);
  } else {
    run->unlocked = bytes > LOCKED_BYTES;
    cleave_status* error;
    if (run->unlocked) {
      Py_BEGIN_ALLOW_THREADS;
      error = RunBody(run, NULL);
      Py_END_ALLOW_THREADS;
    } else {
      error = RunBody(run, NULL);
    }
    if (error != NULL) {
      Raise(error);
      answer = -1;
    }
  }
  if (run->type != NULL) {
    PyErr_Clear();
    PyErr_Restore(run->type, run->value, run->traceback);
    answer = -1;
  }
  return answer;
}

void StartArrays(Arrays* arrays) {
  arrays->count = 0;
  arrays->items = arrays->few;
  arrays->tensors = arrays->few_tensors;
}

static int ReserveArrays(Arrays* arrays, size_t count) {
  if (count <= FEW) return 0;
  arrays->items = PyMem_Calloc(count, sizeof *arrays->items);
  arrays->tensors = PyMem_Calloc(count, sizeof *arrays->tensors);
  if (arrays->items != NULL && arrays->tensors != NULL) return 0;
  PyErr_NoMemory();
  return -1;
}

void ReleaseArrays(Arrays* arrays) {
  for (size_t i = 0; i < arrays->count; ++i) ReleaseArray(&arrays->items[i]);
  if (arrays->items != arrays->few) PyMem_Free(arrays->items);
  if (arrays->tensors != arrays->few_tensors) PyMem_Free(arrays->tensors);
}

/* Reads the objects of a tuple. `kind` and `like` get the first array that is
 * one of a framework. */
static int ReadArrays(PyObject* tuple, const char** dtypes, int writable,
                      Arrays* arrays, const ArrayKind** kind, PyObject** like) {
  const size_t count = (size_t)PyTuple_Size(tuple);
  if (ReserveArrays(arrays, count) != 0) return -1;
  for (size_t i = 0; i < count; ++i) {
    PyObject* object = PyTuple_GetItem(tuple, (Py_ssize_t)i);
    const ArrayKind* found;
    if (ReadArray(object, dtypes == NULL ? NULL : dtypes[i], writable,
                  &arrays->items[i], &found) != 0) {
      return -1;
    }
    arrays->tensors[i] = &arrays->items[i].tensor;
    ++arrays->count;
    if (*like == NULL && found->framework != FRAMEWORK_NONE) {
      *kind = found;
      *like = object;
    }
  }
  return 0;
}

/* Makes arrays of the Memory objects in a tuple. */
static PyObject* FinishResults(PyObject* results, PyObject* like) {
  const Py_ssize_t count = PyTuple_Size(results);
  PyObject* finished = PyTuple_New(count);
  for (Py_ssize_t i = 0; finished != NULL && i < count; ++i) {
    PyObject* made = PyTuple_GetItem(results, i);
    Py_INCREF(made);
    PyObject* array = FinishArray(made, like);
    if (array == NULL || PyTuple_SetItem(finished, i, array) != 0) {
      Py_DECREF(finished);
      finished = NULL;
    }
  }
  Py_DECREF(results);
  return finished;
}

PyObject* RunKernel(const KernelObject* kernel, const Arrays* arrays,
                    const ArrayKind* kind, PyObject* like,
                    cleave_text** report) {
  if (arrays->count != kernel->input_count) {
    return RaiseNew(CLEAVE_INVALID_ARGUMENT,
                    "the kernel takes %zu arrays, not %zu", kernel->input_count,
                    arrays->count);
  }
  Run run;
  memset(&run, 0, sizeof run);
  run.kernel = kernel;
  run.kind = kind;
  run.report = report;
  run.inputs = arrays->tensors;
  run.input_count = arrays->count;
  run.results = PyTuple_New((Py_ssize_t)kernel->output_count);
  if (run.results == NULL) return NULL;
  if (Start(&run) != 0) {
    Py_DECREF(run.results);
    return NULL;
  }
  return kind->framework == FRAMEWORK_DLPACK ? FinishResults(run.results, like)
                                             : run.results;
}

static PyObject* CallWith(KernelObject* self, PyObject* tuple,
                          cleave_text** report) {
  Arrays arrays;
  StartArrays(&arrays);
  const ArrayKind* kind = NumpyKind();
  PyObject* like = NULL;
  PyObject* results = NULL;
  const size_t count = (size_t)PyTuple_Size(tuple);
  const char** dtypes = count == self->input_count ? self->dtype_names : NULL;
  if (ReadArrays(tuple, dtypes, 0, &arrays, &kind, &like) == 0) {
    results = RunKernel(self, &arrays, kind, like, report);
  }
  ReleaseArrays(&arrays);
  return results;
}

static PyObject* KernelCall(PyObject* self, PyObject* tuple,
                            PyObject* keywords) {
  if (keywords != NULL && PyDict_Size(keywords) != 0) {
    PyErr_SetString(PyExc_TypeError, "a kernel takes arrays by position");
    return NULL;
  }
  return CallWith((KernelObject*)self, tuple, NULL);
}

/* report(arrays) -> (results, text) */
static PyObject* KernelReport(PyObject* self, PyObject* sequence) {
  PyObject* tuple = PySequence_Tuple(sequence);
  if (tuple == NULL) return NULL;
  cleave_text* report = NULL;
  PyObject* results = CallWith((KernelObject*)self, tuple, &report);
  Py_DECREF(tuple);
  if (results == NULL) {
    cleave_text_free(report);
    return NULL;
  }
  return Py_BuildValue("NN", results, TakeText(report));
}

static PyObject* KernelRunInto(PyObject* object, PyObject* arguments) {
  KernelObject* self = (KernelObject*)object;
  PyObject *inputs, *outputs;
  if (!PyArg_ParseTuple(arguments, "OO", &inputs, &outputs)) return NULL;
  inputs = PySequence_Tuple(inputs);
  if (inputs == NULL) return NULL;
  outputs = PySequence_Tuple(outputs);
  if (outputs == NULL) {
    Py_DECREF(inputs);
    return NULL;
  }
  Arrays in, out;
  StartArrays(&in);
  StartArrays(&out);
  Run run;
  memset(&run, 0, sizeof run);
  run.kernel = self;
  PyObject* like = NULL;
  int failed = 1;
  if ((size_t)PyTuple_Size(inputs) != self->input_count) {
    RaiseNew(CLEAVE_INVALID_ARGUMENT, "the kernel takes %zu arrays, not %zd",
             self->input_count, PyTuple_Size(inputs));
  } else if (ReadArrays(inputs, self->dtype_names, 0, &in, &run.kind, &like) ==
                 0 &&
             ReadArrays(outputs, NULL, 1, &out, &run.kind, &like) == 0) {
    run.inputs = in.tensors;
    run.input_count = in.count;
    run.outputs = out.tensors;
    run.output_count = out.count;
    failed = Start(&run) != 0;
  }
  ReleaseArrays(&in);
  ReleaseArrays(&out);
  Py_DECREF(inputs);
  Py_DECREF(outputs);
  if (failed) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef kernel_methods[] = {
    {"lowered", KernelGraph, METH_NOARGS,
     "The graph of primitives it computes"},
    {"run_into", KernelRunInto, METH_VARARGS, "run_into(inputs, outputs)"},
    {"run_with_report", KernelReport, METH_O, "(arrays) -> (results, str)"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot kernel_slots[] = {{Py_tp_new, KernelNew},
                                     {Py_tp_dealloc, KernelDealloc},
                                     {Py_tp_call, KernelCall},
                                     {Py_tp_methods, kernel_methods},
                                     {Py_tp_doc, "Machine code of a graph."},
                                     {0, NULL}};

static PyType_Spec kernel_spec = {"cleave._native.Kernel", sizeof(KernelObject),
                                  0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                  kernel_slots};

KernelObject* KernelOf(PyObject* object) {
  if (PyObject_TypeCheck(object, kernel_type)) return (KernelObject*)object;
  PyErr_SetString(PyExc_TypeError, "a kernel is needed");
  return NULL;
}

int AddKernelType(PyObject* module) {
  kernel_type = AddType(module, &kernel_spec);
  return kernel_type == NULL ? -1 : 0;
}
