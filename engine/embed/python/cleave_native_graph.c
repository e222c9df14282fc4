/* `cleave._native.Graph`: what graphs.py builds its Graph on.
 *
 * Flags are `bytes` with an entry, 0 or 1, for each input. */
#include <string.h>

#include "engine/embed/python/cleave_native.h"

PyTypeObject* graph_type = NULL;

PyObject* NewGraph(cleave_graph* handle) {
  allocfunc allocate = (allocfunc)PyType_GetSlot(graph_type, Py_tp_alloc);
  GraphObject* self = (GraphObject*)allocate(graph_type, 0);
  if (self == NULL) {
    cleave_graph_release(handle);
    return NULL;
  }
  self->handle = handle;
  return (PyObject*)self;
}

static void GraphDealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  cleave_graph_release(((GraphObject*)self)->handle);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

static cleave_graph* HandleOf(PyObject* self) {
  return ((GraphObject*)self)->handle;
}

/* ------------------------------------------------------------ Questions -- */

static PyObject* GraphPrint(PyObject* self, PyObject* format) {
  const long number = PyLong_AsLong(format);
  if (number == -1 && PyErr_Occurred()) return NULL;
  cleave_text* text;
  cleave_status* error =
      cleave_graph_print(HandleOf(self), (int32_t)number, &text);
  return error != NULL ? Raise(error) : TakeText(text);
}

static PyObject* GraphSignature(PyObject* self, PyObject* nothing) {
  (void)nothing;
  cleave_text* text;
  cleave_status* error = cleave_graph_signature(HandleOf(self), &text);
  return error != NULL ? Raise(error) : TakeText(text);
}

static PyObject* GraphToRule(PyObject* self, PyObject* arguments) {
  const char* name;
  if (!PyArg_ParseTuple(arguments, "s", &name)) return NULL;
  cleave_text* text;
  cleave_status* error = cleave_graph_to_rule(HandleOf(self), name, &text);
  return error != NULL ? Raise(error) : TakeText(text);
}

static PyObject* GraphWithRules(PyObject* self, PyObject* arguments) {
  PyObject* rules;
  if (!PyArg_ParseTuple(arguments, "O!", rules_type, &rules)) return NULL;
  cleave_graph* out;
  cleave_status* error = cleave_graph_with_rules(
      HandleOf(self), ((RulesObject*)rules)->handle, &out);
  return error != NULL ? Raise(error) : NewGraph(out);
}

static PyObject* GraphSubstitute(PyObject* self, PyObject* arguments) {
  PyObject *names, *sizes;
  if (!PyArg_ParseTuple(arguments, "OO", &names, &sizes)) return NULL;
  Texts name_texts, size_texts;
  if (TextsOf(names, &name_texts) != 0) return NULL;
  if (TextsOf(sizes, &size_texts) != 0) {
    FreeTexts(&name_texts);
    return NULL;
  }
  PyObject* result = NULL;
  if (name_texts.count != size_texts.count) {
    PyErr_SetString(PyExc_ValueError, "as many names as sizes are needed");
  } else {
    cleave_graph* out;
    cleave_status* error =
        cleave_graph_substitute(HandleOf(self), name_texts.items,
                                size_texts.items, name_texts.count, &out);
    result = error != NULL ? Raise(error) : NewGraph(out);
  }
  FreeTexts(&name_texts);
  FreeTexts(&size_texts);
  return result;
}

/* ----------------------------------------------------------- Transforms -- */

/* The arguments and results of any of them. */
typedef struct {
  const cleave_graph* graph;
  const uint8_t* flags;
  size_t flag_count;
  const int32_t* in_axes;
  size_t in_count;
  const int32_t* out_axes;
  size_t out_count;
  const char* batch;
  int32_t number;
  size_t input;
  Texts preserve, only;
  const cleave_aot_options* aot;
  uint8_t* has_tangent;
  const char *name, *folder, *levels;
  cleave_graph *out, *second, *third;
  size_t residuals;
  cleave_text* text;
} Work;

/* Runs the body, and returns the graph that it makes. */
static PyObject* GraphBy(LongBody body, Work* work) {
  if (CallLong(body, work) != 0) {
    cleave_graph_release(work->out);
    cleave_graph_release(work->second);
    cleave_graph_release(work->third);
    cleave_text_free(work->text);
    return NULL;
  }
  return NewGraph(work->out);
}

static int FlagsOf(PyObject* arguments, PyObject* self, const char* format,
                   Work* work, int* number) {
  const char* flags;
  Py_ssize_t count;
  memset(work, 0, sizeof *work);
  work->graph = HandleOf(self);
  if (!PyArg_ParseTuple(arguments, format, &flags, &count, number)) return -1;
  work->flags = (const uint8_t*)flags;
  work->flag_count = (size_t)count;
  return 0;
}

/* Numbers of a sequence; the caller frees them by PyMem_Free. */
static int32_t* AxesOf(PyObject* sequence, size_t* count) {
  PyObject* tuple = PySequence_Tuple(sequence);
  if (tuple == NULL) return NULL;
  *count = (size_t)PyTuple_Size(tuple);
  int32_t* axes = PyMem_Calloc(*count + 1, sizeof *axes);
  if (axes == NULL) PyErr_NoMemory();
  for (size_t i = 0; axes != NULL && i < *count; ++i) {
    const long axis = PyLong_AsLong(PyTuple_GetItem(tuple, (Py_ssize_t)i));
    if (axis != (int32_t)axis) {
      PyErr_SetString(PyExc_ValueError, "an axis is a small number");
    }
    if (PyErr_Occurred()) {
      PyMem_Free(axes);
      axes = NULL;
      break;
    }
    axes[i] = (int32_t)axis;
  }
  Py_DECREF(tuple);
  return axes;
}

static cleave_status* VmapBody(void* arguments,
                               const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_vmap(w->graph, w->in_axes, w->in_count, w->batch, w->out_axes,
                     w->out_count, options, &w->out);
}

static PyObject* GraphVmap(PyObject* self, PyObject* arguments) {
  Work work;
  memset(&work, 0, sizeof work);
  work.graph = HandleOf(self);
  PyObject *in_axes, *out_axes;
  if (!PyArg_ParseTuple(arguments, "OzO", &in_axes, &work.batch, &out_axes)) {
    return NULL;
  }
  int32_t* in_numbers = AxesOf(in_axes, &work.in_count);
  if (in_numbers == NULL) return NULL;
  int32_t* out_numbers = NULL;
  if (out_axes != Py_None) {
    out_numbers = AxesOf(out_axes, &work.out_count);
    if (out_numbers == NULL) {
      PyMem_Free(in_numbers);
      return NULL;
    }
  }
  work.in_axes = in_numbers;
  work.out_axes = out_numbers;
  PyObject* result = GraphBy(VmapBody, &work);
  PyMem_Free(in_numbers);
  PyMem_Free(out_numbers);
  return result;
}

static cleave_status* JvpBody(void* arguments,
                              const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_jvp(w->graph, w->flags, w->flag_count, options, w->has_tangent,
                    &w->out);
}

static PyObject* GraphJvp(PyObject* self, PyObject* arguments) {
  Work work;
  if (FlagsOf(arguments, self, "y#", &work, NULL) != 0) return NULL;
  const size_t count = cleave_graph_output_count(work.graph);
  work.has_tangent = PyMem_Calloc(count + 1, 1);
  if (work.has_tangent == NULL) return PyErr_NoMemory();
  PyObject* graph = GraphBy(JvpBody, &work);
  PyObject* result = NULL;
  if (graph != NULL) {
    result =
        Py_BuildValue("Ny#", graph, (char*)work.has_tangent, (Py_ssize_t)count);
  }
  PyMem_Free(work.has_tangent);
  return result;
}

static cleave_status* VjpBody(void* arguments,
                              const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_vjp(w->graph, w->flags, w->flag_count, options, &w->out);
}

static PyObject* GraphVjp(PyObject* self, PyObject* arguments) {
  Work work;
  if (FlagsOf(arguments, self, "y#", &work, NULL) != 0) return NULL;
  return GraphBy(VjpBody, &work);
}

static cleave_status* GradBody(void* arguments,
                               const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_grad(w->graph, w->flags, w->flag_count, w->number, options,
                     &w->out);
}

static PyObject* GraphGrad(PyObject* self, PyObject* arguments) {
  Work work;
  int value = 0;
  if (FlagsOf(arguments, self, "y#p", &work, &value) != 0) return NULL;
  work.number = value;
  return GraphBy(GradBody, &work);
}

static cleave_status* JacobianBody(void* arguments,
                                   const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_jacobian(w->graph, w->input, w->number, options, &w->out);
}

static PyObject* GraphJacobian(PyObject* self, PyObject* arguments) {
  Work work;
  memset(&work, 0, sizeof work);
  work.graph = HandleOf(self);
  Py_ssize_t input;
  int kind;
  if (!PyArg_ParseTuple(arguments, "ni", &input, &kind)) return NULL;
  work.input = (size_t)input;
  work.number = kind;
  return GraphBy(JacobianBody, &work);
}

static cleave_status* LinearizeBody(void* arguments,
                                    const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_linearize(w->graph, w->flags, w->flag_count, options, &w->out,
                          &w->second, &w->residuals);
}

static PyObject* GraphLinearize(PyObject* self, PyObject* arguments) {
  Work work;
  if (FlagsOf(arguments, self, "y#", &work, NULL) != 0) return NULL;
  PyObject* primal = GraphBy(LinearizeBody, &work);
  if (primal == NULL) return NULL;
  return Py_BuildValue("NNn", primal, NewGraph(work.second),
                       (Py_ssize_t)work.residuals);
}

static cleave_status* TransposeBody(void* arguments,
                                    const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_transpose(w->graph, w->flags, w->flag_count, options, &w->out);
}

static PyObject* GraphTranspose(PyObject* self, PyObject* arguments) {
  Work work;
  if (FlagsOf(arguments, self, "y#", &work, NULL) != 0) return NULL;
  return GraphBy(TransposeBody, &work);
}

static cleave_status* ExpandBody(void* arguments,
                                 const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_expand(w->graph, w->preserve.items, w->preserve.count,
                       w->only.items, w->only.count, options, &w->out);
}

static PyObject* GraphExpand(PyObject* self, PyObject* arguments) {
  Work work;
  memset(&work, 0, sizeof work);
  work.graph = HandleOf(self);
  PyObject *preserve, *only;
  if (!PyArg_ParseTuple(arguments, "OO", &preserve, &only) ||
      TextsOf(preserve, &work.preserve) != 0) {
    return NULL;
  }
  PyObject* result = NULL;
  if (TextsOf(only, &work.only) == 0) result = GraphBy(ExpandBody, &work);
  FreeTexts(&work.preserve);
  FreeTexts(&work.only);
  return result;
}

static cleave_status* SimplifyBody(void* arguments,
                                   const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_simplify(w->graph, w->number, options, &w->out);
}

static PyObject* GraphSimplify(PyObject* self, PyObject* arguments) {
  Work work;
  memset(&work, 0, sizeof work);
  work.graph = HandleOf(self);
  int approx;
  if (!PyArg_ParseTuple(arguments, "p", &approx)) return NULL;
  work.number = approx;
  return GraphBy(SimplifyBody, &work);
}

static cleave_status* AotBody(void* arguments,
                              const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_aot(w->graph, w->flags, w->flag_count, w->aot, options, &w->out,
                    &w->second, &w->third, &w->text);
}

/* aot(flags, partition, budget, policy, names, decompose, preserve, expand,
 * parameters), None for what keeps its default. */
static PyObject* GraphAot(PyObject* self, PyObject* arguments) {
  Work work;
  memset(&work, 0, sizeof work);
  work.graph = HandleOf(self);
  cleave_aot_options aot;
  memset(&aot, 0, sizeof aot);
  aot.struct_size = sizeof aot;
  const char* flags;
  Py_ssize_t count;
  PyObject *names, *decompose, *preserve;
  int expand, parameters;
  if (!PyArg_ParseTuple(arguments, "y#zdzOOOpi", &flags, &count, &aot.partition,
                        &aot.budget, &aot.policy, &names, &decompose, &preserve,
                        &expand, &parameters)) {
    return NULL;
  }
  Texts name_texts = {0}, decompose_texts = {0}, preserve_texts = {0};
  PyObject* result = NULL;
  if (TextsOf(names, &name_texts) == 0 &&
      TextsOf(decompose, &decompose_texts) == 0 &&
      TextsOf(preserve, &preserve_texts) == 0) {
    work.flags = (const uint8_t*)flags;
    work.flag_count = (size_t)count;
    aot.names = name_texts.items;
    aot.name_count = name_texts.count;
    aot.decompose = decompose_texts.items;
    aot.decompose_count = decompose_texts.count;
    aot.preserve = preserve_texts.items;
    aot.preserve_count = preserve_texts.count;
    aot.expand = expand;
    aot.parameters = parameters;
    work.aot = &aot;
    PyObject* forward = GraphBy(AotBody, &work);
    if (forward != NULL) {
      result = Py_BuildValue("NNNN", forward, NewGraph(work.second),
                             NewGraph(work.third), TakeText(work.text));
    }
  }
  FreeTexts(&name_texts);
  FreeTexts(&decompose_texts);
  FreeTexts(&preserve_texts);
  return result;
}

static cleave_status* LibraryBody(void* arguments,
                                  const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_compile_library(w->graph, w->name, w->folder, w->levels,
                                options, &w->text);
}

static PyObject* GraphLibrary(PyObject* self, PyObject* arguments) {
  Work work;
  memset(&work, 0, sizeof work);
  work.graph = HandleOf(self);
  if (!PyArg_ParseTuple(arguments, "ssz", &work.name, &work.folder,
                        &work.levels)) {
    return NULL;
  }
  if (CallLong(LibraryBody, &work) != 0) {
    cleave_text_free(work.text);
    return NULL;
  }
  return TakeText(work.text);
}

static PyMethodDef graph_methods[] = {
    {"print", GraphPrint, METH_O, "print(format) -> str"},
    {"signature", GraphSignature, METH_NOARGS, "signature() -> str of JSON"},
    {"to_rule", GraphToRule, METH_VARARGS, "to_rule(name) -> str"},
    {"with_rules", GraphWithRules, METH_VARARGS, "with_rules(rules) -> Graph"},
    {"substitute", GraphSubstitute, METH_VARARGS,
     "substitute(names, sizes) -> Graph"},
    {"vmap", GraphVmap, METH_VARARGS, "vmap(in_axes, batch, out_axes)"},
    {"jvp", GraphJvp, METH_VARARGS, "jvp(flags) -> (Graph, has_tangent)"},
    {"vjp", GraphVjp, METH_VARARGS, "vjp(flags) -> Graph"},
    {"grad", GraphGrad, METH_VARARGS, "grad(flags, value) -> Graph"},
    {"jacobian", GraphJacobian, METH_VARARGS, "jacobian(input, kind)"},
    {"linearize", GraphLinearize, METH_VARARGS,
     "linearize(flags) -> (primal, linear, residuals)"},
    {"transpose", GraphTranspose, METH_VARARGS, "transpose(flags) -> Graph"},
    {"expand", GraphExpand, METH_VARARGS, "expand(preserve, only) -> Graph"},
    {"simplify", GraphSimplify, METH_VARARGS, "simplify(approx) -> Graph"},
    {"aot", GraphAot, METH_VARARGS,
     "aot(flags, ..) -> (forward, backward, joint, info)"},
    {"compile_library", GraphLibrary, METH_VARARGS,
     "compile_library(name, folder, levels) -> str of JSON"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot graph_slots[] = {{Py_tp_dealloc, GraphDealloc},
                                    {Py_tp_methods, graph_methods},
                                    {Py_tp_doc, "A graph of the library."},
                                    {0, NULL}};

static PyType_Spec graph_spec = {
    "cleave._native.Graph", sizeof(GraphObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, graph_slots};

int AddGraphType(PyObject* module) {
  graph_type = AddType(module, &graph_spec);
  return graph_type == NULL ? -1 : 0;
}
